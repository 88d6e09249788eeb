//! Metrics sink: records metrics from the facts of runs. It gets facts directly and not through a queue, so that no
//! fact is lost. `benches/telemetry.rs` measures what a fact costs the driver.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use toolgate_core::id::RunId;
use toolgate_core::run::{Event, JournalEntry};
use toolgate_ports::{EventSink, Update};

use super::instruments::Instruments;
use super::measurement::Measurement;
use super::meter::Meter;
use crate::per_run::PerRun;
use crate::spans::IdentityOf;

/// An event sink that records metrics of every run.
///
/// Each fact is counted by one process: the one that drives the run or, for an idle run, the one that writes to it.
/// A message for a run that another process drives is counted there.
pub struct MetricSink {
    runs: PerRun<Meter>,
    identity_of: IdentityOf,
    record: Box<dyn Fn(&Measurement) + Send + Sync>,
}

impl MetricSink {
    pub(super) fn new(instruments: Arc<Instruments>, identity_of: IdentityOf) -> Self {
        Self::recording(identity_of, move |measurement| instruments.record(measurement))
    }

    /// A sink that passes every measurement to `record`.
    pub fn recording(identity_of: IdentityOf, record: impl Fn(&Measurement) + Send + Sync + 'static) -> Self {
        Self { runs: PerRun::default(), identity_of, record: Box::new(record) }
    }

    fn record_all(&self, measured: &[Measurement]) {
        measured.iter().for_each(|measurement| (self.record)(measurement));
    }
}

impl EventSink for MetricSink {
    fn observe(&self, run: &RunId, update: &Update) {
        let Update::JournalEntry(recorded) = update else { return };
        let measured = self.runs.with(run, |meter| meter.measure(recorded, &self.identity_of));
        if let (None, Some(meter)) = (&measured, Meter::begin(recorded)) {
            self.runs.put(run, meter);
        }
        if matches!(recorded.event, Event::Ended { .. }) {
            self.runs.forget(run);
        }
        self.record_all(&measured.unwrap_or_default());
    }

    fn claimed(&self, run: &RunId, history: &[JournalEntry]) {
        if let Some(meter) = Meter::after(history) {
            self.runs.put(run, meter);
        }
    }

    fn wrote_idle(&self, _run: &RunId, history: &[JournalEntry], facts: &[JournalEntry]) {
        let Some(mut meter) = Meter::after(history) else { return };
        for recorded in facts {
            self.record_all(&meter.measure(recorded, &self.identity_of));
        }
    }

    fn released(&self, run: &RunId, _at: Timestamp) {
        self.runs.forget(run);
    }
}

impl fmt::Debug for MetricSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricSink").field("runs", &self.runs).finish_non_exhaustive()
    }
}
