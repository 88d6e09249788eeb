//! Call history: past calls with the verdict and the outcome that the journals record.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::core::id::{AgentName, CallId, Principal, RunId};
use crate::core::policy::{Judgement, Policy, Subject, Verdict};
use crate::core::run::{Authorization, CallVerdict, DecisionKind, Event, InvalidEvent, JournalEntry, Rejection, Run};
use crate::core::tool::Tool;

/// A past call that a policy judged.
pub(super) struct PastCall {
    pub(super) run: RunId,
    pub(super) call: CallId,
    pub(super) at: Timestamp,
    pub(super) tool: Arc<Tool>,
    pub(super) agent: AgentName,
    principal: Option<Principal>,
    arguments: Map<String, Value>,
    pub(super) became: PastOutcome,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PastOutcome {
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
    pub(super) fn verdict(self) -> Verdict {
        match self {
            Self::Allowed => Verdict::Allow,
            Self::Granted | Self::Approved | Self::Refused | Self::Unanswered => Verdict::Ask,
            Self::Denied => Verdict::Deny,
        }
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Granted => "asked: covered by a grant",
            Self::Approved => "asked: approved",
            Self::Refused => "asked: refused",
            Self::Unanswered => "asked: not answered",
            Self::Denied => "denied",
        }
    }
}

impl PastCall {
    /// Judges the call with `policy`, with the tool definition of the time.
    pub(super) fn judge(&self, policy: &Policy) -> Judgement {
        policy.judge(&Subject {
            tool: &self.tool,
            agent: Some(&self.agent),
            principal: self.principal.as_ref(),
            arguments: Some(&self.arguments),
        })
    }
}

/// The calls of a run, in the order of their first check. A call that was checked again counts with its last check.
pub(super) fn calls(id: &RunId, journal: &[JournalEntry]) -> Result<Vec<PastCall>, InvalidEvent> {
    let mut past: Vec<PastCall> = Vec::new();
    let mut places: BTreeMap<CallId, usize> = BTreeMap::new();
    let mut run: Option<Run> = None;
    for recorded in journal {
        let Some(known) = &mut run else {
            run = Run::replay_recorded([recorded])?;
            continue;
        };
        if let Event::CallChecked { call, verdict } = &recorded.event
            && let Some(checked) = checked(id, known, call, verdict, recorded.at)
        {
            match places.get(call).and_then(|place| past.get_mut(*place)) {
                Some(before) => *before = checked,
                None => {
                    places.insert(call.clone(), past.len());
                    past.push(checked);
                }
            }
        }
        if let Event::ApprovalDecided { call, decision } = &recorded.event
            && let Some(asked) = places.get(call).and_then(|place| past.get_mut(*place))
            && asked.became.verdict() == Verdict::Ask
        {
            asked.became = match decision.answer {
                DecisionKind::Approve => PastOutcome::Approved,
                DecisionKind::Deny => PastOutcome::Refused,
            };
        }
        known.apply_at(&recorded.event, recorded.at)?;
    }
    Ok(past)
}

/// The call, if a policy judged it: a call with invalid arguments or beyond the budget was never judged.
fn checked(id: &RunId, run: &Run, call: &CallId, verdict: &CallVerdict, at: Timestamp) -> Option<PastCall> {
    let became = match verdict {
        CallVerdict::Run { by: Authorization::Policy { .. } } => PastOutcome::Allowed,
        CallVerdict::Run { by: Authorization::Grant { .. } } => PastOutcome::Granted,
        // The decision event records the outcome.
        CallVerdict::Run { by: Authorization::HumanApproval } => return None,
        CallVerdict::Ask { policy: Some(_), .. } => PastOutcome::Unanswered,
        // Approval was required for another reason: the outcome of an earlier attempt was unknown.
        CallVerdict::Ask { policy: None, .. } => return None,
        CallVerdict::Rejected { reason: Rejection::Denied, .. } => PastOutcome::Denied,
        CallVerdict::Rejected { .. } => return None,
    };
    let asked = run.call(call)?;
    let spec = &run.started().spec;
    Some(PastCall {
        run: id.clone(),
        call: call.clone(),
        at,
        tool: asked.tool.clone()?,
        agent: spec.agent.clone(),
        principal: spec.principal.clone(),
        arguments: asked.arguments().as_object()?.clone(),
        became,
    })
}
