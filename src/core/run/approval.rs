//! A decision about one call: what was said, by whom, how far it reaches, and what exactly it was about.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::core::id::{CallId, GrantId, RunId};
use crate::core::json;
use crate::core::tool::{Arguments, Origin, ToolName};

/// Yes or no to one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Yes or no.
    pub answer: Answer,
    /// Who decided.
    pub by: String,
    /// Where they did.
    #[serde(default)]
    pub via: Channel,
    /// Why; the model reads it when the answer is no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How far a yes reaches.
    #[serde(default)]
    pub scope: Scope,
    /// Which later calls of the tool a yes with a wider scope covers.
    #[serde(default, skip_serializing_if = "Coverage::is_tool")]
    pub covers: Coverage,
    /// Until when a yes with a wider scope holds; without it, until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Arguments to use instead of the model's; checked like the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_arguments: Option<Arguments>,
    /// What it is about. The runner fills it in; what it says then is what was in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Box<Binding>>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes.
    Approve,
    /// No.
    Deny,
}

/// How somebody decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// At a terminal, asked by the command that ran.
    Terminal,
    /// With a command of its own, or a file given to one.
    CommandLine,
    /// Over HTTP.
    Api,
    /// By the program that toolgate is a library of.
    #[default]
    Library,
}

/// How far an approval reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This call alone.
    #[default]
    Once,
    /// Later calls in the same session.
    Session,
    /// Later calls of the same agent on behalf of the same principal, whatever the session.
    Always,
}

/// Which calls of a tool an approval with a wider scope covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// Any.
    #[default]
    Tool,
    /// Those with the very same arguments (RFC 8785).
    Arguments,
}

/// What a decision is about. Another question, another tool, another definition, other arguments or another reason to ask are another
/// matter, and the decision does not hold for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Who runs the tool, and under which name.
    pub origin: Origin,
    /// Hash of the tool's definition, how its server is reached included.
    pub definition: String,
    /// Hash of the arguments as they would run.
    pub arguments: String,
    /// The policy that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyMark>,
    /// The position of the fact that asks: a call may be asked about more than once in the same words, and an answer is to
    /// one question. 0 in journals that did not record it.
    #[serde(default)]
    pub event: u64,
}

/// A policy as it was at some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyMark {
    /// Its name.
    pub name: String,
    /// Hash of its text.
    pub version: String,
}

/// A standing approval that was found for a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The name the model sees.
    pub tool: ToolName,
    /// The approval.
    pub grant: GrantId,
    /// Hash of the only arguments it covers; `None` if it covers any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Until when it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl Decision {
    /// A decision about this call alone, by the program itself.
    pub fn new(answer: Answer, by: impl Into<String>) -> Self {
        Self {
            answer,
            by: by.into(),
            via: Channel::default(),
            reason: None,
            scope: Scope::Once,
            covers: Coverage::Tool,
            expires_at: None,
            edited_arguments: None,
            binding: None,
        }
    }

    /// Whether another decision says the same, whatever was in force when it was given.
    pub fn is_repeated_by(&self, other: &Self) -> bool {
        let bare = |decision: &Self| Self { binding: None, ..decision.clone() };
        bare(self) == bare(other)
    }
}

impl Coverage {
    fn is_tool(&self) -> bool {
        *self == Self::Tool
    }
}

impl Binding {
    /// A short text that stands for this binding of this call of this run: whoever decides can send back what they were
    /// shown.
    pub fn digest(&self, run: &RunId, call: &CallId) -> String {
        json::hash(&json!({"run": run, "call": call, "binding": self}))
    }
}

impl Granted {
    /// Whether it covers a call of its tool with these arguments at that time.
    pub(super) fn covers(&self, arguments: &Arguments, now: Option<Timestamp>) -> bool {
        let fits = self.arguments.as_ref().is_none_or(|hash| *hash == arguments.hash());
        let holds = self.expires_at.zip(now).is_none_or(|(until, now)| now < until);
        fits && holds
    }
}
