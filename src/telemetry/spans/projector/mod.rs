//! Span projector: the fold that opens and closes spans.

mod calls;
mod external_input;
mod feedback;
mod models;
mod waits;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value as Json;
use toolgate_core::chat::{Part, Usage};
use toolgate_core::id::{CallId, ModelName, RunId};
use toolgate_core::json;
use toolgate_core::lifecycle::{Content, Lifecycle};
use toolgate_core::run::{CallVerdict, Event, JournalEntry, PendingItem, Rejection, Run, Started, labels};
use toolgate_core::trace::Trace;
use toolgate_ports::ModelIdentity;

use self::external_input::{ExternalInput, given};
use super::agent::{self, Finish};
use super::conversation::Conversation;
use super::execution::{Execution, OpenCall};
use super::span::{Link, Span, SpanEvent};
use super::tool::{CallResult, CutShort};
use super::{Redaction, SpanContent, names};

/// The provider and model of a configured model; a journal holds only its configured name.
pub type IdentityOf = Arc<dyn Fn(&ModelName) -> Option<ModelIdentity> + Send + Sync>;

/// The fold of one run's journal into its spans.
#[derive(Clone)]
pub struct Projector {
    run: RunId,
    content: SpanContent,
    redaction: Redaction,
    identity_of: IdentityOf,
    /// The run's own model.
    identity: ModelIdentity,
    lifecycle: Lifecycle,
    /// Whether the run waits, after all facts so far of an execution.
    is_waiting: bool,
    execution: Option<Execution>,
    previous: Option<Link>,
    /// Outside inputs that came while the run was idle: they belong to the next execution.
    held: Vec<ExternalInput>,
    /// The messages that came since an execution last went on.
    messages: Vec<String>,
    /// The events of facts that came while the run was idle, for the root of the next execution.
    idle_events: Vec<SpanEvent>,
    /// Whether the run had an execution of its own before.
    has_executed: bool,
    /// The time of the request, for each call of the turn.
    asked: BTreeMap<CallId, Timestamp>,
    /// The time since which the run is idle; `None` while it is active.
    rested: Option<Timestamp>,
    /// The part of the conversation rendered so far.
    conversation: Conversation,
    /// The hash of the agent's instructions.
    instructions: Option<String>,
    next_seq: u64,
    /// The position before which spans are left out.
    from: u64,
}

/// All spans of a journal. A run that has not ended either waits since its last fact or was interrupted.
pub fn project(run: &RunId, journal: &[JournalEntry], content: SpanContent, identity_of: IdentityOf) -> Vec<Span> {
    Projector::new(run.clone(), content, identity_of).project_all(journal)
}

impl Projector {
    /// A projector of a run without facts.
    pub fn new(run: RunId, content: SpanContent, identity_of: IdentityOf) -> Self {
        Self {
            lifecycle: Lifecycle::new(run.clone(), Content::Omit),
            run,
            content,
            redaction: Redaction::default(),
            identity_of,
            identity: unknown_model(&ModelName::new("unknown")),
            is_waiting: false,
            execution: None,
            previous: None,
            held: Vec::new(),
            messages: Vec::new(),
            idle_events: Vec::new(),
            has_executed: false,
            asked: BTreeMap::new(),
            rested: None,
            conversation: Conversation::default(),
            instructions: None,
            next_seq: 0,
            from: 0,
        }
    }

    /// Removes these secrets from every span.
    pub fn redacting(mut self, redaction: Redaction) -> Self {
        self.conversation = Conversation::redacted(redaction.clone());
        self.redaction = redaction;
        self
    }

    /// Leaves out the spans that a fact before this position finishes: a receiver has them.
    pub fn from(mut self, position: u64) -> Self {
        self.from = position;
        self
    }

    /// All spans of a journal; call it on a new projector.
    pub fn project_all(mut self, journal: &[JournalEntry]) -> Vec<Span> {
        self.all(journal)
    }

