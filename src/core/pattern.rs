//! Name patterns: `*`, `?`, `[a-z]`, `{a,b}`.
//!
//! Names are text, not paths: a pattern is compared with the whole name, character by character, and neither a slash
//! nor the end of a line is special. An ambiguous pattern is refused, so that no pattern silently misses.

use std::fmt;
use std::iter::Peekable;
use std::str::Chars;
use std::sync::{Arc, OnceLock};

use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

/// Any text. Bytewise, which matches the same names as whole characters on both sides, and is faster.
const ANY_TEXT: &str = "(?s-u:.)*";

const ANY_CHARACTER: &str = "(?s:.)";

/// Characters with a special meaning, besides `\\`.
pub(crate) const SIGNS: [char; 5] = ['*', '?', '[', '{', '}'];

/// A parsed name pattern.
#[derive(Clone, Debug)]
pub struct Pattern(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Anything,
    Exactly(String),
    Like(Regex),
}

/// A pattern in its written form. It is parsed on the first comparison, once for all its copies.
#[derive(Clone, Deserialize, Serialize)]
#[serde(from = "String", into = "String")]
pub struct NamePattern {
    text: String,
    read: Arc<OnceLock<Result<Pattern, String>>>,
}

/// The text before the first wildcard of a pattern.
pub(crate) fn literal_start(pattern: &str) -> &str {
    pattern.split(|sign| SIGNS.contains(&sign) || sign == '\\').next().unwrap_or_default()
}

impl Pattern {
    /// Parses a pattern; the error names what is wrong with it.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        if pattern.is_empty() {
            return Err("it is empty, and no name is".to_owned());
        }
        if pattern.chars().all(|c| c == '*') {
            return Ok(Self(Kind::Anything));
        }
        if !pattern.contains(SIGNS) && !pattern.contains('\\') {
            return Ok(Self(Kind::Exactly(pattern.to_owned())));
        }
        let regex = Regex::new(&Reader::read(pattern)?).map_err(|_| "it is too large".to_owned())?;
        Ok(Self(Kind::Like(regex)))
    }

    /// The pattern that matches this text alone.
    pub fn exactly(text: &str) -> String {
        let escaped = |c: char| [(SIGNS.contains(&c) || c == '\\').then_some('\\'), Some(c)];
        text.chars().flat_map(escaped).flatten().collect()
    }

    /// Whether the whole text matches.
    pub fn fits(&self, text: &str) -> bool {
        match &self.0 {
            Kind::Anything => true,
            Kind::Exactly(exactly) => exactly == text,
            Kind::Like(regex) => regex.is_match(text.as_bytes()),
        }
    }
}

impl NamePattern {
    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name, if the pattern is one without wildcards.
    pub fn plain_name(&self) -> Option<&str> {
        (!self.text.contains(SIGNS) && !self.text.contains('\\')).then_some(&self.text)
    }

    /// Whether the whole text matches; the error names what is wrong with the pattern.
    pub fn fits(&self, text: &str) -> Result<bool, &str> {
        let read = self.read.get_or_init(|| Pattern::parse(&self.text));
        read.as_ref().map(|pattern| pattern.fits(text)).map_err(String::as_str)
    }
}

impl From<String> for NamePattern {
    fn from(text: String) -> Self {
        Self { text, read: Arc::default() }
    }
}

impl From<&str> for NamePattern {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<NamePattern> for String {
    fn from(pattern: NamePattern) -> Self {
        pattern.text
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NamePattern {}

impl fmt::Debug for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

/// Translates a pattern into a regular expression.
struct Reader<'a> {
    signs: Peekable<Chars<'a>>,
    /// The number of open `{`.
    open: usize,
    regex: String,
}

impl<'a> Reader<'a> {
    fn read(pattern: &'a str) -> Result<String, String> {
        let mut reader = Self { signs: pattern.chars().peekable(), open: 0, regex: r"\A".to_owned() };
        while let Some(sign) = reader.signs.next() {
            reader.sign(sign)?;
        }
        if reader.open > 0 {
            return Err(r"there is no `}` for a `{`; `\{` is the character itself".to_owned());
        }
        Ok(reader.regex + r"\z")
    }

    fn sign(&mut self, sign: char) -> Result<(), String> {
        match sign {
            '*' => {
                while self.signs.next_if_eq(&'*').is_some() {}
                self.regex += ANY_TEXT;
            }
            '?' => self.regex += ANY_CHARACTER,
            '[' => self.class()?,
            '{' => {
                self.open += 1;
                self.regex += "(?:";
            }
            ',' if self.open > 0 => self.regex.push('|'),
            '}' if self.open > 0 => {
                self.open -= 1;
                self.regex.push(')');
            }
            '}' => return Err(r"there is no `{` for a `}`; `\}` is the character itself".to_owned()),
            '\\' => {
                let itself = self.itself()?;
                self.regex += &character(itself);
            }
            other => self.regex += &character(other),
        }
        Ok(())
    }

