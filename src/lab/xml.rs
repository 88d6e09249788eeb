//! Text in XML, for JUnit reports.

/// A text as content or as an attribute. Characters that XML does not allow are left out.
pub(crate) fn escaped(text: &str) -> String {
    let is_allowed = |c: &char| matches!(c, '\t' | '\n') || (!c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}'));
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars().filter(is_allowed) {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}
