//! Trace messages: flattened for OpenInference, as a JSON list for chat readers, and in parts for GenAI.
//!
//! Our messages pack all results of a turn into one user message; traces show one message of role `tool` per result. A
//! message of one text with optional calls after it uses the simple form; any other message becomes contents in their
//! order. Readers treat all text among the contents as the message. So a message with reasoning puts its text into
//! `message.content`, and the contents hold the rest.

use serde::Serialize;
use serde_json::{Value as Json, json};
use toolgate_core::chat::{Media, Message, Part, ProviderState, Role};
use toolgate_core::id::CallId;
use toolgate_core::run::Output;
use toolgate_core::tool::Arguments;

use super::attributes::{Attributes, REDACTED, without_nul};
use super::reasoning::{ReasoningPart, SealedReasoning};
use super::{SharedText, names};

/// One message of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct TraceMessage {
    role: &'static str,
    /// All of its text, for readers of the simple form.
    text: Option<String>,
    contents: Vec<TracePart>,
    calls: Vec<TraceToolCall>,
    answers: Option<CallId>,
    name: Option<String>,
}

/// A piece of a message, in order.
#[derive(Clone, Debug)]
enum TracePart {
    Text(String),
    ReasoningPart(ReasoningPart),
    Image(String),
    Audio {
        url: String,
        media_type: String,
    },
    /// The call with this index.
    Call(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageForm {
    /// Text and calls.
    Simple,
    /// Text, and the rest as contents.
    Apart,
    /// Everything as contents.
    Contents,
}

/// A tool call requested by a model.
#[derive(Clone, Debug)]
struct TraceToolCall {
    id: CallId,
    name: String,
    arguments: String,
    signature: Option<String>,
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'static str,
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a CallId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall<'a>>,
}

#[derive(Serialize)]
struct ChatCall<'a> {
    id: &'a CallId,
    #[serde(rename = "type")]
    kind: &'static str,
    function: ChatFunction<'a>,
}

#[derive(Serialize)]
struct ChatFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> ChatCall<'a> {
    fn of(TraceToolCall { id, name, arguments, .. }: &'a TraceToolCall) -> Self {
        Self { id, kind: "function", function: ChatFunction { name, arguments } }
    }
}

impl TraceMessage {
    /// The system prompt.
    pub(super) fn system(text: &str) -> Self {
        Self { role: "system", text: Some(text.to_owned()), ..Self::default() }
    }

    /// The assistant's message of one turn; `state` adds the provider's own form of its reasoning.
    pub(super) fn assistant(parts: &[Part], state: Option<&ProviderState>, image_chars: usize) -> Self {
        let mut said = Self { role: "assistant", ..Self::default() };
        let mut sealed = SealedReasoning::from_state(state);
        for part in parts {
            said.contents.extend(std::iter::from_fn(|| sealed.wordless()).map(TracePart::ReasoningPart));
            match part {
                Part::Reasoning { text } => said.contents.push(TracePart::ReasoningPart(sealed.with_text(text))),
                Part::Text { .. }
                | Part::Image(_)
                | Part::Audio(_)
                | Part::Resource { .. }
                | Part::ToolUse { .. }
                | Part::ToolResult { .. } => said.push(part, image_chars),
            }
        }
        for (call, signature) in said.calls.iter_mut().zip(sealed.of_calls) {
            call.signature = signature;
        }
        said.never_empty()
    }

