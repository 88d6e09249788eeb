//! Sampled sink: withholds the facts of executions that are not sampled from a span sink and its queue. What such a fact
//! costs is a lookup of its run, not a step on the thread that builds spans.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use toolgate_core::id::RunId;
use toolgate_core::run::{Event, JournalEntry};
use toolgate_ports::{EventSink, Feedback, Update};

/// Passes on the facts of sampled executions. Of any other it passes on the first fact, from which the span sink knows
/// that no span follows, and the last one, up to which the run's spans are complete.
pub struct SampledSink {
    inner: Arc<dyn EventSink>,
    /// The executions that are not sampled, each with the last fact that was withheld.
    unsampled: Mutex<HashMap<RunId, Option<JournalEntry>>>,
}

impl SampledSink {
    /// Passes facts on to this sink.
    pub fn new(inner: Arc<dyn EventSink>) -> Self {
        Self { inner, unsampled: Mutex::default() }
    }

    /// Whether the fact is withheld.
    fn withholds(&self, run: &RunId, recorded: &JournalEntry) -> bool {
        let mut unsampled = self.unsampled();
        match recorded.event.trace() {
            Some(trace) if trace.sampled => {
                unsampled.remove(run);
            }
            Some(_) => {
                unsampled.insert(run.clone(), None);
            }
            None if matches!(recorded.event, Event::Ended { .. }) => {
                unsampled.remove(run);
            }
            None => {
                let Some(last) = unsampled.get_mut(run) else { return false };
                *last = Some(recorded.clone());
                return true;
            }
        }
        false
    }

    fn unsampled(&self) -> MutexGuard<'_, HashMap<RunId, Option<JournalEntry>>> {
        self.unsampled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for SampledSink {
    fn claimed(&self, run: &RunId, history: &[JournalEntry]) {
        self.unsampled().remove(run);
        self.inner.claimed(run, history);
    }

    fn observe(&self, run: &RunId, update: &Update) {
        if let Update::JournalEntry(recorded) = update
            && self.withholds(run, recorded)
        {
            return;
        }
        self.inner.observe(run, update);
    }

    fn wrote_idle(&self, run: &RunId, history: &[JournalEntry], facts: &[JournalEntry]) {
        self.inner.wrote_idle(run, history, facts);
    }

    fn judged(&self, run: &RunId, journal: &[JournalEntry], feedback: &Feedback) {
        self.inner.judged(run, journal, feedback);
    }

    fn released(&self, run: &RunId, at: Timestamp) {
        let last = self.unsampled().remove(run).flatten();
        if let Some(last) = last {
            self.inner.observe(run, &Update::JournalEntry(last));
        }
        self.inner.released(run, at);
    }

    fn purged(&self, run: &RunId) {
        self.inner.purged(run);
    }
}

impl std::fmt::Debug for SampledSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SampledSink").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::run::Ending;
    use toolgate_core::trace::{Trace, TraceId};

    /// Keeps the positions of facts, and `None` for each release.
    #[derive(Default)]
    struct SeenFacts(Mutex<Vec<Option<u64>>>);

    impl EventSink for SeenFacts {
        fn observe(&self, _run: &RunId, update: &Update) {
            if let Update::JournalEntry(recorded) = update {
                self.0.lock().unwrap().push(Some(recorded.seq));
            }
        }

        fn released(&self, _run: &RunId, _at: Timestamp) {
            self.0.lock().unwrap().push(None);
        }
    }

    fn seen(facts: impl IntoIterator<Item = Event>) -> Vec<Option<u64>> {
        let (inner, run) = (Arc::new(SeenFacts::default()), RunId::from("run_1"));
        let sink = SampledSink::new(inner.clone());
        for (seq, event) in (0..).zip(facts) {
            sink.observe(&run, &Update::JournalEntry(JournalEntry { seq, at: Timestamp::UNIX_EPOCH, event }));
        }
        sink.released(&run, Timestamp::UNIX_EPOCH);
        assert!(sink.unsampled().is_empty());
        std::mem::take(&mut inner.0.lock().unwrap())
    }

    fn executed(sampled: bool) -> Event {
        let (id, parent, state, baggage, salt) = (TraceId([7; 16]), None, None, None, None);
        Event::Resumed { trace: Trace { id, parent, sampled, state, baggage, salt }, limits: None }
    }

    #[test]
    fn of_an_unsampled_execution_the_first_and_the_last_fact_are_passed_on() {
        let facts = [executed(false), Event::Queued, Event::Admitted, Event::Queued];
        assert_eq!(seen(facts), [Some(0), Some(3), None]);
        let ended = Event::Ended { ending: Ending::Cancelled { reason: None } };
        assert_eq!(seen([executed(false), Event::Queued, ended]), [Some(0), Some(2), None]);
        assert_eq!(seen([executed(false)]), [Some(0), None]);
    }

    #[test]
    fn of_a_sampled_execution_all_facts_are_passed_on() {
        let facts = [executed(true), Event::Queued, Event::Admitted];
        assert_eq!(seen(facts), [Some(0), Some(1), Some(2), None]);
        let facts = [executed(false), Event::Queued, executed(true), Event::Queued];
        assert_eq!(seen(facts), [Some(0), Some(2), Some(3), None]);
    }
}
