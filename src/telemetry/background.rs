//! Background event sink: passes the facts of runs to another sink on its own thread. Projecting a long run into spans
//! takes milliseconds a turn, and the driver must not spend that time (law 9). Facts wait in a bounded queue and reach
//! the inner sink in order.
//!
//! Fragments are not passed on: a client that reads them live cannot wait for a queue.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use jiff::Timestamp;
use toolgate_core::id::RunId;
use toolgate_core::run::JournalEntry;
use toolgate_ports::{EventSink, Feedback, Update};

/// The most facts that may wait. A fact is small: its large parts are shared with the run. When thousands of runs end
/// together, each sends a hundred facts before the first of them is projected.
const QUEUE: usize = 262_144;

/// Passes the facts of runs to another sink, on its own thread.
pub struct BackgroundSink {
    queue: Sender<Observation>,
    /// Facts that wait, including the one in progress. The channel itself is unbounded, because a bounded one allocates
    /// all of its memory at once.
    waiting: Arc<AtomicUsize>,
    length: usize,
    thread: Mutex<Option<JoinHandle<()>>>,
    dropped: AtomicU64,
}

enum Observation {
    Claimed(RunId, Vec<JournalEntry>),
    JournalEntry(RunId, Box<JournalEntry>),
    WroteIdle(RunId, Vec<JournalEntry>, Vec<JournalEntry>),
    Withheld(RunId, u64),
    Released(RunId, Timestamp),
    Judged(RunId, Vec<JournalEntry>, Box<Feedback>),
    Purged(RunId),
    Done,
}

impl BackgroundSink {
    /// Starts the thread.
    pub fn new(sink: Arc<dyn EventSink>) -> std::io::Result<Self> {
        Self::with_queue(sink, QUEUE)
    }

    fn with_queue(sink: Arc<dyn EventSink>, length: usize) -> std::io::Result<Self> {
        let (queue, observations) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = waiting.clone();
        let thread = std::thread::Builder::new().name("toolgate-background".into());
        let thread = thread.spawn(move || pass_on(&*sink, &observations, &left))?;
        Ok(Self { queue, waiting, length, thread: Mutex::new(Some(thread)), dropped: AtomicU64::new(0) })
    }

    /// Waits until every fact was passed on. Returns the number of facts that were dropped because the queue was full.
    /// Blocks: call it where blocking is allowed.
    pub fn finish(&self) -> u64 {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A sink that panicked ended its thread; there is nothing to wait for.
            let _ = self.queue.send(Observation::Done);
            let _ = thread.join();
        }
        self.dropped()
    }

    /// Facts dropped so far, because the queue was full or the thread has ended.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn send(&self, observation: Observation) {
        let full = self.waiting.fetch_add(1, Ordering::Relaxed) >= self.length;
        if full || self.queue.send(observation).is_err() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl EventSink for BackgroundSink {
    fn claimed(&self, run: &RunId, history: &[JournalEntry]) {
        self.send(Observation::Claimed(run.clone(), history.to_vec()));
    }

    fn observe(&self, run: &RunId, update: &Update) {
        if let Update::JournalEntry(recorded) = update {
            self.send(Observation::JournalEntry(run.clone(), Box::new(recorded.clone())));
        }
    }

    fn wrote_idle(&self, run: &RunId, history: &[JournalEntry], facts: &[JournalEntry]) {
        self.send(Observation::WroteIdle(run.clone(), history.to_vec(), facts.to_vec()));
    }

    fn withheld(&self, run: &RunId, to: u64) {
        self.send(Observation::Withheld(run.clone(), to));
    }

    fn released(&self, run: &RunId, at: Timestamp) {
        self.send(Observation::Released(run.clone(), at));
    }

    fn judged(&self, run: &RunId, journal: &[JournalEntry], feedback: &Feedback) {
        self.send(Observation::Judged(run.clone(), journal.to_vec(), Box::new(feedback.clone())));
    }

    fn purged(&self, run: &RunId) {
        self.send(Observation::Purged(run.clone()));
    }
}

impl fmt::Debug for BackgroundSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aside").field("dropped", &self.dropped).finish_non_exhaustive()
    }
}

fn pass_on(sink: &dyn EventSink, observations: &Receiver<Observation>, waiting: &AtomicUsize) {
    while let Ok(observation) = observations.recv() {
        match observation {
            Observation::Claimed(run, history) => sink.claimed(&run, &history),
            Observation::JournalEntry(run, recorded) => sink.observe(&run, &Update::JournalEntry(*recorded)),
            Observation::WroteIdle(run, history, facts) => sink.wrote_idle(&run, &history, &facts),
            Observation::Withheld(run, to) => sink.withheld(&run, to),
            Observation::Released(run, at) => sink.released(&run, at),
            Observation::Judged(run, journal, feedback) => sink.judged(&run, &journal, &feedback),
            Observation::Purged(run) => sink.purged(&run),
            Observation::Done => return,
        }
        waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::run::Event;

    /// Accepts each fact only when the gate opens, and keeps their positions.
    struct GatedSink {
        gate: Mutex<Receiver<()>>,
        seen: Mutex<Vec<u64>>,
    }

    impl EventSink for GatedSink {
        fn observe(&self, _run: &RunId, update: &Update) {
            let _ = self.gate.lock().unwrap().recv();
            if let Update::JournalEntry(recorded) = update {
                self.seen.lock().unwrap().push(recorded.seq);
            }
        }
    }

    fn gated(length: usize) -> (Sender<()>, Arc<GatedSink>, BackgroundSink) {
        let (open, gate) = channel();
        let sink = Arc::new(GatedSink { gate: Mutex::new(gate), seen: Mutex::default() });
        let background = BackgroundSink::with_queue(sink.clone(), length).unwrap();
        (open, sink, background)
    }

    fn send(background: &BackgroundSink, seq: u64) {
        let event = Event::ApprovalsResolved { granted: Arc::default() };
        let recorded = JournalEntry { seq, at: Timestamp::UNIX_EPOCH, event };
        background.observe(&"run_1".into(), &Update::JournalEntry(recorded));
    }

    #[test]
    fn a_blocked_sink_delays_no_run_and_receives_all_facts_in_order() {
        let (open, sink, background) = gated(100);
        (0..50).for_each(|seq| send(&background, seq));
        assert_eq!(*sink.seen.lock().unwrap(), [0; 0]);

        drop(open);

        assert_eq!(background.finish(), 0);
        assert_eq!(*sink.seen.lock().unwrap(), (0..50).collect::<Vec<u64>>());
    }

    #[test]
    fn facts_beyond_the_queue_are_dropped_and_counted() {
        let (open, sink, background) = gated(2);
        (0..50).for_each(|seq| send(&background, seq));
        drop(open);

        let dropped = background.finish();

        let seen = sink.seen.lock().unwrap().len() as u64;
        assert_eq!((dropped + seen, dropped >= 47), (50, true));
    }
}
