//! A watcher that records everything it receives.

use std::sync::Mutex;

use jiff::Timestamp;
use toolgate::core::id::RunId;
use toolgate::core::lifecycle::Delta;
use toolgate::core::run::JournalEntry;
use toolgate::ports::{EventSink, Update};

/// A notification to a watcher.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Notification {
    Claimed { run: RunId, history: u64 },
    Entry(RunId, JournalEntry),
    Delta(RunId, Delta),
    Released(RunId),
}

/// Records the notifications in order.
#[derive(Default)]
pub(crate) struct RecordingSink {
    told: Mutex<Vec<Notification>>,
}

impl RecordingSink {
    pub(crate) fn told(&self) -> Vec<Notification> {
        self.told.lock().unwrap().clone()
    }

    /// Fails unless the sink received every event of the run's journal once, in order: as history when a driver resumed
    /// the run, or when it happened.
    pub(crate) fn was_told_everything(&self, wanted: &RunId, length: u64) {
        let mut next = 0;
        for told in self.told() {
            match told {
                Notification::Claimed { run, history } if run == *wanted => {
                    assert!(history >= next, "position {history} is history, {next} was expected");
                    next = history;
                }
                Notification::Entry(run, fact) if run == *wanted => {
                    assert_eq!(fact.seq, next, "{:?} is out of order", fact.event.name());
                    next += 1;
                }
                _ => {}
            }
        }
        assert_eq!(next, length, "the last events are missing");
    }

    /// All deltas, in order.
    pub(crate) fn deltas(&self) -> Vec<Delta> {
        let delta = |told: Notification| match told {
            Notification::Delta(_, delta) => Some(delta),
            _ => None,
        };
        self.told().into_iter().filter_map(delta).collect()
    }

    fn keep(&self, told: Notification) {
        self.told.lock().unwrap().push(told);
    }
}

impl EventSink for RecordingSink {
    fn claimed(&self, run: &RunId, history: &[JournalEntry]) {
        self.keep(Notification::Claimed { run: run.clone(), history: history.len() as u64 });
    }

    fn observe(&self, run: &RunId, update: &Update) {
        self.keep(match update {
            Update::JournalEntry(fact) => Notification::Entry(run.clone(), fact.clone()),
            Update::Delta { delta, .. } => Notification::Delta(run.clone(), delta.clone()),
        });
    }

    fn released(&self, run: &RunId, _at: Timestamp) {
        self.keep(Notification::Released(run.clone()));
    }
}
