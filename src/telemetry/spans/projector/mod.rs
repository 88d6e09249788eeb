//! The fold itself: which fact opens a span, which one closes it.

mod calls;
mod held;
mod models;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value as Json;

use self::held::Held;
use super::agent::{self, Finish};
use super::attributes::Attributes;
use super::execution::{Execution, OpenCall};
use super::span::{Link, Span};
use super::tool::CallResult;
use super::{SpanContent, Value, names};
use crate::core::id::{ModelName, RunId};
use crate::core::run::{Event, Recorded, Started, Trigger};
use crate::core::trace::Trace;
use crate::ports::ModelIdentity;
use crate::telemetry::lifecycle::{Content, Lifecycle};
use crate::telemetry::transcript::Transcript;
use crate::telemetry::view::RunView;

/// What a configured model is called; a journal knows only its configured name.
pub type IdentityOf = Arc<dyn Fn(&ModelName) -> Option<ModelIdentity> + Send + Sync>;

/// The fold of one run's journal into its spans.
#[derive(Clone)]
pub struct Projector {
    run: RunId,
    content: SpanContent,
    identity_of: IdentityOf,
    identity: ModelIdentity,
    lifecycle: Lifecycle,
    transcript: Transcript,
    execution: Option<Execution>,
    previous: Option<Link>,
    /// Results and decisions that came while nothing ran: they belong to the execution that goes on with them.
    held: Vec<Held>,
    next_seq: u64,
}

/// All spans of a journal. A run that is not over is taken to wait since its last fact.
pub fn project(run: &RunId, journal: &[Recorded], content: SpanContent, identity_of: IdentityOf) -> Vec<Span> {
    let mut projector = Projector::new(run.clone(), content, identity_of);
    let mut spans: Vec<Span> = journal.iter().flat_map(|recorded| projector.observe(recorded)).collect();
    if let Some(last) = journal.last() {
        spans.extend(projector.pause(last.at));
    }
    spans
}

impl Projector {
    /// A run nothing has happened to yet.
    pub fn new(run: RunId, content: SpanContent, identity_of: IdentityOf) -> Self {
        Self {
            lifecycle: Lifecycle::new(run.clone(), Content::Omit),
            run,
            content,
            identity_of,
            identity: unknown_model(&ModelName::new("unknown")),
            transcript: Transcript::default(),
            execution: None,
            previous: None,
            held: Vec::new(),
            next_seq: 0,
        }
    }

    /// The spans that a fact finishes. Facts come in journal order; one that was seen before changes nothing.
    pub fn observe(&mut self, recorded: &Recorded) -> Vec<Span> {
        if recorded.seq < self.next_seq {
            return Vec::new();
        }
        self.next_seq = recorded.seq + 1;
        if self.is_copied(recorded.seq) {
            self.lifecycle.observe(recorded);
            self.transcript.apply(&recorded.event, self.lifecycle.view());
            return Vec::new();
        }
        let mut spans = Vec::new();
        let comes_from_outside = self.hold(recorded);
        let goes_on = !comes_from_outside && !matches!(recorded.event, Event::Resumed { .. });
        if goes_on {
            spans.extend(self.release());
        }
        if let Some(execution) = &mut self.execution {
            let owed = execution.owed.take();
            execution.is_driven |= goes_on;
            execution.owed = (!goes_on).then(|| owed.unwrap_or_else(|| agent::owed(self.lifecycle.view())));
        }
        let told = self.lifecycle.observe(recorded);
        spans.extend(self.advance(recorded));
        self.transcript.apply(&recorded.event, self.lifecycle.view());
        if let Some(execution) = &mut self.execution {
            if !comes_from_outside {
                execution.last = execution.last.max(recorded.at);
            }
            execution.note(told.iter().flat_map(|event| agent::events(event, self.content)));
        }
        spans
    }

    /// Takes in the past of a run that is taken up. What another driver did, that driver has told: its spans are not
    /// given again, and an execution that it left open is not ours to close.
    pub fn catch_up(&mut self, history: &[Recorded]) -> Vec<Span> {
        let knows_it = self.next_seq > 0;
        let spans: Vec<Span> = history.iter().flat_map(|recorded| self.observe(recorded)).collect();
        if knows_it {
            return spans;
        }
        self.execution.take_if(|execution| execution.is_driven);
        Vec::new()
    }

    /// The spans that end because the driver stopped at `at` and the run is not over: it waits for others. What has come
    /// of that already is told by the execution that goes on with it, wherever that is, and so exactly once.
    pub fn pause(&mut self, at: Timestamp) -> Vec<Span> {
        self.finish(Finish::Paused, at)
    }

    /// Whether an execution is under way.
    pub fn is_executing(&self) -> bool {
        self.execution.is_some()
    }

