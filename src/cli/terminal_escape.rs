//! Terminal escape guard: the last check of text before the program prints it. Models, servers and clients wrote much
//! of this text, and a terminal interprets some characters as commands. The guard replaces these characters by their
//! codes, so that no line of a command can send one to a terminal by mistake.
//!
//! The guard works on characters, not on lines. The code that prints lines prevents untrusted text from starting lines
//! of its own (`text::block`). Colour sequences pass where a stream is painted. Bytes that a program requested are not
//! text and bypass the guard.

use serde::Serialize;
use serde_json::Value;

use super::paint::Paint;
use crate::core::tool::{escape_untrusted, needs_escaping};

/// Text that is safe for a terminal: characters that move the cursor, change the text direction or are invisible appear
/// as their codes.
pub(super) fn escape(text: &str, paint: Paint) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_unfit) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let colour = colour(from).filter(|_| paint == Paint::Colour);
        let (taken, after) = from.split_at(colour.unwrap_or_else(|| from.chars().next().map_or(0, char::len_utf8)));
        match colour {
            Some(_) => shown.push_str(taken),
            None => shown.push_str(&escape_untrusted(taken)),
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// JSON on one line that means the same to every program and contains nothing that a terminal interprets.
pub(super) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(value).map(|text| escaped(&text))
}

/// The same on several lines.
pub(super) fn pretty_json(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value).map(|text| escaped(&text))
}

/// A value as a word of a command that the user can copy.
pub(super) fn json_word(value: &Value) -> String {
    escaped(&value.to_string())
}

/// Escapes characters that are unsafe for a terminal, for example as `\u202e`. They can only occur within strings: the
/// syntax of JSON itself is safe, and so are the line breaks between its members.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unfit(c) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
        } else {
            text.push(c);
        }
    }
    text
}

/// Whether the character is unsafe for a terminal. Line breaks and tabs are safe because the command line prints them
/// itself. The spaces of other scripts are visible as spaces, and Persian and many emoji need the two joiners.
fn is_unfit(c: char) -> bool {
    let is_space = c.is_whitespace() && !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}');
    needs_escaping(c) && !is_space && !matches!(c, '\n' | '\t' | '\u{200c}' | '\u{200d}')
}

/// The length of a leading escape sequence that sets the colour or weight of letters, or strikes them. A sequence that conceals letters
/// or sets the background does not count.
fn colour(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\x1b[")?;
    let codes = codes.get(..codes.find('m')?)?;
    let is_harmless = |code: &str| matches!(code.parse(), Ok(0..=4 | 9 | 22..=24 | 29 | 31..=37 | 39 | 91..=97));
    let of_many = codes.strip_prefix("38;").is_some_and(|codes| codes.bytes().all(|b| b.is_ascii_digit() || b == b';'));
    (of_many || codes.split(';').all(is_harmless)).then(|| "\x1b[".len() + codes.len() + "m".len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn terminal_control_characters_appear_as_codes() {
        for (hostile, escaped) in [
            ("a\x1b]0;title\x07", "a\\u{1b}]0;title\\u{7}"),
            ("a\x1b[2Kb\rc", "a\\u{1b}[2Kb\\u{d}c"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\u{202e}b\u{61c}\u{e0041}\u{ad}", "a\\u{202e}b\\u{61c}\\u{e0041}\\u{ad}"),
            ("\x1b[8mhidden\x1b[0m", "\\u{1b}[8mhidden\\u{1b}[0m"),
        ] {
            assert_eq!(escape(hostile, Paint::Plain), escaped);
        }
        assert_eq!(escape("\x1b[8mhidden", Paint::Colour), "\\u{1b}[8mhidden");
        assert_eq!(escape("\x1b[2J\x1b[31", Paint::Colour), "\\u{1b}[2J\\u{1b}[31");
    }

    #[test]
    fn ordinary_text_of_any_language_and_our_own_colours_pass() {
        for text in ["a\n\tb", "10\u{202f}000\u{a0}€\u{3000}", "❤\u{fe0f} 👩\u{200d}💻 می\u{200c}روم"] {
            assert_eq!(escape(text, Paint::Plain), text);
        }
        for text in [Paint::Colour.red("x"), Paint::Colour.strike("x"), "\x1b[38;2;1;8;3;1mx\x1b[0m".to_owned()] {
            assert_eq!(escape(&text, Paint::Colour), text);
        }
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = json!({"a\u{9b}": ["\u{202e}\u{e0041}\u{7f}\x1b", "Grüße\n"]});
        let text = json(&value).unwrap();
        assert_eq!(text, r#"{"a\u009b":["\u202e\udb40\udc41\u007f\u001b","Grüße\n"]}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(serde_json::from_str::<Value>(&pretty_json(&value).unwrap()).unwrap(), value);
    }
}
