//! Text search: each place of a text within another, with its context.

use super::truncation::{ceil_char, floor_char};

/// The number of characters shown before and after a match, within its line.
const AROUND: usize = 100;
/// The maximum number of places in one answer.
const PLACES: usize = 100;

pub(super) struct SearchResult {
    /// One line for each place.
    pub(super) lines: String,
    /// The number of places in `lines`.
    pub(super) named: usize,
    /// Where the next search begins, if there are more places.
    pub(super) next: Option<usize>,
}

/// Searches for `wanted` from the position `from`; the lines have at most `room` bytes. Places within one excerpt count
/// as one.
pub(super) fn search(text: &str, wanted: &str, from: usize, room: usize) -> SearchResult {
    let mut found = SearchResult { lines: String::new(), named: 0, next: None };
    let (mut at, mut line, mut counted) = (from, 1, 0);
    while let Some(place) = text.get(at..).and_then(|rest| rest.find(wanted)).map(|offset| at + offset) {
        line += text.get(counted..place).map_or(0, |passed| passed.matches('\n').count());
        counted = place;
        let (start, end) = excerpt(text, place, place + wanted.len());
        let shown = text.get(start..end).unwrap_or_default().replace('\n', " ");
        let entry = format!("line {line}, byte {place}: {shown}\n");
        if found.named == PLACES || found.lines.len() + entry.len() > room {
            found.next = Some(place);
            break;
        }
        found.lines.push_str(&entry);
        found.named += 1;
        at = end.max(place + wanted.len());
    }
    found
}

/// The context of a place, within its line.
fn excerpt(text: &str, from: usize, to: usize) -> (usize, usize) {
    let start = ceil_char(text, from.saturating_sub(AROUND));
    let start = text.get(start..from).and_then(|before| before.rfind('\n')).map_or(start, |at| start + at + 1);
    let end = floor_char(text, to + AROUND).max(to);
    let end = text.get(to..end).and_then(|after| after.find('\n')).map_or(end, |at| to + at);
    (start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_shown_with_its_line_and_context() {
        let text = "one\ntwo needle two\nthree\nneedle";
        let found = search(text, "needle", 0, 1000);
        assert_eq!(found.lines, "line 2, byte 8: two needle two\nline 4, byte 25: needle\n");
        assert_eq!((found.named, found.next), (2, None));
        assert_eq!(search(text, "thread", 0, 1000).named, 0);
    }

    #[test]
    fn a_search_continues_at_the_next_offset() {
        let text = "a needle in the hay\n".repeat(500);
        let (mut from, mut named) = (0, 0);
        loop {
            let found = search(&text, "needle", from, 600);
            assert!(found.lines.len() <= 600 && found.named > 0);
            named += found.named;
            match found.next {
                Some(next) => from = next,
                None => break,
            }
        }
        assert_eq!(named, 500);
    }
}
