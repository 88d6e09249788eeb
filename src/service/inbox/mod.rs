//! Inbox: what waits for people. Approvals of one tenant for callers, and the pending items of all runs for an operator.

mod approvals;
mod pending;

pub use approvals::{Approval, ApprovalState};
pub use pending::{Inbox, InboxFilter, InboxItem, UnreadableRun};
use serde::Serialize;
use toolgate_core::chat::Role;
use toolgate_core::id::CallId;
use toolgate_core::run::Run;
use toolgate_core::tool::Arguments;

/// The context of a call, which a user needs to judge whether the call is wanted.
#[derive(Clone, Debug, Serialize)]
pub struct CallContext {
    /// The input of the run.
    pub task: String,
    /// The model's text beside the calls of its turn.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model_text: String,
    /// The tool's description, written by its provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The model's original arguments, if a person edited them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_arguments: Option<Arguments>,
}

impl CallContext {
    /// The context of a call of the run.
    pub fn new(run: &Run, call: &CallId) -> Self {
        let call = run.call(call);
        let messages = run.messages();
        let last = messages.iter().rfind(|message| message.role == Role::Assistant);
        Self {
            task: run.started().input.text(),
            model_text: last.map(|message| message.text()).unwrap_or_default(),
            description: call.and_then(|call| call.tool.as_ref()).map(|tool| tool.description.clone()),
            original_arguments: call.filter(|call| call.edited.is_some()).map(|call| call.requested.arguments.clone()),
        }
    }
}
