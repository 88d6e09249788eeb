//! What people decided before, gathered from journals and from the approvals that were taken back.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::core::id::{AgentName, CallId, Principal, RunId};
use crate::core::run::{Answer, CallVerdict, Decision, Event, Recorded, Rejection, Spec, Trigger};
use crate::core::tool::{Origin, ToolCall, Toolset};
use crate::ports::Grant;

/// What was approved, and what must not be suggested whatever was approved.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// The approvals, each call once.
    pub(super) approvals: BTreeMap<(RunId, CallId), Approval>,
    /// The tools that are never suggested, and why: the first reason that was found.
    pub(super) barred: BTreeMap<Origin, Bar>,
    /// The runs whose journals cannot be read, and why.
    pub(super) unread: Vec<String>,
}

/// Why a tool is never suggested, whatever was approved of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bar {
    /// A person refused a call of it.
    Refused { by: String, run: RunId },
    /// A policy denied a call of it.
    Denied { run: RunId },
    /// Its definition changed, or a call of it was not what it had been cleared for.
    Changed { run: RunId },
    /// A standing approval of it was taken back.
    Revoked,
}

/// One call that a person let run.
#[derive(Clone, Debug)]
pub(super) struct Approval {
    pub(super) agent: AgentName,
    pub(super) principal: Option<Principal>,
    pub(super) origin: Origin,
    /// Hash of the tool's definition.
    pub(super) definition: String,
    /// What it ran with.
    pub(super) arguments: Map<String, Value>,
    /// The rule that asked; a policy's default asks without one.
    pub(super) rule: Option<String>,
    pub(super) by: String,
}

/// What is known while a journal is read.
#[derive(Default)]
struct Reading {
    tools: Option<Arc<Toolset>>,
    calls: BTreeMap<CallId, ToolCall>,
    rules: BTreeMap<CallId, Option<String>>,
}

impl Past {
    /// Takes note of a run.
    pub(super) fn read(&mut self, run: &RunId, journal: &[Recorded]) {
        let Some(Event::Started(started)) = journal.first().map(|first| &first.event) else { return };
        // What a fork copied was decided in the other run.
        let own = match &started.trigger {
            Trigger::Manual => 0,
            Trigger::Fork { at, .. } => *at,
        };
        let mut reading = Reading::default();
        for recorded in journal {
            reading.note(&recorded.event);
            if let Some((origin, why)) = reading.spoils(&recorded.event, run) {
                self.bar(&origin, why);
            }
            if let Event::ToolsListed { toolset } = &recorded.event {
                let changed = toolset.iter().filter(|tool| tool.changed);
                changed.for_each(|tool| self.bar(&tool.origin, Bar::Changed { run: run.clone() }));
            }
            if let Event::ApprovalDecided { call, decision } = &recorded.event
                && decision.answer == Answer::Approve
                && recorded.seq >= own
                && let Some(approval) = reading.approval(call, decision, &started.spec)
            {
                self.approvals.insert((run.clone(), call.clone()), approval);
            }
        }
    }

    /// Takes note of an approval that stands, or stood. What was run with it, journals tell.
    pub(super) fn granted(&mut self, grant: &Grant) {
        if grant.revoked.is_some() {
            self.bar(&grant.origin, Bar::Revoked);
        }
    }

    pub(super) fn bar(&mut self, origin: &Origin, why: Bar) {
        self.barred.entry(origin.clone()).or_insert(why);
    }
}

impl Reading {
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

    /// The tool that may not be suggested after this, and why.
    fn spoils(&self, event: &Event, run: &RunId) -> Option<(Origin, Bar)> {
        let run = run.clone();
        if let Event::CallChecked { call, verdict: CallVerdict::Rejected { reason: Rejection::Denied, .. } } = event {
            return Some((self.origin(call)?, Bar::Denied { run }));
        }
        if let Event::ApprovalDecided { call, decision } = event
            && decision.answer == Answer::Deny
        {
            let bound = decision.binding.as_ref().map(|binding| binding.origin.clone());
            return Some((bound.or_else(|| self.origin(call))?, Bar::Refused { by: decision.by.clone(), run }));
        }
        if let Event::CallDrifted { tool: Some(tool), .. } = event {
            return Some((tool.origin.clone(), Bar::Changed { run }));
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
