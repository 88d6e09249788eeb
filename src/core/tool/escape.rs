//! Escaping of untrusted text that is shown to a person. Characters that are invisible, move the cursor or change the
//! direction of text are shown by their codes, so that the text cannot pass for something else.

use std::fmt::Write as _;

/// The text with every character that must not be shown as it is replaced by its code (`\u{202e}`).
pub fn escape_untrusted(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (c, is_escaped) in with_escapes(text) {
        match is_escaped {
            true => {
                // Writing to a String cannot fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
            false => shown.push(c),
        }
    }
    shown
}

/// The characters of a text, each with whether it must be escaped there: as for [`needs_escaping`], except a joiner between
/// two emoji, which makes one picture of them. Elsewhere a joiner can hide a difference.
pub fn with_escapes(text: &str) -> impl Iterator<Item = (char, bool)> {
    let (mut rest, mut follows_emoji) = (text.chars(), false);
    std::iter::from_fn(move || {
        let c = rest.next()?;
        let joins = c == '\u{200d}' && follows_emoji && rest.clone().next().is_some_and(is_emoji);
        // A variation selector belongs to the emoji before it.
        follows_emoji = is_emoji(c) || (c == '\u{fe0f}' && follows_emoji);
        Some((c, needs_escaping(c) && !joins))
    })
}

/// Whether a character is in a block of pictures and symbols of which emoji are made. All of them are visible.
fn is_emoji(c: char) -> bool {
    matches!(u32::from(c), 0x2190..=0x21ff | 0x2600..=0x27bf | 0x2b00..=0x2bff | 0x1f300..=0x1faff)
}

/// Whether a character must be escaped wherever it stands: it moves the cursor, changes the text direction, breaks lines, or
/// is invisible.
///
/// These are the control characters (C0, DEL, C1), every white space but the plain blank, what Unicode 16 calls
/// *default ignorable* (bidirectional controls, zero width characters, soft hyphen, fillers, tag characters) and the
/// letters that are drawn as nothing. The sixteen variation selectors U+FE00 to U+FE0F are not escaped: they choose the
/// look of the visible character before them, and every other emoji has one.
pub fn needs_escaping(c: char) -> bool {
    c.is_control() || (c.is_whitespace() && c != ' ') || is_invisible(c)
}

/// Whether a character has no place in a short text that callers choose: as for [`needs_escaping`], except white space
/// and the joiners of letters and emoji.
pub fn is_deceptive(c: char) -> bool {
    let is_joiner = matches!(c, '\u{200c}' | '\u{200d}');
    c.is_control() || (is_invisible(c) && !is_joiner)
}

/// Whether a name has characters outside plain ASCII: one of them may look like an ASCII character, so the name
/// deserves a second look. This does not know which letters look alike.
pub fn is_suspicious(name: &str) -> bool {
    !name.is_ascii()
}

fn is_invisible(c: char) -> bool {
    matches!(
        u32::from(c),
        0xad | 0x34f | 0x61c | 0x70f | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
            | 0x2028..=0x202e | 0x2060..=0x206f | 0x2800 | 0x3164 | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
            | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_and_bidirectional_characters_are_escaped() {
        let hostile = [
            '\0'..='\u{1f}',
            '\u{7f}'..='\u{a0}',
            '\u{ad}'..='\u{ad}',
            '\u{61c}'..='\u{61c}',
            '\u{200b}'..='\u{200f}',
            '\u{2028}'..='\u{202e}',
            '\u{2060}'..='\u{206f}',
            '\u{feff}'..='\u{feff}',
            '\u{e0000}'..='\u{e007f}',
            '\u{e0100}'..='\u{e01ef}',
        ];
        for c in hostile.into_iter().flatten() {
            assert_eq!(escape_untrusted(&c.to_string()), format!("\\u{{{:x}}}", u32::from(c)));
        }
    }

    #[test]
    fn visible_characters_are_not_escaped() {
        let text = "Grüße, Ωμέγα, 你好, ❤\u{fe0f} \\u{202e}";
        assert_eq!(escape_untrusted(text), text);
    }

    #[test]
    fn a_joiner_is_shown_between_two_emoji_only() {
        for text in ["👩\u{200d}👩\u{200d}👧", "❤\u{fe0f}\u{200d}🔥", "👩🏽\u{200d}⚕\u{fe0f}", "🙂\u{200d}↔\u{fe0f}"]
        {
            assert_eq!(escape_untrusted(text), text);
        }
        for text in
            ["pay\u{200d}pal", "👩\u{200d}", "\u{200d}👩", "👩\u{200d}a", "👩\u{200d}\u{200d}👩", "a\u{fe0f}\u{200d}👩"]
        {
            assert_eq!(escape_untrusted(text), text.replace('\u{200d}', "\\u{200d}"));
        }
    }
}
