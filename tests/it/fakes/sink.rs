//! A watcher that remembers everything it was shown.

use std::sync::Mutex;

use jiff::Timestamp;
use toolgate::core::id::RunId;
use toolgate::core::run::Recorded;
use toolgate::ports::{Delta, EventSink, Update};

/// What one watcher was told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    TookUp { run: RunId, history: u64 },
    Fact(RunId, Recorded),
    Delta(RunId, Delta),
    LaidDown(RunId),
}

/// Keeps the order in which it was told.
#[derive(Default)]
pub(crate) struct RecordingSink {
    told: Mutex<Vec<Told>>,
}

impl RecordingSink {
    pub(crate) fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// Fails unless the sink was told every fact of the run's journal, in order and once: as history when a driver
    /// took the run up, or else as it happened.
    pub(crate) fn was_told_everything(&self, wanted: &RunId, length: u64) {
        let mut next = 0;
        for told in self.told() {
            match told {
                Told::TookUp { run, history } if run == *wanted => {
                    assert!(history >= next, "position {history} is history, {next} was expected");
                    next = history;
                }
                Told::Fact(run, fact) if run == *wanted => {
                    assert_eq!(fact.seq, next, "{:?} is out of order", fact.event.name());
                    next += 1;
                }
                _ => {}
            }
        }
        assert_eq!(next, length, "the last facts were not told");
    }

    /// All fragments, in the order they were shown.
    pub(crate) fn deltas(&self) -> Vec<Delta> {
        let delta = |told: Told| match told {
            Told::Delta(_, delta) => Some(delta),
            _ => None,
        };
        self.told().into_iter().filter_map(delta).collect()
    }

    fn keep(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }
}

impl EventSink for RecordingSink {
    fn took_up(&self, run: &RunId, history: &[Recorded]) {
        self.keep(Told::TookUp { run: run.clone(), history: history.len() as u64 });
    }

    fn observe(&self, run: &RunId, update: &Update) {
        self.keep(match update {
            Update::Recorded(fact) => Told::Fact(run.clone(), fact.clone()),
            Update::Delta(delta) => Told::Delta(run.clone(), delta.clone()),
        });
    }

    fn laid_down(&self, run: &RunId, _at: Timestamp) {
        self.keep(Told::LaidDown(run.clone()));
    }
}
