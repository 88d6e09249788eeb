//! API responses, as far as they are read. A complete answer and a chunk of a stream have the same form: a choice holds
//! a `message` or a `delta`. Other fields are ignored; a replay does not need them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::http::StopReason;

/// A complete answer, or one chunk of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    /// Absent or empty in usage chunks, and in Azure's first one.
    pub(super) choices: Option<Vec<Choice>>,
    pub(super) usage: Option<Value>,
    /// Some servers report an error with status 200.
    pub(super) error: Option<Value>,
    /// `error` in the events of older vLLM, which put the details next to it.
    pub(super) object: Option<String>,
}

/// One of several answers; only the first is requested.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    pub(super) index: Option<u64>,
    pub(super) message: Option<MessageDelta>,
    pub(super) delta: Option<MessageDelta>,
    pub(super) finish_reason: StopReason,
    pub(super) error: Option<Value>,
}

/// The content, or a piece of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageDelta {
    pub(super) content: Option<Content>,
    pub(super) refusal: Option<String>,
    /// DeepSeek and vLLM.
    pub(super) reasoning_content: Option<String>,
    /// OpenRouter and newer vLLM; some servers send both.
    pub(super) reasoning: Option<Value>,
    /// OpenRouter and MiniMax: the same with signatures, to send back.
    pub(super) reasoning_details: Option<Value>,
    pub(super) tool_calls: Option<Vec<CallPiece>>,
}

/// Text, or a list of typed parts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

/// A typed part; only text is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ContentPart {
    pub(super) text: Option<String>,
}

/// A tool call, or a piece of one. Any field may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallPiece {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) function: Option<FunctionPiece>,
    /// Google: a signature, to send back.
    pub(super) extra_content: Option<Value>,
}

/// Name and arguments, or pieces of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionPiece {
    pub(super) name: Option<String>,
    /// A string in the specification; an object from some servers.
    pub(super) arguments: Option<Value>,
}

impl Content {
    /// The content as text.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
        }
    }
}

impl MessageDelta {
    /// The visible reasoning, from the field that holds it.
    pub(super) fn reasoning(&self) -> Option<Cow<'_, str>> {
        let plain = self.reasoning_content.as_deref().or_else(|| self.reasoning.as_ref()?.as_str());
        plain.map(Cow::Borrowed).or_else(|| {
            let details = self.reasoning_details.as_ref()?.as_array()?.iter();
            Some(details.filter_map(|detail| detail.get("text").or(detail.get("summary"))?.as_str()).collect())
        })
    }
}
