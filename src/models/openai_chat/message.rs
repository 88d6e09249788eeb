//! Message translation: one neutral message as the messages of the API.
//!
//! Results come first, one `tool` message each, directly after the assistant message they answer. Other user content
//! and the media of results follow as a `user` message, because `tool` messages hold only text.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use toolgate_core::chat::{Message, Part, Role};

use super::vendor_fields;
use crate::openai_content::{ContentForm, Reader, accepted_name, as_text, content_form, joined, marked};

/// The note for an empty turn, such as one of only reasoning: some servers reject empty ones, and would reject the
/// conversation from then on.
const NOTHING: &str = "[nothing was said]";

/// The message format of one server.
#[derive(Clone, Debug)]
pub(super) struct MessageFormat {
    /// The media it accepts.
    pub(super) reader: Reader,
    /// The turns that are sent with their reasoning.
    pub(super) reasoning: ReasoningReplay,
    /// The model to call: its own turns are replayed in full.
    pub(super) model: String,
}

/// The turns of a model that are sent with their reasoning, as `reasoning_content`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReasoningReplay {
    Never,
    /// Those whose reasoning this server sent in that field.
    AsReceived,
    EveryTurn,
}

/// A message in the API's form.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum WireMessage<'a> {
    /// A user message.
    User { content: UserContent<'a> },
    Assistant {
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasoning_details: Vec<&'a Value>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    /// The result of one call.
    Tool { tool_call_id: Cow<'a, str>, content: Cow<'a, str> },
}

/// Plain text where possible: not every server accepts parts.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum UserContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<WirePart<'a>>),
}

/// A part of a user message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WirePart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
    File { file: File<'a> },
    InputAudio { input_audio: InputAudio<'a> },
}

/// A URL or a data URL.
#[derive(Debug, Serialize)]
pub(super) struct ImageUrl<'a> {
    url: Cow<'a, str>,
}

/// A document and its name.
#[derive(Debug, Serialize)]
pub(super) struct File<'a> {
    filename: Cow<'a, str>,
    file_data: String,
}

/// A recording.
#[derive(Debug, Serialize)]
pub(super) struct InputAudio<'a> {
    data: &'a str,
    format: &'static str,
}

/// A tool call of the model.
#[derive(Debug, Serialize)]
pub(super) struct WireCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: WireFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

/// Its name, and its arguments as text.
#[derive(Debug, Serialize)]
pub(super) struct WireFunction<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

impl MessageFormat {
    /// Translates a message; a user message becomes one message per result and one for the rest.
    pub(super) fn translate<'a>(&self, message: &'a Message) -> Result<Vec<WireMessage<'a>>, serde_json::Error> {
        match message.role {
            Role::User => Ok(self.user(&message.content)),
            Role::Assistant => Ok(vec![self.assistant(message)?]),
        }
    }

    fn user<'a>(&self, parts: &'a [Part]) -> Vec<WireMessage<'a>> {
        let mut messages = Vec::new();
        let mut said = Vec::new();
        for part in parts {
            match part.tool_result() {
                Some((id, content, is_error)) => {
                    let tool_call_id = self.reader.id(id);
                    let content = self.result(&tool_call_id, content, &mut said);
                    messages.push(WireMessage::Tool { tool_call_id, content: marked(content, is_error) });
                }
                None => said.push(WirePart::new(content_form(part, &self.reader.said))),
            }
        }
        if !said.is_empty() || messages.is_empty() {
            messages.push(WireMessage::User { content: UserContent::new(said) });
        }
        messages
    }

    /// The text of a result. Its media are added to the user content after all results, labelled with the call.
    fn result<'a>(&self, id: &str, content: &'a [Part], said: &mut Vec<WirePart<'a>>) -> Cow<'a, str> {
        let mut texts = Vec::new();
        let mut media = Vec::new();
        for part in content {
            match content_form(part, &self.reader.results) {
                ContentForm::Text(text) => texts.push(text),
                carried @ (ContentForm::Image(_) | ContentForm::File { .. } | ContentForm::Audio { .. }) => {
                    texts.push(Cow::Borrowed("[shown in the next message]"));
                    media.push(WirePart::new(carried));
                }
            }
        }
        if !media.is_empty() {
            said.push(WirePart::Text { text: Cow::Owned(format!("[from the result of call {id}]")) });
            said.append(&mut media);
        }
        joined(texts, "\n")
    }

    fn assistant<'a>(&self, message: &'a Message) -> Result<WireMessage<'a>, serde_json::Error> {
        let (mut texts, mut reasoning, mut tool_calls) = (Vec::new(), Vec::new(), Vec::new());
        let vendor_fields = vendor_fields::from_message(message, &self.model);
        let has_reasoning = match self.reasoning {
            ReasoningReplay::Never => false,
            ReasoningReplay::AsReceived => vendor_fields.has_reasoning_content,
            ReasoningReplay::EveryTurn => true,
        };
        let mut extra_contents = vendor_fields.extra_contents.into_iter();
        for part in &message.content {
            match part {
                Part::ToolUse { id, name, input } => tool_calls.push(WireCall {
                    id: self.reader.id(id),
                    r#type: "function",
                    function: WireFunction { name: accepted_name(name), arguments: self.reader.arguments(input)? },
                    extra_content: extra_contents.next().flatten(),
                }),
                Part::Reasoning { text } => reasoning.push(Cow::Borrowed(text.as_str())),
                Part::Text { .. }
                | Part::Image(_)
                | Part::Audio(_)
                | Part::Resource { .. }
                | Part::ToolResult { .. } => {
                    texts.push(as_text(part));
                }
            }
        }
        let has_text = !texts.is_empty();
        let text = joined(texts, "");
        let says_nothing = tool_calls.is_empty() && text.trim().is_empty();
        Ok(WireMessage::Assistant {
            content: if says_nothing { Some(Cow::Borrowed(NOTHING)) } else { has_text.then_some(text) },
            reasoning_content: has_reasoning.then(|| joined(reasoning, "")),
            reasoning_details: vendor_fields.reasoning_details,
            tool_calls,
        })
    }
}

impl<'a> UserContent<'a> {
    fn new(mut parts: Vec<WirePart<'a>>) -> Self {
        match (parts.pop(), parts.is_empty()) {
            (None, _) => Self::Text(Cow::Borrowed("")),
            (Some(WirePart::Text { text }), true) => Self::Text(text),
            (Some(last), _) => {
                parts.push(last);
                Self::Parts(parts)
            }
        }
    }
}

impl<'a> WirePart<'a> {
    fn new(shown: ContentForm<'a>) -> Self {
        match shown {
            ContentForm::Text(text) => Self::Text { text },
            ContentForm::Image(url) => Self::ImageUrl { image_url: ImageUrl { url } },
            ContentForm::File { name, data } => Self::File { file: File { filename: name, file_data: data } },
            ContentForm::Audio { data, format } => Self::InputAudio { input_audio: InputAudio { data, format } },
        }
    }
}
