//! `/v1/runs/{run}/messages`: lists and adds messages.

use axum::Json;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_core::chat::{Media, Message, Part, Role};
use toolgate_core::id::RunId;
use toolgate_service::TenantRunner;
use utoipa::{IntoParams, ToSchema};

use crate::access::Admitted;
use crate::body::{Body, Path, Query};
use crate::pagination::{Page, PageResult, limit};
use crate::problem::Problem;
use crate::runs::view::{MediaView, RunView};

/// The page of messages.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MessageListParams {
    /// The number of messages to return: 1 to 100. Default: 20.
    #[param(minimum = 1, maximum = 100)]
    pub(crate) limit: Option<usize>,
    /// A cursor: messages after this one. Pass the `last_id` of the previous page.
    #[param(maximum = 4294967295_i64)]
    after: Option<u32>,
}

impl MessageListParams {
    /// The index of the first message of the page.
    pub(crate) fn from(&self) -> usize {
        self.after.map_or(0, |after| after as usize + 1)
    }
}

/// List the messages of a run
///
/// Returns messages, oldest first. They include those of the current turn: its calls, and the results so far.
#[utoipa::path(
    get, path = "/v1/runs/{run}/messages", tag = "runs", operation_id = "listMessages", params(MessageListParams),
    responses((status = 200, description = "A page of messages", body = Page<MessageView>)),
)]
pub(super) async fn list(
    Path(run): Path<String>,
    Query(which): Query<MessageListParams>,
    runner: Admitted<TenantRunner>,
) -> PageResult<MessageView> {
    let limit = limit(which.limit)?;
    let run = runner.run(&run).await?;
    let id = run.id();
    let messages = run.load_with_conversation().await?.messages();
    let found = messages.iter().enumerate().skip(which.from()).take(limit + 1).collect();
    Ok(Json(Page::new(
        found,
        limit,
        |(index, _)| index.to_string(),
        |(index, message)| MessageView::new(id, index, message),
    )))
}

/// A message to add to a run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewMessage)]
pub(super) struct NewMessage {
    /// The text, as the user's message.
    #[schema(example = "Look at last week too")]
    text: String,
}

/// Add a message
///
/// A running run reads the message at its next turn; a pending run stores it until it resumes. A repeated request adds
/// the message again, unless both have the same `Idempotency-Key`.
#[utoipa::path(
    post, path = "/v1/runs/{run}/messages", tag = "runs", operation_id = "addMessage", request_body = NewMessage,
    responses((status = 202, description = "The message is stored, and the run will read it", body = RunView)),
)]
pub(super) async fn add(
    runner: TenantRunner,
    Path(run): Path<String>,
    Body(NewMessage { text }): Body<NewMessage>,
) -> Result<(StatusCode, Json<RunView>), Problem> {
    if text.trim().is_empty() {
        return Err(Problem::invalid("/text", "a message needs text"));
    }
    let run = runner.run(&run).await?;
    run.add_message(&text).await?;
    Ok((StatusCode::ACCEPTED, Json(RunView::read(&run).await?)))
}

/// A message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Message)]
pub(crate) struct MessageView {
    /// The run whose messages are listed; in the list of a session, the run that added the message.
    #[schema(value_type = String)]
    run_id: RunId,
    /// The message's position in the list, from 0.
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
pub(super) enum RoleView {
    /// The user, the application, or a tool's result.
    User,
    /// The model.
    Assistant,
}

/// A part of a message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = Part)]
pub(crate) enum PartView {
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
        name: Option<String>,
        /// The media type.
        media_type: Option<String>,
        /// The text, if it is embedded.
        text: Option<String>,
        /// The bytes as base64, if they are embedded.
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
    pub(crate) fn new(run: &RunId, index: usize, message: &Message) -> Self {
        let role = match message.role {
            Role::User => RoleView::User,
            Role::Assistant => RoleView::Assistant,
        };
        Self { run_id: run.clone(), index, role, content: message.content.iter().map(PartView::new).collect() }
    }
}

impl PartView {
    pub(crate) fn new(part: &Part) -> Self {
        let media = |media: &Media| MediaView::new(media);
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
                content: content.iter().map(Self::new).collect(),
                is_error: *is_error,
            },
        }
    }
}
