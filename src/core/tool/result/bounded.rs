//! What of a result enters the journal, and what is kept beside it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cut::{Rest, cut};
use super::document::{document, media_type, text_mut, text_of, weight};
use super::{Kept, KeptForm};
use crate::core::blob::BlobHandle;
use crate::core::chat::{Media, Part};
use crate::core::json;
use crate::core::tool::ToolOutput;

/// The smallest limit there is: less would not hold the lines that say what is missing.
pub const MIN_RESULT_BYTES: usize = 2048;

/// A result of more parts than this is told as one text when it does not fit.
const PARTS: usize = 8;
/// A text is not cut to less than this.
const MIN_ROOM: usize = 512;

/// What becomes of content that has no room in the journal.
#[derive(Clone, Copy, Debug)]
pub enum Keeping<'a> {
    /// It is kept elsewhere, up to so many bytes each.
    UpTo(usize),
    /// There is no other place: why. Texts are cut, media stay where they are.
    Nowhere(&'a str),
    /// The other place could not be used: why. What was to be kept there is left out, media as well: the journal is no
    /// place for what was never meant to be in it.
    Failed(&'a str),
}

/// Content that has to be kept before the result that names it is recorded.
#[derive(Clone, PartialEq, Eq)]
pub struct Whole {
    /// Its hash.
    pub handle: BlobHandle,
    /// Its media type.
    pub media_type: String,
    /// It.
    pub bytes: Vec<u8>,
}

/// The result with at most `limit` bytes of text in its content, and as many in its structured form, and what has to be
/// kept for that. A structured form that is nested too deep to be recorded has no room at all. The same result becomes the
/// same. A limit of less than half of [`MIN_RESULT_BYTES`] counts as that.
pub fn bounded(mut output: ToolOutput, limit: usize, keeping: Keeping<'_>) -> (ToolOutput, Vec<Whole>) {
    // Whatever was said about it, it was not we who kept anything.
    output.kept.clear();
    let mut bounding = Bounding { keeping, kept: Vec::new(), wholes: Vec::new() };
    output.content.iter_mut().for_each(|part| bounding.media(part));
    let limit = limit.max(MIN_RESULT_BYTES / 2);
    let structured = output.structured.take().and_then(|value| match value.to_string() {
        json if json.len() <= limit && !json::is_deeper_than(&value, json::MAX_DEPTH) => {
            output.structured = Some(value);
            None
        }
        json => Some((value, json)),
    });
    match structured {
        None => bounding.content(&mut output.content, limit),
        Some((value, json)) => bounding.structured(&mut output.content, &value, json, limit),
    }
    output.kept = bounding.kept;
    (output, bounding.wholes)
}

struct Bounding<'a> {
    keeping: Keeping<'a>,
    kept: Vec<Kept>,
    wholes: Vec<Whole>,
}

impl<'a> Bounding<'a> {
    /// Puts a handle in the place of bytes.
    fn media(&mut self, part: &mut Part) {
        let most = match self.keeping {
            Keeping::UpTo(most) => most,
            Keeping::Failed(_) => usize::MAX,
            Keeping::Nowhere(_) => return,
        };
        let Some((media_type, data)) = part.take_data() else { return };
        let Some(bytes) = Media::decode(&data) else {
            let note = match self.keep("text/plain".into(), data.into_bytes(), KeptForm::Text) {
                Rest::Kept(handle) => format!("what came instead is kept as {handle}"),
                Rest::Lost(why) => format!("what came instead is not kept: {why}"),
            };
            *part = Part::text(format!("[toolgate] {media_type} came here that is not base64; {note}."));
            return;
        };
        if bytes.len() > most {
            let (size, most) = (bytes.len(), most >> 20);
            *part = Part::text(format!(
                "[toolgate] {media_type} of {size} bytes came here and is not kept: the limit is {most} MiB."
            ));
            return;
        }
        let size = bytes.len();
        match self.keep(media_type.clone(), bytes, KeptForm::Media) {
            Rest::Kept(handle) => part.refer(handle),
            Rest::Lost(why) => {
                *part =
                    Part::text(format!("[toolgate] {media_type} of {size} bytes came here and is not kept: {why}."));
            }
        }
    }

    /// A large structured form leaves the journal. Where it says the same as the text it is not kept twice.
    fn structured(&mut self, content: &mut Vec<Part>, value: &Value, json: String, limit: usize) {
        let before = self.kept.len();
        if let [part @ Part::Text { text }] = content.as_slice()
            && weight(part) > limit
            && let Some(form) = same(text, value, &json)
        {
            self.content(content, limit);
            self.kept.iter_mut().skip(before).for_each(|kept| kept.form = form);
            return;
        }
        let bytes = json.len();
        let note = match self.keep("application/json".into(), json.into_bytes(), KeptForm::Structured) {
            Rest::Kept(handle) => format!("is kept as {handle}; `result_read` reads any part of it"),
            Rest::Lost(why) => format!("is not kept: {why}"),
        };
        let note = Part::text(format!("[toolgate] The structured form of this result, {bytes} bytes of JSON, {note}."));
        self.content(content, limit - weight(&note));
        content.push(note);
    }

