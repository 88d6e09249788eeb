//! Whoever watches: live streams, spans, logs. Watching never slows or harms a run (law 9).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Progress;
use crate::core::id::{CallId, RunId};
use crate::core::run::Recorded;

/// A fragment on its way: shown live, never journaled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Delta {
    /// Text of the answer.
    #[serde(rename = "llm.text.delta")]
    Text {
        /// The fragment.
        text: String,
    },
    /// Visible reasoning.
    #[serde(rename = "llm.reasoning.delta")]
    Reasoning {
        /// The fragment.
        text: String,
    },
    /// Progress of a call.
    #[serde(rename = "tool.mcp.progress")]
    Progress {
        /// The call.
        call: CallId,
        /// What the server says.
        #[serde(flatten)]
        progress: Progress,
    },
}

/// What a watcher is shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// A fact, after it is in the journal.
    Recorded(Recorded),
    /// A fragment.
    Delta(Delta),
}

/// A watcher. Must return at once and must not fail.
pub trait EventSink: Send + Sync {
    /// Something happened in that run.
    fn observe(&self, run: &RunId, update: &Update);

    /// A driver is about to go on with a run that has a past: what was journaled so far, oldest first. Watchers that
    /// keep nothing between two executions, or live in another process than the one before, catch up from it.
    fn took_up(&self, run: &RunId, history: &[Recorded]) {
        let _ = (run, history);
    }

    /// A driver stopped, and the run is not over: it waits for others. Waiting is no fact (law 8), hence not observed.
    fn laid_down(&self, run: &RunId, at: Timestamp) {
        let _ = (run, at);
    }
}
