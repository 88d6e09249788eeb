//! Redaction of known secrets from texts: as they are, and as JSON, JSON within JSON, addresses, forms and HTML of common
//! libraries escape them.
//!
//! - Of a *value*, no whole line is left. A piece of it may be any word.
//! - Of a *credential*, no piece of eight bytes is left, because servers echo keys in part (`sk-proj-***`).
//! - Of neither, a part of four bytes is left at the end of an unfinished text, or beside one of the first or last 128
//!   omissions of each kind.
//!
//! Known secrets are found by value (decision 0035). The owner of a text knows its secrets, and the names that hold them.
//! Unknown ones are found by name and by form ([`SecretNames`]).

mod builder;
mod forms;
mod names;
mod plain_text;
mod prefilter;
mod recognizable;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use self::builder::{SecretsBuilder, is_telling};
pub use self::names::{SecretNames, USUAL_NAMES};

/// The text in place of a secret in spans and in validation problems.
pub const REDACTED: &str = "__REDACTED__";

/// The shortest secret, and the shortest piece of a credential. Shorter texts (`1`, `debug`, `ollama`) are ordinary words.
const SHORTEST: usize = 8;
/// The bytes that are compared first, half of those of the shortest secret.
const QUARTER: usize = 4;
/// The shortest part of a secret beside an omission that is redacted.
const TELLING_PART: usize = 4;
/// How many omissions of each kind are examined, counted from the beginning and from the end of a text.
const MAX_OMISSIONS: usize = 128;
/// The words of a set with a bit for each 16-bit hash.
const HASH_WORDS: usize = (1 << 16) / 64;

/// The form of redacted texts.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// The text in place of a secret.
    pub hidden: &'static str,
    /// The marks of an omission.
    pub omissions: &'static [&'static str],
    /// Whether pieces of credentials are redacted too.
    pub pieces: bool,
}

impl Style {
    /// The style of messages.
    pub const MESSAGE: Self = Self { hidden: "[redacted]", omissions: &["...", "…", "***"], pieces: true };
}

impl Default for Style {
    fn default() -> Self {
        Self::MESSAGE
    }
}

/// The secrets to redact. Clones share them.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Known>);

/// A set of byte windows, with a bit for each 16-bit hash.
#[derive(Default)]
struct WindowSet(Vec<u64>);

#[derive(Default)]
struct Known {
    /// What is searched for: the secrets in all forms, and the pieces of credentials. Sorted.
    needles: Vec<String>,
    /// The secrets in all forms, of which a part may stand beside an omission.
    wholes: Vec<String>,
    /// The first eight bytes of each needle.
    beginnings: WindowSet,
    /// The four bytes of each needle that may begin at a multiple of four of a text.
    quarters: WindowSet,
    /// The parts of the secrets that may stand beside an omission: their windows of four bytes.
    parts: WindowSet,
    style: Style,
}

impl Secrets {
    /// Whether no secret is known.
    pub fn is_empty(&self) -> bool {
        self.0.wholes.is_empty()
    }

