//! A message as the API shows it: never what only its provider can read.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::core::chat::{Media, Message, Part, Role};
use crate::gateway::runs::view::MediaView;

/// A message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Message)]
pub(in crate::gateway::runs) struct MessageView {
    /// Its place in the conversation, from 0.
    index: usize,
    /// Who speaks. Results of tools are spoken by the user.
    role: RoleView,
    /// What is said, in order.
    content: Vec<PartView>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Role)]
pub(in crate::gateway::runs) enum RoleView {
    /// The person, the application, or a tool's result.
    User,
    /// The model.
    Assistant,
}

/// A piece of a message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = Part)]
pub(in crate::gateway::runs) enum PartView {
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
        /// Where it is.
        uri: String,
        /// What it is called.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Its media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// Its text, when it is embedded.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Its bytes as base64, when they are embedded.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<String>,
    },
    /// What the model lets see of its reasoning.
    Reasoning {
        /// The text.
        text: String,
    },
    /// The model asks for a tool.
    ToolUse {
        /// The call.
        call_id: String,
        /// The name it wrote.
        name: String,
        /// The arguments it wrote.
        #[schema(value_type = Object)]
        arguments: Value,
    },
    /// The answer to a call.
    ToolResult {
        /// The call.
        call_id: String,
        /// What the model reads.
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
