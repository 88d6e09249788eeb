//! Messages as traces show them: flattened for OpenInference, as a list for readers that want JSON, and in parts for
//! GenAI.
//!
//! Ours pack all results of a turn into one user message; traces show one message of role `tool` per result.

use serde_json::{Value as Json, json};

use super::attributes::{Attributes, REDACTED, json_text};
use super::names;
use crate::core::chat::{Media, Message, Part, Role};
use crate::core::id::CallId;
use crate::core::run::Output;
use crate::core::tool::Arguments;

/// One message of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    role: &'static str,
    text: Option<String>,
    other: Vec<Shown>,
    calls: Vec<(CallId, String, String)>,
    answers: Option<CallId>,
    name: Option<String>,
}

/// What is neither text nor a call.
#[derive(Clone, Debug)]
enum Shown {
    Reasoning(String),
    Image(String),
    Audio { url: String, media_type: String },
}

impl Said {
    /// The system prompt.
    pub(super) fn system(text: &str) -> Self {
        Self { role: "system", text: Some(text.to_owned()), ..Self::default() }
    }

    /// What the assistant says in one turn.
    pub(super) fn assistant(parts: &[Part], image_chars: usize) -> Self {
        let mut said = Self { role: "assistant", ..Self::default() };
        parts.iter().for_each(|part| said.push(part, image_chars));
        said.never_empty()
    }

    /// A message of ours, as the one or more that it is to a reader; results carry the name of the tool they came from.
    pub(super) fn from_message(
        message: &Message,
        tool_of: &dyn Fn(&CallId) -> Option<String>,
        image_chars: usize,
    ) -> Vec<Self> {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => return vec![Self::assistant(&message.content, image_chars)],
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

    /// The result of a call. There is no error flag in this form, so an error is said in the text.
    fn result(call: &CallId, name: Option<String>, (content, is_error): (&[Part], bool), image_chars: usize) -> Self {
        let mut result = Self { role: "tool", answers: Some(call.clone()), name, ..Self::default() };
        for part in content {
            if let Some(text) = result.text.as_mut().filter(|_| part_text(part).is_some()) {
                text.push('\n');
            }
            result.push(part, image_chars);
        }
        let mut result = result.never_empty();
        if let Some(text) = result.text.as_mut().filter(|text| is_error && !says_error(text)) {
            text.insert_str(0, "Error: ");
        }
        result
    }

    /// Flattens it below `prefix`.
    pub(super) fn attributes(&self, prefix: &str, to: &mut Attributes) {
        to.text(format!("{prefix}.{}", names::MESSAGE_ROLE), self.role);
        if let Some(text) = &self.text {
            to.text(format!("{prefix}.{}", names::MESSAGE_CONTENT), text);
        }
        if let Some(call) = &self.answers {
            to.text(format!("{prefix}.{}", names::MESSAGE_TOOL_CALL_ID), call.as_str());
        }
        if let Some(name) = &self.name {
            to.text(format!("{prefix}.{}", names::MESSAGE_NAME), name);
        }
        for (index, (id, name, arguments)) in self.calls.iter().enumerate() {
            let prefix = format!("{prefix}.{}.{index}", names::MESSAGE_TOOL_CALLS);
            to.text(format!("{prefix}.{}", names::TOOL_CALL_ID), id.as_str());
            to.text(format!("{prefix}.{}", names::TOOL_CALL_NAME), name);
            to.text(format!("{prefix}.{}", names::TOOL_CALL_ARGUMENTS), arguments);
        }
        for (index, shown) in self.other.iter().enumerate() {
            shown.attributes(&format!("{prefix}.{}.{index}", names::MESSAGE_CONTENTS), to);
        }
    }

    /// In the form of a chat completion message, which readers draw as a chat.
    pub(super) fn chat(&self) -> Json {
        let mut message = json!({ "role": self.role, "content": self.text });
        if let Json::Object(fields) = &mut message {
            if let Some(call) = &self.answers {
                fields.insert("tool_call_id".into(), json!(call));
            }
            if let Some(name) = &self.name {
                fields.insert("name".into(), json!(name));
            }
            if !self.calls.is_empty() {
                let calls = self.calls.iter().map(|(id, name, arguments)| {
                    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
                });
                fields.insert("tool_calls".into(), calls.collect());
            }
        }
        message
    }

    /// In the form of the GenAI conventions.
    pub(super) fn parts(&self) -> Json {
        let text = self.text.as_deref().unwrap_or_default();
        let mut parts: Vec<Json> = Vec::new();
        for shown in &self.other {
            match shown {
                Shown::Reasoning(text) => parts.push(json!({ "type": "reasoning", "content": text })),
                Shown::Image(url) => parts.push(json!({ "type": "uri", "modality": "image", "uri": url })),
                Shown::Audio { url, media_type } => {
                    parts.push(json!({ "type": "uri", "modality": "audio", "mime_type": media_type, "uri": url }));
                }
            }
        }
        if let Some(call) = &self.answers {
            parts.push(json!({ "type": "tool_call_response", "id": call, "response": text }));
        } else if self.text.is_some() {
            parts.push(json!({ "type": "text", "content": text }));
        }
        for (id, name, arguments) in &self.calls {
            let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Json::from(arguments.as_str()));
            parts.push(json!({ "type": "tool_call", "id": id, "name": name, "arguments": arguments }));
        }
        json!({ "role": self.role, "parts": parts })
    }