    /// Our message as the one or more messages that a reader sees. Results carry the name of their tool.
    pub(super) fn from_message(
        message: &Message,
        tool_of: &dyn Fn(&CallId) -> Option<String>,
        image_chars: usize,
    ) -> Vec<Self> {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => {
                return vec![Self::assistant(&message.content, message.provider_state.as_ref(), image_chars)];
            }
        };
        let mut all: Vec<Self> = Vec::new();
        for part in &message.content {
            if let Part::ToolResult { tool_use_id, content, is_error } = part {
                all.push(Self::result(tool_use_id, tool_of(tool_use_id), (content, *is_error), image_chars));
                continue;
            }
            match all.last_mut().filter(|said| said.role == role) {
                Some(said) => said.push(part, image_chars),
                None => {
                    let mut said = Self { role, ..Self::default() };
                    said.push(part, image_chars);
                    all.push(said);
                }
            }
        }
        all.into_iter().map(Self::never_empty).collect()
    }

    /// The result of a call. This form has no error flag, so the text says that it is an error.
    fn result(call: &CallId, name: Option<String>, (content, is_error): (&[Part], bool), image_chars: usize) -> Self {
        let mut result = Self { role: "tool", answers: Some(call.clone()), name, ..Self::default() };
        for part in content {
            if let Some(text) = result.text.as_mut().filter(|_| part_text(part).is_some()) {
                text.push('\n');
            }
            result.push(part, image_chars);
        }
        let mut result = result.never_empty();
        if is_error && result.text.as_ref().is_some_and(|text| !says_error(text)) {
            result.mark_as_error();
        }
        result
    }

    fn mark_as_error(&mut self) {
        const MARK: &str = "Error: ";
        if let Some(text) = &mut self.text {
            text.insert_str(0, MARK);
        }
        match self.contents.first_mut() {
            Some(TracePart::Text(text)) => text.insert_str(0, MARK),
            Some(_) | None => self.contents.insert(0, TracePart::Text(MARK.to_owned())),
        }
    }

    /// Flattens the message below `prefix`.
    pub(super) fn attributes(&self, prefix: &str, to: &mut Attributes) {
        to.word(SharedText::name(prefix, names::MESSAGE_ROLE), self.role);
        let form = self.form();
        if let Some(text) = self.text.as_ref().filter(|_| form != MessageForm::Contents) {
            to.text(SharedText::name(prefix, names::MESSAGE_CONTENT), text);
        }
        if let Some(call) = &self.answers {
            to.text(SharedText::name(prefix, names::MESSAGE_TOOL_CALL_ID), call.as_str());
        }
        if let Some(name) = &self.name {
            to.text(SharedText::name(prefix, names::MESSAGE_NAME), name);
        }
        for (index, call) in self.calls.iter().enumerate() {
            call.attributes(&format!("{prefix}.{}.{index}", names::MESSAGE_TOOL_CALLS), to);
        }
        let is_told = |shown: &&TracePart| match form {
            MessageForm::Simple => false,
            MessageForm::Apart => !matches!(shown, TracePart::Text(_)),
            MessageForm::Contents => true,
        };
        for (index, shown) in self.contents.iter().filter(is_told).enumerate() {
            self.content(shown, &format!("{prefix}.{}.{index}", names::MESSAGE_CONTENTS), to);
        }
    }

    fn content(&self, shown: &TracePart, prefix: &str, to: &mut Attributes) {
        let kind = match shown {
            TracePart::Text(_) => "text",
            TracePart::ReasoningPart(_) => "reasoning",
            TracePart::Image(_) => "image",
            TracePart::Audio { .. } => "audio",
            TracePart::Call(_) => "tool_use",
        };
        to.word(SharedText::name(prefix, names::CONTENT_TYPE), kind);
        match shown {
            TracePart::Text(text) => to.text(SharedText::name(prefix, names::CONTENT_TEXT), text),
            TracePart::ReasoningPart(thought) => thought.attributes(prefix, to),
            TracePart::Image(url) => to.text(SharedText::name(prefix, names::CONTENT_IMAGE_URL), url),
            TracePart::Audio { url, media_type } => {
                to.text(SharedText::name(prefix, names::CONTENT_AUDIO_URL), url);
                to.text(SharedText::name(prefix, names::CONTENT_AUDIO_MIME), media_type);
            }
            TracePart::Call(number) => {
                if let Some(call) = self.calls.get(*number) {
                    call.attributes(prefix, to);
                }
            }
        }
    }

    /// The JSON of a chat completion message, which readers render as a chat.
    pub(super) fn chat(&self) -> String {
        let message = ChatMessage {
            role: self.role,
            content: self.text.as_deref(),
            tool_call_id: self.answers.as_ref(),
            name: self.name.as_deref(),
            tool_calls: self.calls.iter().map(ChatCall::of).collect(),
        };
        without_nul(serde_json::to_string(&message).unwrap_or_default())
    }

    /// The form of the GenAI conventions.
    pub(super) fn parts(&self) -> Json {
        let text = self.text.as_deref().unwrap_or_default();
        let mut parts: Vec<Json> = Vec::new();
        for shown in &self.contents {
            match shown {
                TracePart::ReasoningPart(thought) if thought.text.is_empty() => {}
                TracePart::ReasoningPart(thought) => {
                    parts.push(json!({ "type": "reasoning", "content": thought.text }))
                }
                TracePart::Image(url) => parts.push(json!({ "type": "uri", "modality": "image", "uri": url })),
                TracePart::Audio { url, media_type } => {
                    parts.push(json!({ "type": "uri", "modality": "audio", "mime_type": media_type, "uri": url }));
                }
                TracePart::Text(_) | TracePart::Call(_) => {}
            }
        }
        if let Some(call) = &self.answers {
            parts.push(json!({ "type": "tool_call_response", "id": call, "response": text }));
        } else if self.text.is_some() {
            parts.push(json!({ "type": "text", "content": text }));
        }
        for TraceToolCall { id, name, arguments, .. } in &self.calls {
            let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Json::from(arguments.as_str()));
            parts.push(json!({ "type": "tool_call", "id": id, "name": name, "arguments": arguments }));
        }
        json!({ "role": self.role, "parts": parts })
    }

    fn push(&mut self, part: &Part, image_chars: usize) {
        match part {
            Part::Text { .. } | Part::Resource { .. } => self.push_text(part_text(part).unwrap_or_default()),
            Part::Image(media) => self.contents.push(TracePart::Image(url(media, image_chars))),
            Part::Audio(media) => {
                let media_type = media.media_type.clone();
                self.contents.push(TracePart::Audio { url: url(media, image_chars), media_type });
            }
            Part::Reasoning { text } => self.contents.push(TracePart::ReasoningPart(ReasoningPart::text_only(text))),
            Part::ToolUse { id, name, input } => {
                let (id, name, arguments) = (id.clone(), name.clone(), arguments_text(input));
                self.contents.push(TracePart::Call(self.calls.len()));
                self.calls.push(TraceToolCall { id, name, arguments, signature: None });
            }
            Part::ToolResult { .. } => {} // results are never nested; each top-level result is a message of its own
        }
    }

    fn push_text(&mut self, text: &str) {
        self.text.get_or_insert_default().push_str(text);
        self.contents.push(TracePart::Text(text.to_owned()));
    }

    fn form(&self) -> MessageForm {
        if self.contents.iter().any(|shown| matches!(shown, TracePart::ReasoningPart(_))) {
            return MessageForm::Apart;
        }
        let calls = self.contents.iter().rev().take_while(|shown| matches!(shown, TracePart::Call(_))).count();
        match self.contents.iter().rev().skip(calls).all(|shown| matches!(shown, TracePart::Text(_))) {
            true => MessageForm::Simple,
            false => MessageForm::Contents,
        }
    }

    fn never_empty(mut self) -> Self {
        let has_more = self.contents.iter().any(|shown| !matches!(shown, TracePart::Text(_) | TracePart::Call(_)));
        if self.text.is_none() && (self.calls.is_empty() || has_more) {
            self.text = Some(String::new());
        }
        self
    }
}

