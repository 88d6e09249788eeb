//! What a server sends, as far as it is read. A whole answer and a chunk of a stream have one shape: a choice holds a
//! `message` or a `delta`. Fields that are not listed are ignored; nothing of them is needed for a replay.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

/// A whole answer, or one chunk of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    /// Absent or empty in usage chunks, and in Azure's first one.
    pub(super) choices: Option<Vec<Choice>>,
    pub(super) usage: Option<Value>,
    /// Some servers answer 200 and mean an error.
    pub(super) error: Option<Value>,
    /// `error` in the events of older vLLM, which put what is wrong beside it.
    pub(super) object: Option<String>,
}

/// One of several answers; only the first is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    pub(super) index: Option<u64>,
    pub(super) message: Option<Said>,
    pub(super) delta: Option<Said>,
    pub(super) finish_reason: Option<String>,
    pub(super) error: Option<Value>,
}

/// What was said, or a piece of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    pub(super) content: Option<Content>,
    pub(super) refusal: Option<String>,
    /// DeepSeek and vLLM.
    pub(super) reasoning_content: Option<String>,
    /// OpenRouter and newer vLLM; some servers send both.
    pub(super) reasoning: Option<Value>,
    /// OpenRouter and MiniMax: the same with signatures, to be sent back.
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
    /// Google: a signature, to be sent back.
    pub(super) extra_content: Option<Value>,
}

/// Name and arguments, or pieces of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionPiece {
    pub(super) name: Option<String>,
    /// A string by the book; an object from some servers.
    pub(super) arguments: Option<Value>,
}

impl Content {
    /// The text of it.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
        }
    }
}

impl Said {
    /// The visible reasoning, from whichever field holds it.
    pub(super) fn reasoning(&self) -> Option<Cow<'_, str>> {
        let plain = self.reasoning_content.as_deref().or_else(|| self.reasoning.as_ref()?.as_str());
        plain.map(Cow::Borrowed).or_else(|| {
            let details = self.reasoning_details.as_ref()?.as_array()?.iter();
            Some(details.filter_map(|detail| detail.get("text").or(detail.get("summary"))?.as_str()).collect())
        })
    }
}
