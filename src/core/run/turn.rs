//! One turn: a reply that asks for tools, and what has become of each call.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Impossible, InputGiven, PolicyMark, Rejection, Term};
use crate::core::chat::{Message, Part, Role};
use crate::core::id::{CallId, GrantId};
use crate::core::tool::{
    Arguments, Ask, Builtin, Difference, FailureKind, InputNeeded, Origin, Outcome, TaskHandle, TierMode, Tool,
    ToolCall,
};

/// A reply with calls that are not all answered yet.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// The reply as the model wrote it.
    pub(super) assistant: Message,
    pub(super) calls: Vec<Call>,
}

/// A call of the open turn.
#[derive(Clone, Debug)]
pub struct Call {
    /// As the model wrote it.
    pub asked: ToolCall,
    /// The tool it names, as it was when the model called it; `None` if there is no such tool.
    pub tool: Option<Arc<Tool>>,
    /// Arguments that a person put in the place of the model's.
    pub edited: Option<Arguments>,
    /// What its server asked last, and was told: to be sent along when the call goes on.
    pub answered: Option<Answered>,
    /// What its server asks on the open call, while that is held for the answer. Means nothing once the call is no longer
    /// under way, or the run was resumed.
    pub held: Option<HeldElicitation>,
    /// How often it was sent on with answers.
    pub round: u32,
    /// Whether it was ever sent to its server. Then nobody may say that it was not run.
    pub sent: bool,
    /// By what right it may run, once it may.
    pub clearance: Option<Clearance>,
    /// When a person last approved it, if the time of the facts is known.
    pub approved_at: Option<Timestamp>,
    /// What is different since it was cleared, for which it is checked once more.
    pub drift: Vec<Difference>,
    /// Since when something is owed for it, and by when; meaningful while it waits for somebody.
    pub term: Term,
    /// What has become of it.
    pub state: CallState,
}

/// By what right a call may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clearance {
    /// The policy allows it.
    Policy,
    /// A standing approval covers it.
    Grant(GrantId),
    /// A person said yes to what this rule, for this reason, asked about.
    Person {
        /// The rule.
        rule: Option<String>,
        /// The reason.
        why: String,
    },
}

/// Questions of a server with their answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The questions.
    pub needed: Arc<InputNeeded>,
    /// The answers.
    pub given: Arc<InputGiven>,
}

/// Questions of a server on a call that is held open for the answers.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldElicitation {
    /// The questions.
    pub needed: Arc<InputNeeded>,
    /// Until when the call is held; `None` for as long as its driver waits.
    pub until: Option<Timestamp>,
    /// The answers, once they are there. They are for the open call alone: one that is made again is asked again.
    pub answer: Option<Arc<InputGiven>>,
}

/// What has become of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallState {
    /// Nothing yet.
    New,
    /// It is in the running tier and has to be checked.
    Selected,
    /// A person is to decide. `in_doubt`: it was started, and nobody knows how it ended.
    Asked {
        /// The rule that asks.
        rule: Option<String>,
        /// Why.
        why: String,
        /// The policy that asks.
        policy: Option<PolicyMark>,
        /// Whether it may have run already.
        in_doubt: bool,
    },
    /// It may run.
    Cleared,
    /// It was sent.
    Started,
    /// Its server put it aside until it is answered.
    NeedsInput(Arc<InputNeeded>),
    /// Its server goes on with it by itself.
    Task(Arc<TaskHandle>),
    /// It has its answer.
    Settled(Settlement),
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Settlement {
    /// It was not run.
    Rejected {
        /// Why, for machines.
        reason: Rejection,
        /// Why, for the model.
        message: String,
    },
    /// It was run.
    Completed(Arc<Outcome>),
    /// The run ended before it had an answer.
    Abandoned,
}

impl CallState {
    pub(super) fn describe(&self) -> &'static str {
        match self {
            Self::New => "not selected yet",
            Self::Selected => "not checked yet",
            Self::Asked { .. } => "waiting for a decision",
            Self::Cleared => "cleared to run",
            Self::Started => "under way",
            Self::NeedsInput(_) => "waiting for an answer to its server",
            Self::Task(_) => "a task at its server",
            Self::Settled(_) => "settled",
        }
    }
}

impl Call {
    /// The arguments to send: the person's, else the model's.
    pub fn arguments(&self) -> &Arguments {
        self.edited.as_ref().unwrap_or(&self.asked.arguments)
    }

    /// What its server asks now: on the open call, or before the call is sent on.
    pub fn elicitation(&self) -> Option<&Arc<InputNeeded>> {
        match &self.state {
            CallState::Started => self.held.as_ref().filter(|held| held.answer.is_none()).map(|held| &held.needed),
            CallState::NeedsInput(needed) => Some(needed),
            CallState::New
            | CallState::Selected
            | CallState::Asked { .. }
            | CallState::Cleared
            | CallState::Task(_)
            | CallState::Settled(_) => None,
        }
    }

    /// Whether sending the call on with the answers to these questions needs an explicit yes (law 4): it had begun when it
    /// was cancelled, and its tool is not known to be safe to repeat.
    pub fn needs_consent_to_repeat(&self, needed: &InputNeeded) -> bool {
        needed.interrupted && !self.tool.as_ref().is_some_and(|tool| tool.is_repeatable())
    }

    /// Whether the call is run by the calling application.
    pub fn is_external(&self) -> bool {
        self.tool.as_ref().is_some_and(|tool| matches!(tool.origin, Origin::External { .. }))
    }

    /// Whether the call is a question of the model's to a person.
    pub fn is_question(&self) -> bool {
        self.tool.as_ref().is_some_and(|tool| Builtin::of(&tool.origin) == Some(Builtin::AskHuman))
    }

