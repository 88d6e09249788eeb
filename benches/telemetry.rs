//! Cost of telemetry for the driver, which passes every event to the watchers in turn. One section for each kind of
//! telemetry. A figure is the fastest of several rounds, because anything above it is noise of the machine.
//!
//! `cargo bench --bench telemetry`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, dead_code, unreachable_pub)]

#[path = "../tests/it/telemetry/journals.rs"]
mod journals;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use toolgate::ports::{EventSink, Update};
use toolgate::telemetry::metrics::{MetricsBuilder, MetricsSettings};

const ROUNDS: usize = 7;
const REPETITIONS: usize = 200;

fn main() {
    metrics();
}

/// Folds and records an event, with a reader of all instruments attached.
fn metrics() {
    let settings = MetricsSettings { is_read_here: true, ..MetricsSettings::default() };
    let plan = settings.resolve(|_| None).unwrap().expect("metrics are enabled");
    let metrics = MetricsBuilder::new(&plan).unwrap().start();
    let sink = metrics.sink(Arc::new(journals::identity));
    report("metrics", "fact", fastest(|| tell(&sink)));

    let mut bytes = 0;
    let read = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        bytes = metrics.prometheus().len();
        began.elapsed()
    });
    let read = read.min().unwrap_or_default();
    println!("metrics: {:.1} µs to read all, {bytes} bytes of text", micros(read));
}

/// Sends every kind of journal repeatedly; returns the number of events.
fn tell(sink: &dyn EventSink) -> u32 {
    let journals = journals::all(Timestamp::UNIX_EPOCH);
    for _ in 0..REPETITIONS {
        for journal in &journals {
            for recorded in &journal.events {
                sink.observe(&journal.run, &Update::JournalEntry(recorded.clone()));
            }
        }
    }
    let facts: usize = journals.iter().map(|journal| journal.events.len()).sum();
    (facts * REPETITIONS) as u32
}

/// The minimum cost of one operation of `work`.
fn fastest(work: impl Fn() -> u32) -> Duration {
    let rounds = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        let done = work();
        began.elapsed() / done
    });
    rounds.min().unwrap_or_default()
}

fn report(section: &str, thing: &str, cost: Duration) {
    println!("{section}: {:.2} µs a {thing}", micros(cost));
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
