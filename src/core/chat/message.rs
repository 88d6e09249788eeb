//! Chat messages in the provider-neutral form that the caller and every provider adapter use.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blob::BlobHandle;
use crate::id::CallId;
use crate::tool::Arguments;

/// Base64 as providers and servers write it: the standard alphabet, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The author of a message. Tool results have the user's role (source 002: appended as user messages with
/// `tool_use_id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, the calling application, or a tool result.
    User,
    Assistant,
}

/// One message of the conversation. Roles alternate strictly within a transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    /// The parts of the message, in order.
    pub content: Vec<Part>,
    /// The provider's own form of an assistant turn, kept for an unchanged replay to the same provider and model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<ProviderState>,
}

/// An assistant turn as its provider wrote it: reasoning, signatures and everything else that the neutral form lacks.
/// Only the same protocol, model and server read it, because content encrypted for one account is not valid for
/// another. Every other provider gets a translation of the neutral form. The calls are those of the message's content,
/// in the same order. Their ids may have been replaced in the content; send the ids of the content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderState {
    /// The provider protocol: `anthropic`, `gemini`, …
    pub wire: String,
    /// The model that wrote the turn.
    pub model: String,
    /// The server that wrote the turn, as `host` or `host:port`. Without it the author is unknown, and the state is not
    /// replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The content blocks, items or parts, unaltered and in order.
    pub items: Vec<Value>,
}

impl ProviderState {
    /// Joins two consecutive turns, if the same model on the same server wrote both.
    pub(crate) fn join(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        let (mut first, second) = first.zip(second)?;
        if (&first.wire, &first.model, &first.origin) != (&second.wire, &second.model, &second.origin) {
            return None;
        }
        first.items.extend(second.items);
        Some(first)
    }
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text { text: String },
    /// An image, inline or by reference.
    Image(Media),
    /// Audio, inline or by reference.
    Audio(Media),
    /// Any other content: an embedded resource or a link to one.
    Resource {
        uri: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Its media type, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// Its text, when it was embedded as text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Its bytes as base64, when it was embedded as binary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
    },
    /// The model's reasoning, where the provider shows it.
    Reasoning {
        /// The visible text; may be empty when the provider sends only a signature.
        text: String,
    },
    ToolUse {
        id: CallId,
        /// The name that the model wrote; it may not exist.
        name: String,
        /// The arguments the model wrote.
        input: Arguments,
    },
    /// The answer to one call.
    ToolResult {
        /// The call it answers.
        tool_use_id: CallId,
        /// The content that the model reads.
        content: Vec<Part>,
        /// Whether the call failed or was not run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// Inline or referenced media.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Media {
    /// The media type, for example `image/png`.
    pub media_type: String,
    /// The bytes as base64, when inline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The address, when by reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl Media {
    /// The most bytes of stored media that the models of a conversation are sent. With base64 that is about the limit of
    /// providers for a request; a larger file is of no use as input.
    pub const MAX_CONVERSATION_BYTES: u64 = 20 * 1024 * 1024;

    /// The media type of bytes whose type is unknown.
    pub const UNKNOWN_TYPE: &str = "application/octet-stream";

    /// Media with its bytes in it.
    pub fn inline(media_type: impl Into<String>, bytes: &[u8]) -> Self {
        Self { media_type: media_type.into(), data: Some(BASE64.encode(bytes)), url: None }
    }

    /// Media that is elsewhere.
    pub fn at(media_type: impl Into<String>, url: impl Into<String>) -> Self {
        Self { media_type: media_type.into(), data: None, url: Some(url.into()) }
    }

    /// Decodes base64 text; `None` if it is not base64.
    pub fn decode(data: &str) -> Option<Vec<u8>> {
        BASE64.decode(data.trim()).ok()
    }

    /// Base64 in the form that providers accept, from the output of other encoders: with line breaks, or in the URL-safe
    /// alphabet. `None` if it is not base64.
    pub fn normalized(data: String) -> Option<String> {
        if Self::decode(&data).is_some() {
            return Some(data);
        }
        let standard = |letter| match letter {
            '-' => '+',
            '_' => '/',
            other => other,
        };
        let letters: String = data.chars().filter(|letter| !letter.is_ascii_whitespace()).map(standard).collect();
        Self::decode(&letters).map(|_| letters)
    }
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text of a text part.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text { text } = self { Some(text) } else { None }
    }

    /// The call that it answers, the content, and whether the call failed or was not run.
    pub fn tool_result(&self) -> Option<(&CallId, &[Self], bool)> {
        let Self::ToolResult { tool_use_id, content, is_error } = self else { return None };
        Some((tool_use_id, content, *is_error))
    }

    /// The id, the name and the arguments of a requested call.
    pub fn tool_use(&self) -> Option<(&CallId, &str, &Arguments)> {
        if let Self::ToolUse { id, name, input } = self { Some((id, name, input)) } else { None }
    }

