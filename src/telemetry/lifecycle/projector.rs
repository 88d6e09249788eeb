//! Journal in, lifecycle events out.

use jiff::Timestamp;

use super::{CallRef, Content, Fact, LifecycleEvent};
use crate::core::chat::{Part, Reply};
use crate::core::error::Failure;
use crate::core::id::{CallId, ModelName, RunId};
use crate::core::run::{Answer, CallVerdict, Decision, Ending, Event, Offer, OutputVerdict, Recorded, Rejection};
use crate::core::tool::{Outcome, Problem};
use crate::ports::Delta;
use crate::telemetry::view::{Call, RunView};

/// The fold of one run's journal into its lifecycle events.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    run: RunId,
    content: Content,
    view: RunView,
}

impl Lifecycle {
    /// A run nothing has happened to yet.
    pub fn new(run: RunId, content: Content) -> Self {
        Self { run, content, view: RunView::default() }
    }

    /// What a fact means to a viewer: usually one event, sometimes several or none. Facts come in journal order.
    pub fn observe(&mut self, recorded: &Recorded) -> Vec<LifecycleEvent> {
        self.view.apply(recorded);
        self.facts(&recorded.event, recorded.at)
            .into_iter()
            .map(|fact| LifecycleEvent {
                seq: Some(recorded.seq),
                run_id: self.run.clone(),
                at: Some(recorded.at),
                iteration: self.view.iteration,
                fact,
            })
            .collect()
    }

    /// A fragment as an event; passed on as it is.
    pub fn delta(&self, delta: &Delta) -> LifecycleEvent {
        let fact = Fact::Fragment(delta.clone());
        LifecycleEvent { seq: None, run_id: self.run.clone(), at: None, iteration: self.view.iteration, fact }
    }

    pub(in crate::telemetry) fn view(&self) -> &RunView {
        &self.view
    }

    fn facts(&self, event: &Event, at: Timestamp) -> Vec<Fact> {
        match event {
            Event::Started(started) => vec![Fact::Started {
                agent: started.spec.agent.clone(),
                model: started.spec.model.clone(),
                session_id: started.session.clone(),
                trace_id: started.trace.id,
                input: self.said(|| started.input.text()),
            }],
            Event::Resumed { trace } => vec![Fact::Resumed { trace_id: trace.id }],
            Event::ToolsListed { toolset } => vec![Fact::ToolsListed {
                tools: toolset.iter().map(|tool| tool.name.clone()).collect(),
                left_out: toolset.left_out().to_vec(),
            }],
            Event::ApprovalsResolved { granted } => vec![Fact::ApprovalsResolved { granted: granted.clone() }],
            Event::ModelCalled { attempt, offer } => self.model_called(*attempt, *offer),
            Event::ModelReplied { reply } => vec![self.model_replied(reply, at)],
            Event::ModelFailed { error, usage } => vec![Fact::ModelFailed {
                attempt: self.attempt(),
                error: error.clone(),
                usage: *usage,
                duration_ms: self.asked_ms(at),
            }],
            Event::OutputValidated { verdict: OutputVerdict::Valid { .. } } => vec![Fact::OutputValidated],
            Event::OutputValidated { verdict: OutputVerdict::Invalid { problems } } => {
                vec![Fact::ValidationFailed { target: "output", call_id: None, problems: self.told(problems) }]
            }
            Event::TierSelected { priority, run, deferred } => {
                vec![Fact::TierSelected { priority: *priority, run: run.clone(), deferred: deferred.clone() }]
            }
            Event::CallChecked { call, verdict } => self.call_checked(call, verdict),
            Event::ApprovalDecided { call, decision } => self.approval_decided(call, decision),
            Event::CallsStarted { calls } => {
                calls.iter().map(|call| Fact::McpExecuting { call: self.call_ref(call) }).collect()
            }
            Event::CallCompleted { call, outcome } => vec![self.call_completed(call, outcome, at)],
            Event::MessageAdded { message } => vec![Fact::MessageAdded { text: self.said(|| message.text()) }],
            Event::Ended { ending } => vec![self.ended(ending)],
        }
    }

    fn model_called(&self, attempt: u32, offer: Offer) -> Vec<Fact> {
        let model = self.model();
        let begins_turn = self.view.asked.is_some_and(|asked| asked.begins_turn);
        let mut facts = Vec::new();
        if begins_turn && offer == Offer::NoTools {
            facts.push(Fact::BudgetExhausted { used: self.view.interactions, max: self.view.max_interactions() });
        }
        match begins_turn {
            true => facts.extend([Fact::ContextBuildStarted, Fact::ContextBuildSuccess]),
            false => facts.push(Fact::ModelRetrying { model: model.clone(), attempt }),
        }
        facts.push(Fact::ModelCalled { model, attempt, offer });
        facts
    }

    fn model_replied(&self, reply: &Reply, at: Timestamp) -> Fact {
        Fact::ModelReplied {
            model: reply.model.clone(),
            attempt: self.attempt(),
            stop: reply.stop,
            usage: reply.usage,
            duration_ms: self.asked_ms(at),
            first_token_ms: reply.first_token_ms,
            tool_calls: self.view.calls.iter().map(|call| self.call_ref_of(call)).collect(),
            text: self.said(|| reply.joined_text()),
        }
    }

