//! Lifecycle projector: folds a run's journal into lifecycle events. It reuses the core's fold for the state of the run
//! and adds only the times at which requests were made.

mod check;

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    CallEnd, CallRef, Content, Delta, FragmentPosition, FragmentSource, IncompleteDetails, LifecycleEvent,
    LifecycleKind, ModelAttempt, UndoRef,
};
use crate::chat::{Part, Reply, Usage};
use crate::error::FailedStep;
use crate::id::{CallId, ModelName, RunId};
use crate::run::{
    Budget, Call, CallState, Decision, Ending, Event, JournalEntry, OutputVerdict, Run, ToolAccess, UndoCall,
};
use crate::tool::{Arguments, ElicitationRequest, Outcome, ToolCall, Toolset};

/// The fold of one run's journal into its lifecycle events.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    id: RunId,
    content: Content,
    /// The run before the fact in progress; `None` before the first.
    run: Option<Run>,
    /// Model turns started; 0 before the first.
    iteration: u32,
    open_call: Option<OpenModelCall>,
    /// When the compaction in progress, or the latest one, was started.
    compacting: Option<Timestamp>,
    sent: BTreeMap<CallId, Timestamp>,
}

/// The attempt at the model that is in progress or was made last.
#[derive(Clone, Debug)]
struct OpenModelCall {
    at: Timestamp,
    /// The position of its `llm.call.started`.
    seq: u64,
    attempt: ModelAttempt,
}

impl Lifecycle {
    /// A projector of a run without facts.
    pub fn new(run: RunId, content: Content) -> Self {
        Self { id: run, content, run: None, iteration: 0, open_call: None, compacting: None, sent: BTreeMap::new() }
    }

    /// The events of a fact: usually one, sometimes several or no event. Facts come in journal order.
    pub fn observe(&mut self, recorded: &JournalEntry) -> Vec<LifecycleEvent> {
        let events = self.events_of(recorded);
        self.apply(recorded);
        events
    }

    /// A fragment as an event. `position`: its position, if it is one of the attempt in progress.
    pub fn delta(&self, delta: Delta, position: Option<FragmentPosition>) -> LifecycleEvent {
        let from = self.open_call.as_ref().zip(position).map(|(call, FragmentPosition { index, .. })| {
            let next_index = index + delta.chars();
            FragmentSource { attempt: call.attempt.clone(), index, next_index }
        });
        let fact = LifecycleKind::Fragment { delta, from };
        LifecycleEvent { seq: None, run_id: self.id.clone(), at: None, iteration: self.iteration, fact }
    }

    /// `execution.pending`, if the run waits. The caller must know that no more facts follow for now.
    pub fn pending(&self, at: Timestamp) -> Option<LifecycleEvent> {
        let items = self.run.as_ref().map(Run::pending).filter(|items| !items.is_empty())?;
        Some(LifecycleEvent::pending(&self.id, at, self.iteration, &items, self.content))
    }

    /// The events of the next fact, as seen from the run before that fact.
    pub fn events_of(&mut self, recorded: &JournalEntry) -> Vec<LifecycleEvent> {
        self.enter(recorded);
        let (seq, at, iteration) = (Some(recorded.seq), Some(recorded.at), self.iteration);
        let event = |fact| LifecycleEvent { seq, run_id: self.id.clone(), at, iteration, fact };
        self.facts(&recorded.event, recorded.at).into_iter().map(event).collect()
    }

    /// Begins the next fact in place of [`events_of`](Self::events_of), without its events.
    pub fn enter(&mut self, recorded: &JournalEntry) {
        if let Event::ModelCalled { model, attempt, .. } = &recorded.event {
            let attempt = ModelAttempt { model: model.clone(), attempt: *attempt };
            self.iteration += u32::from(attempt.attempt == 1);
            self.open_call = Some(OpenModelCall { at: recorded.at, seq: recorded.seq, attempt });
        }
        if matches!(recorded.event, Event::CompactionStarted { .. }) {
            self.compacting = Some(recorded.at);
        }
        if let Event::Resumed { limits: Some(_), .. } = recorded.event {
            // A fork inside an open turn continues that turn instead of starting a new one.
            let is_asking = self.run.as_ref().is_some_and(|run| run.model_asked().is_some());
            self.iteration -= u32::from(is_asking && self.iteration > 0);
        }
    }

