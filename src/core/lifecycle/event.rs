//! Lifecycle event: its position, time and run, around its kind.

use jiff::Timestamp;
use serde::Serialize;

use super::{Content, LifecycleKind, PendingRef};
use crate::id::RunId;
use crate::run::PendingItem;
use crate::timestamp::optional_millis;

/// One event of the stream. In JSON it is one flat object: `seq`, `run_id`, `at`, `iteration`, `type`, and its own fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LifecycleEvent {
    /// Journal position of the fact behind the event; `None` if the event is not journaled. Several events may report
    /// one fact.
    pub seq: Option<u64>,
    pub run_id: RunId,
    /// The time of the event; `None` for fragments.
    #[serde(serialize_with = "optional_millis")]
    pub at: Option<Timestamp>,
    /// Model turns started so far; 0 before the first.
    pub iteration: u32,
    /// The kind of the event, with its fields.
    #[serde(flatten)]
    pub fact: LifecycleKind,
}

impl LifecycleEvent {
    /// The names of the events that a journal yields: all except fragments and progress.
    pub const JOURNALED: [&'static str; 48] = [
        "execution.started",
        "execution.resumed",
        "execution.pending",
        "compensation.started",
        "execution.paused",
        "execution.unpaused",
        "execution.completed",
        "execution.failed",
        "execution.incomplete",
        "execution.expired",
        "execution.cancelled",
        "context.build.started",
        "context.build.success",
        "server.auth",
        "tools.listed",
        "approvals.resolved",
        "llm.call.started",
        "llm.call.retrying",
        "llm.call.completed",
        "llm.call.refused",
        "llm.call.failed",
        "conversation.compaction.started",
        "conversation.compaction.completed",
        "conversation.compaction.failed",
        "tool.tier.selected",
        "tool.mcp.executing",
        "tool.mcp.completed",
        "tool.builtin.executing",
        "tool.builtin.completed",
        "tool.input.requested",
        "tool.input.required",
        "tool.input.given",
        "tool.task.started",
        "tool.external.requested",
        "tool.external.completed",
        "tool.rejected",
        "tool.budget.exhausted",
        "approval.requested",
        "approval.decided",
        "approval.expired",
        "pending.expired",
        "pending.extended",
        "tool.drifted",
        "question.asked",
        "question.answered",
        "validation.failed",
        "output.validated",
        "message.added",
    ];

    /// `execution.pending`. The sender must know that the run waits: waiting is never journaled (law 8).
    pub fn pending(run: &RunId, at: Timestamp, iteration: u32, items: &[PendingItem], content: Content) -> Self {
        let pending = items.iter().map(|item| PendingRef::new(item, content)).collect();
        Self { seq: None, run_id: run.clone(), at: Some(at), iteration, fact: LifecycleKind::Pending { pending } }
    }

    /// The name of the event in JSON.
    pub fn name(&self) -> &'static str {
        self.fact.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_name_is_journaled_or_live() {
        let source = include_str!("kind.rs");
        let named = source.lines().filter_map(|line| line.trim().strip_suffix("\",")?.split_once("=> \""));
        let is_live = |name: &&str| name.ends_with(".delta") || name.ends_with(".progress");
        let journaled: Vec<&str> = named.map(|(_, name)| name).filter(|name| !is_live(name)).collect();
        assert_eq!(journaled, LifecycleEvent::JOURNALED);
    }
}
