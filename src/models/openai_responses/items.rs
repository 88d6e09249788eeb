//! Message translation: one neutral message as input items of the API. Results come first, directly after the calls
//! they answer; other user content follows as a message.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use toolgate_core::chat::{Message, Part, ProviderState, Role};
use toolgate_core::tool::Arguments;

use super::output::WIRE;
use super::output::kind;
use crate::http::Members;
use crate::openai_content::{ContentForm, Reader, accepted_name, as_text, content_form, joined, marked};

/// Writes a conversation for one model.
#[derive(Debug)]
pub(super) struct Items {
    /// The capabilities of its server.
    pub(super) reader: Reader,
    /// The model: its own turns are replayed unchanged.
    pub(super) model: String,
}

/// An item written from the neutral form.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message { role: &'static str, content: Content<'a> },
    FunctionCall { call_id: Cow<'a, str>, name: Cow<'a, str>, arguments: Cow<'a, str> },
    FunctionCallOutput { call_id: Cow<'a, str>, output: Content<'a> },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Input<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
enum Input<'a> {
    #[serde(rename = "input_text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "input_image")]
    Image { detail: &'static str, image_url: Cow<'a, str> },
    #[serde(rename = "input_file")]
    File { filename: Cow<'a, str>, file_data: String },
}

impl Items {
    /// Appends a message.
    pub(super) fn append(&self, message: &Message, members: &mut Members) -> Result<(), serde_json::Error> {
        match (message.role, &message.provider_state) {
            (Role::User, _) => self.user(&message.content, members),
            (Role::Assistant, Some(state)) if state.wire == WIRE && state.model == self.model => {
                self.replay(message, state, members)
            }
            (Role::Assistant, _) => self.assistant(&message.content, members),
        }
    }

    fn user(&self, parts: &[Part], members: &mut Members) -> Result<(), serde_json::Error> {
        let mut said = Vec::new();
        for part in parts {
            match part.tool_result() {
                Some((id, content, is_error)) => {
                    let output = self.output(content, is_error);
                    members.push(&Item::FunctionCallOutput { call_id: self.reader.id(id), output })?;
                }
                None => said.push(Input::new(content_form(part, &self.reader.said), part)),
            }
        }
        if said.is_empty() {
            return Ok(());
        }
        members.push(&Item::Message { role: "user", content: Content::Parts(said) })
    }

    fn output<'a>(&self, content: &'a [Part], is_error: bool) -> Content<'a> {
        let read = |part: &'a Part| Input::new(content_form(part, &self.reader.results), part);
        let mut parts: Vec<Input<'a>> = content.iter().map(read).collect();
        if parts.iter().all(|part| matches!(part, Input::Text { .. })) {
            let texts = parts.into_iter().filter_map(Input::into_text).collect();
            return Content::Text(marked(joined(texts, "\n"), is_error));
        }
        match parts.first_mut() {
            Some(Input::Text { text }) => *text = marked(std::mem::take(text), is_error),
            Some(_) if is_error => parts.insert(0, Input::Text { text: Cow::Borrowed("Error:") }),
            Some(_) | None => {}
        }
        Content::Parts(parts)
    }

    fn assistant(&self, parts: &[Part], members: &mut Members) -> Result<(), serde_json::Error> {
        for part in parts {
            let item = match part {
                Part::ToolUse { id, name, input } => Item::FunctionCall {
                    call_id: self.reader.id(id),
                    name: accepted_name(name),
                    arguments: self.reader.arguments(input)?,
                },
                Part::Reasoning { .. } => continue,
                Part::Text { text } if text.is_empty() => continue,
                Part::Text { .. }
                | Part::Image(_)
                | Part::Audio(_)
                | Part::Resource { .. }
                | Part::ToolResult { .. } => Item::Message { role: "assistant", content: Content::Text(as_text(part)) },
            };
            members.push(&item)?;
        }
        Ok(())
    }

    /// Replays the items unchanged, except for the conversation's call ids and arguments that the server could not
    /// read.
    fn replay(&self, message: &Message, state: &ProviderState, members: &mut Members) -> Result<(), serde_json::Error> {
        let mut calls = message.content.iter().filter_map(Part::tool_use);
        for item in &state.items {
            let call = if kind(item) == "function_call" { calls.next() } else { None };
            let Some((id, _, input)) = call else {
                members.push(item)?;
                continue;
            };
            let mut item = item.clone();
            set(&mut item, "call_id", &self.reader.id(id));
            if let Arguments::Malformed(_) = input {
                set(&mut item, "arguments", &self.reader.arguments(input)?);
            }
            members.push(&item)?;
        }
        Ok(())
    }
}

impl<'a> Input<'a> {
    fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text { text } => Some(text),
            Self::Image { .. } | Self::File { .. } => None,
        }
    }

    fn new(shown: ContentForm<'a>, part: &'a Part) -> Self {
        match shown {
            ContentForm::Text(text) => Self::Text { text },
            ContentForm::Image(url) => Self::Image { detail: "auto", image_url: url },
            ContentForm::File { name, data } => Self::File { filename: name, file_data: data },
            // The API has no part for audio, and the settings reject it.
            ContentForm::Audio { .. } => Self::Text { text: as_text(part) },
        }
    }
}

fn set(item: &mut Value, name: &str, text: &str) {
    if let Some(object) = item.as_object_mut() {
        object.insert(name.to_owned(), text.into());
    }
}
