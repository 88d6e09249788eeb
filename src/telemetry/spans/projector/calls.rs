//! Tool calls, decisions about them, and checks of the answer.

use jiff::Timestamp;

use super::Projector;
use crate::core::id::CallId;
use crate::core::run::{Call, CallState, Decision, OutputVerdict, labels};
use crate::telemetry::spans::execution::{Child, OpenCall};
use crate::telemetry::spans::span::{Kind, Span, Status};
use crate::telemetry::spans::tool::{self, CallResult};
use crate::telemetry::spans::{guardrail, names};

impl Projector {
    pub(super) fn output_checked(&mut self, seq: u64, at: Timestamp, verdict: &OutputVerdict) -> Option<Span> {
        let execution = self.execution.as_mut()?;
        let (start, answer) = execution.answer.take().unwrap_or((at, String::new()));
        let child = Child {
            label: labels::guardrail(seq),
            name: "output_validator".to_owned(),
            kind: Kind::Internal,
            start,
            end: at,
            status: Status::Ok,
            events: guardrail::output_rejected(verdict, at, self.content).into_iter().collect(),
        };
        let (iteration, content) = (self.lifecycle.iteration(), self.content);
        execution.child(child, |to| {
            to.int(names::ITERATION, u64::from(iteration));
            guardrail::output_check(&answer, verdict, content, to);
        })
    }

    /// The end of a call that is with its server.
    pub(super) fn call_ended(&mut self, id: &CallId, at: Timestamp, result: CallResult<'_>) -> Option<Span> {
        let calls = &mut self.execution.as_mut()?.calls;
        let open = match calls.iter().position(|open| open.call.asked.id == *id) {
            Some(open) => calls.remove(open),
            // A task that was taken on in an execution before. Only its end was seen in this one.
            None => {
                OpenCall { call: self.call(id).filter(|call| matches!(call.state, CallState::Task(_)))?, start: at }
            }
        };
        self.tool_span(&open, at, result)
    }

    pub(super) fn tool_span(&mut self, open: &OpenCall, end: Timestamp, result: CallResult<'_>) -> Option<Span> {
        let call = &open.call;
        let (status, exception) = tool::status(result, end, self.content);
        let child = Child {
            label: labels::tool_call(&call.asked.id, call.round),
            name: format!("execute_tool {}", call.asked.name),
            kind: tool::kind(call),
            start: open.start,
            end,
            status,
            events: exception.into_iter().collect(),
        };
        let (iteration, content) = (self.lifecycle.iteration(), self.content);
        self.execution.as_mut()?.child(child, |to| {
            to.int(names::ITERATION, u64::from(iteration));
            tool::attributes(call, result, content, to);
        })
    }

    pub(super) fn approval_span(&mut self, seq: u64, call: &Call, at: Timestamp, decision: &Decision) -> Option<Span> {
        let child = Child {
            label: labels::guardrail(seq),
            name: "approval".to_owned(),
            kind: Kind::Internal,
            start: at,
            end: at,
            status: Status::Ok,
            events: Vec::new(),
        };
        let (iteration, content) = (self.lifecycle.iteration(), self.content);
        self.execution.as_mut()?.child(child, |to| {
            to.int(names::ITERATION, u64::from(iteration));
            guardrail::approval(call, decision, content, to);
        })
    }
}
