//! Approval decisions: the answer for one call, who gave it, its scope, and the exact content that was approved.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::id::{CallId, GrantId, RunId};
use crate::json;
use crate::policy::{Condition, Judgement, OnTimeout, PolicyMark, Subject, Verdict};
use crate::tool::{Arguments, Origin, ToolName};

/// The decision about one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Approve or deny.
    pub answer: DecisionKind,
    pub by: String,
    /// The channel the approver used.
    #[serde(default)]
    pub via: Channel,
    /// The reason; the model reads it when the call is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The scope of an approval.
    #[serde(default)]
    pub scope: Scope,
    /// The later calls of the tool that an approval with a wider scope covers.
    #[serde(rename = "match", default, skip_serializing_if = "Coverage::is_tool")]
    pub coverage: Coverage,
    /// When an approval with a wider scope expires; without it, it holds until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Arguments to use instead of the model's; checked like the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_arguments: Option<Arguments>,
    /// The content that was decided about. The runner fills it in; it then records what was in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Box<Binding>>,
}

/// Approve or deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// The call may run.
    Approve,
    /// The call may not run.
    Deny,
}

/// The channel of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// At a terminal, in reply to a prompt of the running command.
    Terminal,
    /// With a separate command, or with a file given to one.
    CommandLine,
    /// Over HTTP.
    Api,
    /// Not at all: toolgate itself, at a limit of the run.
    Limit,
    /// By the program that embeds toolgate as a library.
    #[default]
    Library,
    /// By no person: the time for an answer passed, and the policy says what that decides.
    Timeout,
}

/// The scope of an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This call alone.
    #[default]
    Once,
    /// Later calls in the same session.
    Session,
    /// Later calls of the same agent on behalf of the same principal, in any session.
    Always,
}

/// The calls of a tool that an approval with a wider scope covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    /// Calls with any arguments.
    #[default]
    Tool,
    /// Calls with exactly the same arguments (RFC 8785).
    Arguments,
    /// Calls that meet this condition, in the language of policies ([`Condition::for_grant`]).
    When(String),
}

/// The content of a decision. If the question, tool, definition, arguments or reason to ask changes, the decision does
/// not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The origin of the tool, and its name there.
    pub origin: Origin,
    /// Hash of the tool's definition, including how its server is reached.
    pub definition: String,
    /// Hash of the arguments that would run.
    pub arguments: String,
    /// The policy that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyMark>,
    /// The position of the event that asks: a run may ask about a call more than once in the same words, and an answer
    /// belongs to one question. 0 in journals that did not record it.
    #[serde(default)]
    pub event: u64,
}

/// A grant that was found for a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolGrant {
    /// The name the model sees.
    #[serde(rename = "tool_name", alias = "tool")]
    pub tool: ToolName,
    #[serde(rename = "grant_id", alias = "grant")]
    pub grant: GrantId,
    /// Hash of the only arguments it covers; `None` if it covers any.
    #[serde(default, rename = "arguments_hash", alias = "arguments", skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The condition that covered calls meet; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What asked about the approved call; `None` if the grant was given for future calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AskedBy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// What asked about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedBy {
    /// The id of the rule; `None` for the default of the policy.
    pub rule: Option<String>,
}

impl Decision {
    /// A decision about this call alone, by the embedding program.
    pub fn new(answer: DecisionKind, by: impl Into<String>) -> Self {
        Self {
            answer,
            by: by.into(),
            via: Channel::default(),
            reason: None,
            scope: Scope::Once,
            coverage: Coverage::Tool,
            expires_at: None,
            edited_arguments: None,
            binding: None,
        }
    }

    /// The decision that a policy makes after the time for an answer; `None` if it makes none.
    pub(super) fn on_timeout(on_timeout: OnTimeout) -> Option<Self> {
        let answer = match on_timeout {
            OnTimeout::Approve => DecisionKind::Approve,
            OnTimeout::Deny => DecisionKind::Deny,
            OnTimeout::Expire => return None,
        };
        let reason = Some("there was no answer in time".to_owned());
        Some(Self { via: Channel::Timeout, reason, ..Self::new(answer, "timeout") })
    }

    /// Whether no person decided: the time for an answer passed.
    pub fn is_by_timeout(&self) -> bool {
        self.via == Channel::Timeout
    }

    /// Whether another decision has the same content, whatever was in force when it was given.
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
    /// A short digest of this binding for this call of this run: an approver can send it back to prove which version
    /// was shown.
    pub fn digest(&self, run: &RunId, call: &CallId) -> String {
        json::hash(&json!({"run": run, "call": call, "binding": self}))
    }
}

impl AskedBy {
    /// Whether an answer to it answers a question of this judgement as well: of the same rule, or of the policy's default.
    pub(super) fn answers(&self, judged: &Judgement) -> bool {
        judged.verdict != Verdict::Ask || self.answers_rule(judged.rule.as_ref())
    }

    pub(super) fn answers_rule(&self, rule: Option<&String>) -> bool {
        rule.is_none() || rule == self.rule.as_ref()
    }
}

impl ToolGrant {
    /// Whether it covers a call of its tool with these arguments at that time, which the policy judges like this. A condition
    /// that cannot be evaluated covers nothing. A grant for more than its arguments covers no call that a rule may deny, and
    /// none about which another rule asks than about the approved call: no person has read the reason of that rule.
    pub fn covers(
        &self,
        subject: &Subject<'_>,
        arguments: &Arguments,
        at: Option<Timestamp>,
        judged: &Judgement,
    ) -> bool {
        let fits = match &self.arguments {
            Some(hash) => *hash == arguments.hash(),
            None => !judged.may_be_denied && self.asked_by.as_ref().is_none_or(|asked_by| asked_by.answers(judged)),
        };
        let holds = self.expires_at.zip(at).is_none_or(|(until, at)| at < until);
        let meets = |when: &String| Condition::for_grant(when).is_ok_and(|when| when.holds_for(subject));
        fits && holds && self.when.as_ref().is_none_or(meets)
    }
}
