//! Tolerant JSON reader for text that a strict one refuses.
//!
//! It accepts invalid JSON that is unambiguous: half of a surrogate pair and bytes that are not UTF-8 become U+FFFD,
//! control characters in strings are kept, and the last of equal keys counts (as in every SDK). An invalid value
//! (`NaN`, `1e400`, excessive nesting) becomes `null` and a [`JsonFlaw`] with its position, so that only its container
//! is refused. Everything else is [`SyntaxError`].

use std::fmt;

use serde::de::IgnoredAny;
use serde_json::{Map, Number, Value};
use toolgate_core::json::{self, pointer_token};

use super::frames::Balance;
use super::quote::quoted;

/// The nesting limit: low enough for every strict reader behind this one.
const MAX_DEPTH: usize = json::MAX_DEPTH;
/// How many steps of the path to an excessively nested value are shown.
const SHOWN_STEPS: usize = 6;
/// How many flaws of one text are kept.
const MAX_FLAWS: usize = 1000;

/// A value that is not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonFlaw {
    /// The names and positions that lead to it.
    path: Vec<String>,
    what: String,
}

/// A text that is not JSON.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    /// The byte at which that is certain.
    pub(super) place: usize,
    pub(super) why: &'static str,
}

/// Reads a whole text.
pub(super) fn read(text: &[u8]) -> Result<(Value, Vec<JsonFlaw>), SyntaxError> {
    let mut reader = Reader { text, place: 0, path: Vec::new(), flaws: Vec::new() };
    let value = reader.value()?;
    reader.skip_space();
    match reader.peek() {
        None => Ok((value, reader.flaws)),
        Some(_) => Err(reader.broken("more follows behind the value")),
    }
}

impl JsonFlaw {
    /// The flaw with a path relative to the member of that name. `None` if it is not inside.
    pub(crate) fn within(&self, name: &str) -> Option<Self> {
        let (first, path) = self.path.split_first()?;
        (first == name).then(|| Self { path: path.to_vec(), what: self.what.clone() })
    }

    /// The name or position of the outermost value that contains it.
    pub(crate) fn outermost(&self) -> Option<&str> {
        self.path.first().map(String::as_str)
    }
}

impl fmt::Display for JsonFlaw {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer: String = self.path.iter().map(|step| format!("/{}", pointer_token(step))).collect();
        write!(to, "`{pointer}` is {}", self.what)
    }
}

