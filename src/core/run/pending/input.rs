//! Pending input: the tool's server asks questions before it continues a call (elicitation).

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AnswerForm, Delivery, Description, Kind, PendingCall, PendingCounts};
use crate::id::CallId;
use crate::run::{Call, CallState};
use crate::timestamp::optional_millis;
use crate::tool::{Arguments, Question, Tool, ToolName, ToolRef};

/// A call whose server requests input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingInput {
    /// The call; answers are addressed to it.
    pub call_id: CallId,
    pub tool: ToolRef,
    /// The name the model sees.
    pub tool_name: ToolName,
    pub arguments: Arguments,
    /// The questions, by the server's keys. All are answered together.
    pub questions: BTreeMap<String, Question>,
    /// Whether the call is made again with the answers, because the server cannot wait for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarts: bool,
    /// Whether the call had begun when it was cancelled and its tool is not known to be safe to repeat: answers are
    /// accepted only with explicit consent to sending it a second time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats: bool,
    /// Whether the call is running and held open, so that it receives the answers directly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// Until when it is held; `None` for as long as its driver waits.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "optional_millis")]
    pub held_until: Option<Timestamp>,
}

impl PendingInput {
    pub(super) fn new(call: &Call, tool: &Tool) -> Option<Self> {
        let needed = call.elicitation()?;
        let held = call.held.as_ref().filter(|_| call.state == CallState::Started);
        let is_suspended = held.is_none();
        Some(Self {
            call_id: call.requested.id.clone(),
            tool: ToolRef::new(tool),
            tool_name: tool.name.clone(),
            arguments: call.arguments().clone(),
            questions: needed.questions.clone(),
            restarts: is_suspended && needed.restarts,
            repeats: is_suspended && call.needs_consent_to_repeat(needed),
            held: held.is_some(),
            held_until: held.and_then(|held| held.until),
        })
    }

    fn delivery(&self) -> Delivery {
        match (self.held, self.repeats, self.restarts) {
            (true, _, _) => Delivery::Held,
            (false, true, _) => Delivery::Repeated,
            (false, false, true) => Delivery::Restarted,
            (false, false, false) => Delivery::Continued,
        }
    }
}

impl Kind for PendingInput {
    fn describe(&self) -> Description<'_> {
        Description {
            kind: "elicitation",
            call_id: Some(&self.call_id),
            event: None,
            requested_at: None,
            expires_at: None,
            form: AnswerForm::Elicitation { questions: &self.questions, delivery: self.delivery() },
        }
    }

    fn call(&self) -> Option<PendingCall<'_>> {
        let tool = Cow::Borrowed(&self.tool);
        let arguments = Cow::Borrowed(&self.arguments);
        Some(PendingCall { id: &self.call_id, name: &self.tool_name, tool, arguments })
    }

    fn count(&self, counts: &mut PendingCounts) {
        counts.answers += 1;
    }
}
