//! Turn translation: one neutral message as a turn of this API.
//!
//! A turn of the same model is sent back unchanged. A turn of another model is sent as text and calls, without
//! thoughts. The results of a turn's calls form one `user` turn, in the number and order of the calls; other user
//! content follows in it. Content that this API cannot carry becomes a note in brackets, and so does an empty turn: the
//! API rejects empty turns.

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolgate_core::chat::{Message, Part};
use toolgate_core::tool::Arguments;

use super::media::{Media, note};
use super::names::accepted_name;
use super::part::{Call, Content, WirePart};
use super::{names, replay, results};
use crate::http::Settings;

/// The note for an empty turn.
const NOTHING: &str = "[nothing was said]";

/// Gemini 3 rejects a turn whose first call has no signature, and documents this value for calls that it did not make
/// itself (<https://ai.google.dev/gemini-api/docs/thought-signatures>, "FAQs").
const FOREIGN_CALL: &str = "skip_thought_signature_validator";

/// Writes turns for one model.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) model: String,
    pub(super) is_gemini_3: bool,
    pub(super) media: Media,
}

impl Turns {
    /// Configured by the settings.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            model: settings.model.clone(),
            is_gemini_3: names::is_gemini_3(&settings.model),
            media: Media::new(settings.media.as_ref()),
        }
    }

    /// A turn of a model.
    pub(super) fn of_model<'a>(&self, message: &'a Message) -> Content<'a> {
        let parts = match replay::parts(message, &self.model) {
            Some(written) => written.into_iter().map(WirePart::AsWritten).collect(),
            None => self.foreign(&message.content),
        };
        content("model", parts)
    }

    /// A turn of the user; `before` is the model's turn that it answers.
    pub(super) fn of_user<'a>(&self, message: &'a Message, before: Option<&'a Message>) -> Content<'a> {
        let calls = before.map(|before| replay::replayed_calls(before, &self.model)).unwrap_or_default();
        let (mut parts, attached) = results::answer(&calls, &message.content, &self.media, self.is_gemini_3);
        parts.extend(attached);
        let answers = |part: &Part| part.tool_result().is_some_and(|(id, ..)| calls.iter().any(|call| call.id == id));
        let others = message.content.iter().filter(|part| !answers(part));
        parts.extend(others.filter_map(|part| self.media.part(part).map_or_else(text, Some)));
        content("user", parts)
    }

    fn foreign<'a>(&self, said: &'a [Part]) -> Vec<WirePart<'a>> {
        let mut signature = self.is_gemini_3.then_some(FOREIGN_CALL);
        let wire = |part: &'a Part| match part {
            Part::ToolUse { name, input, .. } => Some(WirePart::Call {
                function_call: Call { name: accepted_name(name), args: arguments(input) },
                // Only the first of parallel calls has a signature.
                thought_signature: signature.take(),
            }),
            Part::Reasoning { .. } => None,
            Part::Text { .. } | Part::Image(_) | Part::Audio(_) | Part::Resource { .. } | Part::ToolResult { .. } => {
                text(note(part))
            }
        };
        said.iter().filter_map(wire).collect()
    }
}

fn content<'a>(role: &'static str, mut parts: Vec<WirePart<'a>>) -> Content<'a> {
    if parts.is_empty() {
        parts.push(WirePart::Text(Cow::Borrowed(NOTHING)));
    }
    Content { role, parts }
}

fn text(text: Cow<'_, str>) -> Option<WirePart<'_>> {
    (!text.is_empty()).then_some(WirePart::Text(text))
}

/// The arguments as an object; any other text of another model is put inside one.
fn arguments(input: &Arguments) -> Cow<'_, Map<String, Value>> {
    match input {
        Arguments::Object(object) => Cow::Borrowed(object),
        Arguments::Malformed(text) => {
            Cow::Owned(Map::from_iter([("malformed_arguments".into(), text.as_str().into())]))
        }
    }
}
