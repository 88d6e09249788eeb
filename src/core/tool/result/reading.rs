//! Reading stored results in pieces: the request, and the answer within its room. The piece is exactly the stored text,
//! in a part of its own; the description of it precedes it.

use serde_json::{Map, Value};

use super::pointer::{find, kind, outline, shortened};
use super::search::search;
use super::truncation::{ceil_char, floor_char};
use crate::blob::BlobHandle;
use crate::chat::Part;
use crate::tool::ToolOutput;

/// The maximum size of the description of a piece.
const HEADLINE_BYTES: usize = 512;
/// The maximum size of a search text.
const MAX_WANTED_BYTES: usize = 256;

/// A read request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// The stored content.
    pub handle: BlobHandle,
    /// A JSON pointer to a value in it; without one, the whole.
    pub pointer: Option<String>,
    pub piece: Piece,
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// From the beginning, as much as fits.
    Start,
    /// A range of bytes.
    Bytes {
        /// The first, from 0.
        offset: usize,
        /// The number; without it, as many as fit.
        length: Option<usize>,
    },
    /// A range of lines.
    Lines {
        /// The first, from 1.
        first: usize,
        /// The number; without it, as many as fit.
        count: Option<usize>,
    },
    /// The places of this text.
    Search {
        wanted: String,
        /// The byte from which the search begins.
        offset: usize,
    },
}

impl ReadRequest {
    /// Parses a model's request. The error names a valid request.
    pub fn parse(arguments: &Map<String, Value>) -> Result<Self, String> {
        let text = |name: &str| match arguments.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(format!("`{name}` has to be a string")),
        };
        let number = |name: &str| match arguments.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64().and_then(|number| usize::try_from(number).ok()) {
                Some(number) => Ok(Some(number)),
                None => Err(format!("`{name}` has to be a whole number, 0 or more")),
            },
        };
        let handle = text("handle")?.ok_or("`handle` is missing: name what to read, as the result named it")?;
        let handle = BlobHandle::parse(handle).map_err(|error| error.to_string())?;
        let pointer = text("pointer")?.map(str::to_owned);
        let (offset, length) = (number("offset")?, number("length")?);
        let (line, lines) = (number("line")?, number("lines")?);
        let piece = match (text("search")?, offset.or(length), line.or(lines)) {
            (Some(""), ..) => return Err("`search` is empty: say what to look for".into()),
            (Some(wanted), ..) if wanted.len() > MAX_WANTED_BYTES => {
                return Err(format!("`search` has more than {MAX_WANTED_BYTES} bytes: look for a part of it"));
            }
            (Some(wanted), _, None) if length.is_none() => {
                Piece::Search { wanted: wanted.to_owned(), offset: offset.unwrap_or(0) }
            }
            (Some(_), ..) => return Err("`search` goes with `offset` alone, from where it looks".into()),
            (None, Some(_), Some(_)) => return Err("say `offset` and `length`, or `line` and `lines`, not both".into()),
            (None, Some(_), None) => Piece::Bytes { offset: offset.unwrap_or(0), length },
            (None, None, Some(_)) if line == Some(0) => return Err("lines are counted from 1".into()),
            (None, None, Some(_)) => Piece::Lines { first: line.unwrap_or(1), count: lines },
            (None, None, None) => Piece::Start,
        };
        Ok(Self { handle, pointer, piece })
    }
}

/// Reads a piece of a text, in at most `limit` bytes including its description.
pub fn read(text: &str, reading: &ReadRequest, limit: usize) -> ToolOutput {
    let room = limit.saturating_sub(HEADLINE_BYTES);
    let Some(pointer) = &reading.pointer else { return piece(text, "it", &reading.piece, room) };
    let root: Value = match serde_json::from_str(text) {
        Ok(root) => root,
        Err(error) => {
            return ToolOutput::error(format!("It is not JSON ({error}): read it by `offset`, `line` or `search`."));
        }
    };
    let value = match find(&root, pointer) {
        Ok(value) => value,
        Err(complaint) => return ToolOutput::error(cut_off(complaint, limit)),
    };
    let place = match pointer.as_str() {
        "" => format!("the root ({})", kind(value)),
        pointer => format!("`{}` ({})", shortened(pointer), kind(value)),
    };
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    if reading.piece == Piece::Start && text.len() > room && (value.is_object() || value.is_array()) {
        let headline = format!(
            "[toolgate] {place} has {} bytes as JSON, too many for one answer. What is in it; `pointer` leads on, and \
             `offset` reads it as it stands:",
            text.len()
        );
        return answer(headline, &outline(value, room));
    }
    piece(&text, &place, &reading.piece, room)
}