    fn content(&mut self, content: &mut Vec<Part>, limit: usize) {
        if content.iter().map(weight).sum::<usize>() <= limit {
            return;
        }
        match room_for_each(content, limit) {
            Some(room) => content.iter_mut().for_each(|part| self.part(part, room)),
            None => self.as_one(content, limit),
        }
    }

    /// Cuts one text to the room that each gets.
    fn part(&mut self, part: &mut Part, room: usize) {
        let Some(text) = text_of(part).filter(|text| text.len() > room) else { return };
        let (media_type, bytes) = (media_type(part, text), text.as_bytes().to_vec());
        let rest = self.keep(media_type, bytes, KeptForm::Text);
        if let Some(text) = text_mut(part) {
            *text = cut(text, room, rest);
        }
    }

    /// Makes one text of everything, followed by as many of its media as a quarter of the room holds.
    fn as_one(&mut self, content: &mut Vec<Part>, limit: usize) {
        let text = document(content);
        let mut left = limit / 4;
        content.retain(|part| {
            let fits = part.as_media().is_some() && weight(part) <= left;
            left -= if fits { weight(part) } else { 0 };
            fits
        });
        let room = limit - weight(&Part::text("")) - content.iter().map(weight).sum::<usize>();
        let (mut whole, before) = (Part::text(text), self.kept.len());
        self.part(&mut whole, room);
        content.insert(0, whole);
        // What only the whole names is kept with it, and would be too much to list here.
        let shown: BTreeSet<BlobHandle> = content.iter().flat_map(named).collect();
        let mut index = 0..;
        self.kept.retain(|kept| {
            let is_of_this = index.next().is_some_and(|index| index >= before);
            is_of_this || kept.form == KeptForm::Structured || shown.contains(&kept.handle)
        });
    }

    /// Notes what is to be kept, if it can be.
    fn keep(&mut self, media_type: String, bytes: Vec<u8>, form: KeptForm) -> Rest<'a> {
        match self.keeping {
            Keeping::Nowhere(why) | Keeping::Failed(why) => Rest::Lost(why),
            Keeping::UpTo(most) if bytes.len() > most => Rest::Lost("it is more than a store keeps, which is 64 MiB"),
            Keeping::UpTo(_) => {
                let handle = BlobHandle::of(&bytes);
                let kept = Kept { handle, media_type: media_type.clone(), bytes: bytes.len() as u64, form };
                if !self.kept.contains(&kept) {
                    self.kept.push(kept);
                }
                if !self.wholes.iter().any(|whole| whole.handle == handle) {
                    self.wholes.push(Whole { handle, media_type, bytes });
                }
                Rest::Kept(handle)
            }
        }
    }
}

/// The handles that a part names, be it in words.
fn named(part: &Part) -> Vec<BlobHandle> {
    let mut handles = part.blobs();
    let text = text_of(part).unwrap_or_default();
    let places = text.match_indices(BlobHandle::START);
    handles.extend(places.filter_map(|(at, _)| BlobHandle::parse(text.get(at..at + BlobHandle::LENGTH)?).ok()));
    handles
}

/// How much room each text gets so that all fit: those that need less leave more to the others. `None` if the parts are
/// too many for that, or there is too much besides their text.
fn room_for_each(content: &[Part], limit: usize) -> Option<usize> {
    let mut sizes: Vec<usize> = content.iter().filter_map(text_of).map(str::len).collect();
    let besides = content.iter().map(weight).sum::<usize>() - sizes.iter().sum::<usize>();
    let mut left = limit.checked_sub(besides)?;
    sizes.sort_unstable();
    let count = sizes.len();
    let room = sizes.into_iter().enumerate().find_map(|(index, size)| {
        let share = left / (count - index);
        left = left.saturating_sub(size);
        (size > share).then_some(share)
    })?;
    (content.len() <= PARTS && room >= MIN_ROOM).then_some(room)
}

/// In which way the structured form says the same as the text, if it does.
fn same(text: &str, value: &Value, json: &str) -> Option<KeptForm> {
    let wrapped = value.as_object().filter(|members| members.len() == 1).and_then(|members| members.get("result"));
    if text == json {
        return Some(KeptForm::Both);
    }
    if value.as_str() == Some(text) {
        return Some(KeptForm::Same);
    }
    if wrapped.is_some_and(|result| result.as_str() == Some(text)) {
        return Some(KeptForm::Wrapped);
    }
    let parsed: Value = serde_json::from_str(text).ok()?;
    if parsed == *value {
        return Some(KeptForm::Both);
    }
    (wrapped == Some(&parsed)).then_some(KeptForm::Wrapped)
}

impl std::fmt::Debug for Whole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Whole({}, {}, {} bytes)", self.handle, self.media_type, self.bytes.len())
    }
}

#[cfg(test)]
#[path = "bounded_tests.rs"]
mod tests;
