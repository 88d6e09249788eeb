//! Size limits of results: which part enters the journal, and which part is stored beside it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::document::{document, media_type, text_mut, text_of, weight};
use super::truncation::{OmittedText, cut};
use super::{StoredContent, StoredForm};
use crate::blob::{Blob, BlobHandle};
use crate::chat::{Media, Part};
use crate::json;
use crate::tool::ToolOutput;

/// The smallest limit: less would not hold the notes about omitted content.
pub const MIN_RESULT_BYTES: usize = 2048;

/// The number of parts above which a result that does not fit becomes one text.
const PARTS: usize = 8;
/// The minimum size of a cut text.
const MIN_ROOM: usize = 512;

/// The storage of content that does not fit into the journal.
#[derive(Clone, Copy, Debug)]
pub enum OverflowStorage<'a> {
    /// A store is available, for up to so many bytes each.
    UpTo(usize),
    /// No store is available, with the reason. Texts are cut, media stay in place.
    Nowhere(&'a str),
    /// The store failed, with the reason. Its content is dropped, media included: the journal must not hold content
    /// that was meant for the store.
    Failed(&'a str),
}

/// The result with at most `limit` bytes of text in its content, and as many in its structured form, with the content
/// to store before the result is recorded. A structured form that is nested too deep for the journal is always stored. The function is deterministic.
/// A limit of less than half of [`MIN_RESULT_BYTES`] counts as that.
pub fn bounded(mut output: ToolOutput, limit: usize, storage: OverflowStorage<'_>) -> (ToolOutput, Vec<Blob>) {
    // Only toolgate may claim that content is stored.
    output.kept.clear();
    let mut limiter = ResultLimiter { storage, kept: Vec::new(), wholes: Vec::new() };
    output.content.iter_mut().for_each(|part| limiter.media(part));
    let limit = limit.max(MIN_RESULT_BYTES / 2);
    let structured = output.structured.take().and_then(|value| match value.to_string() {
        json if json.len() <= limit && !json::is_deeper_than(&value, json::MAX_DEPTH) => {
            output.structured = Some(value);
            None
        }
        json => Some((value, json)),
    });
    match structured {
        None => limiter.content(&mut output.content, limit),
        Some((value, json)) => limiter.structured(&mut output.content, &value, json, limit),
    }
    output.kept = limiter.kept;
    (output, limiter.wholes)
}

struct ResultLimiter<'a> {
    storage: OverflowStorage<'a>,
    kept: Vec<StoredContent>,
    wholes: Vec<Blob>,
}

impl<'a> ResultLimiter<'a> {
    /// Replaces bytes by a handle.
    fn media(&mut self, part: &mut Part) {
        let most = match self.storage {
            OverflowStorage::UpTo(most) => most,
            OverflowStorage::Failed(_) => usize::MAX,
            OverflowStorage::Nowhere(_) => return,
        };
        let Some((media_type, data)) = part.take_data() else { return };
        let Some(bytes) = Media::decode(&data) else {
            let note = match self.keep("text/plain".into(), data.into_bytes(), StoredForm::Text) {
                OmittedText::Kept(handle) => format!("the original is kept as {handle}"),
                OmittedText::Lost(why) => format!("the original is not kept: {why}"),
            };
            *part = Part::text(format!("[toolgate] The data of {media_type} is not base64; {note}."));
            return;
        };
        if bytes.len() > most {
            let (size, most) = (bytes.len(), most >> 20);
            *part =
                Part::text(format!("[toolgate] {media_type} of {size} bytes is not kept: the limit is {most} MiB."));
            return;
        }
        let size = bytes.len();
        match self.keep(media_type.clone(), bytes, StoredForm::Media) {
            OmittedText::Kept(handle) => part.refer(handle),
            OmittedText::Lost(why) => {
                *part = Part::text(format!("[toolgate] {media_type} of {size} bytes is not kept: {why}."));
            }
        }
    }

    /// Moves a large structured form out of the journal. If it equals the text it is not stored twice.
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
        let note = match self.keep("application/json".into(), json.into_bytes(), StoredForm::Structured) {
            OmittedText::Kept(handle) => format!("is kept as {handle}; `result_read` reads any part of it"),
            OmittedText::Lost(why) => format!("is not kept: {why}"),
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

    /// Cuts one text to its share of the room.
    fn part(&mut self, part: &mut Part, room: usize) {
        let Some(text) = text_of(part).filter(|text| text.len() > room) else { return };
        let (media_type, bytes) = (media_type(part, text), text.as_bytes().to_vec());
        let rest = self.keep(media_type, bytes, StoredForm::Text);
        if let Some(text) = text_mut(part) {
            *text = cut(text, room, rest);
        }
    }

    /// Joins all parts to one text, followed by as many media as fit a quarter of the room.
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
        // Handles that only the whole text names are stored with it; listing them here would take too much room.
        let shown: BTreeSet<BlobHandle> = content.iter().flat_map(named).collect();
        let mut index = 0..;
        self.kept.retain(|kept| {
            let is_of_this = index.next().is_some_and(|index| index >= before);
            is_of_this || kept.form == StoredForm::Structured || shown.contains(&kept.handle)
        });
    }

    /// Registers content to be stored, if possible.
    fn keep(&mut self, media_type: String, bytes: Vec<u8>, form: StoredForm) -> OmittedText<'a> {
        match self.storage {
            OverflowStorage::Nowhere(why) | OverflowStorage::Failed(why) => OmittedText::Lost(why),
            OverflowStorage::UpTo(most) if bytes.len() > most => {
                OmittedText::Lost("it is more than a store keeps, which is 64 MiB")
            }
            OverflowStorage::UpTo(_) => {
                let size = bytes.len() as u64;
                let blob = Blob::new(media_type.clone(), bytes);
                let handle = blob.handle();
                let kept = StoredContent { handle, media_type, bytes: size, form };
                if !self.kept.contains(&kept) {
                    self.kept.push(kept);
                }
                if !self.wholes.iter().any(|whole| whole.handle() == handle) {
                    self.wholes.push(blob);
                }
                OmittedText::Kept(handle)
            }
        }
    }
}

/// The handles that a part names, in its text as well.
fn named(part: &Part) -> Vec<BlobHandle> {
    let mut handles = part.blobs();
    let text = text_of(part).unwrap_or_default();
    let places = text.match_indices(BlobHandle::START);
    handles.extend(places.filter_map(|(at, _)| BlobHandle::parse(text.get(at..at + BlobHandle::LENGTH)?).ok()));
    handles
}

/// The room of each text so that all fit: shorter texts leave more room to the others. `None` if there are too many
/// parts, or too much content besides their text.
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

/// How the structured form equals the text, if it does.
fn same(text: &str, value: &Value, json: &str) -> Option<StoredForm> {
    let wrapped = value.as_object().filter(|members| members.len() == 1).and_then(|members| members.get("result"));
    if text == json {
        return Some(StoredForm::Both);
    }
    if value.as_str() == Some(text) {
        return Some(StoredForm::Same);
    }
    if wrapped.is_some_and(|result| result.as_str() == Some(text)) {
        return Some(StoredForm::Wrapped);
    }
    let parsed: Value = serde_json::from_str(text).ok()?;
    if parsed == *value {
        return Some(StoredForm::Both);
    }
    (wrapped == Some(&parsed)).then_some(StoredForm::Wrapped)
}

#[cfg(test)]
#[path = "bounded_tests.rs"]
mod tests;
