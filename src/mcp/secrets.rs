//! Secrets of a server, redacted from what it writes. A server may format a value in its own way, so each line of a
//! value counts separately: a program that prints a multi-line key prints it line by line.

use std::ops::Range;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use crate::transport::OMISSION;

/// Shorter values (`1`, `debug`) do not count as secrets, and are shown.
const SHORTEST: usize = 8;
/// The minimum length of a part of a secret, at the end of a text or beside an omission, that is redacted.
const TELLING_PART: usize = 4;
/// How many omissions of a text are examined: more than an excerpt has.
const MAX_OMISSIONS: usize = 128;

/// The values to redact.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets(Arc<[SecretString]>);

impl Secrets {
    /// The values that can be secrets.
    pub(crate) fn among<'a>(values: impl IntoIterator<Item = &'a SecretString>) -> Self {
        // A value that is printed on one line has its line ends escaped.
        let lines = values.into_iter().flat_map(|value| value.expose_secret().split(['\n', '\r']));
        let pieces = lines.flat_map(|line| [line].into_iter().chain(line.split("\\n"))).map(str::trim);
        let mut secrets: Vec<&str> = pieces.filter(|piece| piece.len() >= SHORTEST).collect();
        secrets.sort_unstable();
        secrets.dedup();
        Self(secrets.into_iter().map(SecretString::from).collect())
    }

    /// The text without the secrets, and without their parts beside an omission.
    pub(crate) fn redacted(&self, text: &str) -> String {
        let mut places = self.places(text.as_bytes());
        for (at, omission) in text.match_indices(OMISSION).take(MAX_OMISSIONS) {
            let (before, behind) = text.split_at(at + omission.len());
            places.extend(self.begun(before.strip_suffix(omission).unwrap_or(before)));
            places.extend(self.ended(behind).map(|length| before.len()..before.len() + length));
        }
        without(text, merged(places))
    }

    /// The same for an unfinished line: a possible beginning of a secret is redacted as well.
    pub(crate) fn redacted_so_far(&self, line: &str) -> String {
        let mut places = self.places(line.as_bytes());
        places.extend(self.begun(line));
        without(line, merged(places))
    }

    /// The first position at or after this byte that does not cut a secret in two.
    pub(crate) fn cut(&self, text: &[u8], at: usize) -> usize {
        let across = self.places(text).into_iter().find(|place| place.start < at && at < place.end);
        across.map_or(at, |place| place.end)
    }

    /// The length of the longest secret.
    pub(crate) fn longest(&self) -> usize {
        self.0.iter().map(|secret| secret.expose_secret().len()).max().unwrap_or(0)
    }

    /// The positions of secrets, in order. Overlapping ones are merged: the rest of the longer one is still a secret.
    fn places(&self, text: &[u8]) -> Vec<Range<usize>> {
        let of = |secret: &SecretString| {
            let secret = secret.expose_secret().as_bytes();
            let at = text.windows(secret.len()).enumerate().filter(move |(_, window)| *window == secret);
            at.map(|(start, _)| start..start + secret.len()).collect::<Vec<_>>()
        };
        merged(self.0.iter().flat_map(of).collect())
    }

    /// The length of the longest suffix of a secret at the beginning of the text.
    fn ended(&self, text: &str) -> Option<usize> {
        let of = |secret: &SecretString| {
            let secret = secret.expose_secret();
            let mut suffixes = secret.char_indices().filter_map(|(at, _)| secret.get(at..));
            suffixes.find(|suffix| suffix.len() >= TELLING_PART && text.starts_with(suffix)).map(str::len)
        };
        self.0.iter().filter_map(of).max()
    }

    /// The longest prefix of a secret at the end of the text.
    fn begun(&self, text: &str) -> Option<Range<usize>> {
        let of = |secret: &SecretString| {
            let secret = secret.expose_secret();
            let ends = secret.char_indices().map(|(at, _)| at).filter(|at| *at >= TELLING_PART);
            ends.rev().find(|end| secret.get(..*end).is_some_and(|beginning| text.ends_with(beginning)))
        };
        let length = self.0.iter().filter_map(of).max()?;
        Some(text.len() - length..text.len())
    }
}

fn merged(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.sort_unstable_by_key(|place| (place.start, place.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for place in places {
        match merged.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => merged.push(place),
        }
    }
    merged
}

fn without(line: &str, places: Vec<Range<usize>>) -> String {
    let (mut shown, mut from) = (String::with_capacity(line.len()), 0);
    for place in places {
        shown.push_str(line.get(from..place.start).unwrap_or_default());
        shown.push_str("[redacted]");
        from = place.end;
    }
    shown + line.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets<const N: usize>(values: [&str; N]) -> Secrets {
        let values = values.map(SecretString::from);
        Secrets::among(&values)
    }

    #[test]
    fn each_line_of_a_value_is_a_secret() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\r\nkqhkiG9w0BAQEF==\n-----END KEY-----\n";
        let printed_at_once = key.replace('\n', "\\n");
        for secrets in [secrets([key]), secrets([&printed_at_once])] {
            for line in ["MIIEvQIBADANBg", "kqhkiG9w0BAQEF=="] {
                assert_eq!(secrets.redacted(&format!("key: {line}.")), "key: [redacted].");
            }
            assert!(!secrets.redacted(&printed_at_once).contains("MIIEvQ"));
        }
    }

    #[test]
    fn a_secret_that_begins_with_another_or_overlaps_it_is_taken_out_whole() {
        let secrets = secrets(["sk-01234", "sk-0123456789", "6789-and-on"]);
        for (line, expected) in [
            ("a sk-0123456789 b", "a [redacted] b"),
            ("a sk-01234 b", "a [redacted] b"),
            ("a sk-0123456789-and-on b", "a [redacted] b"),
            ("sk-01234sk-01234", "[redacted][redacted]"),
        ] {
            assert_eq!(secrets.redacted(line), expected);
        }
    }

    #[test]
    fn the_beginning_of_a_secret_in_an_unfinished_line_is_redacted() {
        let secrets = secrets(["sk-0123456789"]);
        assert_eq!(secrets.redacted_so_far("KEY=sk-01234"), "KEY=[redacted]");
        assert_eq!(secrets.redacted_so_far("a mask-"), "a mask-", "too little to tell");
        assert_eq!(secrets.redacted_so_far("sk-0123456789 sk-0123"), "[redacted] [redacted]");
    }

    #[test]
    fn parts_of_a_secret_beside_an_omission_are_redacted() {
        let secrets = secrets(["sk-0123456789"]);
        assert_eq!(secrets.redacted("it is no JSON: `{key: sk-01234...`"), "it is no JSON: `{key: [redacted]...`");
        assert_eq!(secrets.redacted("`{...456789}, {...`"), "`{...[redacted]}, {...`");
        assert_eq!(secrets.redacted("`sk-...789`"), "`sk-...789`", "too little to tell");
    }

    #[test]
    fn no_cut_goes_through_a_secret() {
        let secrets = secrets(["sk-0123456789"]);
        let text = b"1234567 sk-0123456789 890";
        let cuts: Vec<usize> = [8, 9, 20, 21, 22].into_iter().map(|at| secrets.cut(text, at)).collect();
        assert_eq!(cuts, [8, 21, 21, 21, 22]);
    }
}
