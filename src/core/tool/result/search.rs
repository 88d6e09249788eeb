//! Looking for a text in a text: each place where it stands, with what stands around it.

use super::cut::{ceil_char, floor_char};

/// So much is shown before and behind what was found, within its line.
const AROUND: usize = 100;
/// No more places than this are named at a time.
const PLACES: usize = 100;

/// The places where a text stands.
pub(super) struct Found {
    /// A line for each.
    pub(super) lines: String,
    /// How many are named.
    pub(super) named: usize,
    /// Where to go on looking, if there are more.
    pub(super) next: Option<usize>,
}

/// Looks for `wanted` from the position `from` on; the lines have at most `room` bytes. Places that one excerpt shows
/// are one.
pub(super) fn search(text: &str, wanted: &str, from: usize, room: usize) -> Found {
    let mut found = Found { lines: String::new(), named: 0, next: None };
    let (mut at, mut line, mut counted) = (from, 1, 0);
    while let Some(place) = text.get(at..).and_then(|rest| rest.find(wanted)).map(|offset| at + offset) {
        line += text.get(counted..place).map_or(0, |passed| passed.matches('\n').count());
        counted = place;
        let (start, end) = excerpt(text, place, place + wanted.len());
        let shown = text.get(start..end).unwrap_or_default().replace('\n', " ");
        let told = format!("line {line}, byte {place}: {shown}\n");
        if found.named == PLACES || found.lines.len() + told.len() > room {
            found.next = Some(place);
            break;
        }
        found.lines.push_str(&told);
        found.named += 1;
        at = end.max(place + wanted.len());
    }
    found
}

/// What stands around a place, within its line.
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
    fn each_place_is_told_with_its_line_and_what_stands_around_it() {
        let text = "one\ntwo needle two\nthree\nneedle";
        let found = search(text, "needle", 0, 1000);
        assert_eq!(found.lines, "line 2, byte 8: two needle two\nline 4, byte 25: needle\n");
        assert_eq!((found.named, found.next), (2, None));
        assert_eq!(search(text, "thread", 0, 1000).named, 0);
    }

    #[test]
    fn what_does_not_fit_is_found_from_where_the_answer_says() {
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