    fn push(&mut self, part: &Part, image_chars: usize) {
        match part {
            Part::Text { .. } | Part::Resource { .. } => self.say(part_text(part).unwrap_or_default()),
            Part::Image(media) => self.other.push(Shown::Image(url(media, image_chars))),
            Part::Audio(media) => {
                self.other.push(Shown::Audio { url: url(media, image_chars), media_type: media.media_type.clone() });
            }
            Part::Reasoning { text } => self.other.push(Shown::Reasoning(text.clone())),
            Part::ToolUse { id, name, input } => {
                self.calls.push((id.clone(), name.clone(), arguments_text(input)));
            }
            Part::ToolResult { .. } => {} // nested results do not occur; at the top level each is a message of its own
        }
    }

    fn say(&mut self, text: &str) {
        self.text.get_or_insert_default().push_str(text);
    }

    fn never_empty(mut self) -> Self {
        if self.text.is_none() && (self.calls.is_empty() || !self.other.is_empty()) {
            self.text = Some(String::new());
        }
        self
    }
}

impl Shown {
    fn attributes(&self, prefix: &str, to: &mut Attributes) {
        let (kind, name, value) = match self {
            Self::Reasoning(text) => ("reasoning", names::CONTENT_TEXT, text),
            Self::Image(url) => ("image", names::CONTENT_IMAGE_URL, url),
            Self::Audio { url, .. } => ("audio", names::CONTENT_AUDIO_URL, url),
        };
        to.text(format!("{prefix}.{}", names::CONTENT_TYPE), kind);
        to.text(format!("{prefix}.{name}"), value);
        if let Self::Audio { media_type, .. } = self {
            to.text(format!("{prefix}.{}", names::CONTENT_AUDIO_MIME), media_type);
        }
    }
}

/// Arguments as the text that is shown: compact JSON, or what the model wrote instead.
pub(super) fn arguments_text(arguments: &Arguments) -> String {
    match arguments {
        Arguments::Object(_) => json_text(&arguments.to_value()),
        Arguments::Malformed(text) => text.clone(),
    }
}

/// An answer as one text: what it says, then where its media are.
pub(super) fn answer_text(answer: &Output) -> String {
    let text = Some(answer.text.clone()).filter(|text| !text.is_empty());
    let media = answer.media.iter().map(|media| {
        let place = media.url.as_deref().unwrap_or("inline");
        format!("[{}: {place}]", media.media_type)
    });
    text.into_iter().chain(media).collect::<Vec<_>>().join("\n")
}

/// What a model reads of a result's parts, as one text; media only by name.
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

/// The text of a part that is text, or stands for one.
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

/// Where it is, or itself if it is not too long.
fn url(media: &Media, chars: usize) -> String {
    match (&media.url, &media.data) {
        (Some(url), _) => url.clone(),
        (None, Some(data)) if data.len() <= chars => format!("data:{};base64,{data}", media.media_type),
        (None, Some(_)) => REDACTED.to_owned(),
        (None, None) => String::new(),
    }
}
