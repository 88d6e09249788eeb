//! Prefilter of secret names: one pass over a text that rules out nearly all texts without a secret name, so that the exact
//! comparison runs on few of them.
//!
//! In a text, a secret name stands before `:` or `=`. So only the letters before these signs are compared, backwards, with
//! the endings that the patterns require. What may stand between a name and its sign (quotes, blanks, escapes of nested
//! JSON) is skipped generously: the filter may pass a text without a secret name, and never stops one that has it.

use std::collections::BTreeSet;

use regex::{Regex, RegexBuilder};

use crate::pattern::SIGNS;

/// A quick check for secret names.
#[derive(Clone, Debug, Default)]
pub(super) struct NameFilter {
    /// The ends of secret names, as plain names and backwards.
    endings: Vec<Vec<char>>,
    /// The last two letters of the endings: a bit for each letter before each last letter, by their lowest five bits.
    last_letters: [u32; 32],
    /// The patterns that have no such ending.
    others: OtherPatterns,
}

/// Patterns of which no ending is known.
#[derive(Clone, Debug, Default)]
enum OtherPatterns {
    #[default]
    None,
    /// A piece of each of them occurs in the name.
    Piece(Regex),
    /// One of them may match any name.
    Any,
}

impl NameFilter {
    pub(super) fn new(patterns: &BTreeSet<String>) -> Self {
        let mut filter = Self::default();
        let mut others = Vec::new();
        for pattern in patterns {
            match simple(pattern).filter(|(_, name)| name.len() >= 2 && name.chars().all(|c| c.is_ascii_alphanumeric()))
            {
                Some((_, name)) => filter.add(&name),
                None => others.push(piece(pattern)),
            }
        }
        if !others.is_empty() {
            let pieces = others.into_iter().collect::<Option<Vec<_>>>();
            let regex =
                pieces.and_then(|pieces| RegexBuilder::new(&pieces.join("|")).case_insensitive(true).build().ok());
            filter.others = regex.map_or(OtherPatterns::Any, OtherPatterns::Piece);
        }
        filter
    }

    fn add(&mut self, name: &str) {
        let ending: Vec<char> = name.chars().rev().collect();
        if let [last, before, ..] = *ending
            && let Some(bits) = self.last_letters.get_mut(low_bits(last))
        {
            *bits |= 1 << low_bits(before);
        }
        self.endings.push(ending);
    }

    /// Whether the value of a secret name may be in this text.
    pub(super) fn may_be_in(&self, text: &str) -> bool {
        let signs = memchr::memchr2_iter(b':', b'=', text.as_bytes());
        self.others.may_be_in(text) || signs.filter_map(|sign| text.get(..sign)).any(|before| self.ends(before))
    }

    /// Whether this may be a secret name.
    pub(super) fn may_end(&self, name: &str) -> bool {
        self.others.may_be_in(name) || self.ends(name)
    }

    /// Whether a text ends like a secret name, and what may stand between a name and its sign.
    fn ends(&self, text: &str) -> bool {
        let text = without_quotes(text);
        let mut letters = text.chars().rev().filter(|c| !matches!(c, '-' | '_')).map(lower_case);
        let all = letters.clone();
        let (Some(last), Some(before)) = (letters.next(), letters.next()) else { return false };
        let is_known = self.last_letters.get(low_bits(last)).is_some_and(|bits| bits >> low_bits(before) & 1 == 1);
        let is_whole = |ending: &Vec<char>| all.clone().take(ending.len()).eq(ending.iter().copied());
        is_known && self.endings.iter().any(is_whole)
    }
}

impl OtherPatterns {
    fn may_be_in(&self, text: &str) -> bool {
        match self {
            Self::None => false,
            Self::Piece(regex) => regex.is_match(text),
            Self::Any => true,
        }
    }
}

/// A pattern without wildcards, or with one at the beginning: whether it has that one, and the rest as a plain name.
pub(super) fn simple(pattern: &str) -> Option<(bool, String)> {
    let rest = pattern.strip_prefix('*');
    let name = plain(rest.unwrap_or(pattern));
    (!name.is_empty() && !name.contains(SIGNS) && !name.contains('\\')).then_some((rest.is_some(), name))
}

/// A name in its compared form.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// A regex of a literal piece that every name of this pattern contains; `None` if it has no useful piece.
fn piece(pattern: &str) -> Option<String> {
    // A character class or an alternative does not occur in every name.
    let sure = pattern.split(['[', '{', '\\']).next().unwrap_or_default();
    let longest = sure.split(['*', '?']).map(plain).max_by_key(String::len).unwrap_or_default();
    let letters: Vec<String> = longest.chars().map(|letter| regex::escape(&letter.to_string())).collect();
    (longest.len() >= 2).then(|| letters.join("[-_]*"))
}

