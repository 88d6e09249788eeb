//! The fold itself: which fact opens a span, which one closes it.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value as Json;

use super::agent::{self, Finish};
use super::attributes::Attributes;
use super::execution::{Child, Execution, OpenCall, OpenModelCall};
use super::llm::ModelCall;
use super::span::{Kind, Link, Span, SpanEvent, Status};
use super::tool::{self, CallResult, CutShort};
use super::{SpanContent, Value, guardrail, names};
use crate::core::chat::{Reply, Usage};
use crate::core::error::Failure;
use crate::core::id::{CallId, ModelName, RunId};
use crate::core::run::{Decision, Event, Offer, OutputVerdict, Recorded, Started, Trigger, labels};
use crate::core::tool::Outcome;
use crate::core::trace::Trace;
use crate::ports::ModelIdentity;
use crate::telemetry::lifecycle::{Content, Lifecycle};
use crate::telemetry::transcript::Transcript;
use crate::telemetry::view::{Call, RunView};

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

/// Something that came from outside.
#[derive(Clone, Debug)]
enum Held {
    Result { call: CallId, at: Timestamp, outcome: Arc<Outcome> },
    Decision { seq: u64, call: CallId, at: Timestamp, decision: Decision },
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

    fn model_called(&mut self, seq: u64, at: Timestamp, offer: Offer, attempt: u32) {
        let Some(execution) = &mut self.execution else { return };
        let Some(open) = &mut execution.model else {
            execution.model = Some(OpenModelCall {
                seq,
                start: at,
                offer,
                attempts: 1,
                usage: Usage::default(),
                failure: None,
                events: Vec::new(),
            });
            return;
        };
        open.attempts += 1;
        open.failure = None;
        let attributes = vec![("toolgate.attempt".to_owned(), Value::Int(i64::from(attempt)))];
        open.events.push(SpanEvent { name: "llm.call.retrying", at, attributes });
    }

    fn model_failed(&mut self, at: Timestamp, error: &Failure, usage: &Usage) {
        let Some(open) = self.execution.as_mut().and_then(|execution| execution.model.as_mut()) else { return };
        open.usage.add(usage);
        open.events.push(SpanEvent::exception(error.code.as_str(), &error.message, at));
        open.failure = Some((at, error.clone()));
    }

    fn model_replied(&mut self, at: Timestamp, reply: &Reply) -> Option<Span> {
        let execution = self.execution.as_mut()?;
        execution.answer = Some((at, reply.joined_text()));
        let mut open = execution.model.take()?;
        open.usage.add(&reply.usage);
        self.model_span(open, at, Some(reply), None)
    }

    /// A model call that never had a reply.
    fn model_lost(&mut self, cut: CutShort, at: Timestamp) -> Option<Span> {
        let mut open = self.execution.as_mut()?.model.take()?;
        let (at, kind, message) = match open.failure.take() {
            Some((at, error)) => (at, error.code.as_str(), error.message),
            None => {
                open.events.push(SpanEvent::exception(cut.as_str(), cut.message(), at));
                (at, cut.as_str(), cut.message().to_owned())
            }
        };
        self.model_span(open, at, None, Some((kind, &message)))
    }

    fn model_span(
        &mut self,
        open: OpenModelCall,
        end: Timestamp,
        reply: Option<&Reply>,
        failure: Option<(&str, &str)>,
    ) -> Option<Span> {
        let view = self.lifecycle.view();
        let call = ModelCall {
            identity: &self.identity,
            system: view.started.as_ref().map_or("", |started| started.spec.system.as_str()),
            messages: self.transcript.messages(),
            tools: &view.toolset,
            offer: open.offer,
            reply,
            usage: open.usage,
            attempts: open.attempts,
            content: self.content,
        };
        let child = Child {
            label: labels::model_call(open.seq),
            name: format!("chat {}", self.identity.model),
            kind: Kind::Client,
            start: open.start,
            end,
            status: failure.map_or(Status::Ok, |(_, message)| Status::error(message)),
            events: open.events,
        };
        self.execution.as_mut()?.child(child, |to| {
            place(view, to);
            to.text_if(names::ERROR_TYPE, failure.map(|(kind, _)| kind));
            call.attributes(to);
        })
    }

