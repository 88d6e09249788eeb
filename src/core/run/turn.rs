//! A turn: a reply that calls tools, and the state of each call.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Deadline, ElicitationAnswer, InvalidEvent, Rejection};
use crate::chat::{Message, Part, Role};
use crate::id::{CallId, GrantId};
use crate::policy::{OnTimeout, PolicyMark};
use crate::tool::file_change::changes_file;
use crate::tool::{
    Arguments, Builtin, Difference, ElicitationRequest, FailureKind, Origin, Outcome, Problem, TaskHandle, TierMode,
    Tool, ToolCall,
};

/// A reply with calls that are not all settled.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// The reply as the model wrote it.
    pub(super) assistant: Message,
    pub(super) calls: Vec<Call>,
    /// Whether the reply was copied from another run, whose correction it would have been.
    pub(super) copied: bool,
}

/// A call of the open turn.
#[derive(Clone, Debug)]
pub struct Call {
    /// The call as the model wrote it.
    pub requested: ToolCall,
    /// The tool it names, as defined when the model called it; `None` if there is no such tool.
    pub tool: Option<Arc<Tool>>,
    /// The problems of its arguments, if they do not match the tool's schema and it may run all the same.
    pub advisory: Vec<Problem>,
    /// A person's arguments, which replace the model's.
    pub edited: Option<Arguments>,
    /// The server's last questions with their answers, to be sent when the call resumes.
    pub answered: Option<AnsweredElicitation>,
    /// The server's questions on the open call, while it is held for the answers. Not valid once the call is no longer
    /// running, or the run was resumed.
    pub held: Option<HeldElicitation>,
    /// The number of times it was sent again with answers.
    pub round: u32,
    /// Whether it was ever sent to its server. If so, it must not be reported as not run.
    pub sent: bool,
    /// Whether it was sent by the run that this one was copied from, and not again: its error does not end this run.
    pub sent_by_source: bool,
    /// Its authorization, once it may run.
    pub authorization: Option<CallAuthorization>,
    /// When a person last approved it, if the time of the events is known.
    pub approved_at: Option<Timestamp>,
    /// The differences since it was authorized, because of which it is checked again.
    pub drift: Vec<Difference>,
    /// The deadline of its pending item; meaningful while it waits for an answer.
    pub deadline: Deadline,
    pub state: CallState,
}

/// The authorization of a call, as the fold derives it; `Authorization` is what the journal records (decision 0032).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallAuthorization {
    /// The policy allows it.
    Policy,
    /// A grant covers it.
    Grant(GrantId),
    /// A person approved the question of this rule, with this reason.
    HumanApproval { rule: Option<String>, reason: String },
}

/// Questions of a server with their answers.
#[derive(Clone, Debug, PartialEq)]
pub struct AnsweredElicitation {
    pub needed: Arc<ElicitationRequest>,
    pub given: Arc<ElicitationAnswer>,
}

/// A server's questions on a call that is held open for the answers.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldElicitation {
    pub needed: Arc<ElicitationRequest>,
    /// Until when the call is held; `None` for as long as its driver waits.
    pub until: Option<Timestamp>,
    /// The answers, once they arrive. They are for the open call alone: a call that is made again asks again.
    pub answer: Option<Arc<ElicitationAnswer>>,
}

/// The state of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallState {
    /// Not selected yet.
    New,
    /// In the running tier, and not checked yet.
    Selected,
    /// It requires approval. `outcome_unknown`: it was started, and its outcome is unknown.
    Asked {
        /// The rule that asks.
        rule: Option<String>,
        reason: String,
        /// The policy that asks.
        policy: Option<PolicyMark>,
        /// Whether it may have run already.
        outcome_unknown: bool,
        /// The effect of no answer in time.
        on_timeout: OnTimeout,
        /// Whether a rule that denies could not be evaluated.
        may_be_denied: bool,
    },
    /// It may run.
    Authorized,
    Started,
    /// Its server suspended it until its questions are answered.
    NeedsInput(Arc<ElicitationRequest>),
    /// It runs as a task at its server.
    Task(Arc<TaskHandle>),
    Settled(Settlement),
}