    /// Removes the inline bytes, as base64, and returns them with their type.
    pub fn take_data(&mut self) -> Option<(String, String)> {
        match self {
            Self::Image(media) | Self::Audio(media) => Some((media.media_type.clone(), media.data.take()?)),
            Self::Resource { media_type, data, .. } => {
                let data = data.take()?;
                Some((media_type.clone().unwrap_or_else(|| Media::UNKNOWN_TYPE.to_owned()), data))
            }
            Self::Text { .. } | Self::Reasoning { .. } | Self::ToolUse { .. } | Self::ToolResult { .. } => None,
        }
    }

    /// Inserts a handle in place of the bytes. The address of a resource becomes its name, unless it has one.
    pub fn refer(&mut self, handle: BlobHandle) {
        match self {
            Self::Image(media) | Self::Audio(media) => media.url = Some(handle.to_string()),
            Self::Resource { uri, name, .. } => {
                let address = std::mem::replace(uri, handle.to_string());
                name.get_or_insert(address);
            }
            Self::Text { .. } | Self::Reasoning { .. } | Self::ToolUse { .. } | Self::ToolResult { .. } => {}
        }
    }

    /// Adds the bytes to the handle that names them.
    pub fn fill(&mut self, bytes: &[u8]) {
        match self {
            Self::Image(Media { data, .. }) | Self::Audio(Media { data, .. }) | Self::Resource { data, .. } => {
                *data = Some(BASE64.encode(bytes));
            }
            Self::Text { .. } | Self::Reasoning { .. } | Self::ToolUse { .. } | Self::ToolResult { .. } => {}
        }
    }

    /// Invalidates an address that looks like a blob handle but comes from outside. It refers to no blob afterwards.
    pub fn invalidate_handle(&mut self) {
        let marked = |address: &str| BlobHandle::parse(address).is_ok().then(|| format!("foreign:{address}"));
        match self {
            Self::Image(media) | Self::Audio(media) => {
                if let Some(marked) = media.url.as_deref().and_then(marked) {
                    media.url = Some(marked);
                }
            }
            Self::Resource { uri, .. } => {
                if let Some(marked) = marked(uri) {
                    *uri = marked;
                }
            }
            Self::Text { .. } | Self::Reasoning { .. } | Self::ToolUse { .. } | Self::ToolResult { .. } => {}
        }
    }

    /// The blobs that it names.
    pub fn blobs(&self) -> Vec<BlobHandle> {
        let named = |address: Option<&str>| address.and_then(|address| BlobHandle::parse(address).ok());
        match self {
            Self::Image(media) | Self::Audio(media) => named(media.url.as_deref()).into_iter().collect(),
            Self::Resource { uri, .. } => named(Some(uri)).into_iter().collect(),
            Self::ToolResult { content, .. } => content.iter().flat_map(Self::blobs).collect(),
            Self::Text { .. } | Self::Reasoning { .. } | Self::ToolUse { .. } => Vec::new(),
        }
    }

    /// The texts of parts as lines, for a reader: the parts of a result stand for themselves.
    pub fn lines(parts: &[Self]) -> String {
        parts.iter().filter_map(Self::as_text).collect::<Vec<_>>().join("\n")
    }

    /// An image, audio, or a resource that is not text, as media.
    pub fn as_media(&self) -> Option<Media> {
        match self {
            Self::Image(media) | Self::Audio(media) => Some(media.clone()),
            Self::Resource { uri, media_type, text: None, data, .. } => {
                let media_type = media_type.clone().unwrap_or_else(|| Media::UNKNOWN_TYPE.to_owned());
                Some(Media { media_type, data: data.clone(), url: Some(uri.clone()) })
            }
            Self::Resource { text: Some(_), .. }
            | Self::Text { .. }
            | Self::Reasoning { .. }
            | Self::ToolUse { .. }
            | Self::ToolResult { .. } => None,
        }
    }
}

impl Message {
    /// A user message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: vec![Part::text(text)], provider_state: None }
    }

    /// An assistant message of one text.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, content: vec![Part::text(text)], provider_state: None }
    }

    /// The blobs that its parts name, including those in tool results.
    pub fn blobs(&self) -> impl Iterator<Item = BlobHandle> {
        self.content.iter().flat_map(Part::blobs)
    }

    /// Whether it contains only white space. Providers refuse such a message.
    pub fn is_blank(&self) -> bool {
        self.content.iter().all(|part| part.as_text().is_some_and(|text| text.trim().is_empty()))
    }

    /// All text parts, concatenated.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Part::as_text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state(origin: Option<&str>) -> ProviderState {
        let origin = origin.map(str::to_owned);
        ProviderState { wire: "w".into(), model: "m".into(), origin, items: vec![json!(1)] }
    }

    #[test]
    fn turns_of_one_model_on_two_servers_are_not_joined() {
        let joined = |first, second| ProviderState::join(Some(state(first)), Some(state(second)));
        assert_eq!(joined(Some("a:1"), Some("a:1")).map(|state| state.items.len()), Some(2));
        assert_eq!((joined(Some("a:1"), Some("a:2")), joined(None, Some("a:1"))), (None, None));
    }

    #[test]
    fn a_state_without_a_server_can_be_read() {
        let written = json!({"wire": "w", "model": "m", "items": [1]});
        assert_eq!(serde_json::from_value::<ProviderState>(written.clone()).unwrap(), state(None));
        assert_eq!(serde_json::to_value(state(None)).unwrap(), written);
    }
}