    fn output_checked(&mut self, seq: u64, at: Timestamp, verdict: &OutputVerdict) -> Option<Span> {
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
        let (view, content) = (self.lifecycle.view(), self.content);
        execution.child(child, |to| {
            place(view, to);
            guardrail::output_check(&answer, verdict, content, to);
        })
    }

    /// The end of a call that is with its server.
    fn call_completed(&mut self, id: &CallId, at: Timestamp, outcome: &Outcome) -> Option<Span> {
        let calls = &mut self.execution.as_mut()?.calls;
        let open = calls.iter().position(|call| call.id == *id)?;
        let open = calls.remove(open);
        self.tool_span(&open, at, CallResult::Outcome(outcome))
    }

    fn tool_span(&mut self, open: &OpenCall, end: Timestamp, result: CallResult<'_>) -> Option<Span> {
        let view = self.lifecycle.view();
        let call: &Call = view.call(&open.id)?;
        let (status, exception) = tool::status(result, end, self.content);
        let child = Child {
            label: labels::tool_call(&open.id),
            name: format!("execute_tool {}", call.call.name),
            kind: tool::kind(call),
            start: open.start,
            end,
            status,
            events: exception.into_iter().collect(),
        };
        let content = self.content;
        self.execution.as_mut()?.child(child, |to| {
            place(view, to);
            tool::attributes(call, result, content, to);
        })
    }

    fn approval_span(&mut self, seq: u64, id: &CallId, at: Timestamp, decision: &Decision) -> Option<Span> {
        let view = self.lifecycle.view();
        let call = view.call(id)?;
        let child = Child {
            label: labels::guardrail(seq),
            name: "approval".to_owned(),
            kind: Kind::Internal,
            start: at,
            end: at,
            status: Status::Ok,
            events: Vec::new(),
        };
        let content = self.content;
        self.execution.as_mut()?.child(child, |to| {
            place(view, to);
            guardrail::approval(call, decision, content, to);
        })
    }

    /// Keeps what came from outside for the execution that goes on with it. Whether it did.
    fn hold(&mut self, recorded: &Recorded) -> bool {
        let at = recorded.at;
        match &recorded.event {
            Event::CallCompleted { call, outcome } if !self.is_with_server(call) => {
                self.held.push(Held::Result { call: call.clone(), at, outcome: Arc::clone(outcome) });
                true
            }
            Event::ApprovalDecided { call, decision } => {
                let (call, decision) = (call.clone(), decision.clone());
                self.held.push(Held::Decision { seq: recorded.seq, call, at, decision });
                true
            }
            Event::MessageAdded { .. } => true,
            Event::CallCompleted { .. }
            | Event::Started(_)
            | Event::Resumed { .. }
            | Event::ToolsListed { .. }
            | Event::ApprovalsResolved { .. }
            | Event::ModelCalled { .. }
            | Event::ModelReplied { .. }
            | Event::ModelFailed { .. }
            | Event::OutputValidated { .. }
            | Event::TierSelected { .. }
            | Event::CallChecked { .. }
            | Event::CallsStarted { .. }
            | Event::Ended { .. } => false,
        }
    }

    /// The spans of what was held: points in time, for nobody here saw the caller or the person at work.
    fn release(&mut self) -> Vec<Span> {
        if self.execution.is_none() {
            return Vec::new();
        }
        let held = std::mem::take(&mut self.held);
        held.into_iter()
            .filter_map(|held| match held {
                Held::Result { call, at, outcome } => {
                    self.tool_span(&OpenCall { id: call, start: at }, at, CallResult::Outcome(&outcome))
                }
                Held::Decision { seq, call, at, decision } => self.approval_span(seq, &call, at, &decision),
            })
            .collect()
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

    fn is_with_server(&self, call: &CallId) -> bool {
        self.execution.as_ref().is_some_and(|execution| execution.calls.iter().any(|open| open.id == *call))
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
