//! A model's reply: the result of one turn.

use serde::{Deserialize, Serialize};

use super::{Part, ProviderState, Usage};
use crate::tool::ToolCall;

/// A complete model reply. The presence of calls decides the next step, never `stop`: providers send `stop` beside
/// calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The parts in the model's order: text, reasoning, tool use.
    pub content: Vec<Part>,
    /// Why the model stopped.
    pub stop: Stop,
    /// Usage of the call; unknown figures are `None`, never zero.
    #[serde(default)]
    pub usage: Usage,
    /// The name that the provider gives the model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's id of this response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The provider's own form of this turn, for an unchanged replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<ProviderState>,
    /// Milliseconds from the request to the first fragment, when the reply was streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
}

/// The reason why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The reply is finished.
    End,
    ToolCalls,
    /// The reply reached its output limit.
    MaxTokens,
    /// The conversation and the answer no longer fit the model's context window.
    ContextWindow,
    /// The provider's content filter stopped the reply.
    ContentFilter,
    /// The model refused to answer.
    Refusal,
    /// The provider paused a long turn: send the conversation again to continue.
    Pause,
    /// The provider states no reason.
    Unknown,
}

impl Stop {
    /// Whether the reply is whole: neither cut off nor withheld. The last call of any other reply may be incomplete:
    /// missing arguments look like empty ones, and some tools run on empty arguments.
    pub fn is_whole(self) -> bool {
        match self {
            Self::End | Self::ToolCalls | Self::Pause | Self::Unknown => true,
            Self::MaxTokens | Self::ContextWindow | Self::ContentFilter | Self::Refusal => false,
        }
    }
}

impl Reply {
    /// A finished text reply, for tests and scripts.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Part::text(text)], stop: Stop::End, ..Self::empty() }
    }

    /// A reply that requests tools, for tests and scripts.
    pub fn calling(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        let content = calls.into_iter().map(ToolCall::into_part).collect();
        Self { content, stop: Stop::ToolCalls, ..Self::empty() }
    }

    /// An empty reply.
    pub fn empty() -> Self {
        Self {
            content: Vec::new(),
            stop: Stop::End,
            usage: Usage::default(),
            model: None,
            response_id: None,
            provider_state: None,
            first_token_ms: None,
        }
    }

    /// All text of the reply, concatenated.
    pub fn joined_text(&self) -> String {
        self.content.iter().filter_map(Part::as_text).collect()
    }

    /// The calls that the model requests, in its order.
    pub fn calls(&self) -> impl Iterator<Item = ToolCall> {
        self.content.iter().filter_map(ToolCall::from_part)
    }
}
