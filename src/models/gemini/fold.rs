//! Answer fold: folds the chunks of an answer into a reply. A complete answer is a fold over one chunk, so streamed and
//! unstreamed replies follow the same rules: calls decide, not the finish reason; the last usage counts; any error
//! wins. Parts are kept unchanged; only the neutral form joins adjacent text.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolgate_core::chat::{Media, Part, Reply, Stop, Usage};
use toolgate_core::lifecycle::Delta;
use toolgate_core::tool::{Arguments, ToolCall};

use super::answer::{self, Candidate, Chunk};
use super::replay;
use crate::http::{CallIds, ErrorBody, Fault, Fold, StopReason, read, read_event};

const NO_MESSAGE: Fault = Fault::NoMessage("`candidates` is empty");
const MAX_MESSAGE_CHARS: usize = 200;

/// The part of an answer received so far.
#[derive(Debug)]
pub(super) struct GeminiFold {
    model: String,
    parts: Vec<Value>,
    content: Vec<Part>,
    has_candidate: bool,
    is_blocked: bool,
    finish_reason: StopReason,
    finish_message: Option<String>,
    continuation_token: Option<String>,
    usage: Option<Value>,
    answered_by: Option<String>,
    response_id: Option<String>,
}

impl Fold for GeminiFold {
    fn event(&mut self, data: &str, deltas: &mut dyn FnMut(Delta)) -> Result<(), Fault> {
        self.chunks(data.as_bytes(), deltas)
    }

    fn whole(&mut self, body: &[u8]) -> Result<(), Fault> {
        self.chunks(body, &mut |_| {})?;
        if self.has_candidate || self.is_blocked { Ok(()) } else { Err(NO_MESSAGE) }
    }

    fn is_done(&self) -> bool {
        // A usage chunk may always follow.
        false
    }

    fn is_finished(&self) -> bool {
        self.finish_reason.stated().is_some() || self.is_blocked
    }

    fn has_begun(&self) -> bool {
        !self.parts.is_empty()
    }

    fn usage(&self) -> Usage {
        self.usage.as_ref().map(answer::usage).unwrap_or_default()
    }

    fn into_reply(mut self: Box<Self>, known: &CallIds) -> Result<Reply, Fault> {
        if !self.has_candidate && !self.is_blocked {
            return Err(NO_MESSAGE);
        }
        self.fail_on_finish()?;
        let (stop, usage) = (self.stop()?, self.usage());
        let token = self.continuation_token.take().filter(|_| stop == Stop::Pause);
        if !stop.is_whole() {
            doubt_last_call(&mut self.content);
        }
        known.assign(&mut self.content);
        Ok(Reply {
            content: self.content,
            stop,
            usage,
            model: self.answered_by,
            response_id: self.response_id,
            provider_state: replay::keep(&self.model, self.parts, token),
            first_token_ms: None,
        })
    }
}

