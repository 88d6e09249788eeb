//! Backtest of a policy: past calls with the verdict and the outcome that their journal records.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::id::{AgentName, CallId, Principal, RunId};
use crate::policy::{Judgement, Policy, Subject, Verdict};
use crate::run::{
    Authorization, CallHistory, CallVerdict, DecisionKind, Event, History, InvalidEvent, JournalEntry, Rejection, Run,
    Spec,
};
use crate::tool::Tool;

/// A past call that a policy judged.
pub struct PastCall {
    pub run: RunId,
    pub call: CallId,
    pub at: Timestamp,
    pub tool: Arc<Tool>,
    pub agent: AgentName,
    pub principal: Option<Principal>,
    pub arguments: Map<String, Value>,
    pub became: PastOutcome,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PastOutcome {
    /// The policy allowed it.
    Allowed,
    /// A grant covered it.
    Granted,
    /// It required approval, and a person approved it.
    Approved,
    /// It required approval, and a person denied it.
    Refused,
    /// It required approval; the decision is pending or its deadline passed.
    Unanswered,
    /// The policy denied it.
    Denied,
}

impl PastOutcome {
    /// The policy's verdict at the time.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Allowed => Verdict::Allow,
            Self::Granted | Self::Approved | Self::Refused | Self::Unanswered => Verdict::Ask,
            Self::Denied => Verdict::Deny,
        }
    }
}

impl PastCall {
    /// Judges the call with `policy`, with the tool definition of the time.
    pub fn judge(&self, policy: &Policy) -> Judgement {
        policy.judge(&Subject {
            tool: &self.tool,
            agent: Some(&self.agent),
            principal: self.principal.as_ref(),
            arguments: Some(&self.arguments),
        })
    }
}

/// The calls of a run, in the order of their first check. A call that was checked again counts with its last check. The
/// calls that a fork copied are those of the other run.
pub fn past_calls(id: &RunId, journal: &[JournalEntry]) -> Result<Vec<PastCall>, InvalidEvent> {
    Run::replay_recorded(journal)?;
    let Some(history) = History::from_journal(journal) else { return Ok(Vec::new()) };
    let (spec, own) = (&history.started.spec, history.started.trigger.copied());
    let mut past: Vec<(u64, PastCall)> = history.calls().filter_map(|call| judged(id, spec, own, call)).collect();
    past.sort_by_key(|(first, _)| *first);
    Ok(past.into_iter().map(|(_, call)| call).collect())
}

/// The call with the position of its first check, if a policy judged it in the run's own part, which begins at `own`.
fn judged(id: &RunId, spec: &Spec, own: u64, call: &CallHistory<'_>) -> Option<(u64, PastCall)> {
    let checked = |entry: &JournalEntry| Some((entry.seq, entry.at, outcome_of_check(&entry.event)?));
    let mut checks = call.entries.iter().filter_map(|entry| checked(entry));
    let first = checks.next()?;
    let (last, at, became) = checks.next_back().unwrap_or(first);
    if last < own {
        return None;
    }
    let since = call.entries.iter().rev().take_while(|entry| entry.seq > last);
    let mut decisions = since.filter_map(|entry| {
        let Event::ApprovalDecided { decision, .. } = &entry.event else { return None };
        (!decision.is_by_timeout()).then_some(decision.answer)
    });
    let became = match decisions.next().filter(|_| became.verdict() == Verdict::Ask) {
        Some(DecisionKind::Approve) => PastOutcome::Approved,
        Some(DecisionKind::Deny) => PastOutcome::Refused,
        None => became,
    };
    let call = call.before(last);
    let past = PastCall {
        run: id.clone(),
        call: call.requested.id.clone(),
        at,
        tool: call.tool()?.clone(),
        agent: spec.agent.clone(),
        principal: spec.principal.clone(),
        arguments: call.arguments().as_object()?.clone(),
        became,
    };
    Some((first.0, past))
}

/// The outcome of a check by a policy, before a person decides. A call with invalid arguments or beyond the budget was
/// never judged.
fn outcome_of_check(event: &Event) -> Option<PastOutcome> {
    let Event::CallChecked { verdict, .. } = event else { return None };
    match verdict {
        CallVerdict::Run { by: Authorization::Policy { .. } } => Some(PastOutcome::Allowed),
        CallVerdict::Run { by: Authorization::Grant { .. } } => Some(PastOutcome::Granted),
        // The decision event records the outcome.
        CallVerdict::Run { by: Authorization::HumanApproval } => None,
        CallVerdict::Ask { policy: Some(_), .. } => Some(PastOutcome::Unanswered),
        // Approval was required for another reason: the outcome of an earlier attempt was unknown.
        CallVerdict::Ask { policy: None, .. } => None,
        CallVerdict::Rejected { reason: Rejection::Denied, .. } => Some(PastOutcome::Denied),
        CallVerdict::Rejected { .. } => None,
    }
}
