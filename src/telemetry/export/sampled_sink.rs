//! Sampled sink: withholds the facts of executions that are not sampled from a span sink and its queue. Such a fact costs
//! a lookup of its run: it is not copied, and wakes no other thread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use toolgate_core::id::RunId;
use toolgate_core::run::{Event, JournalEntry};
use toolgate_ports::{EventSink, Feedback, Update};

/// Passes on the facts of sampled executions. Of any other it withholds the facts, and says up to which position when the
/// run is released: the spans of the run are complete up to there. The fact that resumes a run is passed on, because it
/// may finish spans of the execution before.
pub struct SampledSink {
    inner: Arc<dyn EventSink>,
    /// The executions that are not sampled, and new runs without facts.
    withheld: Mutex<HashMap<RunId, Withheld>>,
}

/// What was withheld of a run.
#[derive(Debug, Default)]
struct Withheld {
    /// Whether the claim of a new run was withheld.
    is_new: bool,
    /// The position before which facts were withheld.
    to: u64,
}

impl SampledSink {
    /// Passes facts on to this sink.
    pub fn new(inner: Arc<dyn EventSink>) -> Self {
        Self { inner, withheld: Mutex::default() }
    }

    /// Whether the fact is withheld.
    fn withholds(&self, run: &RunId, JournalEntry { seq, event, .. }: &JournalEntry) -> bool {
        let mut withheld = self.runs();
        let Some(trace) = event.trace() else {
            let Some(known) = withheld.get_mut(run) else { return false };
            known.to = seq + 1;
            return true;
        };
        // A fork starts with facts of another run, whose trace says nothing about its own.
        let is_copied = matches!(event, Event::Started(started) if started.trigger.copied() > 0);
        if trace.sampled || is_copied {
            let known = withheld.remove(run);
            drop(withheld);
            self.pass_on(run, known);
            return false;
        }
        let known = withheld.entry(run.clone()).or_default();
        if known.is_new {
            known.to = seq + 1;
        }
        known.is_new
    }

    fn pass_on(&self, run: &RunId, withheld: Option<Withheld>) {
        let Some(Withheld { is_new, to }) = withheld else { return };
        if is_new {
            self.inner.claimed(run, &[]);
        }
        if to > 0 {
            self.inner.withheld(run, to);
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Withheld>> {
        self.withheld.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for SampledSink {
    fn claimed(&self, run: &RunId, history: &[JournalEntry]) {
        if history.is_empty() {
            self.runs().insert(run.clone(), Withheld { is_new: true, to: 0 });
            return;
        }
        self.runs().remove(run);
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
        let withheld = self.runs().remove(run);
        self.pass_on(run, withheld);
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

    #[derive(Debug, PartialEq)]
    enum Seen {
        Claimed(usize),
        Fact(u64),
        Withheld(u64),
        Released,
    }
    use Seen::{Claimed, Fact, Released};

    #[derive(Default)]
    struct Recorder(Mutex<Vec<Seen>>);

    impl Recorder {
        fn note(&self, seen: Seen) {
            self.0.lock().unwrap().push(seen);
        }
    }

    impl EventSink for Recorder {
        fn claimed(&self, _run: &RunId, history: &[JournalEntry]) {
            self.note(Claimed(history.len()));
        }

        fn observe(&self, _run: &RunId, update: &Update) {
            if let Update::JournalEntry(recorded) = update {
                self.note(Fact(recorded.seq));
            }
        }

        fn withheld(&self, _run: &RunId, to: u64) {
            self.note(Seen::Withheld(to));
        }

        fn released(&self, _run: &RunId, _at: Timestamp) {
            self.note(Released);
        }
    }

    /// What passes of a run that is claimed after `known` of these facts and is released after the last one.
    fn seen(known: usize, facts: impl IntoIterator<Item = Event>) -> Vec<Seen> {
        let (inner, run) = (Arc::new(Recorder::default()), RunId::from("run_1"));
        let sink = SampledSink::new(inner.clone());
        let facts = (0..).zip(facts).map(|(seq, event)| JournalEntry { seq, at: Timestamp::UNIX_EPOCH, event });
        let facts: Vec<JournalEntry> = facts.collect();
        let (history, fresh) = facts.split_at(known);
        sink.claimed(&run, history);
        fresh.iter().for_each(|fact| sink.observe(&run, &Update::JournalEntry(fact.clone())));
        sink.released(&run, Timestamp::UNIX_EPOCH);
        assert!(sink.runs().is_empty());
        std::mem::take(&mut inner.0.lock().unwrap())
    }

    fn executed(sampled: bool) -> Event {
        let (id, parent, state, baggage, salt) = (TraceId([7; 16]), None, None, None, None);
        Event::Resumed { trace: Trace { id, parent, sampled, state, baggage, salt }, limits: None }
    }

    #[test]
    fn nothing_of_an_unsampled_new_run_passes_before_its_release() {
        let expected = |to| [Claimed(0), Seen::Withheld(to), Released];
        assert_eq!(seen(0, [executed(false), Event::Queued, Event::Admitted]), expected(3));
        let ended = Event::Ended { ending: Ending::Cancelled { reason: None, partial_reply: None } };
        assert_eq!(seen(0, [executed(false), Event::Queued, ended]), expected(3));
        assert_eq!(seen(0, [executed(false)]), expected(1));
    }

    #[test]
    fn of_an_unsampled_resume_only_the_first_fact_passes() {
        let facts = [executed(true), Event::Queued, executed(false), Event::Queued];
        assert_eq!(seen(2, facts), [Claimed(2), Fact(2), Seen::Withheld(4), Released]);
    }

    #[test]
    fn of_a_sampled_execution_all_facts_pass() {
        let facts = [executed(true), Event::Queued, Event::Admitted];
        assert_eq!(seen(0, facts), [Claimed(0), Fact(0), Fact(1), Fact(2), Released]);
        let facts = [executed(false), Event::Queued, executed(true), Event::Queued];
        assert_eq!(seen(2, facts), [Claimed(2), Fact(2), Fact(3), Released]);
    }
}
