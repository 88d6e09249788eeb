//! Secrets of a child, redacted from its output. A child may format a value in its own way, so each line of a value
//! counts separately: a program that prints a multi-line key prints it line by line.

use std::ffi::OsString;
use std::ops::Range;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use super::environment;
use crate::settings::StdioSettings;

/// Shorter values (`1`, `debug`) do not count as secrets, and are shown.
const SHORTEST: usize = 8;
/// The minimum length of a secret's prefix at the end of a text that is redacted.
const TELLING_START: usize = 4;

/// The values to redact.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets(Arc<[SecretString]>);

impl Secrets {
    /// The secrets of a child with these settings, including the inherited variables of `own`.
    pub(super) fn of(settings: &StdioSettings, own: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let inherited = if settings.inherit_env { environment::confidential(own) } else { Vec::new() };
        Self::among(settings.env.values().chain(&inherited))
    }

    /// The values that can be secrets.
    pub(super) fn among<'a>(values: impl IntoIterator<Item = &'a SecretString>) -> Self {
        // A value that is printed on one line has its line ends escaped.
        let lines = values.into_iter().flat_map(|value| value.expose_secret().split(['\n', '\r']));
        let pieces = lines.flat_map(|line| [line].into_iter().chain(line.split("\\n"))).map(str::trim);
        let mut secrets: Vec<&str> = pieces.filter(|piece| piece.len() >= SHORTEST).collect();
        secrets.sort_unstable();
        secrets.dedup();
        Self(secrets.into_iter().map(SecretString::from).collect())
    }

    /// The line without the secrets.
    pub(super) fn redacted(&self, line: &str) -> String {
        without(line, self.places(line.as_bytes()))
    }

    /// The same for an unfinished line: a possible beginning of a secret is redacted as well.
    pub(super) fn redacted_so_far(&self, line: &str) -> String {
        let mut places = self.places(line.as_bytes());
        places.extend(self.begun(line));
        without(line, merged(places))
    }

    /// The first position at or after this byte that does not cut a secret in two.
    pub(super) fn cut(&self, text: &[u8], at: usize) -> usize {
        let across = self.places(text).into_iter().find(|place| place.start < at && at < place.end);
        across.map_or(at, |place| place.end)
    }

    /// The length of the longest secret.
    pub(super) fn longest(&self) -> usize {
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

    /// The longest prefix of a secret at the end of the text.
    fn begun(&self, text: &str) -> Option<Range<usize>> {
        let of = |secret: &SecretString| {
            let secret = secret.expose_secret();
            let ends = secret.char_indices().map(|(at, _)| at).filter(|at| *at >= TELLING_START);
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
    fn inherited_and_configured_secrets_are_redacted_alike() {
        let settings = |inherit_env| StdioSettings {
            env: [("A".to_owned(), SecretString::from("given-0123456789"))].into(),
            inherit_env,
            ..StdioSettings::default()
        };
        let shown = |inherit_env| {
            let own = [("SLACK_TOKEN".into(), "own-0123456789".into())];
            Secrets::of(&settings(inherit_env), own).redacted("given-0123456789 own-0123456789")
        };
        assert_eq!(shown(true), "[redacted] [redacted]");
        assert_eq!(shown(false), "[redacted] own-0123456789", "it does not know it");
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
    fn no_cut_goes_through_a_secret() {
        let secrets = secrets(["sk-0123456789"]);
        let text = b"1234567 sk-0123456789 890";
        let cuts: Vec<usize> = [8, 9, 20, 21, 22].into_iter().map(|at| secrets.cut(text, at)).collect();
        assert_eq!(cuts, [8, 21, 21, 21, 22]);
    }
}
