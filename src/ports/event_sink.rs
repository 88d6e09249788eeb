//! Event sinks: live streams, spans, logs. A sink never slows or harms a run (law 9).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Progress;
use crate::core::id::{CallId, RunId};
use crate::core::run::JournalEntry;

/// A fragment of a running reply or call: shown live, never journaled.
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
        /// The server's report.
        #[serde(flatten)]
        progress: Progress,
    },
}

/// An update for a sink.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// An event, after it is in the journal.
    JournalEntry(JournalEntry),
    /// A fragment.
    Delta(Delta),
}

/// An observer of runs. Must return at once and must not fail.
pub trait EventSink: Send + Sync {
    /// A driver of this process claimed the run. `history` is the journal so far; later events are observed.
    fn took_up(&self, run: &RunId, history: &[JournalEntry]) {
        let _ = (run, history);
    }

    /// An update of that run. Events arrive in journal order, each once.
    fn observe(&self, run: &RunId, update: &Update);

    /// Another component wrote to an idle run without a driver: `facts` follow `history`. Sinks that need no history
    /// observe them as well. For a run with a driver, here or elsewhere, its driver notifies the sinks.
    fn wrote_at_rest(&self, run: &RunId, history: &[JournalEntry], facts: &[JournalEntry]) {
        let _ = (run, history, facts);
    }

    /// The driver released the run: it is pending or over, or could not be driven further.
    fn released(&self, run: &RunId, at: Timestamp) {
        let _ = (run, at);
    }
}
