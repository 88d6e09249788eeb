//! Rules of a run: the settings of an agent that apply to each of its runs as they are written. The configuration, the
//! agent and the specification of a run hold the same type, so that a new rule has one definition (decision 0049).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Compaction, OnExceed};
use crate::pattern::NamePattern;
use crate::policy::StopCondition;
use crate::tool::{AskHuman, TierMode};

/// The rules of a run. The default allows no question and no undo, ends a run at its limits with a last answer, and
/// reports every failure of a call to the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRules {
    /// The treatment of calls below the highest tier.
    pub tiers: TierMode,
    /// Settings of the model's questions to the user, with the tool `ask_human`; `None` for no such tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask_human: Option<AskHuman>,
    /// The effect of a denied call.
    pub on_deny: OnDeny,
    /// The effect of a call that settles with an error.
    #[serde(skip_serializing_if = "OnToolError::is_default")]
    pub on_tool_error: OnToolError,
    /// The treatment of a call whose outcome is unknown.
    #[serde(alias = "in_doubt")]
    pub on_unknown_outcome: OnUnknownOutcome,
    /// Whether the calls that took effect are undone before the run ends as failed or cancelled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub compensate: bool,
    /// JSON Schema of the final answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Whether the output validator checks the final answer, of an agent without a schema as well.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub validate_output: bool,
    /// The tools whose successful call gives the answer of the run. The name `finish` makes the builtin tool of that name
    /// available.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finish_with: Vec<NamePattern>,
    /// The condition after which the model answers without tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_when: Option<StopCondition>,
    /// The effect of a hard limit.
    #[serde(skip_serializing_if = "OnExceed::is_default")]
    pub on_exceed: OnExceed,
    /// When the conversation is compacted; `None` for only on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Compaction>,
}

/// The effect of a denied call on the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDeny {
    /// The model reads the denial and continues.
    #[default]
    Report,
    /// The run ends with `tool_denied`.
    Fail,
}

/// The effect on the run of a call of a server or the caller that settles with an error or an unknown outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnToolError {
    /// The model reads the error and continues.
    #[default]
    Report,
    /// The run ends with `tool_failed`.
    Fail,
}

impl OnToolError {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The treatment of a call that was started and never settled, when it must not simply be repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknownOutcome {
    /// The model reads "outcome unknown".
    #[default]
    Report,
    /// The call requires approval before it is made again.
    Ask,
}
