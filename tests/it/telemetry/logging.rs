//! Log records at their fixed points, as an operator reads them.

use std::io::Write;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use toolgate::ports::{EventSink, Update};
use toolgate::telemetry::LogSink;

use super::journals::{self, Journal};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What is logged of those runs, at `info` and above.
fn logged(journals: &[Journal]) -> String {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .without_time()
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        let sink = LogSink::new();
        for journal in journals {
            for recorded in &journal.events {
                sink.observe(&journal.run, &Update::Recorded(recorded.clone()));
            }
        }
    });
    let bytes = lines.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn every_fixed_point_of_a_run_is_logged() {
    let start = Timestamp::UNIX_EPOCH;
    insta::assert_snapshot!(logged(&[
        journals::parallel_calls(start),
        journals::mended_output(start),
        journals::budget_used_up(start),
        journals::retried(start),
    ]));
}

#[test]
fn no_record_quotes_what_was_said() {
    let logged = logged(&journals::all(Timestamp::UNIX_EPOCH));
    for said in ["A question", "Oslo", "/nowhere", "celsius", "sunny", "Tuesday", "Which day", "Graz", "Paris"] {
        assert!(!logged.contains(said), "{said} in {logged}");
    }
}
