//! What a suspended run is owed. Derived from the journal; never written (law 8).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::core::id::CallId;
use crate::core::tool::{Annotations, Arguments, Origin, ToolName};

/// One thing that has to come from outside before the run goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Debt {
    /// The caller is to run this tool and return its result.
    ExternalResult {
        /// The call; results are addressed to it.
        call_id: CallId,
        /// The caller's own name of the tool.
        tool: String,
        /// The name the model sees.
        name: ToolName,
        /// The arguments, valid by the tool's schema.
        arguments: Arguments,
        /// JSON Schema the result has to fit, if declared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result_schema: Option<Value>,
    },
    /// A person is to decide about this call.
    Approval {
        /// The call; decisions are addressed to it.
        call_id: CallId,
        /// What would run.
        origin: Origin,
        /// The name the model sees.
        name: ToolName,
        /// The arguments, valid by the tool's schema.
        arguments: Arguments,
        /// The server's hints about the tool.
        annotations: Annotations,
        /// The policy rule that asks, if one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// Why a person is asked.
        why: String,
    },
}

impl Debt {
    /// The call it belongs to.
    pub fn call_id(&self) -> &CallId {
        match self {
            Self::ExternalResult { call_id, .. } | Self::Approval { call_id, .. } => call_id,
        }
    }

    /// The kind, as in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ExternalResult { .. } => "external_result",
            Self::Approval { .. } => "approval",
        }
    }
}
