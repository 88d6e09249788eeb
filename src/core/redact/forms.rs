//! Forms of a secret: in which a text may repeat it.

use std::collections::BTreeSet;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;

use super::SHORTEST;

const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The forms of a secret: whole and each of its lines, with and without an authorization scheme, as is and escaped.
/// Programs print a multi-line key line by line, and its line ends may be escaped.
pub(super) fn of(text: &str) -> BTreeSet<String> {
    let wholes = [text.trim(), without_scheme(text.trim())];
    let lines = wholes.into_iter().flat_map(|whole| [whole].into_iter().chain(whole.split(['\n', '\r'])));
    let pieces = lines.flat_map(|line| [line].into_iter().chain(line.split("\\n"))).map(str::trim);
    pieces.filter(|piece| piece.len() >= SHORTEST).flat_map(written).collect()
}

/// The credential of `Bearer …`, `Basic …`, if it is long enough to be one.
pub(super) fn without_scheme(text: &str) -> &str {
    let parts = text.split_once(' ').map(|(scheme, credential)| (scheme, credential.trim()));
    let is_scheme = |text: &str| text.chars().all(|letter| letter.is_ascii_alphabetic());
    parts
        .filter(|(scheme, rest)| is_scheme(scheme) && rest.len() >= SHORTEST)
        .map_or(text, |(_, credential)| credential)
}

/// The shortest pieces of a form, one from each character on. The start of an address occurs in every other address.
pub(super) fn pieces(form: &str) -> impl Iterator<Item = &str> {
    let end = |start: usize| (start + SHORTEST..=form.len()).find(|end| form.is_char_boundary(*end));
    let pieces = form.char_indices().filter_map(move |(start, _)| form.get(start..end(start)?));
    pieces.filter(|piece| !piece.contains("://"))
}

/// A text as is, in JSON, in JSON with escaped slashes, and in an address.
fn written(text: &str) -> [String; 4] {
    let json = Json::from(text).to_string();
    let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(&json).to_owned();
    let with_escaped_slashes = json.replace('/', "\\/");
    [text.to_owned(), json, with_escaped_slashes, utf8_percent_encode(text, RESERVED).to_string()]
}
