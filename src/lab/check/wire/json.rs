//! Tolerant reader of messages: reads what has one meaning, and names each mistake of the notation.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// A mistake of the notation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::check) enum Flaw {
    /// Bytes that are not UTF-8.
    NotUtf8,
    ByteOrderMark,
    /// NaN, Infinity, or a number beyond the range of a double.
    NotANumber,
    /// An escape of half a character.
    LoneSurrogate,
    /// A member of the message itself that occurs twice.
    DuplicateKey(String),
}

/// A value with the mistakes of its notation.
#[derive(Debug)]
pub(in crate::check) struct Parsed {
    pub(in crate::check) value: Value,
    pub(in crate::check) flaws: Vec<Flaw>,
}

/// Reads a message; `None` if it is not JSON even with these mistakes.
pub(in crate::check) fn parse(bytes: &[u8]) -> Option<Parsed> {
    let mut flaws = Vec::new();
    let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => {
            flaws.push(Flaw::ByteOrderMark);
            rest
        }
        None => bytes,
    };
    let text = String::from_utf8_lossy(bytes);
    if std::str::from_utf8(bytes).is_err() {
        flaws.push(Flaw::NotUtf8);
    }
    let text = text.trim();
    let value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(_) => {
            let (repaired, found) = repaired(text);
            flaws.extend(found);
            serde_json::from_str(&repaired).ok()?
        }
    };
    flaws.extend(duplicate_key(text).map(Flaw::DuplicateKey));
    Some(Parsed { value, flaws })
}

/// The text with null for numbers that JSON does not have, and a replacement character for half characters.
fn repaired(text: &str) -> (String, Vec<Flaw>) {
    let (mut out, mut flaws) = (String::with_capacity(text.len()), Vec::new());
    let (mut rest, mut in_string) = (text, false);
    while let Some(first) = rest.chars().next() {
        let (written, length) = match (in_string, first) {
            (true, '\\') => escape(rest, &mut flaws),
            (_, '"') => {
                in_string = !in_string;
                ("\"".to_owned(), 1)
            }
            (false, 'N' | 'I' | '-' | '0'..='9') => number(rest, &mut flaws),
            (true | false, other) => (other.to_string(), other.len_utf8()),
        };
        out.push_str(&written);
        rest = rest.get(length..).unwrap_or_default();
    }
    flaws.dedup();
    (out, flaws)
}

/// An escape in a string, and the number of bytes that it takes.
fn escape(rest: &str, flaws: &mut Vec<Flaw>) -> (String, usize) {
    let unit = |from: usize| {
        let hex = rest.get(from..from + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(hex, 16).ok()
    };
    match (unit(0), unit(6)) {
        (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (rest.get(..12).unwrap_or_default().to_owned(), 12),
        (Some(0xD800..=0xDFFF), _) => {
            flaws.push(Flaw::LoneSurrogate);
            ("\\ufffd".to_owned(), 6)
        }
        (Some(_) | None, _) => {
            let length = 1 + rest.chars().nth(1).map_or(0, char::len_utf8);
            (rest.get(..length).unwrap_or(rest).to_owned(), length)
        }
    }
}

/// A number outside of a string, and the number of bytes that it takes.
fn number(rest: &str, flaws: &mut Vec<Flaw>) -> (String, usize) {
    if let Some(word) = ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| rest.starts_with(word)) {
        flaws.push(Flaw::NotANumber);
        return ("null".to_owned(), word.len());
    }
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
    let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len()).max(1);
    let digits = rest.get(..length).unwrap_or_default();
    if digits.parse::<f64>().is_ok_and(f64::is_infinite) {
        flaws.push(Flaw::NotANumber);
        return ("null".to_owned(), length);
    }
    (digits.to_owned(), length)
}

/// The first member of the root that occurs twice.
fn duplicate_key(text: &str) -> Option<String> {
    struct Keys;
    impl<'de> Visitor<'de> for Keys {
        type Value = Option<String>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let (mut seen, mut twice): (Vec<String>, _) = (Vec::new(), None);
            while let Some(key) = members.next_key::<String>()? {
                members.next_value::<IgnoredAny>()?;
                if seen.contains(&key) {
                    twice.get_or_insert(key);
                } else if seen.len() < 100 {
                    seen.push(key);
                }
            }
            Ok(twice)
        }
    }
    serde_json::Deserializer::from_str(text).deserialize_map(Keys).ok().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &[u8]) -> Option<(Value, Vec<Flaw>)> {
        parse(text).map(|parsed| (parsed.value, parsed.flaws))
    }

    #[test]
    fn numbers_that_json_does_not_have_become_null() {
        let text = br#"{"a": NaN, "b": [-Infinity, 1e999, 2.5], "c": "NaN"}"#;
        let value = json!({"a": null, "b": [null, null, 2.5], "c": "NaN"});
        assert_eq!(read(text), Some((value, vec![Flaw::NotANumber])));
    }

    #[test]
    fn half_characters_are_replaced_and_whole_ones_stay() {
        let text = br#"{"a": "x\ud83d", "b": "\ud83d\ude00 \\ud83d"}"#;
        let value = json!({"a": "x\u{fffd}", "b": "😀 \\ud83d"});
        assert_eq!(read(text), Some((value, vec![Flaw::LoneSurrogate])));
    }

    #[test]
    fn a_valid_message_has_no_flaw() {
        assert_eq!(read(b" {\"id\": 1}\r\n"), Some((json!({"id": 1}), vec![])));
        assert_eq!(read(b"Listening on port 3000"), None);
        assert_eq!(read(b"{\"id\": 1, \"id\": 2}").unwrap().1, [Flaw::DuplicateKey("id".into())]);
    }
}
