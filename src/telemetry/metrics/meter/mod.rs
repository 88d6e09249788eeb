//! Metrics fold: folds one run's journal into measurements. It is pure, so that tests can read the measurements without
//! instruments.
//!
//! Each fact is measured once, by the process that writes it. History that a driver loads was measured by the process
//! that wrote it, and facts that a fork copies happened in another run. The fold only remembers both, for the facts
//! that follow.

mod calls;
mod models;

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use toolgate_core::chat::Reply;
use toolgate_core::id::CallId;
use toolgate_core::run::{Ending, Event, JournalEntry, OutputVerdict, Started, Status, ToolAccess};
use toolgate_core::tool::Toolset;

use self::calls::MeteredCall;
use self::models::ModelCall;
use super::measurement::Measurement;
use super::names::{self, Metric};
use crate::spans::IdentityOf;

/// The state of a run that its next fact needs.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    started: Arc<Started>,
    began: Timestamp,
    /// The position of the next fact.
    next: u64,
    toolset: Option<Arc<Toolset>>,
    /// The calls of the open turn.
    calls: HashMap<CallId, MeteredCall>,
    asked: Option<ModelCall>,
    /// The call of a model for a summary that is in progress or was made last.
    compacting: Option<ModelCall>,
    /// The turns of this run, without those that a fork copied.
    turns: u32,
    has_no_budget: bool,
}

impl Meter {
    /// The fold of a run that starts with this fact; `None` if the fact does not start a run.
    pub(super) fn begin(first: &JournalEntry) -> Option<Self> {
        let Event::Started(started) = &first.event else { return None };
        Some(Self::new(started.clone(), first.at))
    }

    /// The fold of a run with this journal.
    pub(super) fn after(history: &[JournalEntry]) -> Option<Self> {
        let (first, rest) = history.split_first()?;
        let mut meter = Self::begin(first)?;
        rest.iter().for_each(|recorded| meter.remember(recorded));
        Some(meter)
    }

    /// The measurements of a fact; empty for a fact that was seen before.
    pub(super) fn measure(&mut self, recorded: &JournalEntry, identity_of: &IdentityOf) -> Vec<Measurement> {
        if recorded.seq < self.next {
            return Vec::new();
        }
        let measured = self.measured(recorded, identity_of);
        self.remember(recorded);
        measured
    }

    fn new(started: Arc<Started>, began: Timestamp) -> Self {
        let calls = HashMap::new();
        Self {
            started,
            began,
            next: 1,
            toolset: None,
            calls,
            asked: None,
            compacting: None,
            turns: 0,
            has_no_budget: false,
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "picks the events that concern it")]
    fn measured(&self, JournalEntry { event, at, .. }: &JournalEntry, identity_of: &IdentityOf) -> Vec<Measurement> {
        match event {
            Event::ModelCalled { model, attempt, tool_access } => self.model_called(model, *attempt, *tool_access),
            Event::ModelReplied { reply } => self.model_replied(reply, *at, identity_of),
            Event::ModelFailed { error, usage, .. } => self.model_failed(error, usage, *at, identity_of),
            Event::CompactionCompleted { summary, usage, .. } => {
                let reply = Reply { usage: *usage, ..Reply::text(summary.as_str()) };
                self.of_compaction().model_replied(&reply, *at, identity_of)
            }
            Event::CompactionFailed { error, usage } => {
                self.of_compaction().model_failed(error, usage, *at, identity_of)
            }
            Event::OutputValidated { verdict: OutputVerdict::Invalid { .. } } => vec![self.invalid("output")],
            Event::TierSelected { deferred, .. } if !deferred.is_empty() => {
                vec![Measurement { value: deferred.len() as f64, ..self.one(Metric::ToolDeferrals) }]
            }
            Event::CallChecked { call, verdict, .. } => self.checked(call, verdict),
            Event::ApprovalDecided { call, decision } => self.decided(call, decision, *at),
            Event::CallDrifted { call, .. } => vec![self.of_call(Metric::ToolDrifts, call)],
            Event::Expired { call } => self.expired(call, *at),
            Event::QuestionAnswered { .. } => vec![self.one(Metric::QuestionsAnswered)],
            Event::CallCompleted { call, outcome, wire, .. } => self.completed(call, outcome, wire.as_deref(), *at),
            Event::InputRequested { call, .. } => vec![self.of_call(Metric::InputsRequested, call)],
            Event::InputRequired { call, wire, .. } => {
                let answered = self.answered(call, None, wire.as_deref(), *at);
                // A request for input on the open call was counted when it came.
                let is_news = self.calls.get(call).is_none_or(|call| call.held_since.is_none());
                let asked = is_news.then(|| self.of_call(Metric::InputsRequested, call));
                answered.into_iter().chain(asked).collect()
            }
            Event::InputGiven { call, .. } => vec![self.of_call(Metric::InputsGiven, call)],
            Event::TaskStarted { call, wire, .. } => {
                self.answered(call, None, wire.as_deref(), *at).into_iter().collect()
            }
            Event::Ended { ending } => self.ended(ending, *at),
            _ => Vec::new(),
        }
    }

