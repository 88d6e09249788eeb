//! What comes from outside: results of the caller's tools and decisions of people. Nobody drives the run when they come,
//! so they wait here for the execution that goes on with them.

use std::sync::Arc;

use jiff::Timestamp;

use super::Projector;
use crate::core::id::CallId;
use crate::core::run::{Call, Decision, Event, Recorded};
use crate::core::tool::Outcome;
use crate::telemetry::spans::execution::OpenCall;
use crate::telemetry::spans::span::Span;
use crate::telemetry::spans::tool::CallResult;

/// Something that came from outside, with the call as it was then.
#[derive(Clone, Debug)]
pub(super) enum Held {
    Result { call: Call, at: Timestamp, outcome: Arc<Outcome> },
    Decision { seq: u64, call: Call, at: Timestamp, decision: Decision },
}

impl Projector {
    /// Keeps what came from outside for the execution that goes on with it. Whether it did.
    pub(super) fn hold(&mut self, recorded: &Recorded) -> bool {
        let at = recorded.at;
        match &recorded.event {
            Event::CallCompleted { call, outcome, .. } => {
                let Some(call) = self.call(call).filter(|call| call.is_external()) else { return false };
                self.held.push(Held::Result { call, at, outcome: Arc::clone(outcome) });
                true
            }
            Event::ApprovalDecided { call, decision } => {
                let decision = decision.clone();
                let held = self.call(call).map(|call| Held::Decision { seq: recorded.seq, call, at, decision });
                self.held.extend(held);
                true
            }
            Event::MessageAdded { .. } | Event::InputGiven { .. } | Event::QuestionAnswered { .. } => true,
            Event::Extended { .. } | Event::Expired { .. } => true,
            Event::Started(_)
            | Event::Resumed { .. }
            | Event::ToolsListed { .. }
            | Event::ApprovalsResolved { .. }
            | Event::ModelCalled { .. }
            | Event::ModelReplied { .. }
            | Event::ModelFailed { .. }
            | Event::OutputValidated { .. }
            | Event::TierSelected { .. }
            | Event::CallChecked { .. }
            | Event::CallDrifted { .. }
            | Event::CallsStarted { .. }
            | Event::InputRequired { .. }
            | Event::TaskStarted { .. }
            | Event::Ended { .. } => false,
        }
    }

    /// The spans of what was held: points in time, for nobody here saw the caller or the person at work.
    pub(super) fn release(&mut self) -> Vec<Span> {
        if self.execution.is_none() {
            return Vec::new();
        }
        let held = std::mem::take(&mut self.held);
        held.into_iter()
            .filter_map(|held| match held {
                Held::Result { call, at, outcome } => {
                    self.tool_span(&OpenCall { call, start: at }, at, CallResult::Outcome(&outcome))
                }
                Held::Decision { seq, call, at, decision } => self.approval_span(seq, &call, at, &decision),
            })
            .collect()
    }

    /// A call of the open turn, as it is now.
    pub(super) fn call(&self, id: &CallId) -> Option<Call> {
        self.lifecycle.run()?.call(id).cloned()
    }
}