impl GeminiFold {
    /// The start of an answer of this model.
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            parts: Vec::new(),
            content: Vec::new(),
            has_candidate: false,
            is_blocked: false,
            finish_reason: StopReason::default(),
            finish_message: None,
            continuation_token: None,
            usage: None,
            answered_by: None,
            response_id: None,
        }
    }

    /// Adds a chunk, or an array of chunks: errors in a stream and streams without `alt=sse` come as arrays.
    fn chunks(&mut self, json: &[u8], deltas: &mut dyn FnMut(Delta)) -> Result<(), Fault> {
        if json.trim_ascii_start().starts_with(b"[") {
            let chunks: Vec<Box<RawValue>> = read(json)?;
            let mut outcome = Ok(());
            for chunk in chunks {
                match read_event(chunk.get().as_bytes()) {
                    Ok(chunk) => self.chunk(chunk, deltas)?,
                    // The chunks after an unknown element count too.
                    Err(unknown @ Fault::UnknownEvent(_)) => outcome = Err(unknown),
                    Err(fault) => return Err(fault),
                }
            }
            return outcome;
        }
        self.chunk(read_event(json)?, deltas)
    }

    fn chunk(&mut self, chunk: Chunk, deltas: &mut dyn FnMut(Delta)) -> Result<(), Fault> {
        let Chunk { candidates, prompt_feedback, usage_metadata, model_version, response_id, error } = chunk;
        // Cumulative: the last one counts, they are never summed.
        self.usage = usage_metadata.filter(Value::is_object).or(self.usage.take());
        self.answered_by = self.answered_by.take().or(model_version);
        self.response_id = self.response_id.take().or(response_id);
        self.is_blocked |= prompt_feedback.is_some_and(|feedback| feedback.block_reason.is_some());
        for candidate in candidates.unwrap_or_default() {
            if candidate.index.unwrap_or(0) == 0 {
                self.candidate(candidate, deltas);
            }
        }
        match error {
            None | Some(Value::Null) => Ok(()),
            Some(error) => Err(Fault::Provider(Box::new(ErrorBody::of_error(&error)))),
        }
    }

    fn candidate(&mut self, candidate: Candidate, deltas: &mut dyn FnMut(Delta)) {
        let Candidate { index: _, content, finish_reason, finish_message, continuation_token } = candidate;
        self.has_candidate = true;
        self.finish_reason.note(finish_reason);
        self.finish_message = finish_message.or(self.finish_message.take());
        self.continuation_token = continuation_token.or(self.continuation_token.take());
        for part in content.and_then(|content| content.parts).unwrap_or_default() {
            self.emit(&part, deltas);
            if !is_nothing(&part) {
                self.parts.push(part);
            }
        }
    }

    /// Reads the neutral content of a part. Other content (such as code that ran on the server) exists only in the
    /// replay.
    fn emit(&mut self, part: &Value, deltas: &mut dyn FnMut(Delta)) {
        let is_thought = part.get("thought") == Some(&Value::Bool(true));
        if let Some(call) = part.get("functionCall") {
            let text = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default();
            let arguments = call.get("args").cloned().unwrap_or_default();
            self.content.push(ToolCall::new(text("id"), text("name"), arguments).into_part());
        } else if let Some(text) = part.get("text").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            let text = text.to_owned();
            deltas(match is_thought {
                true => Delta::Reasoning { text: text.clone() },
                false => Delta::Text { text: text.clone() },
            });
            match (self.content.last_mut(), is_thought) {
                (Some(Part::Reasoning { text: so_far }), true) | (Some(Part::Text { text: so_far }), false) => {
                    so_far.push_str(&text);
                }
                (_, true) => self.content.push(Part::Reasoning { text }),
                (_, false) => self.content.push(Part::Text { text }),
            }
        } else if !is_thought {
            self.content.extend(part.get("inlineData").and_then(media));
        }
    }

    fn stop(&self) -> Result<Stop, Fault> {
        let calls = self.content.iter().any(|part| matches!(part, Part::ToolUse { .. }));
        match self.finish_reason.stated() {
            _ if self.is_blocked => Ok(Stop::ContentFilter),
            Some("MAX_TOKENS") => Ok(Stop::MaxTokens),
            Some(
                "SAFETY"
                | "RECITATION"
                | "LANGUAGE"
                | "BLOCKLIST"
                | "PROHIBITED_CONTENT"
                | "SPII"
                | "MODEL_ARMOR"
                | "IMAGE_SAFETY"
                | "IMAGE_PROHIBITED_CONTENT"
                | "IMAGE_RECITATION"
                | "ESCALATION"
                | "PUP_LIMITED_DISABLED",
            ) => Ok(Stop::ContentFilter),
            _ if calls => Ok(Stop::ToolCalls),
            // The limit of one request, not of the answer: the token requests the rest.
            Some("CONTINUATION") if self.continuation_token.is_some() => Ok(Stop::Pause),
            Some("CONTINUATION") => Ok(Stop::MaxTokens),
            // The default of the enum, for a reason that was not set.
            Some("FINISH_REASON_UNSPECIFIED") => Ok(Stop::Unknown),
            Some(_) | None => self.finish_reason.without_calls("finishReason"),
        }
    }

    /// Fails on the finish reasons of an answer without a reply.
    fn fail_on_finish(&self) -> Result<(), Fault> {
        let Some(reason) = self.finish_reason.stated() else { return Ok(()) };
        match reason {
            // Our request was invalid, and would be again.
            "MISSING_THOUGHT_SIGNATURE" => {
                let error = json!({"code": 400, "status": reason, "message": self.finish_message});
                Err(Fault::Provider(Box::new(ErrorBody::of_error(&error))))
            }
            // The model may succeed on a retry.
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" => {
                Err(self.unusable(reason))
            }
            "OTHER" if self.content.is_empty() => Err(self.unusable(reason)),
            _ => Ok(()),
        }
    }

    fn unusable(&self, reason: &str) -> Fault {
        let readable = |c: char| if c.is_control() { ' ' } else { c };
        let message: String =
            self.finish_message.iter().flat_map(|text| text.chars()).map(readable).take(MAX_MESSAGE_CHARS).collect();
        let colon = if message.is_empty() { "" } else { ": " };
        Fault::Unreadable(format!("the model's turn is unusable ({reason}){colon}{message}"))
    }
}

/// Marks the last call of a cut answer as malformed if its arguments are empty or the cut came directly after it:
/// arguments arrive parsed, so it is unknown whether they are complete.
fn doubt_last_call(content: &mut [Part]) {
    let last = content.len().saturating_sub(1);
    let Some(place) = content.iter().rposition(|part| matches!(part, Part::ToolUse { .. })) else { return };
    if let Some(Part::ToolUse { input, .. }) = content.get_mut(place)
        && let Arguments::Object(arguments) = &*input
        && (place == last || arguments.is_empty())
    {
        *input = Arguments::Malformed(Value::Object(arguments.clone()).to_string());
    }
}

/// Whether a part is empty text without a signature, which the API would reject.
fn is_nothing(part: &Value) -> bool {
    let is_rest = |(name, value): (&String, &Value)| name == "thought" || (name == "text" && value == "");
    part.as_object().is_some_and(|fields| fields.iter().all(is_rest))
}

fn media(inline: &Value) -> Option<Part> {
    let media_type = inline.get("mimeType")?.as_str()?.to_owned();
    let media = Media { data: Some(inline.get("data")?.as_str()?.to_owned()), url: None, media_type };
    match media.media_type.split('/').next() {
        Some("image") => Some(Part::Image(media)),
        Some("audio") => Some(Part::Audio(media)),
        Some(_) | None => None,
    }
}
