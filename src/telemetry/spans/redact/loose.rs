//! Text that is no JSON, or no longer: what follows a name and `:` or `=` is taken for its value.

use super::REDACTED;

/// Longer names than this are looked at from behind.
const LONGEST_NAME: usize = 64;

/// Words before a credential that are none.
const SCHEMES: [&str; 4] = ["bearer ", "basic ", "digest ", "token "];

/// A key that has lines, with the words around it.
const KEY_BEGINS: &str = "-----BEGIN";
const KEY_ENDS: &str = "-----END";

/// How a line ends, in JSON too.
const LINE_ENDS: [&str; 4] = ["\n", "\r", "\\n", "\\r"];

/// Where the value of a name ends that is not in quotes itself.
enum Ends {
    /// Where that of a member of JSON ends: its name is in quotes.
    Member,
    /// With the quote that the name begins with, after so many backslashes.
    Quote(u8, usize),
    /// With its line: what has the form of a header may have blanks and quotes in it.
    Line,
    /// With a blank.
    Word,
}

/// The text without the values of secret names; `None` if there are none.
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
            None if text.get(sign..)?.starts_with(':') => Ends::Line,
            None => Ends::Word,
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

/// Whether a text ends in the name of a secret and, if quotes tell it, where its value ends.
fn named(before: &str, is_secret: impl Fn(&str) -> bool) -> Option<Option<Ends>> {
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
        _ if is_quoted => Some(Ends::Member),
        [before @ .., quote @ (b'"' | b'\'')] => Some(Ends::Quote(*quote, escapes(before))),
        _ => None,
    })
}

/// How far a value reaches, in bytes.
fn length(value: &str, ends: &Ends) -> usize {
    let begins = value.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    // `b'…'` and the like.
    let quoted_at = if value.len() - begins.len() <= 2 { value.len() - begins.len() } else { 0 };
    let escapes = value.bytes().skip(quoted_at).take_while(|byte| *byte == b'\\').count();
    let opens = quoted_at + escapes;
    match value.as_bytes().get(opens) {
        Some(quote @ (b'"' | b'\'')) => opens + 1 + quoted(value.get(opens + 1..).unwrap_or_default(), *quote, escapes),
        // Where a list or an object ends that was cut short nobody knows.
        Some(b'[' | b'{') if opens == 0 => value.len(),
        Some(b'|' | b'>') if opens == 0 => block(value),
        Some(_) | None if value.starts_with(KEY_BEGINS) => key(value),
        Some(_) | None => match ends {
            Ends::Member => up_to(value, |c| c.is_whitespace() || matches!(c, ',' | '}' | ']' | '"' | '\'' | '\\')),
            Ends::Quote(quote, escapes) => {
                let length = quoted(value, *quote, *escapes);
                let closing = value.get(..length).is_some_and(|said| said.as_bytes().ends_with(&[*quote]));
                (length - if closing { 1 + escapes } else { 0 }).min(first(value, &LINE_ENDS))
            }
            Ends::Line => line(value),
            Ends::Word => word(value),
        },
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

/// Up to the end of the line, or of the text in JSON that the line is in.
fn line(value: &str) -> usize {
    first(value, &LINE_ENDS).min(first(value, &["\",\"", "\"}", "\"]"]))
}

/// A word, or a word after that for a way to authorize.
fn word(value: &str) -> usize {
    let scheme = SCHEMES
        .iter()
        .find(|scheme| value.get(..scheme.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(scheme)));
    let start = scheme.map_or(0, |scheme| scheme.len());
    let rest = value.get(start..).unwrap_or_default();
    start + up_to(rest, |c| c.is_whitespace() || matches!(c, '&' | '"' | '\'' | '\\'))
}

/// A block of YAML: the lines below that are indented.
fn block(value: &str) -> usize {
    let lines = value.split_inclusive('\n').enumerate();
    let of_it =
        lines.take_while(|(number, line)| *number == 0 || line.trim().is_empty() || line.starts_with([' ', '\t']));
    of_it.map(|(_, line)| line.len()).sum()
}

/// A key, to the end of the line that ends it.
fn key(value: &str) -> usize {
    let last = value.find(KEY_ENDS).and_then(|end| value.get(end + KEY_ENDS.len()..));
    last.and_then(|last| Some(value.len() - last.len() + last.find("-----")? + 5)).unwrap_or(value.len())
}

fn first(value: &str, ends: &[&str]) -> usize {
    ends.iter().filter_map(|end| value.find(end)).min().unwrap_or(value.len())
}

fn up_to(value: &str, ends: impl Fn(char) -> bool) -> usize {
    value.find(ends).unwrap_or(value.len())
}