    fn all(&mut self, journal: &[JournalEntry]) -> Vec<Span> {
        let mut spans: Vec<Span> = journal.iter().flat_map(|recorded| self.observe(recorded)).collect();
        if let Some(last) = journal.last() {
            spans.extend(self.stop(last.at, Finish::Interrupted));
        }
        spans
    }

    /// The spans that a fact finishes. Facts come in journal order; a fact seen before changes nothing.
    pub fn observe(&mut self, recorded: &JournalEntry) -> Vec<Span> {
        if recorded.seq < self.next_seq {
            return Vec::new();
        }
        self.next_seq = recorded.seq + 1;
        self.remember_secrets(&recorded.event);
        let spans = match self.is_copied(recorded) {
            true => {
                self.pass_over(recorded);
                Vec::new()
            }
            false => self.project(recorded),
        };
        self.note_asked(recorded);
        self.lifecycle.apply(recorded);
        self.is_waiting = self.execution.is_some() && !pending(&self.lifecycle).is_empty();
        if matches!(recorded.event, Event::ToolsListed { .. }) {
            self.learn_secrets();
        }
        spans
    }

    /// The spans that end because the driver stopped and the run waits. Outside inputs that already came are reported
    /// by the next execution, in any process. If the driver stops in the middle, the fact with which another one goes on
    /// ends the rest.
    pub fn pause(&mut self) -> Vec<Span> {
        if self.rests() {
            // The journal does not record when the driver released the run. It was right after the last fact.
            return self
                .execution
                .as_ref()
                .map(|execution| execution.last)
                .map(|at| self.stop(at, Finish::Interrupted))
                .unwrap_or_default();
        }
        self.execution = None;
        Vec::new()
    }

    /// The position of the next fact.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// The position before which facts finish no further span.
    pub fn finished_to(&self) -> u64 {
        match &self.execution {
            Some(execution) if self.rests() => execution.position,
            Some(_) | None => self.next_seq,
        }
    }

    /// Whether an execution is active.
    pub fn is_executing(&self) -> bool {
        self.execution.is_some()
    }

    /// Whether the active execution is not sampled, so that no fact of it finishes a span.
    pub fn is_unsampled(&self) -> bool {
        self.execution.as_ref().is_some_and(|execution| !execution.trace.sampled)
    }

    /// Whether the journal ends in the middle of an execution.
    pub fn is_interrupted(&self) -> bool {
        self.is_executing() && !self.rests()
    }

