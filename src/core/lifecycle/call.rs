//! Call references of lifecycle events, and the pending items of a run.

use serde::Serialize;
use serde_json::Value;

use super::Content;
use crate::id::CallId;
use crate::run::PendingItem;
use crate::tool::{Arguments, StoredContent, Tool, ToolRef};

/// A call as the model requested it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallRef {
    pub call_id: CallId,
    /// The name the model wrote.
    pub tool_name: String,
    /// The tool it resolves to; `None` when there is no such tool.
    pub tool: Option<ToolRef>,
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
    pub error: Option<&'static str>,
    /// The size of its text in bytes, including text that is not shown.
    pub result_bytes: u64,
    /// Its text; only with `Content::Include`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Parts of the result that are stored outside the journal.
    pub kept: Vec<StoredContent>,
}

/// One pending item of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PendingRef {
    /// `external_result`, `approval`, `question`, `elicitation`, `task` or `pause`.
    pub r#type: &'static str,
    /// The call that the item belongs to; `None` for an item of the run itself.
    #[serde(flatten)]
    pub call: Option<CallRef>,
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
            tool_name: name.to_owned(),
            tool: tool.map(ToolRef::new),
            priority: tool.map(|tool| tool.priority),
            arguments: arguments.filter(|_| content == Content::Include).map(Arguments::to_value),
        }
    }
}

impl PendingRef {
    pub(super) fn new(item: &PendingItem, content: Content) -> Self {
        let call = item.call().map(|call| CallRef {
            tool: Some(call.tool.clone().into_owned()),
            ..CallRef::new(call.id, call.name.as_str(), None, Some(&call.arguments), content)
        });
        Self { r#type: item.kind(), call }
    }
}