    /// The fold in which the call for a summary is the call of a model.
    fn of_compaction(&self) -> Self {
        Self { asked: self.compacting.clone(), ..self.clone() }
    }

    fn ended(&self, ending: &Ending, at: Timestamp) -> Vec<Measurement> {
        let outcome = |metric, value| {
            let run = Measurement { value, ..self.one(metric) };
            run.fixed(names::RUN_OUTCOME, ending.status().as_str())
        };
        let code = ending.failure().filter(|_| ending.status() == Status::Failed).map(|failure| failure.code.as_str());
        vec![
            outcome(Metric::Runs, 1.0).fixed_if(names::ERROR_TYPE, code),
            outcome(Metric::RunDuration, seconds(self.began, at)),
            outcome(Metric::RunTurns, f64::from(self.turns)),
        ]
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "picks the events that concern it")]
    fn remember(&mut self, recorded: &JournalEntry) {
        self.next = recorded.seq + 1;
        match &recorded.event {
            Event::ToolsListed { toolset } => self.toolset = Some(toolset.clone()),
            // A fork has a tool budget of its own.
            Event::Resumed { limits: Some(_), .. } => self.has_no_budget = false,
            Event::ModelCalled { .. } if self.started.spec.is_direct_call() => {}
            Event::ModelCalled { model, tool_access, .. } => {
                self.asked = Some(ModelCall { model: model.clone(), at: recorded.at });
                self.has_no_budget |= *tool_access == ToolAccess::BudgetExhausted;
            }
            Event::CompactionStarted { model, .. } => {
                self.compacting = Some(ModelCall { model: model.clone(), at: recorded.at });
            }
            Event::ModelReplied { reply } => {
                self.turns += u32::from(!self.is_copied(recorded.seq));
                self.calls.clear();
                for call in reply.calls() {
                    let tool = self.toolset.as_ref().and_then(|tools| tools.get(&call.name));
                    self.calls.insert(call.id, MeteredCall::new(tool.map(|tool| &**tool)));
                }
            }
            Event::CompensationStarted { undo, .. } => {
                self.calls.clear();
                for call in undo.iter().map(|undo| &undo.call) {
                    let tool = self.toolset.as_ref().and_then(|tools| tools.get(&call.name));
                    self.calls.insert(call.id.clone(), MeteredCall::new(tool.map(|tool| &**tool)));
                }
            }
            Event::CallChecked { call, verdict, .. } => self.note(call, |call| call.was_checked(verdict, recorded.at)),
            Event::CallsStarted { calls } => {
                for call in calls {
                    self.note(call, |call| call.sent = Some(recorded.at));
                }
            }
            Event::CallCompleted { call, .. } | Event::InputRequired { call, .. } | Event::TaskStarted { call, .. } => {
                self.note(call, |call| (call.sent, call.held_since) = (None, None));
            }
            Event::InputRequested { call, .. } => self.note(call, |call| call.held_since = Some(recorded.at)),
            Event::InputGiven { call, .. } => self.note(call, |call| call.was_held_until(recorded.at)),
            _ => {}
        }
    }

    fn note(&mut self, call: &CallId, change: impl FnOnce(&mut MeteredCall)) {
        if let Some(call) = self.calls.get_mut(call) {
            change(call);
        }
    }

    /// Whether the fact at that position was copied from the run that this one forked.
    fn is_copied(&self, seq: u64) -> bool {
        seq < self.started.trigger.copied()
    }

    /// A measurement of 1 for the agent.
    fn one(&self, metric: Metric) -> Measurement {
        Measurement::one(metric).name(names::AGENT, self.started.spec.agent.as_str())
    }

    fn invalid(&self, target: &'static str) -> Measurement {
        self.one(Metric::ValidationFailures).fixed(names::TARGET, target)
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}
