//! Excerpts of bytes for messages: escaped and bounded.

/// The mark of an omission.
const OMISSION: &str = "...";
/// How many bytes of the beginning are shown.
const BEGINNING: usize = 200;
/// How many bytes are shown before a position that is further away.
const BEFORE: usize = 60;

/// The beginning of the bytes in backquotes. Bytes that are not UTF-8 and control characters are escaped.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let beginning = bytes.get(..BEGINNING).unwrap_or(bytes);
    let rest = if beginning.len() < bytes.len() { OMISSION } else { "" };
    format!("`{}{rest}`", escaped(beginning))
}

/// The same, starting shortly before the byte at `place`.
pub(super) fn quoted_at(bytes: &[u8], place: usize) -> String {
    let place = place.min(bytes.len());
    if place <= BEGINNING {
        return quoted(bytes);
    }
    let before = bytes.get(place - BEFORE..place).unwrap_or_default();
    let rest = if place < bytes.len() { OMISSION } else { "" };
    let beginning = bytes.get(..BEGINNING - BEFORE).unwrap_or_default();
    format!("`{}{OMISSION}{}{rest}`", escaped(beginning), escaped(before))
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
    fn an_excerpt_is_bounded_and_shows_the_place() {
        let long = [b"begin".as_slice(), &[b'x'; 5000], b"here|there"].concat();
        let shown = quoted_at(&long, 5009);
        assert!(shown.starts_with("`begin") && shown.ends_with("here...`") && shown.len() < 300, "{shown}");
        assert!(quoted(&long).len() < 300);
        assert_eq!(quoted_at(b"short", 99), "`short`");
    }
}
