//! Spans of tool calls, of decisions on them, and of answer validation.

use jiff::Timestamp;
use toolgate_core::id::CallId;
use toolgate_core::run::{Call, CallState, Decision, ElicitationAnswer, OutputVerdict, Run, labels};
use toolgate_core::tool::{CallTransport, Difference};

use super::Projector;
use super::external_input::ExternalInput;
use crate::spans::attributes::Attributes;
use crate::spans::execution::{Child, OpenCall};
use crate::spans::span::{Kind, Span, Status};
use crate::spans::tool::{CallResult, CutShort, ToolCall};
use crate::spans::{guardrail, names};

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

    /// The end of a call that was sent to its server.
    pub(super) fn call_ended(
        &mut self,
        id: &CallId,
        at: Timestamp,
        result: CallResult<'_>,
        wire: Option<&CallTransport>,
    ) -> Option<Span> {
        let calls = &mut self.execution.as_mut()?.calls;
        let open = match calls.iter().position(|open| open.call.requested.id == *id) {
            Some(open) => calls.remove(open),
            // A task that an earlier execution started. This execution saw only its end.
            None => OpenCall::sent(self.call(id).filter(|call| matches!(call.state, CallState::Task(_)))?.clone(), at),
        };
        let call = ToolCall { waited_ms: open.waited_ms(at), ..self.tool_call(&open.call, result, wire) };
        self.tool_span((open.start, at), call)
    }

    /// The server requests input, and the call is held open from now on.
    pub(super) fn call_held(&mut self, id: &CallId, at: Timestamp) {
        if let Some(open) = self.open_call(id) {
            open.held_since = Some(at);
        }
    }

    /// The server's questions on an open call were answered.
    pub(super) fn call_answered(&mut self, id: &CallId, at: Timestamp) {
        if let Some(open) = self.open_call(id) {
            open.waited += open.held_since.take().map(|since| at.duration_since(since)).unwrap_or_default();
        }
    }

    fn open_call(&mut self, id: &CallId) -> Option<&mut OpenCall> {
        self.execution.as_mut()?.calls.iter_mut().find(|open| open.call.requested.id == *id)
    }

    /// A call that was open when its driver stopped.
    pub(super) fn call_cut_short(&mut self, open: &OpenCall, at: Timestamp, cut: CutShort) -> Option<Span> {
        self.tool_span((open.start, at), self.tool_call(&open.call, CallResult::CutShort(cut), None))
    }

    /// The end of a call that is answered outside: a point in time, because toolgate did not see it run.
    pub(super) fn awaited_span(&mut self, held: &ExternalInput, result: CallResult<'_>) -> Option<Span> {
        let call = ToolCall { waited_ms: held.waited_ms(), ..self.tool_call(&held.call, result, None) };
        self.tool_span((held.at, held.at), call)
    }

    fn tool_call<'a>(&self, call: &'a Call, result: CallResult<'a>, wire: Option<&'a CallTransport>) -> ToolCall<'a> {
        ToolCall { call, result, wire, waited_ms: None, content: self.content }
    }

    fn tool_span(&mut self, (start, end): (Timestamp, Timestamp), told: ToolCall<'_>) -> Option<Span> {
        let call = told.call;
        let (status, exception) = told.status(end);
        let child = Child {
            label: labels::tool_call(&call.requested.id, call.round),
            name: format!("execute_tool {}", call.requested.name),
            kind: told.kind(),
            start,
            end,
            status,
            events: exception.into_iter().collect(),
        };
        let iteration = self.lifecycle.iteration();
        let mut undo_calls = self.lifecycle.run().into_iter().flat_map(Run::undo_calls);
        let undoes = undo_calls.find(|undo| undo.call.id == call.requested.id).map(|undo| undo.undoes.clone());
        self.execution.as_mut()?.child(child, |to| {
            to.int(names::ITERATION, u64::from(iteration));
            to.text_if(names::TOOL_UNDOES, undoes.as_ref().map(CallId::as_str));
            told.attributes(to);
        })
    }

    pub(super) fn approval_span(&mut self, held: &ExternalInput, decision: &Decision) -> Option<Span> {
        let content = self.content;
        self.person_span(held, "approval", |to| guardrail::approval(&held.call, decision, content, to))
    }

    pub(super) fn expired_span(&mut self, held: &ExternalInput) -> Option<Span> {
        let content = self.content;
        self.person_span(held, "approval", |to| guardrail::expired(&held.call, content, to))
    }

    pub(super) fn input_span(&mut self, held: &ExternalInput, given: &ElicitationAnswer) -> Option<Span> {
        let content = self.content;
        self.person_span(held, "input_required", |to| guardrail::input_given(&held.call, given, content, to))
    }

    pub(super) fn denied_span(&mut self, seq: u64, at: Timestamp, id: &CallId, message: &str) -> Option<Span> {
        let (call, content) = (self.call(id)?.clone(), self.content);
        self.guardrail_span((seq, "policy"), (at, at), |to| guardrail::denied(&call, message, content, to))
    }

    pub(super) fn drift_span(
        &mut self,
        seq: u64,
        at: Timestamp,
        id: &CallId,
        differences: &[Difference],
    ) -> Option<Span> {
        let (call, content) = (self.call(id)?.clone(), self.content);
        self.guardrail_span((seq, "drift"), (at, at), |to| guardrail::drift(&call, differences, content, to))
    }

    /// The span of a decision or an answer, from its request on; the time before the execution becomes a number.
    fn person_span(&mut self, held: &ExternalInput, name: &str, build: impl FnOnce(&mut Attributes)) -> Option<Span> {
        let start = held.asked.unwrap_or(held.at);
        self.guardrail_span((held.seq, name), (start, held.at), |to| {
            to.int(names::WAIT_MS, held.waited_ms());
            build(to);
        })
    }

    fn guardrail_span(
        &mut self,
        (seq, name): (u64, &str),
        (start, end): (Timestamp, Timestamp),
        build: impl FnOnce(&mut Attributes),
    ) -> Option<Span> {
        let child = Child {
            label: labels::guardrail(seq),
            name: name.to_owned(),
            kind: Kind::Internal,
            start,
            end,
            status: Status::Ok,
            events: Vec::new(),
        };
        let iteration = self.lifecycle.iteration();
        self.execution.as_mut()?.child(child, |to| {
            to.int(names::ITERATION, u64::from(iteration));
            build(to);
        })
    }
}
