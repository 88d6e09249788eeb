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
    /// A driver of this process takes the run up. `history` is the journal so far; what follows is observed.
    fn took_up(&self, run: &RunId, history: &[Recorded]) {
        let _ = (run, history);
    }

    /// Something happened in that run. Facts come in journal order, each once.
    fn observe(&self, run: &RunId, update: &Update);

    /// Somebody wrote to a run that rests, and that nobody drives: `facts` follow `history`. They are observed as well, by
    /// watchers that need no past; those of a run that is driven, here or elsewhere, are its driver's to tell.
    fn wrote_at_rest(&self, run: &RunId, history: &[Recorded], facts: &[Recorded]) {
        let _ = (run, history, facts);
    }

    /// The driver is done with the run for now: it is pending or over, or could not be driven on.
    fn laid_down(&self, run: &RunId, at: Timestamp) {
        let _ = (run, at);
    }
}
