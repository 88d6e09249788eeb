//! The conversation as the model was sent it, folded for LLM spans.

use std::sync::Arc;

use super::view::{Call, CallEnd, RunView};
use crate::core::chat::{Message, Part, Role};
use crate::core::run::{Event, OutputVerdict};
use crate::core::tool::{Problem, TierMode};

const DEFERRED: &str = "deferred: calls of higher priority ran first; call again if still needed";

/// Messages, oldest first. Results enter when the model is asked next: in call order, whatever the arrival order was.
#[derive(Clone, Debug, Default)]
pub(super) struct Transcript {
    messages: Vec<Arc<Message>>,
    unanswered: bool,
    waiting: Vec<Message>,
}

impl Transcript {
    /// The messages of the call that is under way or was made last.
    pub(super) fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Takes in one fact; `view` has taken it in already.
    pub(super) fn apply(&mut self, event: &Event, view: &RunView) {
        match event {
            Event::Started(started) => {
                self.messages = started.history.iter().chain([&started.input]).cloned().map(Arc::new).collect();
            }
            Event::ModelCalled { .. } => self.settle(view),
            Event::ModelReplied { reply } => {
                let content = reply.content.clone();
                self.unanswered = !view.calls.is_empty();
                if !content.is_empty() {
                    self.messages.push(Arc::new(Message { role: Role::Assistant, content, provider_state: None }));
                }
            }
            Event::OutputValidated { verdict: OutputVerdict::Invalid { problems } } => {
                self.waiting.push(Message::user(Problem::feedback("The answer is not valid.", problems)));
            }
            Event::MessageAdded { message } => self.waiting.push(message.clone()),
            Event::Resumed { .. }
            | Event::ToolsListed { .. }
            | Event::ApprovalsResolved { .. }
            | Event::ModelFailed { .. }
            | Event::OutputValidated { verdict: OutputVerdict::Valid { .. } }
            | Event::TierSelected { .. }
            | Event::CallChecked { .. }
            | Event::ApprovalDecided { .. }
            | Event::CallsStarted { .. }
            | Event::CallCompleted { .. }
            | Event::Ended { .. } => {}
        }
    }

    fn settle(&mut self, view: &RunView) {
        if std::mem::take(&mut self.unanswered) {
            let elides = view.started.as_ref().is_some_and(|started| started.spec.tiers == TierMode::Elide);
            if elides {
                self.elide(view);
            }
            let answered = view.calls.iter().filter(|call| !(elides && call.deferred));
            let content: Vec<Part> = answered.map(result).collect();
            self.messages.push(Arc::new(Message { role: Role::User, content, provider_state: None }));
        }
        self.messages.extend(self.waiting.drain(..).map(Arc::new));
    }

    /// Takes deferred calls out of the last reply.
    fn elide(&mut self, view: &RunView) {
        let Some(last) = self.messages.last_mut() else { return };
        let mut kept = Message::clone(last);
        kept.content.retain(|part| match part {
            Part::ToolUse { id, .. } => !view.call(id).is_some_and(|call| call.deferred),
            Part::Text { .. }
            | Part::Image(_)
            | Part::Audio(_)
            | Part::Resource { .. }
            | Part::Reasoning { .. }
            | Part::ToolResult { .. } => true,
        });
        *last = Arc::new(kept);
    }
}

fn result(call: &Call) -> Part {
    let (content, is_error) = match &call.end {
        Some(CallEnd::Ran(outcome)) => (outcome.content(), outcome.is_error()),
        Some(CallEnd::Refused(message)) => (vec![Part::text(message.clone())], true),
        None if call.deferred => (vec![Part::text(DEFERRED)], true),
        None => (vec![Part::text("the call was not run")], true),
    };
    Part::ToolResult { tool_use_id: call.call.id.clone(), content, is_error }
}
