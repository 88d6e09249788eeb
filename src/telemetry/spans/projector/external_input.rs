//! Outside input: external results, answers, decisions and expiries. The run is idle when they come, so they wait here
//! for the next execution.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use toolgate_core::id::CallId;
use toolgate_core::run::{
    Call, CallState, CallVerdict, Decision, ElicitationAnswer, Event, HumanAnswer, JournalEntry, Settlement,
};
use toolgate_core::tool::{Outcome, ToolOutput};

use super::{Projector, milliseconds};
use crate::spans::execution::Given;
use crate::spans::guardrail;
use crate::spans::span::Span;
use crate::spans::tool::{CallResult, output_text};

/// An outside input, with the call as it was at that time.
#[derive(Clone, Debug)]
pub(super) struct ExternalInput {
    pub(super) seq: u64,
    pub(super) call: Call,
    /// The time of the request, if known.
    pub(super) asked: Option<Timestamp>,
    pub(super) at: Timestamp,
    what: InputKind,
}

#[derive(Clone, Debug)]
enum InputKind {
    Result(Arc<Outcome>),
    Decision(Decision),
    Answer(HumanAnswer),
    Input(ElicitationAnswer),
    Expired,
}

impl Projector {
    /// Holds an outside input for the next execution. Returns whether the fact is one.
    #[expect(clippy::wildcard_enum_match_arm, reason = "picks the events that concern it")]
    pub(super) fn record_input(&mut self, recorded: &JournalEntry) -> bool {
        let (id, what) = match &recorded.event {
            Event::CallCompleted { call, outcome, .. } => {
                if !self.call(call).is_some_and(|call| call.is_external()) {
                    return false;
                }
                (call, InputKind::Result(Arc::clone(outcome)))
            }
            Event::ApprovalDecided { call, decision } => (call, InputKind::Decision(decision.clone())),
            Event::QuestionAnswered { call, answer } => (call, InputKind::Answer(answer.clone())),
            Event::InputGiven { call, given } => (call, InputKind::Input(given.clone())),
            Event::Expired { call } => (call, InputKind::Expired),
            Event::MessageAdded { message } => {
                self.messages.push(message.text());
                return true;
            }
            Event::Extended { .. } => return true,
            // The pause or cancellation of a run that waited already is not the reason why its execution ended.
            Event::Paused { .. } | Event::CompensationStarted { .. } => return self.rests(),
            _ => return false,
        };
        if let Some(call) = self.call(id).cloned() {
            let asked = self.asked.get(id).copied();
            self.held.push(ExternalInput { seq: recorded.seq, call, asked, at: recorded.at, what });
        }
        true
    }

    /// The spans of the held inputs.
    pub(super) fn release(&mut self) -> Vec<Span> {
        if self.execution.is_none() {
            return Vec::new();
        }
        let held = std::mem::take(&mut self.held);
        let messages = std::mem::take(&mut self.messages);
        if let Some(execution) = &mut self.execution
            && !std::mem::replace(&mut execution.has_gone_on, true)
        {
            execution.given = given(&held, &messages);
        }
        held.iter().filter_map(|held| self.held_span(held)).collect()
    }

    fn held_span(&mut self, held: &ExternalInput) -> Option<Span> {
        match &held.what {
            InputKind::Result(outcome) => self.awaited_span(held, CallResult::Outcome(outcome)),
            InputKind::Answer(answer) => {
                let said = Outcome::Returned(ToolOutput::text(answer.choice.to_words()));
                self.awaited_span(held, CallResult::Outcome(&said))
            }
            InputKind::Decision(decision) => self.approval_span(held, decision),
            InputKind::Input(given) => self.input_span(held, given),
            InputKind::Expired => match (&held.call.state, held.call.expired_settlement()) {
                (CallState::Asked { .. }, _) => self.expired_span(held),
                (_, Settlement::Completed(outcome)) => self.awaited_span(held, CallResult::Outcome(&outcome)),
                (_, Settlement::Rejected { message, .. }) => self.awaited_span(held, CallResult::Expired(&message)),
                (_, Settlement::Abandoned) => None,
            },
        }
    }

    /// Notes the time of a request.
    #[expect(clippy::wildcard_enum_match_arm, reason = "picks the events that concern it")]
    pub(super) fn note_asked(&mut self, recorded: &JournalEntry) {
        match &recorded.event {
            Event::CallChecked { call, verdict: CallVerdict::Ask { .. }, .. } | Event::InputRequested { call, .. } => {
                self.asked.insert(call.clone(), recorded.at);
            }
            Event::InputRequired { call, .. } => {
                // A question on an open call was requested when the call was held.
                let is_held = self.call(call).is_some_and(|call| call.elicitation().is_some());
                if !is_held || !self.asked.contains_key(call) {
                    self.asked.insert(call.clone(), recorded.at);
                }
            }
            Event::CallChecked { call, verdict: CallVerdict::Run { .. }, .. }
                if self.call(call).is_some_and(|call| !call.is_sent_by_us()) =>
            {
                self.asked.insert(call.clone(), recorded.at);
            }
            Event::ModelReplied { .. } => self.asked.clear(),
            _ => {}
        }
    }

    /// A call of the open turn, in its current state.
    pub(super) fn call(&self, id: &CallId) -> Option<&Call> {
        self.lifecycle.run()?.call(id)
    }
}

/// What an execution was given: the messages, or a JSON object with the answers too. `None` if it was given nothing.
pub(super) fn given(held: &[ExternalInput], messages: &[String]) -> Option<Given> {
    let message = (!messages.is_empty()).then(|| messages.join("\n"));
    if held.is_empty() {
        return message.map(|text| Given { text, has_answers: false });
    }
    let answers = ("answers".to_owned(), held.iter().map(ExternalInput::view).collect());
    let message = message.map(|text| ("message".to_owned(), Json::from(text)));
    let text = Json::Object(std::iter::once(answers).chain(message).collect()).to_string();
    Some(Given { text, has_answers: true })
}

impl ExternalInput {
    fn view(&self) -> Json {
        let (kind, value) = match &self.what {
            InputKind::Result(outcome) => ("result", output_text(outcome).into()),
            InputKind::Decision(decision) => ("decision", guardrail::decision_view(decision)),
            InputKind::Answer(answer) => ("answer", answer.choice.to_words().into()),
            InputKind::Input(given) => ("reactions", json!(given.reactions)),
            InputKind::Expired => ("expired", true.into()),
        };
        json!({ "call_id": self.call.requested.id, "tool": self.call.requested.name, kind: value })
    }

    /// How long the run was idle.
    pub(super) fn waited_ms(&self) -> Option<u64> {
        Some(milliseconds(self.at.duration_since(self.asked?)))
    }
}
