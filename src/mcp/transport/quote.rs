//! Excerpts of bytes for messages: escaped and bounded.

/// The mark of an omission.
const OMISSION: &str = "...";
/// How many bytes of the beginning are shown.
const BEGINNING: usize = 200;
/// How many bytes are shown before a position that is further away.
const BEFORE: usize = 60;

/// The beginning of the bytes in backquotes. Bytes that are not UTF-8 and control characters are escaped.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    format!("`{}`", shortened(bytes))
}

/// The same without backquotes.
pub(super) fn shortened(bytes: &[u8]) -> String {
    let beginning = bytes.get(..character_at(bytes, BEGINNING)).unwrap_or(bytes);
    let rest = if beginning.len() < bytes.len() { OMISSION } else { "" };
    escaped(beginning) + rest
}

/// The same, starting shortly before the byte at `place`.
pub(super) fn quoted_at(bytes: &[u8], place: usize) -> String {
    let place = place.min(bytes.len());
    if place <= BEGINNING {
        return quoted(bytes);
    }
    let [beginning, from, to] = [BEGINNING - BEFORE, place - BEFORE, place].map(|at| character_at(bytes, at));
    let beginning = bytes.get(..beginning).unwrap_or_default();
    let before = bytes.get(from..to).unwrap_or_default();
    let rest = if to < bytes.len() { OMISSION } else { "" };
    format!("`{}{OMISSION}{}{rest}`", escaped(beginning), escaped(before))
}

/// The first byte of the character at this position. Beside a part of a character, no part of a secret would be recognized.
pub(crate) fn character_at(bytes: &[u8], at: usize) -> usize {
    let is_first = |at: &usize| bytes.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
    (at.saturating_sub(3)..=at).rev().find(is_first).unwrap_or(at)
}

/// Whether the bytes contain these bytes.
pub(crate) fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len().max(1)).any(|window| window == wanted)
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter.is_control() {
                true => text.extend(letter.escape_default()),
                false => text.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_cannot_be_shown_are_escaped() {
        assert_eq!(quoted("é\n\u{1b}[0m".as_bytes()), r"`é\n\u{1b}[0m`");
        assert_eq!(quoted(b"caf\xe9"), r"`caf\xe9`");
    }

    #[test]
    fn an_excerpt_is_not_cut_inside_a_character() {
        for before in BEGINNING - 4..=BEGINNING {
            let text = format!("{}𝄞{}𝄞|{}", "x".repeat(before), "y".repeat(56), "z".repeat(90));
            let place = text.find('|').unwrap();
            for shown in
                [quoted(text.as_bytes()), quoted_at(text.as_bytes(), place), quoted_at(text.as_bytes(), place - 2)]
            {
                assert!(!shown.contains("\\x"), "{shown}");
            }
        }
    }

    #[test]
    fn an_excerpt_is_bounded_and_shows_the_place() {
        let long = [b"begin".as_slice(), &[b'x'; 5000], b"here|there"].concat();
        let shown = quoted_at(&long, 5009);
        assert!(shown.starts_with("`begin") && shown.ends_with("here...`") && shown.len() < 300, "{shown}");
        assert!(quoted(&long).len() < 300);
        assert_eq!(quoted_at(b"short", 99), "`short`");
    }
}
