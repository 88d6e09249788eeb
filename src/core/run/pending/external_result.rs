//! Pending external result: a call of a tool that the application runs.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AnswerForm, Description, Kind, PendingCall, PendingCounts};
use crate::id::CallId;
use crate::run::{Call, CallState, Settlement};
use crate::timestamp::optional_millis;
use crate::tool::{Arguments, Origin, Tool, ToolName, ToolRef};

/// A call that the caller has to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingExternalResult {
    /// The call; results are addressed to it.
    pub call_id: CallId,
    pub tool: ToolRef,
    /// The name the model sees.
    pub tool_name: ToolName,
    /// The arguments, valid by the tool's schema.
    pub arguments: Arguments,
    /// JSON Schema of the result, if declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_schema: Option<Value>,
    /// When the wait began.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "optional_millis")]
    pub requested_at: Option<Timestamp>,
    /// The deadline; without it, the item stays pending as long as the run lives.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "optional_millis")]
    pub expires_at: Option<Timestamp>,
}

impl PendingExternalResult {
    pub(super) fn new(call: &Call, tool: &Tool) -> Option<Self> {
        let is_external = matches!(tool.origin, Origin::External { .. });
        (is_external && call.state == CallState::Authorized).then(|| Self {
            call_id: call.requested.id.clone(),
            tool: ToolRef::new(tool),
            tool_name: tool.name.clone(),
            arguments: call.arguments().clone(),
            result_schema: tool.output_schema.as_deref().cloned(),
            requested_at: call.deadline.since,
            expires_at: call.deadline.until(),
        })
    }
}

impl Kind for PendingExternalResult {
    fn describe(&self) -> Description<'_> {
        Description {
            kind: "external_result",
            call_id: Some(&self.call_id),
            event: None,
            requested_at: self.requested_at,
            expires_at: self.expires_at,
            form: AnswerForm::Result { schema: self.result_schema.as_ref() },
        }
    }

    fn call(&self) -> Option<PendingCall<'_>> {
        let tool = Cow::Borrowed(&self.tool);
        let arguments = Cow::Borrowed(&self.arguments);
        Some(PendingCall { id: &self.call_id, name: &self.tool_name, tool, arguments })
    }

    fn count(&self, counts: &mut PendingCounts) {
        counts.results += 1;
    }

    fn expired(&self) -> Option<Settlement> {
        Some(Settlement::no_result_in_time())
    }
}
