//! How events name a call, and what a waiting run is owed.

use serde::Serialize;
use serde_json::Value;

use super::Content;
use crate::core::id::{CallId, ServerId};
use crate::core::run::Debt;
use crate::core::tool::{Arguments, Origin, Tool};

/// A call as the model asked for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallRef {
    /// The call.
    pub call_id: CallId,
    /// The name the model wrote.
    pub name: String,
    /// What it leads to; `None` when there is no such tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRef>,
    /// Its priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// Where a tool is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolRef {
    /// The server; `None` when the caller runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerId>,
    /// The name it has there.
    pub name: String,
}

/// One thing a pending run is owed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Owed {
    /// `external_result`, `approval`, `input` or `task`.
    pub kind: &'static str,
    /// The call that is to be settled.
    #[serde(flatten)]
    pub call: CallRef,
}

impl ToolRef {
    /// Where that tool is.
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

impl Owed {
    pub(super) fn new(debt: &Debt, content: Content) -> Self {
        let (name, tool, arguments) = match debt {
            Debt::ExternalResult { tool, name, arguments, .. } => {
                (name, ToolRef { server: None, name: tool.clone() }, arguments)
            }
            Debt::Approval { origin, name, arguments, .. }
            | Debt::Input { origin, name, arguments, .. }
            | Debt::Task { origin, name, arguments, .. } => (name, ToolRef::new(origin), arguments),
            Debt::Question { name, .. } => (name, ToolRef { server: None, name: name.to_string() }, &*debt.arguments()),
        };
        let call = CallRef::new(debt.call_id(), name.as_str(), None, Some(arguments), content);
        Self { kind: debt.kind(), call: CallRef { tool: Some(tool), ..call } }
    }
}
