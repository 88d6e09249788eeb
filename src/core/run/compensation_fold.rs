//! Effects of a compensation on a run: before it ends as failed or cancelled, the calls that took effect are undone in
//! reverse order of settling (FEATURES 3.49, decision 0043).
//!
//! The ending is decided first, by `compensation.started`. The undo calls are the calls of one more open turn, which no
//! model asked for and which never enters the transcript. After it only the decided ending follows.

use std::collections::BTreeSet;

use super::compensation::{Compensating, Effect};
use super::state::Phase;
use super::turn::{Call, CallState, Settlement, Turn};
use super::{
    CallVerdict, Compensation, Ending, Event, InvalidEvent, Rejection, Run, Step, ToolAccess, UndoCall, UndoResult,
    UndoState,
};
use crate::chat::Message;
use crate::id::{CallId, ServerId};
use crate::tool::{Origin, Outcome, ToolCall, Undo};

impl Run {
    /// The event that ends the run: the ending, or the start of the compensation that comes before it.
    pub fn ending_event(&self, ending: Ending) -> Event {
        match self.has_to_compensate(&ending) {
            true => Event::CompensationStarted { ending, undo: self.expected_undo() },
            false => Event::Ended { ending },
        }
    }

    /// Whether the ending is decided and the undo calls come before it.
    pub fn is_compensating(&self) -> bool {
        self.compensating.ending.is_some() && self.ending().is_none()
    }

    /// What became of the undo calls; `None` if the run does not and did not compensate.
    pub fn compensation(&self) -> Option<Compensation> {
        self.compensating.ending.as_ref()?;
        let undone = if self.is_compensating() { self.undo_results() } else { self.compensating.settled.clone() };
        Some(Compensation { undone, outcome_unknown: self.compensating.outcome_unknown.clone() })
    }

    fn undo_results(&self) -> Vec<UndoResult> {
        self.undo_calls().iter().zip(self.phase.calls()).map(|(undo, call)| call.undo_result(undo)).collect()
    }

    /// The undo calls, in their order; empty before the ending is decided.
    pub fn undo_calls(&self) -> &[UndoCall] {
        &self.compensating.undo
    }

    fn expected_undo(&self) -> Vec<UndoCall> {
        let mut ids = BTreeSet::new();
        let undo_of = |effect: &Effect| {
            let listed = self.tools.as_ref().and_then(|tools| tools.by_origin(&effect.tool));
            let name = listed.map_or_else(|| effect.tool.tool_name().to_owned(), |tool| tool.name.to_string());
            let (undoes, arguments) = (effect.call.clone(), effect.arguments.clone());
            let mut id = CallId::from(format!("undo_{undoes}"));
            while self.calls_seen.contains(&id) || ids.contains(&id) {
                id = CallId::from(format!("{id}_"));
            }
            ids.insert(id.clone());
            UndoCall { undoes, call: ToolCall { id, name, arguments } }
        };
        self.compensating.effects.iter().rev().map(undo_of).collect()
    }

    fn has_to_compensate(&self, ending: &Ending) -> bool {
        let is_compensated = match ending {
            Ending::Failed { .. } | Ending::Cancelled { .. } => true,
            Ending::Completed { .. } | Ending::Incomplete { .. } | Ending::Expired => false,
        };
        is_compensated && self.compensating.ending.is_none() && !self.compensating.effects.is_empty()
    }

    pub(super) fn admit_compensation(&self, ending: &Ending, undo: &[UndoCall]) -> Result<(), InvalidEvent> {
        let contradiction = |why| Err(InvalidEvent::Contradiction { event: "compensation.started", why });
        if !self.has_to_compensate(ending) {
            return contradiction("there is nothing to undo before this ending");
        }
        // The arguments may lack secrets.
        let identity = |undo: &UndoCall| (undo.undoes.clone(), undo.call.id.clone(), undo.call.name.clone());
        match self.expected_undo().iter().map(identity).eq(undo.iter().map(identity)) {
            true => Ok(()),
            false => contradiction("it does not undo what took effect, in reverse order"),
        }
    }

