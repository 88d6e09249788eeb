//! Decision history, collected from journals and revoked grants.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::core::id::{AgentName, CallId, Principal, RunId};
use crate::core::run::{CallVerdict, Decision, DecisionKind, Event, JournalEntry, Rejection, Spec, Trigger};
use crate::core::tool::{Origin, ToolCall, Toolset};
use crate::ports::Grant;

/// Past approvals, and the tools that must never be suggested.
#[derive(Debug, Default)]
pub(super) struct DecisionHistory {
    /// The approvals, one per call.
    pub(super) approvals: BTreeMap<(RunId, CallId), Approval>,
    /// The tools that are never suggested, each with the first reason found.
    pub(super) barred: BTreeMap<Origin, ExclusionReason>,
    /// The runs whose journals cannot be read, with the error.
    pub(super) unread: Vec<String>,
}

/// The reason why a tool is never suggested, even if calls of it were approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExclusionReason {
    /// A person denied a call of the tool.
    Refused { by: String, run: RunId },
    /// A policy denied a call of the tool.
    Denied { run: RunId },
    /// The tool's definition changed, or a call differed from the call that was approved.
    Changed { run: RunId },
    /// A grant for the tool was revoked.
    Revoked,
}

/// A call that a person approved.
#[derive(Clone, Debug)]
pub(super) struct Approval {
    pub(super) agent: AgentName,
    pub(super) principal: Option<Principal>,
    pub(super) origin: Origin,
    /// Hash of the tool's definition.
    pub(super) definition: String,
    /// The arguments of the call as it ran.
    pub(super) arguments: Map<String, Value>,
    /// The rule that required approval; `None` if it was the policy's default.
    pub(super) rule: Option<String>,
    pub(super) by: String,
}

/// State while a journal is read.
#[derive(Default)]
struct JournalReader {
    tools: Option<Arc<Toolset>>,
    calls: BTreeMap<CallId, ToolCall>,
    rules: BTreeMap<CallId, Option<String>>,
}

impl DecisionHistory {
    /// Adds the decisions of a run.
    pub(super) fn read(&mut self, run: &RunId, journal: &[JournalEntry]) {
        let Some(Event::Started(started)) = journal.first().map(|first| &first.event) else { return };
        // The decisions in the copied part of a fork belong to the other run.
        let own = match &started.trigger {
            Trigger::Manual => 0,
            Trigger::Fork { at, .. } => *at,
        };
        let mut reading = JournalReader::default();
        for recorded in journal {
            reading.note(&recorded.event);
            if let Some((origin, why)) = reading.spoils(&recorded.event, run) {
                self.bar(&origin, why);
            }
            if let Event::ToolsListed { toolset } = &recorded.event {
                let changed = toolset.iter().filter(|tool| tool.changed);
                changed.for_each(|tool| self.bar(&tool.origin, ExclusionReason::Changed { run: run.clone() }));
            }
            if let Event::ApprovalDecided { call, decision } = &recorded.event
                && decision.answer == DecisionKind::Approve
                && recorded.seq >= own
                && let Some(approval) = reading.approval(call, decision, &started.spec)
            {
                self.approvals.insert((run.clone(), call.clone()), approval);
            }
        }
    }

    /// Adds a current or former grant. The journals contain the calls that it covered.
    pub(super) fn granted(&mut self, grant: &Grant) {
        if grant.revoked.is_some() {
            self.bar(&grant.origin, ExclusionReason::Revoked);
        }
    }

    pub(super) fn bar(&mut self, origin: &Origin, why: ExclusionReason) {
        self.barred.entry(origin.clone()).or_insert(why);
    }
}

impl JournalReader {
    fn note(&mut self, event: &Event) {
        if let Event::ToolsListed { toolset } = event {
            self.tools = Some(toolset.clone());
        }
        if let Event::ModelReplied { reply } = event {
            self.calls.extend(reply.calls().map(|call| (call.id.clone(), call)));
        }
        if let Event::CallChecked { call, verdict: CallVerdict::Ask { rule, .. } } = event {
            self.rules.insert(call.clone(), rule.clone());
        }
    }

    /// The tool that this event excludes from suggestions, with the reason.
    fn spoils(&self, event: &Event, run: &RunId) -> Option<(Origin, ExclusionReason)> {
        let run = run.clone();
        if let Event::CallChecked { call, verdict: CallVerdict::Rejected { reason: Rejection::Denied, .. } } = event {
            return Some((self.origin(call)?, ExclusionReason::Denied { run }));
        }
        if let Event::ApprovalDecided { call, decision } = event
            && decision.answer == DecisionKind::Deny
        {
            let bound = decision.binding.as_ref().map(|binding| binding.origin.clone());
            return Some((
                bound.or_else(|| self.origin(call))?,
                ExclusionReason::Refused { by: decision.by.clone(), run },
            ));
        }
        if let Event::CallDrifted { tool: Some(tool), .. } = event {
            return Some((tool.origin.clone(), ExclusionReason::Changed { run }));
        }
        None
    }

    fn origin(&self, call: &CallId) -> Option<Origin> {
        Some(self.tools.as_ref()?.get(&self.calls.get(call)?.name)?.origin.clone())
    }

    fn approval(&self, id: &CallId, decision: &Decision, spec: &Spec) -> Option<Approval> {
        let call = self.calls.get(id)?;
        let tool = self.tools.as_ref()?.get(&call.name)?;
        let binding = decision.binding.as_ref();
        Some(Approval {
            agent: spec.agent.clone(),
            principal: spec.principal.clone(),
            origin: binding.map_or_else(|| tool.origin.clone(), |binding| binding.origin.clone()),
            definition: binding.map_or_else(|| tool.hash.clone(), |binding| binding.definition.clone()),
            arguments: decision.edited_arguments.as_ref().unwrap_or(&call.arguments).as_object()?.clone(),
            rule: self.rules.get(id).cloned().flatten(),
            by: decision.by.clone(),
        })
    }
}
