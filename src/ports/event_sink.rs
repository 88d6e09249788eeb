//! Event sinks: live streams, spans, logs. A sink never slows or harms a run (law 9).

use jiff::Timestamp;
use toolgate_core::id::RunId;
use toolgate_core::lifecycle::{Delta, FragmentPosition};
use toolgate_core::run::JournalEntry;

use super::Feedback;

/// An update for a sink.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// An event, after it is in the journal.
    JournalEntry(JournalEntry),
    /// A fragment of a running reply or call.
    Delta {
        delta: Delta,
        /// The position in its reply; `None` for the progress of a call.
        position: Option<FragmentPosition>,
    },
}

/// An observer of runs. Must return at once and must not fail.
pub trait EventSink: Send + Sync {
    /// A driver of this process claimed the run. `history` is the journal so far; later events are observed.
    fn claimed(&self, run: &RunId, history: &[JournalEntry]) {
        let _ = (run, history);
    }

    /// An update of that run. Events arrive in journal order, each once.
    fn observe(&self, run: &RunId, update: &Update);

    /// Another component wrote to an idle run without a driver: `facts` follow `history`. Sinks that need no history
    /// observe them as well. For a run with a driver, here or elsewhere, its driver notifies the sinks.
    fn wrote_idle(&self, run: &RunId, history: &[JournalEntry], facts: &[JournalEntry]) {
        let _ = (run, history, facts);
    }

    /// The facts of the run before this position were withheld from this sink, because it does not need them.
    fn withheld(&self, run: &RunId, to: u64) {
        let _ = (run, to);
    }

    /// The driver released the run: it is pending or over, or could not be driven further.
    fn released(&self, run: &RunId, at: Timestamp) {
        let _ = (run, at);
    }

    /// Feedback on the run was stored by this process, in place of earlier feedback with its id. `journal` is that of the run.
    fn judged(&self, run: &RunId, journal: &[JournalEntry], feedback: &Feedback) {
        let _ = (run, journal, feedback);
    }

    /// The content of the run was deleted by this process. Sinks that stored it delete it too.
    fn purged(&self, run: &RunId) {
        let _ = run;
    }
}
