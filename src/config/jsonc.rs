//! Comments of JSON files, which editors accept in their settings.

/// The text with blanks in place of `// …` and `/* … */`, so that positions stay the same. Only for files that begin like
/// JSON: in YAML, these are text.
pub(super) fn without_comments(text: &str) -> String {
    let begins_as_json = |text: &str| text.trim_start().starts_with(['{', '/']);
    if !begins_as_json(text) {
        return text.to_owned();
    }
    let mut stripped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        let (before, from) = rest.split_at(at);
        stripped.push_str(before);
        let length = if from.starts_with('"') {
            let length = string_length(from);
            stripped.extend(from.get(..length));
            length
        } else {
            let length = comment_length(from);
            let comment = from.get(..length.max(1)).unwrap_or_default();
            match length {
                0 => stripped.push('/'),
                _ => stripped.extend(comment.chars().map(|c| if c == '\n' { '\n' } else { ' ' })),
            }
            length.max(1)
        };
        rest = from.get(length..).unwrap_or_default();
    }
    stripped.push_str(rest);
    stripped
}

/// The length of the string at the beginning, with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !is_escaped => return at + 1,
            _ => is_escaped = byte == b'\\' && !is_escaped,
        }
    }
    text.len()
}

/// The length of the comment at the beginning; 0 if there is none.
fn comment_length(text: &str) -> usize {
    if text.starts_with("//") {
        text.find('\n').unwrap_or(text.len())
    } else if text.starts_with("/*") {
        text.find("*/").map_or(text.len(), |end| end + 2)
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_blanks_and_strings_stay() {
        for (text, expected) in [
            ("{ // a \"b\"\n\"c\": 1}", "{         \n\"c\": 1}"),
            ("{/* a\n*/\"u\": \"https://x/*y*/\\\"//\"}", "{    \n  \"u\": \"https://x/*y*/\\\"//\"}"),
            ("{\"a\": 1 / 2}", "{\"a\": 1 / 2}"),
            ("a: // b", "a: // b"),
            ("{\"open // x", "{\"open // x"),
        ] {
            assert_eq!(without_comments(text), expected, "{text}");
        }
    }
}
