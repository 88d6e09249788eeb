//! The API view of a message, without content that only its provider can read.

use serde::Serialize;
use serde_json::Value;
use toolgate_core::chat::{Media, Message, Part, Role};
use utoipa::ToSchema;

use crate::runs::view::MediaView;

/// A message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Message)]
pub(in crate::runs) struct MessageView {
    /// The message's position among the run's messages, from 0.
    index: usize,
    /// The author of the message. Results of tools are messages of the user.
    role: RoleView,
    /// The content, in order.
    content: Vec<PartView>,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Role)]
pub(in crate::runs) enum RoleView {
    /// The user, the application, or a tool's result.
    User,
    /// The model.
    Assistant,
}

/// A part of a message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = Part)]
pub(in crate::runs) enum PartView {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(MediaView),
    /// Audio.
    Audio(MediaView),
    /// Any other content, or a link to it.
    Resource {
        /// The URI of the resource.
        uri: String,
        /// The name of the resource.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// The text, if it is embedded.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The bytes as base64, if they are embedded.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<String>,
    },
    /// The part of the model's reasoning that its provider discloses.
    Reasoning {
        /// The text.
        text: String,
    },
    /// A tool call that the model requests.
    ToolUse {
        /// The id of the call.
        call_id: String,
        /// The tool, by the name that the model wrote.
        name: String,
        /// The arguments that the model wrote.
        #[schema(value_type = Object)]
        arguments: Value,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id of the call.
        call_id: String,
        /// The content, as the model reads it.
        #[schema(no_recursion)]
        content: Vec<PartView>,
        /// Whether the call failed, or was not made.
        is_error: bool,
    },
}

impl MessageView {
    pub(super) fn of(index: usize, message: &Message) -> Self {
        let role = match message.role {
            Role::User => RoleView::User,
            Role::Assistant => RoleView::Assistant,
        };
        Self { index, role, content: message.content.iter().map(PartView::of).collect() }
    }
}

impl PartView {
    fn of(part: &Part) -> Self {
        let media = |media: &Media| MediaView::of(media);
        match part {
            Part::Text { text } => Self::Text { text: text.clone() },
            Part::Image(image) => Self::Image(media(image)),
            Part::Audio(audio) => Self::Audio(media(audio)),
            Part::Resource { uri, name, media_type, text, data } => Self::Resource {
                uri: uri.clone(),
                name: name.clone(),
                media_type: media_type.clone(),
                text: text.clone(),
                data: data.clone(),
            },
            Part::Reasoning { text } => Self::Reasoning { text: text.clone() },
            Part::ToolUse { id, name, input } => {
                Self::ToolUse { call_id: id.to_string(), name: name.clone(), arguments: input.to_value() }
            }
            Part::ToolResult { tool_use_id, content, is_error } => Self::ToolResult {
                call_id: tool_use_id.to_string(),
                content: content.iter().map(Self::of).collect(),
                is_error: *is_error,
            },
        }
    }
}