    /// Whether it may run with these arguments: they are an object, and a question to a person is one.
    pub(super) fn is_callable_with(&self, arguments: &Arguments) -> bool {
        let object = arguments.as_object();
        object.is_some_and(|arguments| !self.is_question() || Ask::parse(arguments).is_ok())
    }

    /// Whether toolgate sends the call anywhere once it is cleared; the others are answered from outside.
    pub fn is_sent_by_us(&self) -> bool {
        !self.is_external() && !self.is_question()
    }

    /// Whether an answer from outside can be the next thing that happens to it. Journals that were written before a call was
    /// compared once more after a yes have the answer right behind the decision.
    pub(super) fn is_answerable(&self) -> bool {
        !self.is_sent_by_us() && (self.state == CallState::Cleared || self.is_approved())
    }

    /// Whether somebody has to decide about it or to answer it, and may be late.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self.state, CallState::Asked { .. }) || (self.state == CallState::Cleared && !self.is_sent_by_us())
    }

    /// Whether toolgate runs the call itself.
    pub fn is_builtin(&self) -> bool {
        self.tool.as_ref().is_some_and(|tool| matches!(tool.origin, Origin::Builtin { .. }))
    }

    /// What becomes of it when nobody decides about it or answers it in time.
    pub fn lapsed(&self) -> Settlement {
        match &self.state {
            // What may have taken effect is not told as not run.
            CallState::Asked { in_doubt: true, .. } => Settlement::Completed(Outcome::Unknown.into()),
            CallState::Asked { .. } => Settlement::Rejected {
                reason: Rejection::Expired,
                message:
                    "Not run: nobody decided about this call in time. That is no denial. Go on without it, or ask for \
                          it again if it is still needed."
                        .into(),
            },
            CallState::Cleared if self.is_question() => Settlement::Rejected {
                reason: Rejection::Expired,
                message: "Nobody answered in time. That is no refusal. Go on as well as you can without an answer."
                    .into(),
            },
            CallState::Cleared
            | CallState::New
            | CallState::Selected
            | CallState::Started
            | CallState::NeedsInput(_)
            | CallState::Task(_)
            | CallState::Settled(_) => Settlement::Completed(
                Outcome::failed(
                    FailureKind::Expired,
                    "The application gave no result in time. The call may or may not have taken effect.",
                )
                .into(),
            ),
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, CallState::Settled(_))
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.state == CallState::Started
    }

    /// The part of the results message that answers this call.
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
        Some(Part::ToolResult { tool_use_id: self.asked.id.clone(), content, is_error })
    }
}

impl Turn {
    pub(super) fn call(&self, event: &'static str, id: &CallId) -> Result<&Call, Impossible> {
        let found = self.calls.iter().find(|call| call.asked.id == *id);
        found.ok_or_else(|| Impossible::NoSuchCall { event, call: id.clone() })
    }

    pub(super) fn call_mut(&mut self, id: &CallId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.asked.id == *id)
    }

    pub(super) fn is_settled(&self) -> bool {
        self.calls.iter().all(Call::is_settled)
    }

    /// Answers every call that has no answer. What was sent may have taken effect, and is told as unknown.
    pub(super) fn abandon(&mut self) {
        for call in self.calls.iter_mut().filter(|call| !call.is_settled()) {
            call.state = CallState::Settled(match call.sent {
                true => Settlement::Completed(Outcome::Unknown.into()),
                false => Settlement::Abandoned,
            });
        }
    }

    /// The assistant message, without the calls that are elided.
    pub(super) fn assistant_message(&self, mode: TierMode) -> Message {
        let mut message = self.assistant.clone();
        if mode == TierMode::Elide && self.calls.iter().any(Call::is_deferred) {
            message.content.retain(|part| match part {
                Part::ToolUse { id, .. } => !self.calls.iter().any(|call| call.asked.id == *id && call.is_deferred()),
                Part::Text { .. }
                | Part::Image(_)
                | Part::Audio(_)
                | Part::Resource { .. }
                | Part::Reasoning { .. }
                | Part::ToolResult { .. } => true,
            });
            message.provider_state = None;
        }
        message
    }

    /// The answers that are there, in call order, without those of elided calls.
    pub(super) fn results(&self, mode: TierMode) -> Message {
        let shown = self.calls.iter().filter(|call| mode != TierMode::Elide || !call.is_deferred());
        Message { role: Role::User, content: shown.filter_map(Call::result).collect(), provider_state: None }
    }

    /// Whether the turn brought nothing but calls that could not be used.
    pub(super) fn is_useless(&self) -> bool {
        self.calls.iter().all(|call| match &call.state {
            CallState::Settled(Settlement::Rejected { reason, .. }) => match reason {
                Rejection::Unknown | Rejection::InvalidArguments | Rejection::Budget => true,
                Rejection::Denied | Rejection::Deferred | Rejection::Expired => false,
            },
            CallState::New
            | CallState::Selected
            | CallState::Asked { .. }
            | CallState::Cleared
            | CallState::Started
            | CallState::NeedsInput(_)
            | CallState::Task(_)
            | CallState::Settled(Settlement::Completed(_) | Settlement::Abandoned) => false,
        })
    }
}

impl Call {
    fn is_deferred(&self) -> bool {
        match &self.state {
            CallState::Settled(Settlement::Rejected { reason, .. }) => *reason == Rejection::Deferred,
            CallState::New
            | CallState::Selected
            | CallState::Asked { .. }
            | CallState::Cleared
            | CallState::Started
            | CallState::NeedsInput(_)
            | CallState::Task(_)
            | CallState::Settled(Settlement::Completed(_) | Settlement::Abandoned) => false,
        }
    }
}