impl TraceToolCall {
    fn attributes(&self, prefix: &str, to: &mut Attributes) {
        to.text(SharedText::name(prefix, names::TOOL_CALL_ID), self.id.as_str());
        to.text(SharedText::name(prefix, names::TOOL_CALL_NAME), &self.name);
        to.text(SharedText::name(prefix, names::TOOL_CALL_ARGUMENTS), &self.arguments);
        if let Some(signature) = &self.signature {
            to.text(SharedText::name(prefix, names::TOOL_CALL_SIGNATURE), signature);
        }
    }
}

/// Arguments as text: compact JSON, or the model's own text if it is not JSON.
pub(super) fn arguments_text(arguments: &Arguments) -> String {
    match arguments {
        Arguments::Object(_) => without_nul(serde_json::to_string(arguments).unwrap_or_default()),
        Arguments::Malformed(text) => text.clone(),
    }
}

/// An answer as one text, followed by the locations of its media.
pub(super) fn answer_text(answer: &Output) -> String {
    let text = Some(answer.text.clone()).filter(|text| !text.is_empty());
    let media = answer.media.iter().map(|media| {
        let place = media.url.as_deref().unwrap_or("inline");
        format!("[{}: {place}]", media.media_type)
    });
    text.into_iter().chain(media).collect::<Vec<_>>().join("\n")
}

/// The parts of a result as one text; media only by name.
pub(super) fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Image(media) | Part::Audio(media) => Some(format!("[{}]", media.media_type)),
        Part::Text { .. }
        | Part::Resource { .. }
        | Part::Reasoning { .. }
        | Part::ToolUse { .. }
        | Part::ToolResult { .. } => part_text(part).map(str::to_owned),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The text of a part that is or replaces text.
fn part_text(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } => Some(text),
        Part::Resource { uri, text, .. } => Some(text.as_deref().unwrap_or(uri)),
        Part::Image(_) | Part::Audio(_) | Part::Reasoning { .. } | Part::ToolUse { .. } | Part::ToolResult { .. } => {
            None
        }
    }
}

fn says_error(text: &str) -> bool {
    text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"))
}

/// The URL of the media, or its inline data if that is short enough.
fn url(media: &Media, chars: usize) -> String {
    match (&media.url, &media.data) {
        (Some(url), _) => url.clone(),
        (None, Some(data)) if data.len() <= chars => format!("data:{};base64,{data}", media.media_type),
        (None, Some(_)) => REDACTED.to_owned(),
        (None, None) => String::new(),
    }
}
