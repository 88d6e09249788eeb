//! Pending question: the model asks the user with the built-in tool `ask_human`.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AnswerForm, Description, Kind, PendingCall, PendingCounts};
use crate::id::CallId;
use crate::run::{Call, CallState, Rejection, Settlement};
use crate::timestamp::optional_millis;
use crate::tool::{Arguments, Ask, Tool, ToolName, ToolRef};

/// A question of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingQuestion {
    /// The call; answers are addressed to it.
    pub call_id: CallId,
    pub tool: ToolRef,
    /// The name the model sees.
    pub tool_name: ToolName,
    #[serde(flatten)]
    pub ask: Ask,
    /// The position of the event that asks.
    pub event: u64,
    /// When the wait began.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "optional_millis")]
    pub requested_at: Option<Timestamp>,
    /// The deadline; without it, the item stays pending as long as the run lives.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "optional_millis")]
    pub expires_at: Option<Timestamp>,
}

impl PendingQuestion {
    pub(super) fn new(call: &Call, tool: &Tool) -> Option<Self> {
        if !call.is_question() || call.state != CallState::Authorized {
            return None;
        }
        Some(Self {
            call_id: call.requested.id.clone(),
            tool: ToolRef::new(tool),
            tool_name: tool.name.clone(),
            ask: call.arguments().as_object().and_then(|arguments| Ask::parse(arguments).ok())?,
            event: call.deadline.event,
            requested_at: call.deadline.since,
            expires_at: call.deadline.until(),
        })
    }
}

impl Kind for PendingQuestion {
    fn describe(&self) -> Description<'_> {
        Description {
            kind: "question",
            call_id: Some(&self.call_id),
            event: Some(self.event),
            requested_at: self.requested_at,
            expires_at: self.expires_at,
            form: AnswerForm::Choice(&self.ask),
        }
    }

    fn call(&self) -> Option<PendingCall<'_>> {
        let tool = Cow::Borrowed(&self.tool);
        let arguments = Cow::Owned(Arguments::from_value(serde_json::to_value(&self.ask).unwrap_or_default()));
        Some(PendingCall { id: &self.call_id, name: &self.tool_name, tool, arguments })
    }

    fn count(&self, counts: &mut PendingCounts) {
        counts.answers += 1;
    }

    fn expired(&self) -> Option<Settlement> {
        let message = "There was no answer in time. That is not a refusal. Continue as well as you can without one.";
        Some(Settlement::Rejected { reason: Rejection::Expired, message: message.into() })
    }
}