/// The text without blanks, quotes, brackets and escapes at its end.
fn without_quotes(text: &str) -> &str {
    let mut text = text;
    loop {
        text = text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ']' | '\\'));
        match text.as_bytes() {
            [.., b'\\', b'n' | b'r' | b't' | b'f' | b'b'] => text = text.get(..text.len() - 2).unwrap_or_default(),
            _ => return text,
        }
    }
}

/// A letter in the case in which names are compared.
fn lower_case(letter: char) -> char {
    if letter.is_ascii() { letter.to_ascii_lowercase() } else { letter.to_lowercase().next().unwrap_or(letter) }
}

fn low_bits(letter: char) -> usize {
    usize::from(u8::try_from(u32::from(letter) & 31).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value as Json, json};

    use crate::redact::SecretNames;

    const NAMES: [&str; 20] = [
        "password",
        "PASS-WORD",
        "pass_word",
        "api_key",
        "a-p-i--key_",
        "token",
        "to\u{212A}en",
        "TO_\u{212A}EN",
        "pin",
        "mapping",
        "authorization",
        "x-y-key",
        "My_Secret",
        "mysecrets",
        "größe",
        "n",
        "description",
        "\u{130}d",
        "日本",
        "pass\\u0077ord",
    ];
    /// What may stand between a name and its sign.
    const BETWEEN: [&str; 14] = ["", "", "", "\"", "'", "\\\"", "\n", "\t", "\\n", "\r\n", "\u{a0}", "]", "\u{c}", "_"];
    const SIGNS: [&str; 6] = [":", "=", ": ", " = ", "=>", " "];
    const FORMS: [&str; 20] = [
        "https://",
        "https:\\/\\/",
        "u:pw@h",
        "u:p/w@h",
        "://",
        "-----BEGIN",
        "-----END K-----",
        "4111111111111111",
        "4111 1111 1111 1111",
        "5500-0000-0000-0004",
        "1764357600000",
        "4111",
        " 1111",
        "12 ",
        "hunter2",
        "\\/",
        "\n",
        "{",
        "[",
        "x",
    ];

    /// Texts with and without secrets.
    fn text() -> impl Strategy<Value = String> {
        let of = |pieces: &'static [&'static str]| prop::sample::select(pieces);
        let named = (of(&NAMES), of(&BETWEEN), of(&BETWEEN), of(&SIGNS), of(&FORMS));
        let named = named.prop_map(|(name, one, other, sign, value)| [name, one, other, sign, value].concat());
        let form = prop::collection::vec(of(&FORMS), 1..4).prop_map(|forms| forms.concat());
        let piece = prop_oneof![4 => named, 3 => form, 1 => ".{0,3}"];
        prop::collection::vec(piece, 1..3).prop_map(|pieces| pieces.concat())
    }

    fn names() -> [SecretNames; 4] {
        let new = |patterns: &[&str]| SecretNames::new(patterns.iter().copied()).unwrap();
        let mixed = new(&["*secret*", "pin", "x-[xy]-key", "größe", "日本", "n", "*key"]);
        [
            SecretNames::usual(),
            new(&["*secret*", "größe", "token", "x-y-*"]),
            mixed.with_recognizable(true),
            SecretNames::default().with_recognizable(true),
        ]
    }

    /// The text as it is, and as JSON and JSON within JSON quote it.
    fn quoted(text: &str) -> [String; 4] {
        let inner = json!({ "a": text, text: 1 }).to_string();
        let php = json!([text]).to_string().replace('/', "\\/");
        [text.to_owned(), json!([inner]).to_string(), inner, php]
    }

    proptest! {
        #[test]
        fn no_text_with_a_secret_is_ruled_out(text in text()) {
            for text in quoted(&text) {
                for names in names() {
                    prop_assert_eq!(names.redacted(&text), names.redacted_exactly(&text), "{:?}", text);
                }
            }
        }

        #[test]
        fn a_card_number_is_found_at_any_position(before in "[a-z0-9 .-]{0,30}", gap in "[ :]", after in "[ ,a-z]{0,20}") {
            let text = format!("{before}{gap}x 4111 1111 1111 1111{after}");
            let names = SecretNames::usual();
            prop_assert_eq!(names.redacted(&text), names.redacted_exactly(&text));
        }
    }

    #[test]
    fn ordinary_texts_are_ruled_out() {
        let schema =
            json!({"type": "object", "properties": {"path": {"type": "string", "description": "a path: key"}}});
        for text in [
            "The description: 12 files, see https://docs.example/a",
            "{\"mapping\":1764357600000,\"monkey\":\"4111 1111\",\"at\":\"2026-11-28 23:24:09\"}",
            "write to ann@example.org: a-b",
            &Json::to_string(&schema),
        ] {
            assert!(!SecretNames::usual().may_be_in(text), "{text}");
        }
    }
}
