//! Text that is no JSON, or no longer: what follows a name and `:` or `=` is taken for its value.

use std::sync::LazyLock;

use regex::Regex;

use super::REDACTED;

/// A name, perhaps quoted, perhaps in JSON that is quoted in JSON, and the sign that its value follows.
static NAMED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"([\p{Alphabetic}][\p{Alphabetic}\d_-]{1,63})(?:\\*["'])?\s{0,8}[:=]\s{0,8}"#).ok());

/// Words before a credential that are none.
const SCHEMES: [&str; 4] = ["bearer ", "basic ", "digest ", "token "];

/// The text without the values of secret names; `None` if there are none.
pub(super) fn without(text: &str, is_secret: impl Fn(&str) -> bool) -> Option<String> {
    let named = NAMED.as_ref()?;
    let mut clean = String::new();
    let mut done = 0;
    while let Some(found) = named.captures_at(text, done) {
        let (Some(whole), Some(name)) = (found.get(0), found.get(1)) else { break };
        let value = text.get(whole.end()..).unwrap_or_default();
        let end = whole.end() + if is_secret(name.as_str()) { length(value) } else { 0 };
        clean.push_str(text.get(done..whole.end()).unwrap_or_default());
        if end > whole.end() {
            clean.push_str(REDACTED);
        }
        done = end;
    }
    let changed = clean.contains(REDACTED);
    clean.push_str(text.get(done..).unwrap_or_default());
    changed.then_some(clean)
}

/// How far a value reaches, in bytes.
fn length(value: &str) -> usize {
    if value.starts_with(REDACTED) {
        return REDACTED.len();
    }
    let escapes = value.bytes().take_while(|byte| *byte == b'\\').count();
    match value.as_bytes().get(escapes) {
        Some(quote @ (b'"' | b'\'')) => {
            escapes + 1 + quoted(value.get(escapes + 1..).unwrap_or_default(), *quote, escapes)
        }
        // Where a list or an object ends that was cut short nobody knows.
        Some(b'[' | b'{') => value.len(),
        Some(_) | None => bare(value),
    }
}

/// Up to a quote that no more backslashes stand before than before the one that opened, and with it.
fn quoted(rest: &str, quote: u8, escapes: usize) -> usize {
    let mut before = 0;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'\\' => before += 1,
            _ if byte == quote && before <= escapes => return at + 1,
            _ => before = 0,
        }
    }
    rest.len()
}

/// A word, or a word after that for a way to authorize.
fn bare(value: &str) -> usize {
    let scheme = SCHEMES
        .iter()
        .find(|scheme| value.get(..scheme.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(scheme)));
    let start = scheme.map_or(0, |scheme| scheme.len());
    let rest = value.get(start..).unwrap_or_default();
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '&' | '"' | '\'' | '}' | ']' | '\\');
    start + rest.find(ends).unwrap_or(rest.len())
}