    /// The reason why the event does not fit the compensation of the run: an ending that comes before it or is another one
    /// than the decided one, or an undo call that is not the next one.
    pub(super) fn contradicts_compensation(&self, event: &Event) -> Option<&'static str> {
        if let Event::Ended { ending } = event {
            if self.has_to_compensate(ending) {
                return Some("calls that took effect are undone first");
            }
            let is_other = self.decided_ending().is_some_and(|decided| decided.status() != ending.status());
            return is_other.then_some("another ending was decided");
        }
        let Event::CallsStarted { calls } = event else { return None };
        let is_next = |id: &CallId| self.next_undo().is_some_and(|next| next.requested.id == *id);
        (self.is_compensating() && !calls.iter().all(is_next)).then_some("calls are undone one after the other")
    }

    pub(super) fn compensation_started(&mut self, ending: &Ending, undo: &[UndoCall]) {
        self.abandon_turn(ending);
        self.deliver_inbox();
        if self.pause().is_some() {
            self.unpaused();
        }
        self.compensating.ending = Some(ending.clone());
        self.compensating.undo = undo.to_vec();
        let calls = undo.iter().map(|undo| {
            let call = self.new_call(undo.call.clone());
            let state = if call.tool.is_some() { CallState::Selected } else { CallState::New };
            Call { state, ..call }
        });
        let calls = calls.collect();
        let turn = Turn { assistant: Message::assistant(""), calls, copied: false };
        self.phase = Phase::Working { turn, tool_access: ToolAccess::Enabled };
    }

    /// Stops the work of the model: the open turn, or the failed attempt at one.
    pub(super) fn abandon_turn(&mut self, ending: &Ending) {
        if let Some(turn) = self.phase.turn_mut() {
            turn.abandon();
            self.close_turn();
        }
        self.note_failed_attempt(ending);
        if let Ending::Cancelled { partial_reply: Some(text), .. } = ending {
            self.say(Message::assistant(text));
        }
    }

    /// Keeps the undo calls of a run that ends. Those that are not settled are not made any more.
    pub(super) fn close_compensation(&mut self) {
        if let Some(turn) = self.phase.turn_mut() {
            turn.abandon();
        }
        self.compensating.settled = self.undo_results();
    }

    /// Notes a call that settled without an error: it took effect, or the model itself undid another call with it.
    pub(super) fn note_effect(&mut self, id: &CallId, outcome: &Outcome) {
        if !self.started.spec.rules.compensate || self.is_compensating() || outcome.is_error() {
            return;
        }
        let Some(call) = self.call(id).filter(|call| !call.sent_by_source) else { return };
        let origin = call.tool.as_ref().map(|tool| &tool.origin);
        let undoes = |effect: &Effect| Some(&effect.tool) == origin && effect.arguments == *call.arguments();
        let undone = self.compensating.effects.iter().rposition(undoes);
        let effect = call.undo().map(|(undo, server)| Effect {
            call: id.clone(),
            tool: Origin::Mcp { server: server.clone(), tool: undo.tool.clone() },
            arguments: undo.arguments_for(call.arguments(), outcome),
        });
        if let Some(undone) = undone {
            self.compensating.effects.remove(undone);
        }
        self.compensating.effects.extend(effect);
    }

    /// Notes the calls of a closed turn that may have taken effect, and cannot be undone because that is not known.
    pub(super) fn note_doubts(&mut self, turn: &Turn) {
        if self.started.spec.rules.compensate {
            let doubtful = turn.calls.iter().filter(|call| call.undo().is_some() && call.is_unclear());
            self.compensating.outcome_unknown.extend(doubtful.map(|call| call.requested.id.clone()));
        }
    }

    /// Begins the own part of a fork: the effects belong to the source.
    pub(super) fn forget_effects(&mut self) {
        if !self.is_compensating() {
            self.compensating = Compensating::default();
        }
    }

    /// The decided ending, once every undo call is settled.
    pub(super) fn compensated_ending(&self) -> Option<Ending> {
        self.compensating.ending.clone().filter(|_| self.next_undo().is_none())
    }

    /// The ending that was decided before the calls are undone.
    pub(super) fn decided_ending(&self) -> Option<&Ending> {
        self.compensating.ending.as_ref()
    }

    fn next_undo(&self) -> Option<&Call> {
        self.phase.calls().iter().find(|call| !call.is_settled())
    }

    /// Whether a call of the open turn may start as far as the order of undo calls is concerned.
    pub(super) fn is_its_turn(&self, call: &Call) -> bool {
        !self.is_compensating() || self.next_undo().is_some_and(|next| next.requested.id == call.requested.id)
    }

    /// Refuses undo calls that cannot be made: their tool is not there, or they have no arguments.
    pub(super) fn refused_undos(&self) -> Option<Step> {
        let calls = self.phase.calls().iter().filter(|_| self.is_compensating());
        let refused: Vec<Event> = calls.filter_map(Call::impossible_undo).collect();
        (!refused.is_empty()).then_some(Step::Record(refused))
    }
}

