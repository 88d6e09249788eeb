//! Redaction of plain text and cut JSON: the text after a name and `:` or `=` counts as its value.

use super::REDACTED;
use super::recognizable::{PEM_BEGINS, pem_length};

/// Only this many characters at the end of a longer name are compared.
const LONGEST_NAME: usize = 64;

/// Words before a credential that are not part of it.
const SCHEMES: [&str; 4] = ["bearer ", "basic ", "digest ", "token "];

/// The line endings, also as escapes in JSON.
const LINE_ENDS: [&str; 4] = ["\n", "\r", "\\n", "\\r"];

/// The end of an unquoted value.
enum ValueEnd {
    /// The end of a JSON member: its name is in quotes.
    Member,
    /// The quote that opened before the name, with that many backslashes.
    Quote(u8, usize),
    /// The end of the line: a header value may contain blanks and quotes.
    Line,
    /// The next blank.
    Word,
}

/// The text without the values of secret names; `None` if it has no such value.
pub(super) fn without(text: &str, is_secret: impl Fn(&str) -> bool) -> Option<String> {
    let mut clean = String::new();
    let (mut done, mut at) = (0, 0);
    while let Some(sign) = text.get(at..)?.find([':', '=']).map(|found| at + found) {
        at = sign + 1;
        let Some(ends) = named(text.get(done..sign)?, &is_secret) else { continue };
        let value = text.get(sign..)?.trim_start_matches([':', '=', '>']).trim_start();
        let start = text.len() - value.len();
        let ends = match ends {
            Some(ends) => ends,
            None if text.get(sign..)?.starts_with(':') => ValueEnd::Line,
            None => ValueEnd::Word,
        };
        let end = start + length(value, &ends);
        if end > start {
            clean.push_str(text.get(done..start)?);
            clean.push_str(REDACTED);
            (done, at) = (end, end);
        }
    }
    clean.push_str(text.get(done..)?);
    (done > 0).then_some(clean)
}

/// Whether a text ends in the name of a secret and, if quotes mark it, where the value ends.
fn named(before: &str, is_secret: impl Fn(&str) -> bool) -> Option<Option<ValueEnd>> {
    let before = before.trim_end();
    let (unquoted, is_quoted) = match before.strip_suffix(['"', '\'']) {
        Some(unquoted) => (unquoted.trim_end_matches('\\'), true),
        None => (before.strip_suffix(']').unwrap_or(before), false),
    };
    let letters = unquoted.chars().rev().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let length = letters.take(LONGEST_NAME).map(char::len_utf8).sum::<usize>();
    let (before, name) = unquoted.split_at_checked(unquoted.len() - length)?;
    if name.is_empty() || !is_secret(name) {
        return None;
    }
    let escapes = |before: &[u8]| before.iter().rev().take_while(|byte| **byte == b'\\').count();
    Some(match before.as_bytes() {
        _ if is_quoted => Some(ValueEnd::Member),
        [before @ .., quote @ (b'"' | b'\'')] => Some(ValueEnd::Quote(*quote, escapes(before))),
        _ => None,
    })
}

/// The length of a value in bytes.
fn length(value: &str, ends: &ValueEnd) -> usize {
    let begins = value.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    // A prefix such as `b'…'`.
    let quoted_at = if value.len() - begins.len() <= 2 { value.len() - begins.len() } else { 0 };
    let escapes = value.bytes().skip(quoted_at).take_while(|byte| *byte == b'\\').count();
    let opens = quoted_at + escapes;
    match value.as_bytes().get(opens) {
        Some(quote @ (b'"' | b'\'')) => opens + 1 + quoted(value.get(opens + 1..).unwrap_or_default(), *quote, escapes),
        // The end of a list or object that was cut short is unknown.
        Some(b'[' | b'{') if opens == 0 => value.len(),
        Some(b'|' | b'>') if opens == 0 => block(value),
        Some(_) | None if value.starts_with(PEM_BEGINS) => pem_length(value),
        Some(_) | None => match ends {
            ValueEnd::Member => up_to(value, |c| c.is_whitespace() || matches!(c, ',' | '}' | ']' | '"' | '\'' | '\\')),
            ValueEnd::Quote(quote, escapes) => {
                let length = quoted(value, *quote, *escapes);
                let closing = value.get(..length).is_some_and(|said| said.as_bytes().ends_with(&[*quote]));
                (length - if closing { 1 + escapes } else { 0 }).min(first(value, &LINE_ENDS))
            }
            ValueEnd::Line => line(value),
            ValueEnd::Word => word(value),
        },
    }
}

/// Up to and including a quote with at most as many backslashes as the opening one.
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

/// Up to the end of the line, or of the JSON string that contains the line.
fn line(value: &str) -> usize {
    first(value, &LINE_ENDS).min(first(value, &["\",\"", "\"}", "\"]"]))
}

/// A word, including an authorization scheme before it.
fn word(value: &str) -> usize {
    let scheme = SCHEMES
        .iter()
        .find(|scheme| value.get(..scheme.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(scheme)));
    let start = scheme.map_or(0, |scheme| scheme.len());
    let rest = value.get(start..).unwrap_or_default();
    start + up_to(rest, |c| c.is_whitespace() || matches!(c, '&' | '"' | '\'' | '\\'))
}

/// A YAML block: the indented lines below.
fn block(value: &str) -> usize {
    let lines = value.split_inclusive('\n').enumerate();
    let of_it =
        lines.take_while(|(number, line)| *number == 0 || line.trim().is_empty() || line.starts_with([' ', '\t']));
    of_it.map(|(_, line)| line.len()).sum()
}

fn first(value: &str, ends: &[&str]) -> usize {
    ends.iter().filter_map(|end| value.find(end)).min().unwrap_or(value.len())
}

fn up_to(value: &str, ends: impl Fn(char) -> bool) -> usize {
    value.find(ends).unwrap_or(value.len())
}
