//! The fold of an answer's chunks into a reply. A whole answer is a fold over one chunk, so streamed and unstreamed
//! replies obey one set of rules: calls decide, not the finish reason; the last usage counts; an error anywhere wins.

use serde_json::Value;

use super::calls::{Calls, Cut, TooManyCalls};
use super::errors::ErrorBody;
use super::wire::{CallPiece, Choice, Chunk, Content, Said};
use super::{CallIds, usage};
use crate::core::chat::{Part, Reply, Stop};
use crate::ports::Delta;

/// The mark that a stream is over.
const DONE: &str = "[DONE]";

/// Why an answer is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FoldFault {
    /// The server says that it failed.
    #[error("the server reports an error")]
    Provider(Box<ErrorBody>),
    /// What came cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The answer ended before it was finished.
    #[error("the answer was cut off: the stream ended without a finish reason")]
    Truncated,
    /// The answer holds no message.
    #[error("the answer holds no message (`choices` is empty)")]
    NoMessage,
    /// The answer is absurd.
    #[error(transparent)]
    TooManyCalls(#[from] TooManyCalls),
}

/// An answer as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Fold {
    spoken: Vec<Spoken>,
    calls: Calls,
    refused: bool,
    has_message: bool,
    finish_reason: Option<String>,
    done: bool,
    usage: Option<Value>,
    model: Option<String>,
    response_id: Option<String>,
}

/// A run of text or reasoning.
#[derive(Debug)]
enum Spoken {
    Text(String),
    Reasoning(String),
}

impl Fold {
    /// Takes the data of one event of a stream.
    pub(super) fn event(&mut self, data: &str, deltas: &mut dyn FnMut(Delta)) -> Result<(), FoldFault> {
        if data.trim() == DONE {
            self.done = true;
            return Ok(());
        }
        let chunk = read(data.as_bytes()).map_err(FoldFault::Unreadable)?;
        self.chunk(chunk, deltas)
    }

    /// Takes a chunk, or a whole answer.
    pub(super) fn chunk(&mut self, chunk: Chunk, deltas: &mut dyn FnMut(Delta)) -> Result<(), FoldFault> {
        let Chunk { id, model, choices, usage, error } = chunk;
        // Cumulative: the last one counts, they are never summed.
        self.usage = usage.filter(Value::is_object).or(self.usage.take());
        self.model = self.model.take().or(model.filter(|model| !model.is_empty()));
        self.response_id = self.response_id.take().or(id.filter(|id| !id.is_empty()));
        for choice in choices.unwrap_or_default() {
            if choice.index.unwrap_or(0) == 0 {
                self.choice(choice, deltas)?;
            }
        }
        fail_on(error)?;
        match self.finish_reason.as_deref() {
            // OpenRouter's finish for a provider that went away.
            Some("error") => Err(FoldFault::Provider(Box::default())),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the server said that the answer is over.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the answer may count as whole, even if the stream ends here.
    pub(super) fn is_finished(&self) -> bool {
        self.done || self.finish_reason.is_some()
    }

    /// Whether anything was said or asked for yet.
    pub(super) fn has_begun(&self) -> bool {
        !self.spoken.is_empty() || !self.calls.is_empty()
    }

    /// The reply of a stream, if it came to its end.
    pub(super) fn into_reply(self, known: &CallIds) -> Result<Reply, FoldFault> {
        if !self.is_finished() { Err(FoldFault::Truncated) } else { self.into_whole_reply(known) }
    }

    /// The reply of an answer that is whole by its form.
    pub(super) fn into_whole_reply(self, known: &CallIds) -> Result<Reply, FoldFault> {
        if !self.has_message {
            return Err(FoldFault::NoMessage);
        }
        let stop = self.stop();
        let cut = if stop == Stop::MaxTokens { Cut::AtLimit } else { Cut::No };
        let spoken = self.spoken.into_iter().map(|spoken| match spoken {
            Spoken::Text(text) => Part::Text { text },
            Spoken::Reasoning(text) => Part::Reasoning { text },
        });
        let mut content: Vec<Part> = spoken.chain(self.calls.into_parts(cut)).collect();
        known.assign(&mut content);
        Ok(Reply {
            content,
            stop,
            usage: self.usage.as_ref().map(usage::read).unwrap_or_default(),
            model: self.model,
            response_id: self.response_id,
            provider_state: None,
            first_token_ms: None,
        })
    }

    fn stop(&self) -> Stop {
        match self.finish_reason.as_deref() {
            _ if self.refused => Stop::Refusal,
            Some("length") => Stop::MaxTokens,
            Some("content_filter") => Stop::ContentFilter,
            _ if !self.calls.is_empty() => Stop::ToolCalls,
            Some(_) | None => Stop::End,
        }
    }

    fn choice(&mut self, choice: Choice, deltas: &mut dyn FnMut(Delta)) -> Result<(), FoldFault> {
        let Choice { index: _, message, delta, finish_reason, error } = choice;
        self.has_message |= message.is_some() || delta.is_some();
        if let Some(message) = message {
            for call in self.say(message, deltas) {
                self.calls.push_whole(call)?;
            }
        }
        if let Some(delta) = delta {
            for (position, call) in self.say(delta, deltas).into_iter().enumerate() {
                self.calls.push_piece(position, call)?;
            }
        }
        fail_on(error)?;
        self.finish_reason = finish_reason.filter(|reason| !reason.is_empty()).or(self.finish_reason.take());
        Ok(())
    }

    /// Takes what is said and leaves what is asked for.
    fn say(&mut self, said: Said, deltas: &mut dyn FnMut(Delta)) -> Vec<CallPiece> {
        if let Some(text) = said.reasoning().filter(|text| !text.is_empty()) {
            deltas(Delta::Reasoning { text: text.to_owned() });
            match self.spoken.last_mut() {
                Some(Spoken::Reasoning(so_far)) => so_far.push_str(text),
                Some(Spoken::Text(_)) | None => self.spoken.push(Spoken::Reasoning(text.to_owned())),
            }
        }
        self.say_text(said.content.map(Content::into_text), deltas);
        self.refused |= said.refusal.as_ref().is_some_and(|text| !text.is_empty());
        self.say_text(said.refusal, deltas);
        said.tool_calls.unwrap_or_default()
    }

    fn say_text(&mut self, text: Option<String>, deltas: &mut dyn FnMut(Delta)) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        deltas(Delta::Text { text: text.clone() });
        match self.spoken.last_mut() {
            Some(Spoken::Text(so_far)) => so_far.push_str(&text),
            Some(Spoken::Reasoning(_)) | None => self.spoken.push(Spoken::Text(text)),
        }
    }
}

fn fail_on(error: Option<Value>) -> Result<(), FoldFault> {
    match error {
        None | Some(Value::Null) => Ok(()),
        Some(error) => Err(FoldFault::Provider(Box::new(ErrorBody::of_error(&error)))),
    }
}

/// Reads a chunk. The complaint names the place and never quotes what stands there.
pub(super) fn read(json: &[u8]) -> Result<Chunk, String> {
    if let Ok(chunk) = serde_json::from_slice(json) {
        return Ok(chunk);
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    match serde_path_to_error::deserialize::<_, Chunk>(&mut reader) {
        Ok(_) => Err("there is something after the end of the JSON".into()),
        Err(error) if error.inner().is_data() => Err(format!("{} is not of the expected type", error.path())),
        Err(error) => {
            Err(format!("it is not JSON from column {} of line {}", error.inner().column(), error.inner().line()))
        }
    }
}
