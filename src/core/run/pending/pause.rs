//! Pending pause: the run stopped between two steps. It belongs to the run and to none of its calls.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AnswerForm, Description, Kind, PendingCounts};
use crate::run::{Channel, Pause};
use crate::timestamp::optional_millis;

/// A run that was paused, and waits until it is continued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingPause {
    /// The person or program that paused the run.
    pub by: String,
    #[serde(default)]
    pub via: Channel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The position of the event that paused the run.
    pub event: u64,
    /// When the run was paused.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "optional_millis")]
    pub requested_at: Option<Timestamp>,
}

impl PendingPause {
    pub(super) fn new(pause: &Pause) -> Self {
        let Pause { by, via, reason, event, since } = pause.clone();
        Self { by, via, reason, event, requested_at: since }
    }
}

impl Kind for PendingPause {
    fn describe(&self) -> Description<'_> {
        Description {
            kind: "pause",
            call_id: None,
            event: Some(self.event),
            requested_at: self.requested_at,
            expires_at: None,
            form: AnswerForm::Continue { by: &self.by, reason: self.reason.as_deref() },
        }
    }

    fn count(&self, counts: &mut PendingCounts) {
        counts.answers += 1;
    }
}
