//! Verdicts on the final answer and on calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::GrantId;
use crate::json;
use crate::policy::{OnTimeout, PolicyMark};
use crate::tool::Problem;

/// The result of checking the final answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputVerdict {
    Valid {
        /// The parsed answer, if it has to be JSON.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
        value: Option<Value>,
    },
    /// It is invalid; the model reads why.
    Invalid { problems: Vec<Problem> },
}

/// The result of checking a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallVerdict {
    /// The call may run.
    Run { by: Authorization },
    /// The call requires approval.
    Ask {
        /// The policy rule that asks; `None` for the policy's default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        reason: String,
        /// The policy that asks; `None` if the question does not come from a policy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<PolicyMark>,
        /// The number of seconds for an answer; `None` for as long as the run lives.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer_timeout_s: Option<u64>,
        /// The effect of no answer in that time.
        #[serde(default, skip_serializing_if = "OnTimeout::is_expire")]
        on_timeout: OnTimeout,
        /// Whether a rule that denies could not be evaluated: only a grant for exactly these arguments covers the call.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_be_denied: bool,
    },
    /// The call is rejected; the model reads why.
    Rejected {
        /// The kind, for machines.
        reason: Rejection,
        message: String,
        /// The problems of the arguments, when they do not match the schema.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        problems: Vec<Problem>,
    },
}

/// The authorization of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Authorization {
    /// The policy allows it.
    Policy {
        /// The rule; `None` for the policy's default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<PolicyMark>,
    },
    /// A grant covers it.
    Grant { grant: GrantId },
    /// A person approved it, and it is unchanged since then. Recorded for calls that are answered outside; for calls
    /// that are sent, `tool.started` implies it.
    HumanApproval,
}

/// The reason why a call was rejected without being run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rejection {
    /// There is no such tool.
    Unknown,
    /// The arguments do not match its schema.
    InvalidArguments,
    /// The policy denies it, or a person denied it before.
    Denied,
    /// The budget is used up.
    Budget,
    /// A call of higher priority ran first.
    Deferred,
    /// There was no answer in time.
    Expired,
}

impl Rejection {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::InvalidArguments => "invalid_arguments",
            Self::Denied => "denied",
            Self::Budget => "budget",
            Self::Deferred => "deferred",
            Self::Expired => "expired",
        }
    }
}