    fn call_checked(&self, call: &CallId, verdict: &CallVerdict) -> Vec<Fact> {
        match verdict {
            CallVerdict::Run { .. } => match self.view.call(call).is_some_and(|call| call.decision.is_some()) {
                true => Vec::new(), // told when it was approved
                false => self.external_requested(call),
            },
            CallVerdict::Ask { rule, why } => {
                vec![Fact::ApprovalRequested { call: self.call_ref(call), rule: rule.clone(), why: why.clone() }]
            }
            CallVerdict::Rejected { reason, message } => {
                let quotes = *reason == Rejection::InvalidArguments && self.content == Content::Omit;
                let rejected = Fact::Rejected {
                    call: self.call_ref(call),
                    reason: *reason,
                    message: (!quotes).then(|| message.clone()),
                };
                match reason {
                    Rejection::InvalidArguments => {
                        let problems = self.told(&[Problem::whole("arguments", message.clone())]);
                        let call_id = Some(call.clone());
                        vec![Fact::ValidationFailed { target: "arguments", call_id, problems }, rejected]
                    }
                    Rejection::Unknown | Rejection::Denied | Rejection::Budget | Rejection::Deferred => vec![rejected],
                }
            }
        }
    }

    fn approval_decided(&self, call: &CallId, decision: &Decision) -> Vec<Fact> {
        let mut facts = vec![Fact::ApprovalDecided {
            call: self.call_ref(call),
            answer: decision.answer,
            by: decision.by.clone(),
            scope: decision.scope,
            edited: decision.edited_arguments.is_some(),
            reason: decision.reason.clone(),
        }];
        if decision.answer == Answer::Approve {
            facts.extend(self.external_requested(call));
        }
        facts
    }

    fn external_requested(&self, call: &CallId) -> Vec<Fact> {
        let external = self.view.call(call).filter(|call| call.is_external());
        external.map(|call| Fact::ExternalRequested { call: self.call_ref_of(call) }).into_iter().collect()
    }

    fn call_completed(&self, id: &CallId, outcome: &Outcome, at: Timestamp) -> Fact {
        let known = self.view.call(id);
        let call = self.call_ref(id);
        let is_error = outcome.is_error();
        let error = error_word(outcome);
        let text = text_of(&outcome.content());
        let result_bytes = text.len();
        let result = self.said(|| text);
        if known.is_some_and(Call::is_external) {
            return Fact::ExternalCompleted { call, is_error, error, result_bytes, result };
        }
        let duration_ms = known.and_then(|call| call.started).map(|started| elapsed_ms(started, at));
        Fact::McpCompleted { call, duration_ms, is_error, error, result_bytes, result }
    }

    fn ended(&self, ending: &Ending) -> Fact {
        let (tool_interactions, usage) = (self.view.interactions, self.view.usage);
        let output = ending.output().and_then(|output| self.said(|| output.text.clone()));
        let failed = |error: Option<Failure>| match error {
            Some(error) => {
                Fact::Failed { status: ending.status(), error, tool_interactions, usage, output: output.clone() }
            }
            None => Fact::Completed { tool_interactions, usage, output: output.clone() },
        };
        match ending {
            Ending::Cancelled { reason } => Fact::Cancelled { reason: reason.clone(), tool_interactions, usage },
            Ending::Completed { .. } | Ending::Failed { .. } | Ending::TurnLimit { .. } | Ending::Expired => {
                failed(ending.failure())
            }
        }
    }

    fn call_ref(&self, id: &CallId) -> CallRef {
        match self.view.call(id) {
            Some(call) => self.call_ref_of(call),
            None => CallRef::new(id, "", None, None, self.content),
        }
    }

    fn call_ref_of(&self, call: &Call) -> CallRef {
        CallRef::new(&call.call.id, &call.call.name, call.tool.as_deref(), Some(call.arguments()), self.content)
    }

    fn model(&self) -> ModelName {
        self.view.started.as_ref().map_or_else(|| ModelName::new(""), |started| started.spec.model.clone())
    }

    fn attempt(&self) -> u32 {
        self.view.asked.map_or(1, |asked| asked.attempt)
    }

    fn asked_ms(&self, at: Timestamp) -> u64 {
        self.view.asked.map_or(0, |asked| elapsed_ms(asked.at, at))
    }

    /// Something that was said, if the stream may quote it.
    fn said(&self, text: impl FnOnce() -> String) -> Option<String> {
        (self.content == Content::Include).then(text)
    }

    /// Findings; without what was received, and without messages that quote it, unless the stream may.
    fn told(&self, problems: &[Problem]) -> Vec<Problem> {
        match self.content {
            Content::Include => problems.to_vec(),
            Content::Omit => problems
                .iter()
                .map(|problem| Problem { message: String::new(), received: None, ..problem.clone() })
                .collect(),
        }
    }
}

/// The stable word for what went wrong with a call, as in `error.type` of its span.
pub(in crate::telemetry) fn error_word(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Returned(output) => output.is_error.then_some("tool_error"),
        Outcome::Failed(failure) => Some(failure.kind.as_str()),
        Outcome::Unknown => Some("unknown"),
    }
}

fn elapsed_ms(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}

fn text_of(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).collect()
}
