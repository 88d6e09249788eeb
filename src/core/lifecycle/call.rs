//! Call references of lifecycle events, and the pending items of a run.

use serde::Serialize;
use serde_json::Value;

use super::Content;
use crate::id::{CallId, ServerId};
use crate::run::PendingItem;
use crate::tool::{Arguments, Origin, StoredContent, Tool};

/// A call as the model requested it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallRef {
    pub call_id: CallId,
    /// The name the model wrote.
    pub name: String,
    /// The tool it resolves to; `None` when there is no such tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Its arguments; only with `Content::Include`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// A call that undoes another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UndoRef {
    pub undoes: CallId,
    #[serde(flatten)]
    pub call: CallRef,
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallEnd {
    /// Whether it failed.
    pub is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    /// The size of its text in bytes, including text that is not shown.
    pub result_bytes: u64,
    /// Its text; only with `Content::Include`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Parts of the result that are stored outside the journal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<StoredContent>,
}

/// The location of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolRef {
    /// The server; `None` when the caller runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerId>,
    /// The name of the tool on that server.
    pub name: String,
}

/// One pending item of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PendingRef {
    /// `external_result`, `approval`, `question`, `input`, `task` or `pause`.
    pub kind: &'static str,
    /// The call that the item belongs to; `None` for an item of the run itself.
    #[serde(flatten)]
    pub call: Option<CallRef>,
}

impl ToolRef {
    /// The location of the tool with that origin.
    pub fn new(origin: &Origin) -> Self {
        match origin {
            Origin::Mcp { server, tool } => Self { server: Some(server.clone()), name: tool.clone() },
            Origin::External { tool } | Origin::Builtin { tool } => Self { server: None, name: tool.clone() },
        }
    }
}

impl CallRef {
    pub(super) fn new(
        id: &CallId,
        name: &str,
        tool: Option<&Tool>,
        arguments: Option<&Arguments>,
        content: Content,
    ) -> Self {
        Self {
            call_id: id.clone(),
            name: name.to_owned(),
            tool: tool.map(|tool| ToolRef::new(&tool.origin)),
            priority: tool.map(|tool| tool.priority),
            arguments: arguments.filter(|_| content == Content::Include).map(Arguments::to_value),
        }
    }
}

impl PendingRef {
    pub(super) fn new(item: &PendingItem, content: Content) -> Self {
        let call = item.call().map(|call| CallRef {
            tool: Some(ToolRef::new(&call.origin)),
            ..CallRef::new(call.id, call.name.as_str(), None, Some(&call.arguments), content)
        });
        Self { kind: item.kind(), call }
    }
}
