//! Forms of a secret: in which a text may repeat it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value as Json;

use super::SHORTEST;

/// The authorization schemes, in lower case. Any other first word is a part of the credential.
const SCHEMES: [&str; 10] =
    ["apikey", "basic", "bearer", "digest", "dpop", "hmac", "key", "negotiate", "ntlm", "token"];

/// The signs that programs escape in addresses, and those that JavaScript escapes.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const RESERVED_IN_JAVASCRIPT: &AsciiSet = &RESERVED.remove(b'!').remove(b'\'').remove(b'(').remove(b')').remove(b'*');

/// The escapes of `"` and `'` in HTML, by library.
const HTML_QUOTES: [[&str; 2]; 4] =
    [["&quot;", "&#39;"], ["&quot;", "&#x27;"], ["&quot;", "&#039;"], ["&#34;", "&#39;"]];

/// The forms of a secret: whole and each of its lines, with and without its first word, as is and escaped.
/// Programs print a multi-line key line by line, and its line ends may be escaped.
pub(super) fn all(text: &str) -> BTreeSet<String> {
    let wholes = [text.trim(), without_first_word(text.trim())];
    let lines = wholes.into_iter().flat_map(|whole| [whole].into_iter().chain(whole.split(['\n', '\r'])));
    let pieces = lines.flat_map(|line| [line].into_iter().chain(line.split("\\n"))).map(str::trim);
    let pieces: BTreeSet<&str> = pieces.filter(|piece| piece.len() >= SHORTEST).collect();
    pieces.into_iter().flat_map(written).collect()
}

/// The authorization scheme before a credential, and the credential.
pub(super) fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, credential) = text.split_once(char::is_whitespace)?;
    SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme)).then(|| (scheme, credential.trim()))
}

/// The rest of a value after a word in front of it, if it is long enough to be a secret.
fn without_first_word(text: &str) -> &str {
    let parts = text.split_once(' ').map(|(word, rest)| (word, rest.trim()));
    let is_word = |text: &str| text.chars().all(|letter| letter.is_ascii_alphabetic());
    parts.filter(|(word, rest)| is_word(word) && rest.len() >= SHORTEST).map_or(text, |(_, rest)| rest)
}

/// The shortest pieces of a form, one from each character on. The start of an address occurs in every other address.
pub(super) fn pieces(form: &str) -> impl Iterator<Item = &str> {
    let end = |start: usize| (start + SHORTEST..=form.len()).find(|end| form.is_char_boundary(*end));
    let pieces = form.char_indices().filter_map(move |(start, _)| form.get(start..end(start)?));
    pieces.filter(|piece| !piece.contains("://"))
}

/// A text as is, and as common libraries escape it. These are at most 21 forms, and few for a text without special signs.
fn written(text: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([text.to_owned()]);
    forms.extend(in_json(text));
    forms.extend(in_addresses(text));
    forms.extend(in_html(text));
    forms
}

/// A text in JSON: as Rust and JavaScript write it, as Python, Go, PHP and .NET do, and in JSON within JSON.
fn in_json(text: &str) -> [String; 8] {
    let json = between_quotes(text);
    let in_ascii = numbered(&json, |letter| !letter.is_ascii(), |unit| format!("\\u{unit:04x}"));
    let in_go = numbered(&json, |letter| "&<>".contains(letter), |unit| format!("\\u{unit:04x}"));
    let is_special = |letter: char| "&<>'+`".contains(letter) || !letter.is_ascii();
    let in_dotnet = numbered(&json.replace("\\\"", "\\u0022"), is_special, |unit| format!("\\u{unit:04X}"));
    let [with_escaped_slashes, in_php] = [&json, &in_ascii].map(|json| json.replace('/', "\\/"));
    let [nested, nested_in_ascii] = [&json, &in_ascii].map(|json| between_quotes(json));
    [json, in_ascii, in_go, in_dotnet, with_escaped_slashes, in_php, nested, nested_in_ascii]
}

/// A text as JSON has it between quotes.
fn between_quotes(text: &str) -> String {
    let json = Json::from(text).to_string();
    json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(&json).to_owned()
}

/// JSON in which these characters are escaped as UTF-16 units.
fn numbered(json: &str, is_escaped: impl Fn(char) -> bool, escape: impl Fn(u16) -> String) -> String {
    let mut escaped = String::with_capacity(json.len());
    for letter in json.chars() {
        match is_escaped(letter) {
            true => escaped.extend(letter.encode_utf16(&mut [0; 2]).iter().map(|unit| escape(*unit))),
            false => escaped.push(letter),
        }
    }
    escaped
}

/// A text in an address and in a form, with upper-case and lower-case digits.
fn in_addresses(text: &str) -> impl Iterator<Item = String> {
    let escaped = [RESERVED, RESERVED_IN_JAVASCRIPT].map(|signs| utf8_percent_encode(text, signs).to_string());
    let forms = escaped.into_iter().flat_map(|address| [address.replace("%20", "+"), address]);
    forms.flat_map(|form| [with_lower_case_digits(&form), form])
}

/// A percent-encoded text, in which each `%` begins an escape.
fn with_lower_case_digits(text: &str) -> String {
    let mut parts = text.split('%');
    let mut lower = parts.next().unwrap_or_default().to_owned();
    for (digits, rest) in parts.filter_map(|part| part.split_at_checked(2)) {
        let _ = write!(lower, "%{}{rest}", digits.to_ascii_lowercase());
    }
    lower
}

fn in_html(text: &str) -> [String; 4] {
    let html = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    HTML_QUOTES.map(|[double, single]| html.replace('"', double).replace('\'', single))
}
