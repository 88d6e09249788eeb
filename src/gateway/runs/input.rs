//! Input of a new run: a text, or messages of which the last one is the user's. Messages have the shape in which lists of
//! messages return them. Parts that name uploaded files become parts with the content or the blob of the file.

use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;
use toolgate_core::blob::BlobHandle;
use toolgate_core::chat::{Media, Message, Part, Role};
use toolgate_core::tool::Arguments;
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
    /// A conversation, as the lists of messages return it; the last message is the user's. The results of all calls of a
    /// message are in the user messages after it.
    Messages(Vec<NewMessage>),
}

/// A message before the run, or the one that begins it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InputMessage)]
pub(super) struct NewMessage {
    /// The run whose list has the message. It gives access to the media that the message names by `media://` handles, and
    /// needs the scope `runs:read` for them.
    run_id: Option<String>,
    /// The position in that list. It has no effect: the order of the messages counts.
    #[serde(default, rename = "index")]
    #[schema(value_type = Option<usize>)]
    _index: Option<usize>,
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
    /// An image, in a user message; in a message of the model, only one that a run stored.
    Image(NewMedia),
    /// Audio, in a user message; in a message of the model, only audio that a run stored.
    Audio(NewMedia),
    /// An uploaded file of any type, in a user message.
    File(NewFilePart),
    /// Any other content, or a link to it.
    Resource(NewResource),
    /// Reasoning, in a message of the model. Providers that verify reasoning do not receive it.
    Reasoning(NewText),
    /// A tool call, in a message of the model.
    ToolUse(NewToolUse),
    /// The result of a tool call, in a user message.
    ToolResult(NewToolResult),
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
    /// The URL, or a `media://` handle of the run that `run_id` of the message names; alternatively `data` or `file_id`.
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

/// Any other content, or a link to it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InputResource)]
struct NewResource {
    /// The URI of the resource, or a `media://` handle of the run that `run_id` of the message names.
    uri: String,
    /// The name of the resource.
    name: Option<String>,
    /// The media type.
    media_type: Option<String>,
    /// The text, if it is embedded.
    text: Option<String>,
    /// The bytes as base64, if they are embedded.
    data: Option<String>,
}

/// A tool call of the conversation so far. It is not made again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InputToolUse)]
struct NewToolUse {
    /// The id of the call.
    #[schema(example = "call_1")]
    call_id: String,
    /// The tool, by the name that the model wrote.
    #[schema(example = "mcp_billing_refund")]
    name: String,
    /// The arguments that the model wrote.
    #[schema(value_type = Object)]
    arguments: Value,
}

/// The result of a tool call of the conversation so far.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InputToolResult)]
struct NewToolResult {
    /// The id of the call.
    #[schema(example = "call_1")]
    call_id: String,
    /// The content, as the model reads it.
    #[schema(no_recursion)]
    content: Vec<NewPart>,
    /// Whether the call failed, or was not made.
    #[serde(default)]
    is_error: bool,
}

impl<'de> Deserialize<'de> for NewPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = TaggedObject::deserialize(deserializer)?;
        match object.kind() {
            "text" => object.read().map(Self::Text),
            "image" => object.read().map(Self::Image),
            "audio" => object.read().map(Self::Audio),
            "file" => object.read().map(Self::File),
            "resource" => object.read().map(Self::Resource),
            "reasoning" => object.read().map(Self::Reasoning),
            "tool_use" => object.read().map(Self::ToolUse),
            "tool_result" => object.read().map(Self::ToolResult),
            _ => object.refuse(&["text", "image", "audio", "file", "resource", "reasoning", "tool_use", "tool_result"]),
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
                let mut source = Source { place: format!("/input/{index}"), role, run: self.run_id.as_deref(), files };
                source.parts(parts, &format!("/input/{index}/content")).await?
            }
        };
        Ok(Message { role, content, provider_state: None })
    }
}

/// The message that is read, and what its parts may name.
struct Source<'a, 'b> {
    /// The pointer of the message.
    place: String,
    role: Role,
    run: Option<&'a str>,
    files: &'a mut InputFiles<'b>,
}

impl Source<'_, '_> {
    async fn parts(&mut self, parts: Vec<NewPart>, place: &str) -> Result<Vec<Part>, Problem> {
        let mut content = Vec::with_capacity(parts.len());
        for (at, part) in parts.into_iter().enumerate() {
            content.push(self.part(part, &format!("{place}/{at}")).await?);
        }
        Ok(content)
    }

    async fn part(&mut self, part: NewPart, place: &str) -> Result<Part, Problem> {
        Ok(match part {
            NewPart::Text(NewText { text }) => Part::text(text),
            NewPart::Image(media) => self.media(media, Part::Image, FilePart::Image, place).await?,
            NewPart::Audio(media) => self.media(media, Part::Audio, FilePart::Audio, place).await?,
            NewPart::File(NewFilePart { file_id }) => self.file(&file_id, FilePart::Any, place).await?,
            NewPart::Resource(NewResource { uri, name, media_type, text, data }) => {
                if text.is_none() && data.is_none() {
                    self.use_stored(&uri, &format!("{place}/uri")).await?;
                }
                Part::Resource { uri, name, media_type, text, data }
            }
            NewPart::Reasoning(NewText { text }) => Part::Reasoning { text },
            NewPart::ToolUse(NewToolUse { call_id, name, arguments }) => {
                Part::ToolUse { id: call_id.into(), name, input: Arguments::from_value(arguments) }
            }
            NewPart::ToolResult(NewToolResult { call_id, content, is_error }) => {
                let content = Box::pin(self.parts(content, &format!("{place}/content"))).await?;
                Part::ToolResult { tool_use_id: call_id.into(), content, is_error }
            }
        })
    }

    async fn media(
        &mut self,
        NewMedia { media_type, data, url, file_id }: NewMedia,
        part: impl FnOnce(Media) -> Part,
        kind: FilePart,
        place: &str,
    ) -> Result<Part, Problem> {
        match (file_id, media_type) {
            (Some(id), None) if data.is_none() && url.is_none() => self.file(&id, kind, place).await,
            (Some(_), _) => Err(Problem::invalid(place, "with `file_id`, leave out `data`, `url` and `media_type`")),
            (None, None) => Err(Problem::invalid(format!("{place}/media_type"), "give the media type")),
            (None, Some(media_type)) => {
                if let (Some(url), None) = (&url, &data) {
                    self.use_stored(url, &format!("{place}/url")).await?;
                }
                // The service checks `data` and other URLs, for all surfaces.
                Ok(part(Media { media_type, data, url }))
            }
        }
    }

    async fn file(&mut self, id: &str, kind: FilePart, place: &str) -> Result<Part, Problem> {
        match self.role {
            Role::User => Ok(self.files.part(id, kind, &format!("{place}/file_id")).await?),
            Role::Assistant => Err(Problem::invalid(place, "only user messages may contain uploaded files")),
        }
    }

    /// Gives the new run the media that a handle names. Any other address gives it nothing.
    async fn use_stored(&mut self, address: &str, place: &str) -> Result<(), Problem> {
        let Ok(handle) = BlobHandle::parse(address) else { return Ok(()) };
        let Some(run) = self.run else {
            let rule = "this names stored media; give the `run_id` of the message, from the list that has it";
            return Err(Problem::invalid(place, rule));
        };
        Ok(self.files.of_run(run, &handle, place, &format!("{}/run_id", self.place)).await?)
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