    /// The spans that a fact finishes. The run is still in its state before the fact.
    fn project(&mut self, recorded: &JournalEntry) -> Vec<Span> {
        let mut spans = Vec::new();
        let comes_from_outside = self.record_input(recorded);
        let is_boundary = matches!(recorded.event, Event::Resumed { .. } | Event::Interrupted { .. });
        let goes_on = !comes_from_outside && !is_boundary;
        if goes_on {
            let ends_at_rest = matches!(recorded.event, Event::Ended { .. }) && self.rests();
            if let Some(execution) = &mut self.execution {
                // A wait may end without another execution. A process that released the run has reported the root.
                execution.rested_at = ends_at_rest.then_some(execution.position);
                execution.position = recorded.seq;
            }
            spans.extend(self.release());
        }
        if let Some(execution) = &mut self.execution {
            let known = execution.pending.take();
            execution.pending = (!goes_on).then(|| known.unwrap_or_else(|| pending(&self.lifecycle)));
        }
        let is_at_rest = self.rests();
        // The root of an execution before a wait is finished when the run is released, which no fact says.
        if let Some(execution) = self.execution.as_mut().filter(|_| !is_at_rest) {
            execution.position = recorded.seq;
        }
        let rests = comes_from_outside && is_at_rest;
        if !matches!(recorded.event, Event::ToolsListed { .. }) {
            spans.extend(self.listed_the_same(recorded.seq));
        }
        let told = match agent::may_be_noted(&recorded.event) {
            true => self.lifecycle.events_of(recorded),
            false => {
                self.lifecycle.enter(recorded);
                Vec::new()
            }
        };
        spans.extend(self.advance(recorded));
        let content = self.content;
        let notes = told.iter().filter_map(|event| agent::note(&recorded.event, event, content));
        match &mut self.execution {
            Some(execution) if !rests => {
                if !comes_from_outside {
                    execution.last = execution.last.max(recorded.at);
                }
                execution.note(notes);
                execution.note(agent::mistake(&recorded.event, recorded.at, content));
            }
            Some(_) | None => self.idle_events.extend(notes),
        }
        spans
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "picks the events that concern it")]
    fn advance(&mut self, recorded: &JournalEntry) -> Vec<Span> {
        let JournalEntry { seq, at, event } = recorded;
        match event {
            Event::Started(started) => {
                self.identify(started);
                self.begin(*seq, *at, &started.trace, started);
                Vec::new()
            }
            Event::Interrupted { alive_at } => self.stop(alive_at.unwrap_or(*at).min(*at), Finish::HandedOver),
            Event::Resumed { trace, limits } => {
                let stopped = self.execution.as_ref().map(|execution| execution.last);
                let spans = stopped.map(|at| self.stop(at, Finish::HandedOver)).unwrap_or_default();
                if let Some(started) = self.lifecycle.run().map(|run| Arc::clone(run.started())) {
                    self.begin(*seq, *at, trace, &started);
                }
                if let (Some(execution), Some(_)) = (&mut self.execution, limits) {
                    // The fork counts from here: the copied usage belongs to the source run.
                    execution.before = Usage::default();
                }
                spans
            }
            // A direct tool call asks no model.
            Event::ModelCalled { .. } if self.is_direct_call() => Vec::new(),
            Event::ModelCalled { model, tool_access, attempt } => {
                self.model_called(*seq, *at, model, *tool_access, *attempt).into_iter().collect()
            }
            Event::ModelReplied { reply } => self.model_replied(*at, reply).into_iter().collect(),
            Event::ModelFailed { error, usage, .. } => {
                self.model_failed(*at, error, usage);
                Vec::new()
            }
            Event::CompactionStarted { model, keeps, .. } => {
                self.compaction_started(*seq, *at, model, *keeps).into_iter().collect()
            }
            Event::CompactionCompleted { summary, usage, .. } => {
                self.compaction_completed(*at, summary, usage).into_iter().collect()
            }
            Event::CompactionFailed { error, usage } => {
                self.model_failed(*at, error, usage);
                self.model_lost(CutShort::Interrupted, *at).into_iter().collect()
            }
            Event::OutputValidated { verdict } => self.output_checked(*seq, *at, verdict).into_iter().collect(),
            Event::CallsStarted { calls } => {
                let open: Vec<OpenCall> =
                    calls.iter().filter_map(|id| Some(OpenCall::sent(self.call(id)?.clone(), *at))).collect();
                if let Some(execution) = &mut self.execution {
                    execution.calls.extend(open);
                }
                Vec::new()
            }
            Event::CallCompleted { call, outcome, wire, .. } => {
                let result = CallResult::Outcome(outcome);
                self.call_ended(call, *at, result, wire.as_deref()).into_iter().collect()
            }
            Event::InputRequested { call, .. } => {
                self.call_held(call, *at);
                Vec::new()
            }
            Event::InputGiven { call, .. } => {
                self.call_answered(call, *at);
                Vec::new()
            }
            Event::InputRequired { call, wire, .. } => {
                let result = CallResult::Suspended("input_required");
                self.call_ended(call, *at, result, wire.as_deref()).into_iter().collect()
            }
            Event::TaskStarted { call, wire, .. } => {
                self.call_ended(call, *at, CallResult::Suspended("task"), wire.as_deref()).into_iter().collect()
            }
            Event::Queued => {
                self.queued(*seq, *at);
                Vec::new()
            }
            Event::Admitted => self.left_queue(*at).into_iter().collect(),
            Event::Waited { waits } => {
                self.waited(waits);
                Vec::new()
            }
            Event::ToolsListed { toolset } => self.listed(*seq, *at, toolset),
            Event::CallChecked {
                call,
                verdict: CallVerdict::Rejected { reason: Rejection::Denied, message, .. },
                ..
            } => self.denied_span(*seq, *at, call, message).into_iter().collect(),
            Event::CallDrifted { call, differences, .. } => {
                self.drift_span(*seq, *at, call, differences).into_iter().collect()
            }
            Event::CompensationStarted { .. } => self.cut_short(CutShort::Cancelled, *at),
            Event::Ended { ending } => self.finish(Finish::Ended(ending), *at),
            _ => Vec::new(),
        }
    }

    fn begin(&mut self, seq: u64, at: Timestamp, trace: &Trace, started: &Started) {
        let resumed = std::mem::replace(&mut self.has_executed, true);
        let common = agent::common(&self.run, started, resumed, self.content);
        let mut execution = Execution::begin(seq, at, trace.clone(), self.previous, common, self.content);
        execution.from = self.from;
        execution.note(std::mem::take(&mut self.idle_events));
        execution.redact(self.redaction.clone());
        execution.before = self.lifecycle.run().map(|run| run.budget().usage).unwrap_or_default();
        execution.waited_ms = self.rested.take().map(|since| at.duration_since(since)).map(milliseconds);
        self.previous = Some(Link { trace: trace.id, span: execution.root });
        self.execution = Some(execution);
    }

    /// Ends the active execution, whose driver stopped before the run ended: it paused, or was cut short.
    fn stop(&mut self, at: Timestamp, cut: Finish<'_>) -> Vec<Span> {
        if !self.rests() {
            return self.finish(cut, at);
        }
        self.rested = self.execution.as_ref().map(|execution| execution.last);
        self.finish(Finish::Paused, at)
    }

    fn finish(&mut self, finish: Finish<'_>, at: Timestamp) -> Vec<Span> {
        let mut spans = self.cut_short(finish.cuts_short(), at);
        let (Some(mut execution), Some(run)) = (self.execution.take(), self.lifecycle.run()) else { return spans };
        let started = run.started();
        let name = format!("invoke_agent {}", started.spec.agent);
        let given = match execution.has_gone_on {
            true => execution.given.take(),
            false => given(&self.held, &self.messages),
        };
        let pending = execution.pending.take().unwrap_or_else(|| run.pending());
        let failure = finish.failure(self.content);
        let failure = failure.as_ref().map(|(word, message)| (*word, message.as_str()));
        let (waited_ms, before) = (execution.waited_ms, execution.before);
        spans.extend(execution.finish(name, at, failure, |to| {
            to.int(names::WAIT_MS, waited_ms);
            agent::attributes(started, run.budget(), &before, &self.identity, to);
            agent::input(started, given.as_ref(), self.content, to);
            agent::outcome(finish, &pending, self.content, to);
            agent::warnings(finish, run, to);
        }));
        spans
    }

    /// Ends the spans of the work in progress.
    fn cut_short(&mut self, cut: CutShort, at: Timestamp) -> Vec<Span> {
        let mut spans: Vec<Span> = self.model_lost(cut, at).into_iter().collect();
        let open = self.execution.as_mut().map(|execution| std::mem::take(&mut execution.calls)).unwrap_or_default();
        spans.extend(open.iter().filter_map(|call| self.call_cut_short(call, at, cut)));
        match self.left_queue(at) {
            Some(admission) => spans.push(admission),
            None => spans.extend(self.listing_cut_short(at, cut)),
        }
        spans
    }

    /// Whether the active execution can do no more work, because the run waits.
    pub(super) fn rests(&self) -> bool {
        self.execution.as_ref().is_some_and(|execution| match &execution.pending {
            Some(pending) => !pending.is_empty(),
            None => self.is_waiting,
        })
    }

    fn is_direct_call(&self) -> bool {
        self.lifecycle.run().is_some_and(|run| run.started().spec.is_direct_call())
    }

    /// Whether the fact was copied from the source run of this fork and was reported there.
    fn is_copied(&self, recorded: &JournalEntry) -> bool {
        let trigger = match (&recorded.event, self.lifecycle.run()) {
            (Event::Started(started), _) => &started.trigger,
            (_, Some(run)) => &run.started().trigger,
            (_, None) => return false,
        };
        recorded.seq < trigger.copied()
    }

    /// Folds a copied fact: the fork links back to the execution that wrote it.
    fn pass_over(&mut self, recorded: &JournalEntry) {
        self.lifecycle.enter(recorded);
        if let Event::Started(started) = &recorded.event {
            self.identify(started);
        }
        let Some(trace) = recorded.event.trace() else { return };
        self.previous = Some(Link { trace: trace.id, span: trace.span(&labels::execution(recorded.seq)) });
    }

    /// Also removes the values that a tool's schema marks as secret, from the listing of the tool on. They stay removed
    /// after the tool disappears, because the conversation still contains its arguments.
    fn learn_secrets(&mut self) {
        let tools = self.lifecycle.run().and_then(Run::tools);
        if let Some(redaction) = tools.and_then(|tools| self.redaction.with_secrets_of(tools)) {
            self.redact_from_now_on(redaction);
        }
    }

    /// Also removes the values that calls pass under secret names, wherever a tool or a model repeats them.
    #[expect(clippy::wildcard_enum_match_arm, reason = "picks the events that concern it")]
    fn remember_secrets(&mut self, event: &Event) {
        let redaction = match event {
            Event::ModelReplied { reply } => {
                let calls = reply.content.iter().filter_map(Part::tool_use);
                self.redaction.with_values_of(calls.map(|(_, _, arguments)| arguments))
            }
            Event::ApprovalDecided { decision, .. } => self.redaction.with_values_of(decision.edited_arguments.iter()),
            _ => None,
        };
        if let Some(redaction) = redaction {
            self.redact_from_now_on(redaction);
        }
    }

    fn redact_from_now_on(&mut self, redaction: Redaction) {
        // Earlier rendered messages may contain the new secrets.
        self.conversation = Conversation::redacted(redaction.clone());
        self.execution.iter_mut().for_each(|execution| execution.redact(redaction.clone()));
        self.redaction = redaction;
    }

    fn identify(&mut self, started: &Started) {
        self.identity = (self.identity_of)(&started.spec.model).unwrap_or_else(|| unknown_model(&started.spec.model));
        let system = Some(&started.spec.system).filter(|system| !system.is_empty());
        self.instructions = system.map(|system| json::hash(&Json::from(system.as_str())));
    }

    fn identity_of(&self, model: &ModelName) -> ModelIdentity {
        (self.identity_of)(model).unwrap_or_else(|| unknown_model(model))
    }
}

impl fmt::Debug for Projector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Projector").field("run", &self.run).field("next_seq", &self.next_seq).finish_non_exhaustive()
    }
}

/// The pending items of the run.
fn pending(lifecycle: &Lifecycle) -> Vec<PendingItem> {
    lifecycle.run().map(Run::pending).unwrap_or_default()
}

fn milliseconds(duration: SignedDuration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or_default()
}

/// The identity of a model that is no longer configured.
fn unknown_model(name: &ModelName) -> ModelIdentity {
    ModelIdentity {
        system: "unknown".into(),
        provider: "unknown".into(),
        model: name.as_str().into(),
        settings: Json::Object(serde_json::Map::new()),
    }
}