    fn advance(&mut self, recorded: &Recorded) -> Vec<Span> {
        let Recorded { seq, at, event } = recorded;
        match event {
            Event::Started(started) => {
                self.identity =
                    (self.identity_of)(&started.spec.model).unwrap_or_else(|| unknown_model(&started.spec.model));
                self.begin(*seq, *at, &started.trace);
                Vec::new()
            }
            Event::Resumed { trace } => {
                let stopped = self.execution.as_ref().map(|execution| execution.last);
                let spans = stopped.map(|at| self.finish(Finish::Paused, at)).unwrap_or_default();
                self.begin(*seq, *at, trace);
                spans
            }
            Event::ModelCalled { offer, attempt } => {
                self.model_called(*seq, *at, *offer, *attempt);
                Vec::new()
            }
            Event::ModelReplied { reply } => self.model_replied(*at, reply).into_iter().collect(),
            Event::ModelFailed { error, usage } => {
                self.model_failed(*at, error, usage);
                Vec::new()
            }
            Event::OutputValidated { verdict } => self.output_checked(*seq, *at, verdict).into_iter().collect(),
            Event::CallsStarted { calls } => {
                if let Some(execution) = &mut self.execution {
                    execution.calls.extend(calls.iter().map(|id| OpenCall { id: id.clone(), start: *at }));
                }
                Vec::new()
            }
            Event::CallCompleted { call, outcome } => self.call_completed(call, *at, outcome).into_iter().collect(),
            Event::Ended { ending } => self.finish(Finish::Ended(ending), *at),
            Event::ToolsListed { .. }
            | Event::ApprovalsResolved { .. }
            | Event::TierSelected { .. }
            | Event::CallChecked { .. }
            | Event::ApprovalDecided { .. }
            | Event::MessageAdded { .. } => Vec::new(),
        }
    }

    fn begin(&mut self, seq: u64, at: Timestamp, trace: &Trace) {
        let common = match &self.lifecycle.view().started {
            Some(started) => common(&self.run, started, self.previous.is_some()),
            None => return,
        };
        let execution = Execution::begin(seq, at, trace.clone(), self.previous, common);
        self.previous = Some(Link { trace: trace.id, span: execution.root });
        self.execution = Some(execution);
    }

    fn finish(&mut self, finish: Finish<'_>, at: Timestamp) -> Vec<Span> {
        let cut = finish.cuts_short();
        let mut spans: Vec<Span> = self.model_lost(cut, at).into_iter().collect();
        let open = self.execution.as_mut().map(|execution| std::mem::take(&mut execution.calls)).unwrap_or_default();
        spans.extend(open.iter().filter_map(|call| self.tool_span(call, at, CallResult::CutShort(cut))));

        let (Some(execution), Some(started)) = (self.execution.take(), self.lifecycle.view().started.clone()) else {
            return spans;
        };
        let name = format!("invoke_agent {}", started.spec.agent);
        let (view, identity, content) = (self.lifecycle.view(), &self.identity, self.content);
        let owed = execution.owed.clone().unwrap_or_else(|| agent::owed(view));
        spans.extend(execution.finish(name, at, finish.failure().as_ref(), |to| {
            agent::attributes(&started, view, identity, content, to);
            agent::outcome(finish, &owed, content, to);
        }));
        spans
    }

    /// Whether the fact at that position happened to the run that this one was forked from, and was told there.
    fn is_copied(&self, seq: u64) -> bool {
        match self.lifecycle.view().started.as_ref().map(|started| &started.trigger) {
            Some(Trigger::Fork { at, .. }) => seq > 0 && seq < *at,
            Some(Trigger::Manual) | None => false,
        }
    }
}

impl fmt::Debug for Projector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Projector").field("run", &self.run).field("next_seq", &self.next_seq).finish_non_exhaustive()
    }
}

/// What every span of an execution carries.
fn common(run: &RunId, started: &Started, resumed: bool) -> Vec<(String, Value)> {
    let mut to = Attributes::default();
    to.text(names::SESSION_ID, started.session.as_str());
    to.text(names::CONVERSATION, started.session.as_str());
    to.text(names::RUN_ID, run.as_str());
    to.set(names::RUN_RESUMED, Value::Bool(resumed));
    to.text_if(names::USER_ID, started.metadata.get("user_id").and_then(Json::as_str));
    if let Some(tags) = started.metadata.get("tags").and_then(Json::as_array) {
        to.texts(names::TAGS, tags.iter().filter_map(Json::as_str).map(str::to_owned));
    }
    if !started.metadata.is_empty() {
        to.object(names::METADATA, &Json::Object(started.metadata.clone()));
    }
    to.into_vec()
}

/// Where in the run a span below the root is.
fn place(view: &RunView, to: &mut Attributes) {
    to.int(names::ITERATION, u64::from(view.iteration));
}

/// What a model is called that the configuration no longer knows.
fn unknown_model(name: &ModelName) -> ModelIdentity {
    ModelIdentity {
        system: "unknown".into(),
        provider: "unknown".into(),
        model: name.as_str().into(),
        settings: Json::Object(serde_json::Map::new()),
    }
}
