//! Steps of a call: the effect of one journal event on calls, as text and as structured fields.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::cli::text::{list, one_line};
use crate::cli::view::approval::{because, by_way_of, clock, marked};
use crate::cli::view::approval_scope::{reach, when_met};
use crate::core::id::{CallId, GrantId};
use crate::core::policy::PolicyMark;
use crate::core::run::{Authorization, CallVerdict, Channel, Decision, DecisionKind, Event, JournalEntry, Rejection};
use crate::core::tool::{Outcome, escape_untrusted};
use crate::ports::Grant;

/// Current and former grants by id.
pub(in crate::cli) type Grants = BTreeMap<GrantId, Grant>;

/// The most characters of an answer or message that are quoted.
const QUOTED: usize = 200;

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallStatus {
    /// The call is not decided yet.
    Open,
    /// Calls of higher priority ran first.
    Deferred,
    /// The call was rejected: by the policy, by a person, or because it could not run.
    Refused,
    /// The deadline passed without an answer.
    Expired,
    Pending,
    /// The call may run.
    Cleared,
    /// The call was sent.
    Running,
    /// The call ran or was answered.
    Ran,
    /// The run ended before the call was sent or answered.
    Abandoned,
    /// The run ended after the call was sent, and before its result arrived.
    OutcomeUnknown,
}

impl CallStatus {
    /// The state after the end of the run.
    pub(super) fn at_the_end(self) -> Self {
        match self {
            Self::Open | Self::Pending | Self::Cleared => Self::Abandoned,
            Self::Running => Self::OutcomeUnknown,
            Self::Deferred | Self::Refused | Self::Expired | Self::Ran | Self::Abandoned | Self::OutcomeUnknown => self,
        }
    }

    /// The name of the state.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Deferred => "deferred",
            Self::Refused => "refused",
            Self::Expired => "expired",
            Self::Pending => "pending",
            Self::Cleared => "cleared",
            Self::Running => "running",
            Self::Ran => "ran",
            Self::Abandoned => "abandoned",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }
}

/// A step of a call.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Step {
    /// The number of the journal event.
    pub(super) event: u64,
    at: Timestamp,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<PolicyMark>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<GrantId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<Channel>,
    pub(super) reason: String,
    /// Whether the policy itself allowed the call.
    #[serde(skip)]
    pub(super) is_granted: bool,
}

/// The step that a journal entry adds to a call, with the call's new state.
#[expect(clippy::wildcard_enum_match_arm, reason = "picks the events that concern it")]
pub(super) fn explained(recorded: &JournalEntry, call: &CallId, grants: &Grants) -> Option<(CallStatus, Step)> {
    let step = |reason: String| Step {
        event: recorded.seq,
        at: recorded.at,
        r#type: recorded.event.name(),
        rule: None,
        policy: None,
        grant: None,
        by: None,
        via: None,
        reason,
        is_granted: false,
    };
    Some(match &recorded.event {
        Event::TierSelected { priority, deferred, .. } if deferred.contains(call) => {
            (CallStatus::Deferred, step(format!("calls of priority {priority} go first")))
        }
        Event::CallChecked { verdict, .. } => checked(verdict, step(String::new()), grants),
        Event::ApprovalDecided { decision, .. } => {
            let stand = match decision.answer {
                DecisionKind::Approve => CallStatus::Cleared,
                DecisionKind::Deny => CallStatus::Refused,
            };
            let decided = Step {
                by: Some(decision.by.clone()),
                via: Some(decision.via),
                policy: decision.binding.as_ref().and_then(|binding| binding.policy.clone()),
                ..step(decided(decision))
            };
            (stand, decided)
        }
        Event::CallDrifted { differences, .. } => {
            let changes = differences.iter().map(|difference| {
                let side = |text: &str| one_line(&escape_untrusted(text), QUOTED);
                format!(
                    "{} was {}, is {}",
                    escape_untrusted(&difference.field),
                    side(&difference.before),
                    side(&difference.after)
                )
            });
            let reason = format!("checked again before it was sent: {}", changes.collect::<Vec<_>>().join("; "));
            (CallStatus::Open, step(reason))
        }
        Event::Extended { until, by, via, .. } => {
            let reason = format!("deadline extended to {} by {}", clock(*until), escape_untrusted(by));
            (CallStatus::Pending, Step { by: Some(by.clone()), via: Some(*via), ..step(reason) })
        }
        Event::Expired { .. } => (CallStatus::Expired, step("no answer in time".into())),
        Event::QuestionAnswered { answer, .. } => {
            let words = one_line(&answer.choice.to_words(), QUOTED);
            let reason = format!("answered by {} {}: {words}", escape_untrusted(&answer.by), by_way_of(answer.via));
            (CallStatus::Ran, Step { by: Some(answer.by.clone()), via: Some(answer.via), ..step(reason) })
        }
        Event::CallsStarted { .. } => (CallStatus::Running, step("sent".into())),
        Event::CallCompleted { outcome, .. } => {
            let reason = match (outcome.as_ref(), outcome.is_error()) {
                (Outcome::Unknown, _) => "outcome unknown: it was sent, and may have taken effect",
                (Outcome::Returned(_) | Outcome::Failed(_), true) => "ended with an error",
                (Outcome::Returned(_) | Outcome::Failed(_), false) => "ended",
            };
            (CallStatus::Ran, step(reason.into()))
        }
        Event::InputRequested { needed, .. } => {
            let asks = list(needed.questions.keys().map(|key| escape_untrusted(key)));
            (CallStatus::Running, step(format!("its server asks, and the call is held open: {asks}")))
        }
        Event::InputRequired { needed, .. } => {
            let reason = format!("its server asks: {}", list(needed.questions.keys().map(|key| escape_untrusted(key))));
            (CallStatus::Pending, step(reason))
        }
        Event::InputGiven { given, .. } => {
            let verb = if given.accepts() { "answered" } else { "declined" };
            let reason = format!("the question of its server was {verb} by {}", escape_untrusted(&given.by));
            (CallStatus::Cleared, Step { by: Some(given.by.clone()), via: Some(given.via), ..step(reason) })
        }
        Event::TaskStarted { .. } => (CallStatus::Pending, step("runs at its server as a task".into())),
        _ => return None,
    })
}