/// The settlement of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Settlement {
    /// It was not run.
    Rejected {
        /// The reason, for machines.
        reason: Rejection,
        /// The reason, for the model.
        message: String,
    },
    Completed(Arc<Outcome>),
    /// The run ended before the call was settled.
    Abandoned,
}

impl Settlement {
    /// The settlement of a call whose result did not arrive in time.
    pub(super) fn no_result_in_time() -> Self {
        let message = "The application gave no result in time. The call may or may not have taken effect.";
        Self::Completed(Outcome::failed(FailureKind::Expired, message).into())
    }
}

impl CallState {
    /// The reason why the call was not run, if it is settled without being run.
    fn rejection(&self) -> Option<Rejection> {
        let Self::Settled(Settlement::Rejected { reason, .. }) = self else { return None };
        Some(*reason)
    }

    pub(super) fn describe(&self) -> &'static str {
        match self {
            Self::New => "not selected yet",
            Self::Selected => "not checked yet",
            Self::Asked { .. } => "waiting for a decision",
            Self::Authorized => "cleared to run",
            Self::Started => "under way",
            Self::NeedsInput(_) => "waiting for an answer to its server",
            Self::Task(_) => "a task at its server",
            Self::Settled(_) => "settled",
        }
    }
}

impl Call {
    /// The arguments to send: the person's, otherwise the model's.
    pub fn arguments(&self) -> &Arguments {
        self.edited.as_ref().unwrap_or(&self.requested.arguments)
    }

    /// The current questions of its server: on the open call, or before the call is sent again.
    pub fn elicitation(&self) -> Option<&Arc<ElicitationRequest>> {
        match &self.state {
            CallState::Started => self.held.as_ref().filter(|held| held.answer.is_none()).map(|held| &held.needed),
            CallState::NeedsInput(needed) => Some(needed),
            CallState::New
            | CallState::Selected
            | CallState::Asked { .. }
            | CallState::Authorized
            | CallState::Task(_)
            | CallState::Settled(_) => None,
        }
    }

    /// Whether sending the call again with the answers to these questions needs explicit consent (law 4): it had begun
    /// when it was cancelled, and its tool is not known to be safe to repeat.
    pub fn needs_consent_to_repeat(&self, needed: &ElicitationRequest) -> bool {
        needed.interrupted && !self.tool.as_ref().is_some_and(|tool| tool.is_repeatable())
    }

    /// Whether the calling application runs the call.
    pub fn is_external(&self) -> bool {
        self.tool.as_ref().is_some_and(|tool| matches!(tool.origin, Origin::External { .. }))
    }

    /// Whether the call is a question of the model to the user.
    pub fn is_question(&self) -> bool {
        self.builtin() == Some(Builtin::AskHuman)
    }

    /// Whether it may run with these arguments: they are an object, and a builtin tool accepts them.
    pub(super) fn is_callable_with(&self, arguments: &Arguments) -> bool {
        let is_accepted = |arguments| self.builtin().is_none_or(|builtin| builtin.invalid_reason(arguments).is_none());
        arguments.as_object().is_some_and(is_accepted)
    }

    fn builtin(&self) -> Option<Builtin> {
        self.tool.as_ref().and_then(|tool| Builtin::from_origin(&tool.origin))
    }

    /// Whether toolgate sends the call once it is authorized; all others are answered from outside.
    pub fn is_sent_by_us(&self) -> bool {
        !self.is_external() && self.builtin().is_none_or(Builtin::runs_here)
    }

    /// Whether it changes a file, as far as its arguments and a trusted server say.
    pub(super) fn changes_file(&self) -> bool {
        let only_reads = self.tool.as_ref().is_some_and(|tool| tool.is_read_only());
        !only_reads && self.arguments().as_object().is_some_and(changes_file)
    }

