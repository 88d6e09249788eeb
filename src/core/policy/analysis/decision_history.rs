//! Decision history, collected from journals and revoked grants.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::id::{AgentName, CallId, Principal, RunId};
use crate::policy::denial::is_of_every_call;
use crate::run::{CallHistory, CallVerdict, Coverage, DecisionKind, Event, History, JournalEntry, Rejection, Spec};
use crate::tool::{Arguments, Origin};

/// Past approvals, and the tools that must never be suggested.
#[derive(Debug, Default)]
pub struct DecisionHistory {
    /// The approvals, one per call.
    pub approvals: BTreeMap<(RunId, CallId), Approval>,
    /// The tools that are never suggested, each with the first reason found.
    pub barred: BTreeMap<Origin, ExclusionReason>,
    /// The calls that a person or a policy denied, by tool and [`arguments_hash`]. No rule covers them; rules for other
    /// arguments may. Denials by presets that deny every call do not count.
    pub refused: BTreeMap<(Origin, String), RefusedCall>,
    /// The runs whose journals cannot be read, with the error.
    pub unread: Vec<String>,
}

/// A call that a person or a policy denied.
#[derive(Clone, Debug)]
pub struct RefusedCall {
    pub arguments: Map<String, Value>,
    pub reason: ExclusionReason,
}

/// The reason why a tool, or a call of it, is never suggested, even if it was approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExclusionReason {
    /// A person denied the same call.
    Refused { by: String, run: RunId },
    /// A policy denied the same call.
    Denied { run: RunId },
    /// The tool's definition changed, or a call differed from the call that was approved.
    Changed { run: RunId },
    /// A grant for the tool was revoked.
    Revoked,
}

/// A call that a person approved.
#[derive(Clone, Debug)]
pub struct Approval {
    pub agent: AgentName,
    pub principal: Option<Principal>,
    pub origin: Origin,
    /// Hash of the tool's definition.
    pub definition: String,
    /// The arguments of the call as it ran.
    pub arguments: Map<String, Value>,
    /// The rule that required approval; `None` if it was the policy's default.
    pub rule: Option<String>,
    /// The condition under which the person approved later calls as well.
    pub condition: Option<String>,
    pub by: String,
}

impl DecisionHistory {
    /// Adds the decisions of a run.
    pub fn read(&mut self, run: &RunId, journal: &[JournalEntry]) {
        let Some(history) = History::from_journal(journal) else { return };
        let (spec, own) = (&history.started.spec, history.started.trigger.copied());
        let mut reasons: Vec<(u64, Origin, ExclusionReason)> =
            journal.iter().flat_map(|entry| changed_tools(entry, run)).collect();
        for call in history.calls() {
            reasons.extend(call.entries.iter().filter_map(|entry| spoils(entry, run)));
            for entry in &call.entries {
                self.refused.extend(refusal(entry, call, run));
            }
            // The decisions in the copied part of a fork belong to the other run.
            for entry in call.entries.iter().filter(|entry| entry.seq >= own) {
                if let Some(approval) = approval(entry, call, spec) {
                    self.approvals.insert((run.clone(), call.requested.id.clone()), approval);
                }
            }
        }
        reasons.sort_by_key(|(seq, ..)| *seq);
        reasons.iter().for_each(|(_, origin, why)| self.bar(origin, why.clone()));
    }

    /// Excludes a tool from suggestions. The first reason is kept.
    pub fn bar(&mut self, origin: &Origin, why: ExclusionReason) {
        self.barred.entry(origin.clone()).or_insert(why);
    }
}

/// The listed tools whose definition changed.
fn changed_tools(entry: &JournalEntry, run: &RunId) -> Vec<(u64, Origin, ExclusionReason)> {
    let Event::ToolsListed { toolset } = &entry.event else { return Vec::new() };
    let changed = toolset.iter().filter(|tool| tool.changed);
    changed.map(|tool| (entry.seq, tool.origin.clone(), ExclusionReason::Changed { run: run.clone() })).collect()
}

/// The tool that this entry of a call excludes from suggestions, with the reason.
fn spoils(entry: &JournalEntry, run: &RunId) -> Option<(u64, Origin, ExclusionReason)> {
    let Event::CallDrifted { tool: Some(tool), .. } = &entry.event else { return None };
    Some((entry.seq, tool.origin.clone(), ExclusionReason::Changed { run: run.clone() }))
}

/// The call that a person or a policy denied in this entry, by tool and [`arguments_hash`].
fn refusal(entry: &JournalEntry, call: &CallHistory<'_>, run: &RunId) -> Option<((Origin, String), RefusedCall)> {
    let at = call.before(entry.seq);
    let tool = || call.tool().map(|tool| tool.origin.clone());
    let (origin, reason) = if let Event::CallChecked { verdict, .. } = &entry.event {
        let CallVerdict::Rejected { reason: Rejection::Denied, message, .. } = verdict else { return None };
        if is_of_every_call(message) {
            return None;
        }
        (tool()?, ExclusionReason::Denied { run: run.clone() })
    } else {
        let Event::ApprovalDecided { decision, .. } = &entry.event else { return None };
        if decision.answer != DecisionKind::Deny || decision.is_by_timeout() {
            return None;
        }
        let bound = decision.binding.as_ref().map(|binding| binding.origin.clone());
        (bound.or_else(tool)?, ExclusionReason::Refused { by: decision.by.clone(), run: run.clone() })
    };
    let arguments = at.arguments().as_object()?.clone();
    Some(((origin, arguments_hash(&arguments)), RefusedCall { arguments, reason }))
}

/// The hash by which equal arguments are found, in whichever order a model wrote them ([`Arguments::hash`]).
pub fn arguments_hash(arguments: &Map<String, Value>) -> String {
    Arguments::Object(arguments.clone()).hash()
}

/// The approval that this entry of a call records.
fn approval(entry: &JournalEntry, call: &CallHistory<'_>, spec: &Spec) -> Option<Approval> {
    let Event::ApprovalDecided { decision, .. } = &entry.event else { return None };
    if decision.answer != DecisionKind::Approve || decision.is_by_timeout() {
        return None;
    }
    let call = call.before(entry.seq);
    let (tool, binding) = (call.tool()?, decision.binding.as_ref());
    Some(Approval {
        agent: spec.agent.clone(),
        principal: spec.principal.clone(),
        origin: binding.map_or_else(|| tool.origin.clone(), |binding| binding.origin.clone()),
        definition: binding.map_or_else(|| tool.hash.clone(), |binding| binding.definition.clone()),
        arguments: decision.edited_arguments.as_ref().unwrap_or_else(|| call.arguments()).as_object()?.clone(),
        rule: if let Some(CallVerdict::Ask { rule, .. }) = call.verdict() { rule.clone() } else { None },
        condition: if let Coverage::When(condition) = &decision.coverage { Some(condition.clone()) } else { None },
        by: decision.by.clone(),
    })
}