impl Call {
    /// The undo of its tool, with the server of both.
    fn undo(&self) -> Option<(&Undo, &ServerId)> {
        let tool = self.tool.as_ref()?;
        Some((tool.undo.as_ref()?, tool.server()?))
    }

    fn is_unclear(&self) -> bool {
        let CallState::Settled(Settlement::Completed(outcome)) = &self.state else { return false };
        !self.sent_by_source && outcome.may_have_taken_effect()
    }

    fn impossible_undo(&self) -> Option<Event> {
        let (reason, message) = match (&self.state, self.requested.arguments.as_object()) {
            (CallState::New, _) => {
                let message = format!("Not undone: the run has no tool `{}`.", self.requested.name);
                (Rejection::Unknown, message)
            }
            (CallState::Selected, None) => {
                let reason = self.requested.arguments.to_value();
                (Rejection::InvalidArguments, format!("Not undone: {}.", reason.as_str().unwrap_or_default()))
            }
            (
                CallState::Selected
                | CallState::Asked { .. }
                | CallState::Authorized
                | CallState::Started
                | CallState::NeedsInput(_)
                | CallState::Task(_)
                | CallState::Settled(_),
                _,
            ) => return None,
        };
        let verdict = CallVerdict::Rejected { reason, message, problems: Vec::new() };
        Some(Event::CallChecked { call: self.requested.id.clone(), verdict, advisory: Vec::new() })
    }

    fn undo_result(&self, undo: &UndoCall) -> UndoResult {
        let (state, reason) = match &self.state {
            CallState::Settled(Settlement::Rejected { message, .. }) => (UndoState::Refused, Some(message.clone())),
            CallState::Settled(Settlement::Completed(outcome)) => match &**outcome {
                Outcome::Unknown => (UndoState::OutcomeUnknown, None),
                Outcome::Returned(output) if output.is_error => (UndoState::Failed, Some(output.joined_text())),
                Outcome::Returned(_) => (UndoState::Undone, None),
                Outcome::Failed(failure) => (UndoState::Failed, Some(failure.message.clone())),
            },
            CallState::Settled(Settlement::Abandoned) => (UndoState::NotMade, None),
            CallState::New
            | CallState::Selected
            | CallState::Asked { .. }
            | CallState::Authorized
            | CallState::Started
            | CallState::NeedsInput(_)
            | CallState::Task(_) => (UndoState::Open, None),
        };
        let (undoes, call_id, tool) = (undo.undoes.clone(), self.requested.id.clone(), self.requested.name.clone());
        UndoResult { undoes, call_id, tool_name: tool, state, reason }
    }
}