    /// Folds a fact. A fact that does not fold is skipped, because a projector must not fail: the driver of the run
    /// reports the error.
    pub fn apply(&mut self, recorded: &JournalEntry) {
        match (&mut self.run, &recorded.event) {
            (None, Event::Started(started)) => self.run = Some(Run::begin(started.clone())),
            (Some(run), event) => {
                let _ = run.apply(event);
            }
            (None, _) => {} // sent from outside, for a run that is not active here
        }
        if let Event::CallsStarted { calls } = &recorded.event {
            self.sent.extend(calls.iter().map(|id| (id.clone(), recorded.at)));
        }
        if let Event::CallCompleted { call, .. } = &recorded.event {
            self.sent.remove(call);
        }
        if matches!(recorded.event, Event::CompensationStarted { .. }) {
            self.sent.clear();
        }
    }

    /// Whether this call was sent and is not settled.
    pub fn is_in_flight(&self, call: &CallId) -> bool {
        self.sent.contains_key(call)
    }

    /// Whether an MCP call was sent and is not settled.
    pub fn has_calls_in_flight(&self) -> bool {
        !self.sent.is_empty()
    }

    /// The run, with every fact folded so far.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// The position of the `llm.call.started` that has no reply yet, if there is one.
    pub fn model_call_in_flight(&self) -> Option<u64> {
        let is_asking = self.run.as_ref().is_some_and(Run::is_asking);
        self.open_call.as_ref().filter(|_| is_asking).map(|call| call.seq)
    }