    /// One of these characters, or with `!` or `^` any other character. A leading `]` is one of them.
    fn class(&mut self) -> Result<(), String> {
        self.regex.push('[');
        if self.signs.next_if(|sign| matches!(sign, '!' | '^')).is_some() {
            self.regex.push('^');
        }
        let mut first = true;
        loop {
            let from = match self.signs.next() {
                None => return Err(r"there is no `]` for a `[`; `\[` is the character itself".to_owned()),
                Some(']') if !first => break,
                Some('\\') => self.itself()?,
                Some(other) => other,
            };
            first = false;
            self.regex += &character(from);
            if let Some(to) = self.end_of_range()? {
                if to < from {
                    return Err(format!("`{from}-{to}` runs backwards"));
                }
                self.regex.push('-');
                self.regex += &character(to);
            }
        }
        self.regex.push(']');
        Ok(())
    }

    /// The end of a range after `-`. A trailing `-` is an ordinary character.
    fn end_of_range(&mut self) -> Result<Option<char>, String> {
        let mut ahead = self.signs.clone();
        if ahead.next() != Some('-') || matches!(ahead.next(), None | Some(']')) {
            return Ok(None);
        }
        self.signs.next();
        match self.signs.next() {
            Some('\\') => self.itself().map(Some),
            to => Ok(to),
        }
    }

    fn itself(&mut self) -> Result<char, String> {
        self.signs.next().ok_or_else(|| r"it ends in `\`; `\\` is the character itself".to_owned())
    }
}

fn character(c: char) -> String {
    format!(r"\x{{{:x}}}", u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_what_its_author_means() {
        for (pattern, fits, misses) in [
            ("delete{,_all}", &["delete", "delete_all"][..], &["delete_", "delete_all_", "xdelete"][..]),
            ("{,un}do", &["do", "undo"], &["redo"]),
            ("{a,{b,c}d}*", &["a", "bd", "cdx"], &["b", "x"]),
            ("caf?", &["café", "cafe", "caf\u{1f600}"], &["caf", "cafés"]),
            ("[é-ü]x", &["éx", "öx"], &["ex", "x"]),
            ("[!é]", &["e", "\n", "ü"], &["é", "ee"]),
            ("[]a-]", &["]", "a", "-"], &["b", "]a"]),
            (r"[\]\\]", &["]", "\\"], &["a"]),
            ("é*ü", &["éü", "é x ü", "éüü"], &["é", "éüx"]),
            ("*?", &["é", "aé"], &[""]),
            ("a*c", &["ac", "a\nc", "a/b/c"], &["acb"]),
            ("**", &["", "a/b\n"], &[]),
            ("a/**/b", &["a/x/b", "a/x/y/b", "a//b"], &["a/b", "ab"]),
            (r"a\*", &["a*"], &["ab", r"a\*"]),
            ("a,b", &["a,b"], &["a", "b"]),
            ("a.b+(c)$", &["a.b+(c)$"], &["aXb+(c)$"]),
            ("Pay", &["Pay"], &["pay", "Pay "]),
            ("team]1", &["team]1"], &["team1"]),
        ] {
            let read = Pattern::parse(pattern).unwrap();
            fits.iter().for_each(|text| assert!(read.fits(text), "{pattern} and {text:?}"));
            misses.iter().for_each(|text| assert!(!read.fits(text), "{pattern} and {text:?}"));
        }
    }

    #[test]
    fn copies_of_a_pattern_are_parsed_once_and_keep_their_text() {
        let pattern: NamePattern = serde_json::from_str(r#""delete{,_all}""#).unwrap();
        let copy = pattern.clone();
        assert_eq!((pattern.fits("delete"), pattern.fits("deleted")), (Ok(true), Ok(false)));
        assert!(copy.read.get().is_some(), "all copies share one parsed pattern");
        assert_eq!((serde_json::to_string(&copy).unwrap(), copy), (r#""delete{,_all}""#.to_owned(), pattern));
        assert!(NamePattern::from("{a").fits("a").is_err());
    }

    #[test]
    fn ambiguous_patterns_are_refused_in_words() {
        for (pattern, reason) in [
            ("", "it is empty"),
            ("a[b", "no `]` for a `[`"),
            ("[", "no `]` for a `[`"),
            ("[]", "no `]` for a `[`"),
            ("{a,b", "no `}` for a `{`"),
            ("a}", "no `{` for a `}`"),
            ("[z-a]", "`z-a` runs backwards"),
            (r"a\", r"it ends in `\`"),
            (&"{".repeat(3000), "no `}`"),
            (&format!("{}a{}", "{".repeat(3000), "}".repeat(3000)), "too large"),
        ] {
            let error = Pattern::parse(pattern).unwrap_err();
            assert!(error.contains(reason), "{pattern}: {error}");
        }
    }

    #[test]
    fn an_escaped_text_matches_only_itself() {
        for text in ["*", "team[1]", "{a,b}", r"a\b", "a?", "plain,", "}", "é"] {
            let pattern = Pattern::parse(&Pattern::exactly(text)).unwrap();
            assert!(pattern.fits(text), "{text}");
            for other in ["team1", "a", "b", "ab", "ax", "anything"] {
                assert!(!pattern.fits(other), "{text} and {other}");
            }
        }
    }
}