    /// The text without secrets, and without their parts beside an omission.
    pub fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.without(text, self.places_in(text))
    }

    /// The same for a text whose end is missing: a possible beginning of a secret at its end is redacted as well.
    pub fn redacted_so_far<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut places = self.places_in(text);
        places.extend(self.begun(text));
        self.without(text, places)
    }

    /// The first position at or after this byte that does not cut a secret in two.
    pub fn cut(&self, text: &[u8], at: usize) -> usize {
        let across = self.places(text).into_iter().find(|place| place.start < at && at < place.end);
        across.map_or(at, |place| place.end)
    }

    /// The length of the longest secret.
    pub fn longest(&self) -> usize {
        self.0.wholes.iter().map(String::len).max().unwrap_or(0)
    }

    /// The positions of secrets and of their parts beside omissions.
    fn places_in(&self, text: &str) -> Vec<Range<usize>> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut places = self.places(text.as_bytes());
        for mark in self.0.style.omissions.iter().filter(|mark| text.contains(**mark)) {
            let is_first = |at: &usize| text.get(..*at).is_some_and(|before| !before.ends_with(mark));
            let omissions: Vec<usize> = text.match_indices(mark).map(|(at, _)| at).filter(is_first).collect();
            // The cut that toolgate made is the last one.
            let rest = omissions.get(MAX_OMISSIONS..).unwrap_or_default();
            for &at in omissions.iter().take(MAX_OMISSIONS).chain(rest.iter().rev().take(MAX_OMISSIONS)) {
                let (before, omitted) = text.split_at(at);
                let behind = omitted.strip_prefix(mark).unwrap_or_default();
                let behind = behind.trim_start_matches(|c| mark.ends_with(c));
                let from = text.len() - behind.len();
                places.extend(self.begun(before));
                places.extend(self.ended(behind).map(|length| from..from + length));
            }
        }
        places
    }

    /// The positions of secrets, in order. Overlapping ones are merged: the rest of the longer one is still a secret.
    fn places(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        for (at, window) in self.0.beginnings_in(text) {
            let behind = text.get(at..).unwrap_or_default();
            if let Some(length) = self.0.longest_at(window, behind) {
                match places.last_mut() {
                    Some(last) if at < last.end => last.end = last.end.max(at + length),
                    _ => places.push(at..at + length),
                }
            }
        }
        places
    }

    /// The length of the longest suffix of a secret at the beginning of the text.
    fn ended(&self, text: &str) -> Option<usize> {
        let part = text.as_bytes().get(..TELLING_PART)?;
        if !self.0.parts.may_contain(part) {
            return None;
        }
        let of = |secret: &String| {
            let mut suffixes = secret.char_indices().filter_map(|(at, _)| secret.get(at..));
            suffixes.find(|suffix| suffix.len() >= TELLING_PART && text.starts_with(suffix)).map(str::len)
        };
        self.0.wholes.iter().filter_map(of).max()
    }

    /// The longest prefix of a secret at the end of the text.
    fn begun(&self, text: &str) -> Option<Range<usize>> {
        let part = text.as_bytes().get(text.len().checked_sub(TELLING_PART)?..)?;
        if !self.0.parts.may_contain(part) {
            return None;
        }
        let of = |secret: &String| {
            let ends = secret.char_indices().map(|(at, _)| at).filter(|at| *at >= TELLING_PART);
            ends.rev().find(|end| secret.get(..*end).is_some_and(|beginning| text.ends_with(beginning)))
        };
        let length = self.0.wholes.iter().filter_map(of).max()?;
        Some(text.len() - length..text.len())
    }

    fn without<'t>(&self, text: &'t str, mut places: Vec<Range<usize>>) -> Cow<'t, str> {
        if places.is_empty() {
            return Cow::Borrowed(text);
        }
        places.sort_unstable_by_key(|place| (place.start, place.end));
        let (mut shown, mut from) = (String::with_capacity(text.len()), 0);
        for place in places {
            // A place that begins inside the last one continues it.
            if place.start >= from {
                shown.push_str(text.get(from..place.start).unwrap_or_default());
                shown.push_str(self.0.style.hidden);
            }
            from = from.max(place.end);
        }
        Cow::Owned(shown + text.get(from..).unwrap_or_default())
    }
}

impl Known {
    fn new(needles: Vec<String>, wholes: Vec<String>, style: Style) -> Self {
        let beginnings = WindowSet::new(needles.iter().filter_map(|needle| needle.as_bytes().get(..SHORTEST)));
        let parts = WindowSet::new(wholes.iter().flat_map(|whole| whole.as_bytes().windows(TELLING_PART)));
        let quarters = needles.iter().flat_map(|needle| needle.as_bytes().windows(QUARTER).take(QUARTER));
        let quarters = WindowSet::new(quarters);
        Self { needles, wholes, beginnings, quarters, parts, style }
    }

    /// Where the first eight bytes of a needle may be in a text, in order, and what is there. Every needle is long enough to
    /// contain four bytes that begin at a multiple of four, so only these are compared first.
    fn beginnings_in<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = (usize, &'t [u8])> {
        let quarters = text.chunks_exact(QUARTER).enumerate().filter(|(_, four)| self.quarters.may_contain(four));
        let places = quarters.flat_map(|(number, _)| {
            let at = number * QUARTER;
            at.saturating_sub(QUARTER - 1)..=at
        });
        let windows = places.filter_map(|at| Some((at, text.get(at..at + SHORTEST)?)));
        windows.filter(|(_, window)| self.beginnings.may_contain(window))
    }

    /// The length of the longest needle with this beginning at the start of the text.
    fn longest_at(&self, beginning: &[u8], text: &[u8]) -> Option<usize> {
        let first = self.needles.partition_point(|needle| needle.as_bytes() < beginning);
        let alike = self.needles.iter().skip(first).map(String::as_bytes);
        let alike = alike.take_while(|needle| needle.starts_with(beginning));
        alike.filter(|needle| text.starts_with(needle)).map(<[u8]>::len).max()
    }
}

impl WindowSet {
    fn new<'w>(windows: impl Iterator<Item = &'w [u8]>) -> Self {
        let mut bits = Vec::new();
        for (word, bit) in windows.map(hash) {
            bits.resize(HASH_WORDS, 0);
            if let Some(bits) = bits.get_mut(word) {
                *bits |= bit;
            }
        }
        Self(bits)
    }

    /// Whether the set may contain this window. Most windows of a text need no further comparison.
    fn may_contain(&self, window: &[u8]) -> bool {
        let (word, bit) = hash(window);
        self.0.get(word).is_some_and(|bits| bits & bit != 0)
    }
}

/// A 16-bit hash of eight or four bytes, as a word and a bit in a set.
fn hash(window: &[u8]) -> (usize, u64) {
    let number = match *window {
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        _ => 0,
    };
    let hash = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48;
    (usize::try_from(hash / 64).unwrap_or_default(), 1 << (hash % 64))
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.wholes.len())
    }
}

#[cfg(test)]
mod tests;