    /// Model turns started; 0 before the first.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    fn facts(&self, event: &Event, at: Timestamp) -> Vec<LifecycleKind> {
        match event {
            Event::Started(started) => vec![LifecycleKind::Started {
                agent: started.spec.agent.clone(),
                model: started.spec.model.clone(),
                session_id: started.session.clone(),
                trace_id: started.trace.id,
                input: self.quotable(|| started.input.text()),
                restart: started.restart,
            }],
            Event::Resumed { trace, .. } => vec![LifecycleKind::Resumed { trace_id: trace.id }],
            Event::Queued | Event::Admitted | Event::Waited { .. } | Event::Interrupted { .. } => Vec::new(),
            Event::ToolsListed { toolset } => self.tools_listed(toolset),
            Event::ApprovalsResolved { granted } => vec![LifecycleKind::ApprovalsResolved { granted: granted.clone() }],
            Event::ModelCalled { model, attempt, tool_access } => self.model_called(model, *attempt, *tool_access),
            Event::ModelCallRefused { model, limit, reason, estimate } => vec![LifecycleKind::ModelCallRefused {
                model: model.clone(),
                limit: *limit,
                reason: reason.clone(),
                estimate: *estimate,
            }],
            Event::ModelReplied { reply } => vec![self.model_replied(reply, at)],
            Event::ModelFailed { error, usage, .. } => vec![LifecycleKind::ModelFailed {
                model: self.model(),
                attempt: self.attempt(),
                error: self.content.failure(error),
                usage: *usage,
                cumulative: self.cumulative(usage),
                duration_ms: self.asked_ms(at),
            }],
            Event::OutputValidated { verdict: OutputVerdict::Valid { .. } } => vec![LifecycleKind::OutputValidated],
            Event::OutputValidated { verdict: OutputVerdict::Invalid { problems } } => {
                vec![LifecycleKind::ValidationFailed {
                    target: "output",
                    call_id: None,
                    problems: self.quotable_problems(problems),
                    advisory: false,
                }]
            }
            Event::TierSelected { priority, run, deferred } => {
                vec![LifecycleKind::TierSelected { priority: *priority, run: run.clone(), deferred: deferred.clone() }]
            }
            Event::CallChecked { call, verdict, advisory } => {
                self.invalid_arguments(call, advisory).into_iter().chain(self.call_checked(call, verdict)).collect()
            }
            Event::ApprovalDecided { call, decision } => self.approval_decided(call, decision),
            Event::CallDrifted { call, differences, .. } => vec![LifecycleKind::Drifted {
                call: self.call_ref(call),
                changed: differences.iter().map(|difference| difference.field.clone()).collect(),
                differences: (self.content == Content::Include).then(|| differences.clone()),
            }],
            Event::Extended { call, until, by, via } => {
                vec![LifecycleKind::PendingExtended {
                    call: self.call_ref(call),
                    expires_at: *until,
                    by: by.clone(),
                    via: *via,
                }]
            }
            Event::Expired { call } => vec![self.expired(call)],
            Event::QuestionAnswered { call, answer } => vec![LifecycleKind::QuestionAnswered {
                call: self.call_ref(call),
                by: answer.by.clone(),
                via: answer.via,
                answer: self.quotable(|| answer.choice.to_words()),
            }],
            Event::CallsStarted { calls } => calls.iter().map(|call| self.call_started(call)).collect(),
            Event::CallCompleted { call, outcome, stderr, .. } => vec![self.call_completed(call, outcome, stderr, at)],
            Event::InputRequested { call, needed, until } => vec![LifecycleKind::InputRequested {
                call: self.call_ref(call),
                asks: needed.questions.keys().cloned().collect(),
                messages: self.messages(needed),
                held_until: *until,
            }],
            Event::InputRequired { call, needed, .. } => vec![LifecycleKind::InputRequired {
                call: self.call_ref(call),
                asks: needed.questions.keys().cloned().collect(),
                messages: self.messages(needed),
                restarts: needed.restarts,
                repeats: self.call(call).is_some_and(|call| call.needs_consent_to_repeat(needed)),
            }],
            Event::InputGiven { call, given } => {
                let (call, accepted) = (self.call_ref(call), given.accepts());
                vec![LifecycleKind::InputGiven { call, by: given.by.clone(), via: given.via, accepted }]
            }
            Event::TaskStarted { call, task, .. } => {
                vec![LifecycleKind::TaskStarted {
                    call: self.call_ref(call),
                    task_id: task.id.clone(),
                    poll_ms: task.poll_ms,
                }]
            }
            Event::CompactionStarted { model, attempt, replaces, keeps } => vec![LifecycleKind::CompactionStarted {
                model: model.clone(),
                attempt: *attempt,
                replaces: *replaces,
                keeps: *keeps,
            }],
            Event::CompactionCompleted { summary, usage, model } => vec![LifecycleKind::CompactionCompleted {
                model: model.clone(),
                usage: *usage,
                cumulative: self.cumulative(usage),
                duration_ms: self.compacting.map_or(0, |since| elapsed_ms(since, at)),
                summary: self.quotable(|| summary.clone()),
            }],
            Event::CompactionFailed { error, usage } => vec![LifecycleKind::CompactionFailed {
                error: self.content.failure(error),
                usage: *usage,
                cumulative: self.cumulative(usage),
                duration_ms: self.compacting.map_or(0, |since| elapsed_ms(since, at)),
            }],
            Event::MessageAdded { message } => {
                vec![LifecycleKind::MessageAdded { text: self.quotable(|| message.text()) }]
            }
            Event::Paused { by, via, reason } => {
                vec![LifecycleKind::Paused { by: by.clone(), via: *via, reason: reason.clone() }]
            }
            Event::Unpaused { by, via, limits } => {
                vec![LifecycleKind::Unpaused { by: by.clone(), via: *via, limits: limits.clone() }]
            }
            Event::CompensationStarted { ending, undo } => vec![self.compensation_started(ending, undo)],
            Event::Ended { ending: ending @ Ending::Failed { error } }
                if error.step == Some(FailedStep::ContextBuild) =>
            {
                let begins_turn = self.run.as_ref().is_some_and(|run| run.model_asked().is_none());
                let exhausted = self.budget_exhausted().filter(|_| begins_turn);
                exhausted.into_iter().chain([LifecycleKind::ContextBuildStarted, self.ended(ending)]).collect()
            }
            Event::Ended { ending } => vec![self.ended(ending)],
        }
    }

    fn tools_listed(&self, toolset: &Toolset) -> Vec<LifecycleKind> {
        let earlier = self.run.as_ref().and_then(Run::tools);
        let changes = toolset.authorization_changes(earlier.map(|earlier| &**earlier));
        let mut facts: Vec<LifecycleKind> =
            changes.map(|now| LifecycleKind::ServerAuth { authorization: now.clone() }).collect();
        facts.push(LifecycleKind::ToolsListed {
            tools: toolset.iter().map(|tool| tool.name.clone()).collect(),
            left_out: toolset.left_out().to_vec(),
            changed: toolset.iter().filter(|tool| tool.changed).map(|tool| tool.name.clone()).collect(),
            warnings: toolset.warnings().collect(),
        });
        facts
    }

    /// The server's questions, as text.
    fn messages(&self, needed: &ElicitationRequest) -> Option<Vec<String>> {
        let messages = || needed.questions.values().map(|question| question.message().to_owned()).collect();
        (self.content == Content::Include).then(messages)
    }

    fn model_called(&self, model: &ModelName, attempt: u32, tool_access: ToolAccess) -> Vec<LifecycleKind> {
        let model = model.clone();
        let begins_turn = attempt == 1;
        let mut facts: Vec<LifecycleKind> = self.budget_exhausted().filter(|_| begins_turn).into_iter().collect();
        match begins_turn {
            true => facts.extend([LifecycleKind::ContextBuildStarted, LifecycleKind::ContextBuildSuccess]),
            false => {
                let instead_of = Some(self.model()).filter(|before| *before != model);
                facts.push(LifecycleKind::ModelRetrying { model: model.clone(), attempt, instead_of });
            }
        }
        let fallback = self.is_fallback(&model);
        facts.push(LifecycleKind::ModelCalled { model, fallback, attempt, tool_access });
        facts
    }

    fn budget_exhausted(&self) -> Option<LifecycleKind> {
        self.budget().filter(|budget| budget.is_exhausted()).map(|budget| LifecycleKind::BudgetExhausted {
            used: budget.tool_interactions,
            max: budget.limits.max_tool_interactions,
        })
    }

    fn model_replied(&self, reply: &Reply, at: Timestamp) -> LifecycleKind {
        let tools = self.run.as_ref().and_then(Run::tools);
        let call_ref = |call: &ToolCall| {
            let tool = tools.and_then(|tools| tools.get(&call.name));
            CallRef::new(&call.id, &call.name, tool.map(|tool| &**tool), Some(&call.arguments), self.content)
        };
        let model = self.model();
        LifecycleKind::ModelReplied {
            fallback: self.is_fallback(&model),
            model,
            response_model: reply.model.clone(),
            attempt: self.attempt(),
            stop: reply.stop,
            usage: reply.usage,
            cumulative: self.cumulative(&reply.usage),
            duration_ms: self.asked_ms(at),
            first_token_ms: reply.first_token_ms,
            tool_calls: reply.calls().map(|call| call_ref(&call)).collect(),
            text: self.quotable(|| reply.joined_text()),
        }
    }

    fn approval_decided(&self, call: &CallId, decision: &Decision) -> Vec<LifecycleKind> {
        let edited = decision.edited_arguments.as_ref();
        vec![LifecycleKind::ApprovalDecided {
            call: self.call_ref_with(call, edited),
            decision: decision.answer,
            by: decision.by.clone(),
            via: decision.via,
            scope: decision.scope,
            coverage: decision.coverage.clone(),
            expires_at: decision.expires_at,
            edited: edited.is_some(),
            policy: decision.binding.as_ref().and_then(|binding| binding.policy.clone()),
            reason: decision.reason.clone(),
        }]
    }

    fn external_requested(&self, id: &CallId) -> Vec<LifecycleKind> {
        match self.call(id) {
            Some(call) if call.is_external() => vec![LifecycleKind::ExternalRequested { call: self.call_ref(id) }],
            Some(call) if call.is_question() => vec![LifecycleKind::QuestionAsked { call: self.call_ref(id) }],
            Some(_) | None => Vec::new(),
        }
    }

    fn expired(&self, id: &CallId) -> LifecycleKind {
        let call = self.call_ref(id);
        match self.call(id).map(|call| &call.state) {
            Some(CallState::Asked { .. }) => LifecycleKind::ApprovalExpired { call },
            Some(_) | None => LifecycleKind::PendingExpired { call },
        }
    }

    fn call_started(&self, id: &CallId) -> LifecycleKind {
        let (call, grant_id) = (self.call_ref(id), self.call(id).and_then(Call::grant).cloned());
        match self.call(id).is_some_and(Call::is_builtin) {
            true => LifecycleKind::BuiltinExecuting { call },
            false => LifecycleKind::McpExecuting { call, grant_id },
        }
    }

    fn call_completed(&self, id: &CallId, outcome: &Outcome, stderr: &[String], at: Timestamp) -> LifecycleKind {
        let call = self.call_ref(id);
        let text = Part::lines(&outcome.content());
        let kept = outcome.stored().to_vec();
        let whole: u64 = kept.iter().filter(|kept| kept.form.is_text()).map(|kept| kept.bytes).sum();
        let end = CallEnd {
            is_error: outcome.is_error(),
            error: outcome.error_type(),
            result_bytes: whole.max(text.len() as u64),
            result: self.quotable(|| text),
            kept,
        };
        if self.call(id).is_some_and(Call::is_external) {
            return LifecycleKind::ExternalCompleted { call, end };
        }
        let duration_ms = self.sent.get(id).map(|sent| elapsed_ms(*sent, at));
        if self.call(id).is_some_and(Call::is_builtin) {
            return LifecycleKind::BuiltinCompleted { call, duration_ms, end };
        }
        let problems = self.quotable_problems(outcome.problems());
        let stderr = (self.content == Content::Include).then(|| stderr.to_vec());
        LifecycleKind::McpCompleted { call, duration_ms, end, problems, stderr }
    }

    fn compensation_started(&self, ending: &Ending, undo: &[UndoCall]) -> LifecycleKind {
        let tools = self.run.as_ref().and_then(Run::tools);
        let undo_ref = |UndoCall { undoes, call }: &UndoCall| {
            let tool = tools.and_then(|tools| tools.get(&call.name)).map(|tool| &**tool);
            let call = CallRef::new(&call.id, &call.name, tool, Some(&call.arguments), self.content);
            UndoRef { undoes: undoes.clone(), call }
        };
        LifecycleKind::CompensationStarted { status: ending.status(), undo: undo.iter().map(undo_ref).collect() }
    }

    fn ended(&self, ending: &Ending) -> LifecycleKind {
        let budget = self.budget();
        let tool_interactions = budget.map_or(0, |budget| budget.tool_interactions);
        let usage = budget.map(|budget| budget.usage).unwrap_or_default();
        let output = (self.content == Content::Include).then(|| ending.output().cloned());
        let error = self.run.as_ref().map_or_else(|| ending.failure(), |run| run.failure_of(ending));
        let error = error.map(|error| self.content.failure(&error).of_run(&self.id));
        match (ending, error) {
            (Ending::Cancelled { reason, partial_reply }, _) => {
                let partial_reply = partial_reply.clone().filter(|_| self.content == Content::Include);
                LifecycleKind::Cancelled { reason: reason.clone(), partial_reply, tool_interactions, usage }
            }
            (Ending::Failed { .. }, Some(error)) => LifecycleKind::Failed { error, tool_interactions, usage },
            (Ending::Expired, Some(error)) => LifecycleKind::Expired { error, tool_interactions, usage },
            (Ending::Incomplete { limit, .. }, Some(error)) => {
                let incomplete_details = IncompleteDetails { reason: *limit };
                LifecycleKind::Incomplete { error, incomplete_details, tool_interactions, usage, output }
            }
            (Ending::Completed { .. }, _) | (_, None) => {
                let warnings = self.run.as_ref().map(|run| run.warnings_of(ending)).unwrap_or_default();
                LifecycleKind::Completed { tool_interactions, usage, output: output.flatten(), warnings }
            }
        }
    }

    fn call_ref(&self, id: &CallId) -> CallRef {
        self.call_ref_with(id, None)
    }

    /// The reference to a call, with edited arguments if there are any.
    fn call_ref_with(&self, id: &CallId, edited: Option<&Arguments>) -> CallRef {
        match self.call(id) {
            Some(call) => {
                let arguments = Some(edited.unwrap_or_else(|| call.arguments()));
                CallRef::new(id, &call.requested.name, call.tool.as_deref(), arguments, self.content)
            }
            None => CallRef::new(id, "", None, None, self.content),
        }
    }

    fn call(&self, id: &CallId) -> Option<&Call> {
        self.run.as_ref()?.call(id)
    }

    fn budget(&self) -> Option<&Budget> {
        self.run.as_ref().map(Run::budget)
    }

    /// The usage of the run with that of the attempt whose end is the fact in progress.
    fn cumulative(&self, attempt: &Usage) -> Usage {
        let mut usage = self.budget().map(|budget| budget.usage).unwrap_or_default();
        usage.add(attempt);
        usage
    }

    /// The model called last in the open turn.
    fn model(&self) -> ModelName {
        self.run.as_ref().and_then(Run::model_asked).cloned().unwrap_or_else(|| ModelName::new(""))
    }

    fn is_fallback(&self, model: &ModelName) -> bool {
        self.run.as_ref().is_some_and(|run| run.started().spec.model != *model)
    }

    fn attempt(&self) -> u32 {
        self.open_call.as_ref().map_or(1, |open_call| open_call.attempt.attempt)
    }

    fn asked_ms(&self, at: Timestamp) -> u64 {
        self.open_call.as_ref().map_or(0, |open_call| elapsed_ms(open_call.at, at))
    }

    /// A text, if the stream may quote it.
    fn quotable(&self, text: impl FnOnce() -> String) -> Option<String> {
        (self.content == Content::Include).then(text)
    }
}

fn elapsed_ms(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}