fn piece(text: &str, place: &str, piece: &Piece, room: usize) -> ToolOutput {
    let all = text.len();
    let beyond = |what: String| ToolOutput::error(format!("{what} is beyond the end: {place} has {}.", size(text)));
    match piece {
        Piece::Start => bytes(text, place, 0, None, room),
        Piece::Bytes { offset, .. } if *offset > all || (*offset == all && all > 0) => beyond(format!("Byte {offset}")),
        Piece::Bytes { offset, length } => bytes(text, place, *offset, *length, room),
        Piece::Lines { first, count } => match line_start(text, *first) {
            None => beyond(format!("Line {first}")),
            Some(start) => {
                let end = count
                    .and_then(|count| line_start(text.get(start..)?, count.saturating_add(1)))
                    .map(|end| end + start);
                let length = end.unwrap_or(all) - start;
                bytes(text, place, start, Some(length), room)
            }
        },
        Piece::Search { offset, .. } if *offset > all => beyond(format!("Byte {offset}")),
        Piece::Search { wanted, offset } => {
            let found = search(text, wanted, ceil_char(text, *offset), room);
            let (wanted, from) =
                (shortened(wanted), if *offset > 0 { format!(" from byte {offset} on") } else { String::new() });
            let headline = match (found.named, found.next) {
                (0, None) => format!("[toolgate] `{wanted}` does not occur in {place}{from}; {}.", size(text)),
                (named, None) => format!("[toolgate] {named} places with `{wanted}`{from}, and no more:"),
                (named, Some(next)) => {
                    format!("[toolgate] {named} places with `{wanted}`{from}; there are more from `offset` {next} on:")
                }
            };
            answer(headline, &found.lines)
        }
    }
}

/// As many of these bytes as fit, between character boundaries.
fn bytes(text: &str, place: &str, offset: usize, length: Option<usize>, room: usize) -> ToolOutput {
    let start = floor_char(text, offset);
    let wanted = length.map_or(text.len(), |length| offset.saturating_add(length).min(text.len()));
    let end = match wanted {
        wanted if wanted - start <= room => ceil_char(text, wanted),
        _ => line_end_before(text, start, floor_char(text, start + room)),
    };
    // The next character is wider than the remaining room.
    let end = if end - start > room { floor_char(text, start + room) } else { end };
    let first_line = 1 + newlines(text.get(..start).unwrap_or_default());
    let shown = text.get(start..end).unwrap_or_default();
    let last_line = first_line + newlines(shown.strip_suffix('\n').unwrap_or(shown));
    let goes_on = match end == text.len() {
        true => "This is the end.".to_owned(),
        false => format!("It continues at `offset` {end}."),
    };
    let headline = format!(
        "[toolgate] Bytes {start} to {end} of {place}, {}; lines {first_line} to {last_line}. {goes_on}",
        size(text)
    );
    answer(headline, shown)
}

fn answer(headline: String, piece: &str) -> ToolOutput {
    let mut content = vec![Part::text(cut_off(headline, HEADLINE_BYTES))];
    if !piece.is_empty() {
        content.push(Part::text(piece));
    }
    ToolOutput { content, ..ToolOutput::default() }
}

fn size(text: &str) -> String {
    let lines = newlines(text.strip_suffix('\n').unwrap_or(text)) + 1;
    format!("{} bytes in {lines} {}", text.len(), if lines == 1 { "line" } else { "lines" })
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// The start of a line, counted from 1.
fn line_start(text: &str, line: usize) -> Option<usize> {
    if line <= 1 {
        return Some(0);
    }
    let mut ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
    ends.nth(line - 2).filter(|start| *start < text.len())
}

/// The end of the last line that ends in the second half, if one does.
fn line_end_before(text: &str, start: usize, end: usize) -> usize {
    let nearby = ceil_char(text, start + (end - start) / 2);
    let line_end = text.get(nearby..end).and_then(|near| near.rfind('\n'));
    line_end.map_or(end, |at| nearby + at + 1)
}

fn cut_off(mut text: String, most: usize) -> String {
    text.truncate(floor_char(&text, most));
    text
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
