//! Truncation of a text: its head, a marker line, its tail. No character is ever split, and a cut is at the end of a
//! line where one is near.

use crate::blob::BlobHandle;

/// The parts of the head, of [`PARTS`] in total: the subject of a text is at its beginning more often than at its end.
const HEAD_PARTS: usize = 2;
const PARTS: usize = 3;

/// The fraction of head and tail in which the end of a line is searched: the last quarter of the head, the first of the
/// tail.
const LINE_END_WITHIN: usize = 4;

/// The fate of the omitted text.
#[derive(Clone, Copy, Debug)]
pub(super) enum OmittedText<'a> {
    /// The whole text can be read under this handle.
    Kept(BlobHandle),
    /// The text is lost, with the reason.
    Lost(&'a str),
}

/// The text in at most `room` bytes. The room has to hold the marker, some 400 bytes at most.
pub(super) fn cut(text: &str, room: usize, rest: OmittedText<'_>) -> String {
    // Positions have at most as many digits as the length.
    let widest = marker(text, text.len(), text.len(), rest).len() + 2;
    let left = room.saturating_sub(widest);
    let head = head_end(text, left / PARTS * HEAD_PARTS);
    let tail = tail_start(text, left - left / PARTS * HEAD_PARTS).max(head);
    let (before, after) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    format!("{before}{gap}{}\n{after}", marker(text, head, tail, rest))
}

/// The message of a failed call in at most `limit` bytes. The omitted part is lost.
pub fn bounded_message(message: String, limit: usize) -> String {
    if message.len() <= limit {
        message
    } else {
        cut(&message, limit, OmittedText::Lost("messages of failures never are"))
    }
}

/// The beginning of a text, in at most `most` bytes.
pub fn shortened(text: &str, most: usize) -> String {
    match text.len() <= most {
        true => text.to_owned(),
        false => format!("{}…", text.get(..floor_char(text, most.saturating_sub('…'.len_utf8()))).unwrap_or_default()),
    }
}

/// The marker line for the text omitted between two positions.
fn marker(text: &str, from: usize, to: usize, rest: OmittedText<'_>) -> String {
    let what = format!("[toolgate] {} bytes in all; {from} to {to} are left out here", text.len());
    match rest {
        OmittedText::Kept(handle) => {
            format!("{what}. The whole is kept as {handle}; `result_read` reads any part of it.")
        }
        OmittedText::Lost(why) => format!("{what}, and are not kept: {why}."),
    }
}

/// Where a head of at most `most` bytes ends.
fn head_end(text: &str, most: usize) -> usize {
    let end = floor_char(text, most);
    let nearby = floor_char(text, end - end / LINE_END_WITHIN);
    let line_end = text.get(nearby..end).and_then(|near| near.rfind('\n'));
    line_end.map_or(end, |at| nearby + at + 1)
}

/// Where a tail of at most `most` bytes begins.
fn tail_start(text: &str, most: usize) -> usize {
    let start = ceil_char(text, text.len().saturating_sub(most));
    let nearby = ceil_char(text, start + (text.len() - start) / LINE_END_WITHIN);
    let line_end = text.get(start..nearby).and_then(|near| near.find('\n'));
    line_end.map_or(start, |at| start + at + 1)
}

/// The last character boundary at or before `at`.
pub(super) fn floor_char(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The first character boundary at or after `at`.
pub(super) fn ceil_char(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> OmittedText<'static> {
        OmittedText::Kept(BlobHandle::from_digest([0xab; 32]))
    }

    fn lines(text: &str) -> Vec<&str> {
        text.lines().collect()
    }

    #[test]
    fn cuts_are_at_line_ends_and_state_the_omission() {
        let text: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        let shown = cut(&text, 1000, kept());
        let shown = lines(&shown);
        let marker = shown.iter().position(|line| line.starts_with("[toolgate]")).unwrap();
        assert_eq!((shown[0], shown[shown.len() - 1]), ("line 0", "line 999"));
        assert!(shown[..marker].iter().chain(&shown[marker + 1..]).all(|line| text.contains(&format!("{line}\n"))));
        assert!(shown[marker].starts_with("[toolgate] 8890 bytes in all; "), "{}", shown[marker]);
        assert!(shown[marker].contains("media://sha256-abab"), "{}", shown[marker]);
    }

    #[test]
    fn a_line_of_wide_characters_is_cut_between_two_of_them() {
        let text = "é€😀".repeat(2000);
        for room in 512..560 {
            let shown = cut(&text, room, kept());
            assert!(shown.len() <= room, "{} of {room}", shown.len());
            let (head, rest) = shown.split_once("\n[toolgate]").unwrap();
            let (_, tail) = rest.split_once('\n').unwrap();
            assert!(text.starts_with(head) && text.ends_with(tail));
            assert!(head.len() + tail.len() > room - 400, "the room is used");
        }
    }

    #[test]
    fn lost_text_is_reported() {
        let shown = cut(&"x".repeat(5000), 600, OmittedText::Lost("this program keeps nothing"));
        assert!(shown.contains("are left out here, and are not kept: this program keeps nothing.\n"), "{shown}");
        assert!(!shown.contains("media://"), "{shown}");
    }
}
