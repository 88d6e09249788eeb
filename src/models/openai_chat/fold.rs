//! Answer fold: folds the chunks of an answer into a reply. A complete answer is a fold over one chunk, so streamed and
//! unstreamed replies follow the same rules: calls decide, not the finish reason; the last usage counts; any error
//! wins.

use serde_json::Value;
use toolgate_core::chat::{Part, Reply, Stop, Usage};
use toolgate_core::lifecycle::Delta;

use super::api_types::{CallPiece, Choice, Chunk, Content, MessageDelta};
use super::calls::{CallDrafts, Truncation};
use super::vendor_fields;
use crate::http::{CallIds, ErrorBody, Fault, Fold, StopReason, read, read_event};
use crate::openai_usage;

/// The end mark of a stream.
const DONE: &str = "[DONE]";
/// Finish reasons of a generation that the server interrupted: OpenRouter for an unavailable provider, DeepSeek, and
/// vLLM and SGLang. The content before it is not a reply.
const INTERRUPTED: [&str; 3] = ["error", "insufficient_system_resource", "abort"];
const NO_MESSAGE: Fault = Fault::NoMessage("`choices` is empty");

/// The part of an answer received so far.
#[derive(Debug, Default)]
pub(super) struct ChatFold {
    requested_model: String,
    spoken: Vec<TextRun>,
    calls: CallDrafts,
    details: Vec<Value>,
    has_reasoning_content: bool,
    refused: bool,
    has_message: bool,
    finish_reason: StopReason,
    done: bool,
    usage: Option<Value>,
    model: Option<String>,
    response_id: Option<String>,
}

/// A sequence of text or reasoning.
#[derive(Debug)]
enum TextRun {
    Text(String),
    Reasoning(String),
}

impl Fold for ChatFold {
    fn event(&mut self, data: &str, deltas: &mut dyn FnMut(Delta)) -> Result<(), Fault> {
        if data.trim() == DONE {
            self.done = true;
            return Ok(());
        }
        let chunk: Chunk = read_event(data.as_bytes())?;
        if chunk.object.as_deref() == Some("error") && chunk.error.is_none() {
            return fail_on(Some(read(data.as_bytes())?));
        }
        self.chunk(chunk, deltas)
    }

    fn whole(&mut self, body: &[u8]) -> Result<(), Fault> {
        self.chunk(read(body)?, &mut |_| {})?;
        if self.has_message { Ok(()) } else { Err(NO_MESSAGE) }
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn is_finished(&self) -> bool {
        self.done || self.finish_reason.stated().is_some()
    }

    fn has_begun(&self) -> bool {
        !self.spoken.is_empty() || !self.calls.is_empty()
    }

    fn usage(&self) -> Usage {
        self.usage.as_ref().map(openai_usage::read).unwrap_or_default()
    }

    fn into_reply(self: Box<Self>, known: &CallIds) -> Result<Reply, Fault> {
        if !self.has_message {
            return Err(NO_MESSAGE);
        }
        let (stop, usage) = (self.stop()?, self.usage());
        let is_whole = stop.is_whole() && self.finish_reason != StopReason::NULL;
        let cut = if is_whole { Truncation::No } else { Truncation::Early };
        let spoken = self.spoken.into_iter().map(|spoken| match spoken {
            TextRun::Text(text) => Part::Text { text },
            TextRun::Reasoning(text) => Part::Reasoning { text },
        });
        let provider_state = vendor_fields::state(
            &self.requested_model,
            self.details,
            self.calls.extra_contents(),
            self.has_reasoning_content,
        );
        let mut content: Vec<Part> = spoken.chain(self.calls.into_parts(cut)).collect();
        known.assign(&mut content);
        Ok(Reply {
            content,
            stop,
            usage,
            model: self.model,
            response_id: self.response_id,
            provider_state,
            first_token_ms: None,
        })
    }
}

impl ChatFold {
    /// The empty answer of this model.
    pub(super) fn new(requested_model: String) -> Self {
        Self { requested_model, ..Self::default() }
    }

    /// Adds a chunk, or a complete answer.
    fn chunk(&mut self, chunk: Chunk, deltas: &mut dyn FnMut(Delta)) -> Result<(), Fault> {
        let Chunk { id, model, choices, usage, error, object: _ } = chunk;
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
        match self.finish_reason.stated() {
            Some(reason) if INTERRUPTED.contains(&reason) => {
                let error = Value::from(format!("the generation was interrupted (finish_reason {reason})"));
                Err(Fault::Provider(Box::new(ErrorBody::of_error(&error))))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn stop(&self) -> Result<Stop, Fault> {
        match self.finish_reason.stated() {
            _ if self.refused => Ok(Stop::Refusal),
            Some("length") => Ok(Stop::MaxTokens),
            Some("content_filter") => Ok(Stop::ContentFilter),
            _ if !self.calls.is_empty() => Ok(Stop::ToolCalls),
            Some(_) | None => self.finish_reason.without_calls("finish_reason"),
        }
    }

    fn choice(&mut self, choice: Choice, deltas: &mut dyn FnMut(Delta)) -> Result<(), Fault> {
        let Choice { index: _, message, delta, finish_reason, error } = choice;
        self.has_message |= message.is_some() || delta.is_some();
        if let Some(message) = message {
            for call in self.emit(message, deltas) {
                self.calls.push_whole(call)?;
            }
        }
        if let Some(delta) = delta {
            for (position, call) in self.emit(delta, deltas).into_iter().enumerate() {
                self.calls.push_piece(position, call)?;
            }
        }
        fail_on(error)?;
        self.finish_reason.note(finish_reason);
        Ok(())
    }

    /// Adds text and reasoning; returns the call pieces.
    fn emit(&mut self, said: MessageDelta, deltas: &mut dyn FnMut(Delta)) -> Vec<CallPiece> {
        self.has_reasoning_content |= said.reasoning_content.as_ref().is_some_and(|text| !text.is_empty());
        if let Some(text) = said.reasoning().filter(|text| !text.is_empty()) {
            deltas(Delta::Reasoning { text: text.to_string() });
            match self.spoken.last_mut() {
                Some(TextRun::Reasoning(so_far)) => so_far.push_str(&text),
                Some(TextRun::Text(_)) | None => self.spoken.push(TextRun::Reasoning(text.into_owned())),
            }
        }
        vendor_fields::add_details(&mut self.details, said.reasoning_details);
        self.say_text(said.content.map(Content::into_text), deltas);
        self.refused |= said.refusal.as_ref().is_some_and(|text| !text.is_empty());
        self.say_text(said.refusal, deltas);
        said.tool_calls.unwrap_or_default()
    }

    fn say_text(&mut self, text: Option<String>, deltas: &mut dyn FnMut(Delta)) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        deltas(Delta::Text { text: text.clone() });
        match self.spoken.last_mut() {
            Some(TextRun::Text(so_far)) => so_far.push_str(&text),
            Some(TextRun::Reasoning(_)) | None => self.spoken.push(TextRun::Text(text)),
        }
    }
}

fn fail_on(error: Option<Value>) -> Result<(), Fault> {
    match error {
        None | Some(Value::Null) => Ok(()),
        Some(error) => Err(Fault::Provider(Box::new(ErrorBody::of_error(&error)))),
    }
}