fn checked(verdict: &CallVerdict, step: Step, grants: &Grants) -> (CallStatus, Step) {
    match verdict {
        CallVerdict::Run { by: Authorization::Policy { rule, policy } } => {
            let source = rule.as_ref().map(|rule| format!("rule {}", escape_untrusted(rule)));
            let source: Vec<String> = source.into_iter().chain(policy.as_ref().map(marked)).collect();
            let reason = match source.is_empty() {
                true => "may run: no rule requires approval".to_owned(),
                false => format!("may run: {}", source.join(", ")),
            };
            (CallStatus::Cleared, Step { rule: rule.clone(), policy: policy.clone(), reason, is_granted: true, ..step })
        }
        CallVerdict::Run { by: Authorization::Grant { grant: id } } => {
            let reason = format!("may run: auto-approved, {}", grant(id, grants));
            (CallStatus::Cleared, Step { grant: Some(id.clone()), reason, ..step })
        }
        CallVerdict::Run { by: Authorization::HumanApproval } => {
            (CallStatus::Cleared, Step { reason: "may run: approved".to_owned(), ..step })
        }
        CallVerdict::Ask { rule, reason, policy, answer_timeout_s, on_timeout, .. } => {
            let otherwise =
                if on_timeout.is_expire() { String::new() } else { format!(", otherwise {}", on_timeout.as_str()) };
            let within = answer_timeout_s.map(|seconds| format!(", within {seconds} s{otherwise}")).unwrap_or_default();
            let reason = format!("requires approval{within}, {}", because(reason, rule.as_deref(), policy.as_ref()));
            (CallStatus::Pending, Step { rule: rule.clone(), policy: policy.clone(), reason, ..step })
        }
        CallVerdict::Rejected { reason, message, .. } => {
            let stand = match reason {
                Rejection::Deferred => CallStatus::Deferred,
                Rejection::Expired => CallStatus::Expired,
                Rejection::Unknown | Rejection::InvalidArguments | Rejection::Denied | Rejection::Budget => {
                    CallStatus::Refused
                }
            };
            let word = reason.as_str().replace('_', " ");
            (stand, Step { reason: format!("{word}: {}", one_line(message, QUOTED)), ..step })
        }
    }
}

fn decided(decision: &Decision) -> String {
    let word = match decision.answer {
        DecisionKind::Approve => "approved",
        DecisionKind::Deny => "denied",
    };
    let reach = reach(decision.scope, &decision.coverage, decision.expires_at);
    let edited = decision
        .edited_arguments
        .as_ref()
        .map(|arguments| format!(", with other arguments: {}", one_line(&arguments.to_value().to_string(), QUOTED)));
    let edited = edited.unwrap_or_default();
    let policy = decision.binding.as_ref().and_then(|binding| binding.policy.as_ref());
    let policy = policy.map(|policy| format!(", under {}", marked(policy))).unwrap_or_default();
    let reason = decision.reason.as_ref().map(|reason| format!(": {}", escape_untrusted(reason))).unwrap_or_default();
    let by = format!("{} {}", escape_untrusted(&decision.by), by_way_of(decision.via));
    format!("{word}{reach} by {by}{policy}{reason}{edited}")
}

/// Describes a grant, with its author if the grant is still stored.
pub(super) fn grant(id: &GrantId, grants: &Grants) -> String {
    match grants.get(id) {
        None => format!("{id}"),
        Some(grant) => {
            let until = grant.expires_at.map(|until| format!(", until {}", clock(until))).unwrap_or_default();
            let revoked = grant.revoked.as_ref().map(|revoked| format!(", revoked {}", clock(revoked.at)));
            let covers = match (&grant.arguments, &grant.when) {
                (Some(_), _) => format!("only {}", grant.summary),
                (None, Some(condition)) => format!("only {}", when_met(condition)),
                (None, None) => "any arguments".to_owned(),
            };
            let by = format!("{} {}", escape_untrusted(&grant.by), by_way_of(grant.via));
            format!("{id}, {covers}, by {by} {}{until}{}", clock(grant.created_at), revoked.unwrap_or_default())
        }
    }
}
