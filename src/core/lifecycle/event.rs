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
