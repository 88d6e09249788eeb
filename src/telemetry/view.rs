//! What lifecycle events and spans both need to know of a run so far: a fold of its journal, reduced to what is told.

use std::sync::Arc;

use jiff::Timestamp;

use crate::core::chat::Usage;
use crate::core::id::CallId;
use crate::core::run::{Answer, CallVerdict, Decision, Event, Offer, OutputVerdict, Recorded, Rejection, Started};
use crate::core::tool::{Arguments, Origin, Outcome, Tool, ToolCall, Toolset};

/// A run as far as it was told. Lenient: what does not fit is passed over, for a watcher must not fail.
#[derive(Clone, Debug, Default)]
pub(super) struct RunView {
    /// The first fact.
    pub(super) started: Option<Arc<Started>>,
    /// What the model is offered.
    pub(super) toolset: Arc<Toolset>,
    /// Model turns begun; 0 before the first.
    pub(super) iteration: u32,
    /// Turns with tools, and rejected answers.
    pub(super) interactions: u32,
    /// MCP calls sent.
    pub(super) mcp_calls: u32,
    /// Tokens and money over all attempts.
    pub(super) usage: Usage,
    /// The attempt that is under way or was made last.
    pub(super) asked: Option<Asked>,
    /// The calls of the last reply, in its order.
    pub(super) calls: Vec<Call>,
}

/// One attempt at the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// When it was made.
    pub(super) at: Timestamp,
    /// 1 for the first of a turn.
    pub(super) attempt: u32,
    /// Whether tools might be called.
    pub(super) offer: Offer,
    /// Whether no reply has come yet, from any attempt of this turn.
    pub(super) open: bool,
    /// Whether it began a turn, rather than being a repetition.
    pub(super) begins_turn: bool,
}

/// One call of the last reply.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// As the model wrote it.
    pub(super) call: ToolCall,
    /// The tool, if there is one of that name.
    pub(super) tool: Option<Arc<Tool>>,
    /// When it was sent to a server.
    pub(super) started: Option<Timestamp>,
    /// Whether a person is asked, by which rule and why.
    pub(super) asked: Option<(Option<String>, String)>,
    /// What they decided.
    pub(super) decision: Option<Decision>,
    /// Whether the caller was asked to run it.
    pub(super) requested: bool,
    /// Whether calls of higher priority went first.
    pub(super) deferred: bool,
    /// How it ended.
    pub(super) end: Option<CallEnd>,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub(super) enum CallEnd {
    /// It was run.
    Ran(Arc<Outcome>),
    /// It was not; what the model reads instead.
    Refused(String),
}

impl RunView {
    /// Takes in one fact.
    pub(super) fn apply(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::Started(started) => self.started = Some(Arc::clone(started)),
            Event::ToolsListed { toolset } => self.toolset = Arc::clone(toolset),
            Event::ModelCalled { attempt, offer } => self.model_called(recorded.at, *attempt, *offer),
            Event::ModelReplied { reply } => {
                self.usage.add(&reply.usage);
                self.calls = reply.calls().map(|call| Call::new(call, &self.toolset)).collect();
                let with_tools = self.asked.as_ref().is_some_and(|asked| asked.offer == Offer::Tools);
                if with_tools && !self.calls.is_empty() {
                    self.interactions += 1;
                }
                if let Some(asked) = &mut self.asked {
                    asked.open = false;
                }
            }
            Event::ModelFailed { usage, .. } => self.usage.add(usage),
            Event::OutputValidated { verdict: OutputVerdict::Invalid { .. } } => self.interactions += 1,
            Event::TierSelected { deferred, .. } => {
                for call in self.calls.iter_mut().filter(|call| deferred.contains(&call.call.id)) {
                    call.deferred = true;
                }
            }
            Event::CallChecked { call, verdict } => self.with(call, |call| call.checked(verdict)),
            Event::ApprovalDecided { call, decision } => self.with(call, |call| call.decided(decision)),
            Event::CallsStarted { calls } => {
                self.mcp_calls = self.mcp_calls.saturating_add(u32::try_from(calls.len()).unwrap_or(u32::MAX));
                for call in self.calls.iter_mut().filter(|call| calls.contains(&call.call.id)) {
                    call.started = Some(recorded.at);
                }
            }
            Event::CallCompleted { call, outcome } => {
                self.with(call, |call| call.end = Some(CallEnd::Ran(Arc::clone(outcome))));
            }
            Event::Resumed { .. }
            | Event::ApprovalsResolved { .. }
            | Event::OutputValidated { verdict: OutputVerdict::Valid { .. } }
            | Event::MessageAdded { .. }
            | Event::Ended { .. } => {}
        }
    }

    /// The call of the last reply with that id.
    pub(super) fn call(&self, id: &CallId) -> Option<&Call> {
        self.calls.iter().find(|call| call.call.id == *id)
    }

    /// The soft bound on turns with tools.
    pub(super) fn max_interactions(&self) -> u32 {
        self.started.as_ref().map_or(0, |started| started.spec.limits.max_tool_interactions)
    }

    fn model_called(&mut self, at: Timestamp, attempt: u32, offer: Offer) {
        let begins_turn = !self.asked.is_some_and(|asked| asked.open);
        if begins_turn {
            self.iteration += 1;
        }
        self.asked = Some(Asked { at, attempt, offer, open: true, begins_turn });
    }

    fn with(&mut self, id: &CallId, change: impl FnOnce(&mut Call)) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.call.id == *id) {
            change(call);
        }
    }
}

impl Call {
    fn new(call: ToolCall, toolset: &Toolset) -> Self {
        let tool = toolset.get(&call.name).cloned();
        Self { call, tool, started: None, asked: None, decision: None, requested: false, deferred: false, end: None }
    }

    /// The arguments that are sent: the model's, unless a person edited them.
    pub(super) fn arguments(&self) -> &Arguments {
        let edited = self.decision.as_ref().and_then(|decision| decision.edited_arguments.as_ref());
        edited.unwrap_or(&self.call.arguments)
    }

    /// Whether the caller runs it.
    pub(super) fn is_external(&self) -> bool {
        match self.tool.as_ref().map(|tool| &tool.origin) {
            Some(Origin::External { .. }) => true,
            Some(Origin::Mcp { .. }) | None => false,
        }
    }

    fn checked(&mut self, verdict: &CallVerdict) {
        match verdict {
            CallVerdict::Run { .. } => self.requested = self.is_external(),
            CallVerdict::Ask { rule, why } => self.asked = Some((rule.clone(), why.clone())),
            CallVerdict::Rejected { reason, message } => {
                self.deferred = self.deferred || *reason == Rejection::Deferred;
                self.end = Some(CallEnd::Refused(message.clone()));
            }
        }
    }

    fn decided(&mut self, decision: &Decision) {
        match decision.answer {
            Answer::Approve => self.requested = self.is_external(),
            Answer::Deny => {
                let why = decision.reason.as_deref().unwrap_or("no reason was given");
                self.end = Some(CallEnd::Refused(format!("denied: {why}")));
            }
        }
        self.decision = Some(decision.clone());
    }
}
