//! Input of a new run: a text, or messages of which the last one is the user's.

use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, SeqAccess, Visitor};
use toolgate_core::chat::{Media, Message, Part, Role};
use toolgate_service::TaggedObject;
use utoipa::ToSchema;

use crate::problem::Problem;

/// A text, or messages.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
#[schema(as = NewInput)]
pub(super) enum NewInput {
    /// The user's message.
    Text(String),
    /// A conversation; the last message is the user's.
    Messages(Vec<NewMessage>),
}

/// A message before the run, or the one that begins it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InputMessage)]
pub(super) struct NewMessage {
    /// The author of the message.
    role: NewRole,
    /// The content of the message.
    content: NewContent,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = InputRole)]
enum NewRole {
    User,
    Assistant,
}

/// A text, or parts.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
#[schema(as = InputContent)]
enum NewContent {
    /// A text.
    Text(String),
    /// Parts, in order.
    Parts(Vec<NewPart>),
}

/// A part of a message.
#[derive(Debug, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = InputPart)]
enum NewPart {
    /// Text.
    Text(NewText),
    /// An image, in a user message.
    Image(NewMedia),
    /// Audio, in a user message.
    Audio(NewMedia),
}

/// A text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InputText)]
struct NewText {
    /// The text.
    text: String,
}

/// An image or an audio clip.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InputMedia)]
struct NewMedia {
    /// The media type, for example `image/png` or `audio/wav`.
    media_type: String,
    /// The bytes as base64; alternatively `url`.
    data: Option<String>,
    /// The URL; alternatively `data`.
    url: Option<String>,
}

impl<'de> Deserialize<'de> for NewPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = TaggedObject::deserialize(deserializer)?;
        match object.kind() {
            "text" => object.read().map(Self::Text),
            "image" => object.read().map(Self::Image),
            "audio" => object.read().map(Self::Audio),
            _ => object.refuse(&["text", "image", "audio"]),
        }
    }
}

impl NewInput {
    /// The messages before the run, and the one that begins it.
    pub(super) fn messages(self) -> Result<(Vec<Message>, Message), Problem> {
        let messages = match self {
            Self::Text(text) => return Ok((Vec::new(), Message::user(text))),
            Self::Messages(messages) => messages,
        };
        let mut history: Vec<Message> = messages.into_iter().map(NewMessage::into_message).collect();
        let last = history.pop();
        let last = last.ok_or_else(|| Problem::invalid("/input", "the list of messages is empty; add at least one"))?;
        Ok((history, last))
    }
}

impl NewMessage {
    fn into_message(self) -> Message {
        let role = match self.role {
            NewRole::User => Role::User,
            NewRole::Assistant => Role::Assistant,
        };
        let content = match self.content {
            NewContent::Text(text) => vec![Part::text(text)],
            NewContent::Parts(parts) => parts.into_iter().map(NewPart::into_part).collect(),
        };
        Message { role, content, provider_state: None }
    }
}

impl NewPart {
    fn into_part(self) -> Part {
        match self {
            Self::Text(NewText { text }) => Part::text(text),
            Self::Image(media) => Part::Image(media.into_media()),
            Self::Audio(media) => Part::Audio(media.into_media()),
        }
    }
}

impl NewMedia {
    fn into_media(self) -> Media {
        Media { media_type: self.media_type, data: self.data, url: self.url }
    }
}

/// Deserializes a text or a list, and reports anything else as neither: an untagged enum could not report the place of
/// an error within a list.
struct TextOr<T>(std::marker::PhantomData<T>);

enum TextOrList<T> {
    Text(String),
    List(Vec<T>),
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for TextOr<T> {
    type Value = TextOrList<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an array")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(TextOrList::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(TextOrList::List)
    }
}

impl<'de> Deserialize<'de> for NewInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match deserializer.deserialize_any(TextOr(std::marker::PhantomData))? {
            TextOrList::Text(text) => Self::Text(text),
            TextOrList::List(messages) => Self::Messages(messages),
        })
    }
}

impl<'de> Deserialize<'de> for NewContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match deserializer.deserialize_any(TextOr::<NewPart>(std::marker::PhantomData))? {
            TextOrList::Text(text) => Self::Text(text),
            TextOrList::List(parts) => Self::Parts(parts),
        })
    }
}
