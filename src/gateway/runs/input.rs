//! Input of a new run: a text, or messages of which the last one is the user's. Parts that name uploaded files become parts
//! with the content or the blob of the file.

use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, SeqAccess, Visitor};
use toolgate_core::chat::{Media, Message, Part, Role};
use toolgate_service::{FilePart, InputFiles, TaggedObject};
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
    /// An uploaded file of any type, in a user message.
    File(NewFilePart),
}

/// A text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InputText)]
struct NewText {
    /// The text.
    text: String,
}

/// An image or an audio clip: its bytes, its URL, or an uploaded file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InputMedia)]
struct NewMedia {
    /// The media type, for example `image/png` or `audio/wav`, with `data` or `url`. A file has its own.
    media_type: Option<String>,
    /// The bytes as base64; alternatively `url` or `file_id`.
    data: Option<String>,
    /// The URL; alternatively `data` or `file_id`.
    url: Option<String>,
    /// The id of an uploaded file; alternatively `data` or `url`.
    file_id: Option<String>,
}

/// An uploaded file: an image, audio, a PDF or a text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InputFile)]
struct NewFilePart {
    /// The id of the file.
    #[schema(example = "file_0199f3a07c1e7d0a8f3c9b1d2e4f5a6b")]
    file_id: String,
}

impl<'de> Deserialize<'de> for NewPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = TaggedObject::deserialize(deserializer)?;
        match object.kind() {
            "text" => object.read().map(Self::Text),
            "image" => object.read().map(Self::Image),
            "audio" => object.read().map(Self::Audio),
            "file" => object.read().map(Self::File),
            _ => object.refuse(&["text", "image", "audio", "file"]),
        }
    }
}

impl NewInput {
    /// The messages before the run, and the one that begins it.
    pub(super) async fn messages(self, files: &mut InputFiles<'_>) -> Result<(Vec<Message>, Message), Problem> {
        let messages = match self {
            Self::Text(text) => return Ok((Vec::new(), Message::user(text))),
            Self::Messages(messages) => messages,
        };
        let mut history = Vec::with_capacity(messages.len());
        for (index, message) in messages.into_iter().enumerate() {
            history.push(message.into_message(index, files).await?);
        }
        let last = history.pop();
        let last = last.ok_or_else(|| Problem::invalid("/input", "the list of messages is empty; add at least one"))?;
        Ok((history, last))
    }
}

impl NewMessage {
    async fn into_message(self, index: usize, files: &mut InputFiles<'_>) -> Result<Message, Problem> {
        let role = match self.role {
            NewRole::User => Role::User,
            NewRole::Assistant => Role::Assistant,
        };
        let content = match self.content {
            NewContent::Text(text) => vec![Part::text(text)],
            NewContent::Parts(parts) => {
                let mut content = Vec::with_capacity(parts.len());
                for (at, part) in parts.into_iter().enumerate() {
                    content.push(part.into_part(&format!("/input/{index}/content/{at}"), files).await?);
                }
                content
            }
        };
        Ok(Message { role, content, provider_state: None })
    }
}

impl NewPart {
    async fn into_part(self, place: &str, files: &mut InputFiles<'_>) -> Result<Part, Problem> {
        Ok(match self {
            Self::Text(NewText { text }) => Part::text(text),
            Self::Image(media) => media.into_part(Part::Image, FilePart::Image, place, files).await?,
            Self::Audio(media) => media.into_part(Part::Audio, FilePart::Audio, place, files).await?,
            Self::File(NewFilePart { file_id }) => {
                files.part(&file_id, FilePart::Any, &format!("{place}/file_id")).await?
            }
        })
    }
}

impl NewMedia {
    async fn into_part(
        self,
        part: impl FnOnce(Media) -> Part,
        kind: FilePart,
        place: &str,
        files: &mut InputFiles<'_>,
    ) -> Result<Part, Problem> {
        let Self { media_type, data, url, file_id } = self;
        match (file_id, media_type) {
            (Some(id), None) if data.is_none() && url.is_none() => {
                Ok(files.part(&id, kind, &format!("{place}/file_id")).await?)
            }
            (Some(_), _) => Err(Problem::invalid(place, "with `file_id`, leave out `data`, `url` and `media_type`")),
            (None, None) => Err(Problem::invalid(format!("{place}/media_type"), "give the media type")),
            // The service checks `data` and `url`, for all surfaces.
            (None, Some(media_type)) => Ok(part(Media { media_type, data, url })),
        }
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
