//! Neutral description of a pending item: data that each surface renders in its own form. Texts from outside are not
//! escaped.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::id::CallId;
use crate::policy::{OnTimeout, PolicyMark};
use crate::tool::{Annotations, Ask, Difference, Problem, Question};

/// The description of a pending item of any kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Description<'a> {
    pub kind: &'static str,
    /// The call, to which answers are addressed; `None` for an item of the run itself.
    pub call_id: Option<&'a CallId>,
    /// The position of the event that asks, if the item shows it.
    pub event: Option<u64>,
    /// When the wait began, if the time of the events is known.
    pub requested_at: Option<Timestamp>,
    /// The deadline; without it, the item stays pending as long as the run lives.
    pub expires_at: Option<Timestamp>,
    pub form: AnswerForm<'a>,
}

/// The form of the answer that settles a pending item, with what its author has to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnswerForm<'a> {
    /// A person approves or denies the call.
    Decision(Review<'a>),
    /// The application runs the call and returns the result.
    Result {
        /// JSON Schema of the result, if declared.
        schema: Option<&'a Value>,
    },
    /// A person answers the model with options, text, or both.
    Choice(&'a Ask),
    /// A person answers all questions of the tool's server.
    Elicitation {
        /// The questions, by the server's keys.
        questions: &'a BTreeMap<String, Question>,
        /// How the answers reach the server.
        delivery: Delivery,
    },
    /// No answer is required: the run continues when the work is done.
    Background(BackgroundWork<'a>),
    /// The user or the caller continues the paused run.
    Continue {
        /// The person or program that paused it.
        by: &'a str,
        reason: Option<&'a str>,
    },
}

/// The facts that an approver considers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Review<'a> {
    /// The call in one line.
    pub summary: &'a str,
    /// Why approval is required.
    pub reason: &'a str,
    /// The policy rule that asks, if one does.
    pub rule: Option<&'a str>,
    /// The policy that asks.
    pub policy: Option<&'a PolicyMark>,
    /// The server's hints about the tool.
    pub annotations: &'a Annotations,
    /// Whether the operator trusts these hints.
    pub trusted: bool,
    /// The problems of arguments that do not match the tool's schema.
    pub problems: &'a [Problem],
    /// The differences since an earlier approval of the call.
    pub differences: &'a [Difference],
    /// Whether it was sent before and may have taken effect.
    pub outcome_unknown: bool,
    /// The effect if the deadline passes.
    pub on_timeout: OnTimeout,
}

/// How the answers to a server's questions reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The open call receives them.
    Held,
    /// The server waits for them.
    Continued,
    /// The call was cancelled, and is sent again with them.
    Restarted,
    /// The call had begun when it was cancelled: sending it a second time with them requires explicit consent.
    Repeated,
}

/// Work that is done outside the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackgroundWork<'a> {
    /// The noun for the work, such as `task`.
    pub noun: &'static str,
    /// The place of the work, such as `at its server`.
    pub place: &'static str,
    /// The event that ends the wait, such as `its server to finish the task`.
    pub awaited: &'static str,
    pub id: &'a str,
    /// The interval at which it is polled, if one is requested.
    pub poll_ms: Option<u64>,
    /// Its status message.
    pub message: Option<&'a str>,
}

impl AnswerForm<'_> {
    /// Whether the user or the caller has to answer.
    pub fn wants_answer(&self) -> bool {
        match self {
            Self::Decision(_)
            | Self::Result { .. }
            | Self::Choice(_)
            | Self::Elicitation { .. }
            | Self::Continue { .. } => true,
            Self::Background(_) => false,
        }
    }

    /// Whether a person has to answer a call's item.
    pub fn is_for_people(&self) -> bool {
        match self {
            Self::Decision(_) | Self::Choice(_) | Self::Elicitation { .. } => true,
            Self::Result { .. } | Self::Background(_) | Self::Continue { .. } => false,
        }
    }
}