struct Reader<'a> {
    text: &'a [u8],
    place: usize,
    path: Vec<String>,
    flaws: Vec<JsonFlaw>,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Value, SyntaxError> {
        self.skip_space();
        match self.peek() {
            Some(b'{' | b'[') if self.path.len() >= MAX_DEPTH => self.too_deep(),
            Some(b'{') => self.object(),
            Some(b'[') => self.list(),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.word(),
            Some(_) => Err(self.broken("a value is expected")),
            None => Err(self.broken("it ends in the middle")),
        }
    }

    fn object(&mut self) -> Result<Value, SyntaxError> {
        let mut members = Map::new();
        self.place += 1;
        self.skip_space();
        if self.take(b'}') {
            return Ok(members.into());
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key in double quotes is expected"));
            }
            let key = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return Err(self.expected("a colon is expected"));
            }
            self.path.push(key);
            let value = self.value()?;
            members.insert(self.path.pop().unwrap_or_default(), value);
            self.skip_space();
            if self.take(b'}') {
                return Ok(members.into());
            }
            if !self.take(b',') {
                return Err(self.expected("a comma or the end of the object is expected"));
            }
        }
    }

    fn list(&mut self) -> Result<Value, SyntaxError> {
        let mut items = Vec::new();
        self.place += 1;
        self.skip_space();
        if self.take(b']') {
            return Ok(items.into());
        }
        loop {
            self.path.push(items.len().to_string());
            items.push(self.value()?);
            self.path.pop();
            self.skip_space();
            if self.take(b']') {
                return Ok(items.into());
            }
            if !self.take(b',') {
                return Err(self.expected("a comma or the end of the list is expected"));
            }
        }
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        let mut bytes = Vec::new();
        self.place += 1;
        loop {
            let byte = self.peek().ok_or_else(|| self.broken("it ends in the middle"))?;
            self.place += 1;
            match byte {
                b'"' => break,
                b'\\' => self.escape(&mut bytes)?,
                _ => bytes.push(byte),
            }
        }
        Ok(String::from_utf8(bytes).unwrap_or_else(|wrong| String::from_utf8_lossy(wrong.as_bytes()).into_owned()))
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let escaped = self.peek().ok_or_else(|| self.broken("it ends in the middle"))?;
        self.place += 1;
        let letter = match escaped {
            b'"' | b'\\' | b'/' => char::from(escaped),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => self.unicode()?,
            _ => return Err(self.broken("there is no such escape")),
        };
        bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    /// The character after `\u`, which may take two escapes. Half of a pair is U+FFFD.
    fn unicode(&mut self) -> Result<char, SyntaxError> {
        let first = self.four_digits()?;
        if let Some(letter) = char::from_u32(first) {
            return Ok(letter);
        }
        if first < 0xdc00 && self.text.get(self.place..).is_some_and(|rest| rest.starts_with(b"\\u")) {
            let back = self.place;
            self.place += 2;
            let second = self.four_digits()?;
            if (0xdc00..0xe000).contains(&second) {
                let joined = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.place = back;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn four_digits(&mut self) -> Result<u32, SyntaxError> {
        let digits = self.text.get(self.place..self.place + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.place += 4;
        number.ok_or_else(|| self.broken("four hexadecimal digits are expected"))
    }

    fn number(&mut self) -> Result<Value, SyntaxError> {
        let begin = self.place;
        if self.take(b'-') && self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
            return self.word();
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) {
            self.place += 1;
        }
        let digits = self.text.get(begin..self.place).unwrap_or_default();
        match serde_json::from_slice::<Number>(digits) {
            Ok(number) => Ok(Value::Number(number)),
            Err(_) if serde_json::from_slice::<IgnoredAny>(digits).is_ok() => {
                self.flaw(format!("{}, which is larger than any number that can be read", quoted(digits)));
                Ok(Value::Null)
            }
            Err(_) => Err(self.broken("that is no number")),
        }
    }

    fn word(&mut self) -> Result<Value, SyntaxError> {
        let begin = self.place;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric()) {
            self.place += 1;
        }
        let word = self.text.get(begin..self.place).unwrap_or_default();
        let is_negative = begin.checked_sub(1).and_then(|before| self.text.get(before)) == Some(&b'-');
        match word {
            b"null" if !is_negative => Ok(Value::Null),
            b"true" if !is_negative => Ok(true.into()),
            b"false" if !is_negative => Ok(false.into()),
            b"NaN" | b"nan" | b"Infinity" | b"inf" | b"Inf" => {
                let sign = if is_negative { "-" } else { "" };
                self.flaw(format!("`{sign}{}`, which is no JSON value", String::from_utf8_lossy(word)));
                Ok(Value::Null)
            }
            _ => Err(SyntaxError { place: begin, why: "there is no such word" }),
        }
    }

    /// Skips an excessively nested list or object.
    fn too_deep(&mut self) -> Result<Value, SyntaxError> {
        let mut balance = Balance::default();
        loop {
            let byte = self.peek().ok_or_else(|| self.broken("it ends in the middle"))?;
            self.place += 1;
            balance.weigh(byte);
            if balance.is_even() {
                break;
            }
        }
        let path = self.path.iter().take(SHOWN_STEPS).cloned().collect();
        self.note(JsonFlaw { path, what: format!("nested more than {MAX_DEPTH} levels deep") });
        Ok(Value::Null)
    }

    fn flaw(&mut self, what: String) {
        self.note(JsonFlaw { path: self.path.clone(), what });
    }

    fn note(&mut self, flaw: JsonFlaw) {
        if self.flaws.len() < MAX_FLAWS {
            self.flaws.push(flaw);
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.place += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.place += usize::from(is_there);
        is_there
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.place).copied()
    }

    fn expected(&self, why: &'static str) -> SyntaxError {
        self.broken(if self.peek().is_none() { "it ends in the middle" } else { why })
    }

    fn broken(&self, why: &'static str) -> SyntaxError {
        SyntaxError { place: self.place.min(self.text.len()), why }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn lenient(text: &[u8]) -> (Value, Vec<String>) {
        let (value, flaws) = read(text).expect("it can be read");
        (value, flaws.iter().map(JsonFlaw::to_string).collect())
    }

    #[test]
    fn text_with_one_meaning_is_read() {
        for (text, value) in [
            (&br#""\ud83d""#[..], json!("\u{fffd}")),
            (br#""\ude00\ud83d\ude00\ud83dx""#, json!("\u{fffd}\u{1f600}\u{fffd}x")),
            (br#""\ud83d\u0041""#, json!("\u{fffd}A")),
            (b"\"caf\xe9\"", json!("caf\u{fffd}")),
            (b"\"a\tb\"", json!("a\tb")),
            (br#"{"a":1,"a":2}"#, json!({"a": 2})),
            (b" [ 1 , -2.5e3 , true , null , {} , [] ] ", json!([1, -2500.0, true, null, {}, []])),
        ] {
            assert_eq!(lenient(text), (value, vec![]), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn an_invalid_value_is_null_and_a_flaw_with_its_path() {
        let (value, flaws) = lenient(br#"{"a":[1,NaN,-Infinity],"b/c":{"d":1e400}}"#);
        assert_eq!(value, json!({"a": [1, null, null], "b/c": {"d": null}}));
        assert_eq!(
            flaws,
            [
                "`/a/1` is `NaN`, which is no JSON value",
                "`/a/2` is `-Infinity`, which is no JSON value",
                "`/b~1c/d` is `1e400`, which is larger than any number that can be read",
            ]
        );
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
        let (_, flaws) = lenient(deep.as_bytes());
        assert_eq!(flaws, ["`/a/0/0/0/0/0` is nested more than 100 levels deep"]);
    }

    #[test]
    fn text_without_a_meaning_is_broken_at_a_place() {
        for (text, place) in [
            ("{\"a\":", 5),
            ("{'a':1}", 1),
            ("[1,]", 3),
            ("{} {}", 3),
            ("\"\\x\"", 3),
            ("[01]", 3),
            ("[nope]", 1),
            ("", 0),
        ] {
            assert_eq!(read(text.as_bytes()).expect_err(text).place, place, "{text}");
        }
    }

    proptest! {
        /// This reader agrees with a strict reader on all valid JSON.
        #[test]
        fn a_text_that_is_json_is_read_as_a_strict_reader_does(text in json_text()) {
            let strict: Value = serde_json::from_str(&text).expect("JSON");
            prop_assert_eq!(read(text.as_bytes()), Ok((strict, vec![])));
        }

        /// No bytes make it panic or read without end.
        #[test]
        fn any_bytes_are_read_or_broken(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&bytes);
        }
    }

    fn json_text() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        let value = leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        });
        value.prop_map(|value| value.to_string())
    }
}