    /// Whether an answer from outside can be its next event.
    pub(super) fn is_answerable(&self) -> bool {
        self.state == CallState::Authorized && !self.is_sent_by_us()
    }

    /// Whether it waits for a decision or an answer, and can expire.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self.state, CallState::Asked { .. }) || self.is_answerable()
    }

    /// Whether toolgate runs the call itself.
    pub fn is_builtin(&self) -> bool {
        self.tool.as_ref().is_some_and(|tool| matches!(tool.origin, Origin::Builtin { .. }))
    }

    /// The grant that authorizes the call.
    pub fn grant(&self) -> Option<&GrantId> {
        if let Some(CallAuthorization::Grant(grant)) = &self.authorization { Some(grant) } else { None }
    }

    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, CallState::Settled(_))
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.state == CallState::Started
    }

    /// The part of the results message for this call.
    fn result(&self) -> Option<Part> {
        let CallState::Settled(settlement) = &self.state else { return None };
        let (mut content, is_error) = match settlement {
            Settlement::Rejected { message, .. } => (vec![Part::text(message.clone())], true),
            Settlement::Completed(outcome) => (outcome.content(), outcome.is_error()),
            Settlement::Abandoned => {
                (vec![Part::text("No result: the run ended before this call was answered.")], true)
            }
        };
        if let Some(edited) = &self.edited {
            let note = format!("Note: a person changed the arguments of this call to {}", edited.to_value());
            content.insert(0, Part::text(note));
        }
        Some(Part::ToolResult { tool_use_id: self.requested.id.clone(), content, is_error })
    }
}

impl Turn {
    pub(super) fn call(&self, event: &'static str, id: &CallId) -> Result<&Call, InvalidEvent> {
        let found = self.calls.iter().find(|call| call.requested.id == *id);
        found.ok_or_else(|| InvalidEvent::NoSuchCall { event, call: id.clone() })
    }

    pub(super) fn call_mut(&mut self, id: &CallId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.requested.id == *id)
    }

    pub(super) fn is_settled(&self) -> bool {
        self.calls.iter().all(Call::is_settled)
    }

    /// Settles every open call. A call that was sent may have taken effect; its outcome is reported as unknown.
    pub(super) fn abandon(&mut self) {
        for call in self.calls.iter_mut().filter(|call| !call.is_settled()) {
            call.state = CallState::Settled(match call.sent {
                true => Settlement::Completed(Outcome::Unknown.into()),
                false => Settlement::Abandoned,
            });
        }
    }

    /// The assistant message, without the calls that are dropped.
    pub(super) fn assistant_message(&self, mode: TierMode) -> Message {
        let mut message = self.assistant.clone();
        if mode == TierMode::Drop && self.calls.iter().any(Call::is_deferred) {
            let is_dropped = |id: &CallId| self.calls.iter().any(|call| call.requested.id == *id && call.is_deferred());
            message.content.retain(|part| !part.tool_use().is_some_and(|(id, ..)| is_dropped(id)));
            message.provider_state = None;
        }
        message
    }

    /// The available results, in call order, without those of dropped calls.
    pub(super) fn results(&self, mode: TierMode) -> Message {
        let shown = self.calls.iter().filter(|call| mode != TierMode::Drop || !call.is_deferred());
        let mut content: Vec<Part> = shown.filter_map(Call::result).collect();
        content.shrink_to_fit(); // a transcript has it for as long as the run is active
        Message { role: Role::User, content, provider_state: None }
    }

    /// Whether no call of the turn was usable, and the model made them in this run.
    pub(super) fn is_useless(&self) -> bool {
        !self.copied
            && self.calls.iter().all(|call| match call.state.rejection() {
                Some(Rejection::Unknown | Rejection::InvalidArguments | Rejection::Budget) => true,
                Some(Rejection::Denied | Rejection::Deferred | Rejection::Expired) | None => false,
            })
    }
}

impl Call {
    fn is_deferred(&self) -> bool {
        self.state.rejection() == Some(Rejection::Deferred)
    }
}
