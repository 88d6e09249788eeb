//! Log records at their fixed points, as an operator reads them.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use toolgate::ports::{EventSink, Update};
use toolgate::telemetry::spans::project;
use toolgate::telemetry::{LogSink, SpanContent};

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

/// The log records of those runs, at `info` and above.
fn logged(journals: &[Journal]) -> String {
    logged_at(tracing::Level::INFO, journals)
}

fn logged_at(level: tracing::Level, journals: &[Journal]) -> String {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .without_time()
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        let sink = LogSink::new();
        for journal in journals {
            for recorded in &journal.events {
                sink.observe(&journal.run, &Update::JournalEntry(recorded.clone()));
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
fn row_0_58_the_record_of_an_ending_names_the_agent_and_the_attempt() {
    let start = Timestamp::UNIX_EPOCH;
    for (journal, fields) in [
        (journals::retried(start), "agent=assistant iteration=2 status=\"failed\" model=main attempt=1"),
        (journals::cancelled(start), "agent=assistant iteration=1 status=\"cancelled\""),
        (journals::plain_answer(start), "agent=assistant iteration=1 status=\"completed\""),
    ] {
        let logged = logged(&[journal]);
        assert!(logged.lines().next_back().is_some_and(|last| last.contains(fields)), "{fields} in {logged}");
    }
}

#[test]
fn no_record_quotes_the_conversation() {
    let logged = logged(&journals::all(Timestamp::UNIX_EPOCH));
    for said in ["A question", "Oslo", "/nowhere", "celsius", "sunny", "Tuesday", "Which day", "Graz", "Paris"] {
        assert!(!logged.contains(said), "{said} in {logged}");
    }
}

#[test]
fn every_record_names_the_trace_and_a_span_of_its_run() {
    for journal in journals::all(Timestamp::UNIX_EPOCH) {
        let spans = project(&journal.run, &journal.events, SpanContent::default(), Arc::new(journals::identity));
        let known: BTreeSet<(String, String)> =
            spans.iter().map(|span| (span.trace.to_string(), span.id.to_string())).collect();
        let logged = logged_at(tracing::Level::TRACE, std::slice::from_ref(&journal));
        for line in logged.lines() {
            let field = |name: &str| line.split(&format!(" {name}=")).nth(1).and_then(|rest| rest.split(' ').next());
            let place = (field("trace_id").expect(line).to_owned(), field("span_id").expect(line).to_owned());
            assert!(known.contains(&place), "no such span: {line}");
        }
        let told: BTreeSet<&str> = logged.lines().filter_map(|line| line.split("span_id=").nth(1)).collect();
        assert!(told.len() > 1, "models and tools have their own spans: {logged}");
    }
}

#[test]
fn in_json_the_names_are_those_of_opentelemetry() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || writer.clone()).finish();
    let journal = journals::parallel_calls(Timestamp::UNIX_EPOCH);
    tracing::subscriber::with_default(subscriber, || {
        let sink = LogSink::new();
        journal.events.iter().for_each(|fact| sink.observe(&journal.run, &Update::JournalEntry(fact.clone())));
    });
    let bytes = lines.0.lock().unwrap().clone();
    for line in String::from_utf8(bytes).unwrap().lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let length = |name: &str| record[name].as_str().map(str::len);
        assert_eq!((length("trace_id"), length("span_id")), (Some(32), Some(16)), "{line}");
    }
}

#[test]
fn only_a_waiting_run_is_logged_as_pending() {
    let told = |journal: &Journal, facts: usize| {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            let sink = LogSink::new();
            journal.events[..facts]
                .iter()
                .for_each(|fact| sink.observe(&journal.run, &Update::JournalEntry(fact.clone())));
            sink.released(&journal.run, Timestamp::UNIX_EPOCH);
        });
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().contains("run pending")
    };
    let journal = journals::approved_call(Timestamp::UNIX_EPOCH);
    let asked = journal.events.iter().position(|fact| fact.event.name() == "approval.decided").unwrap();
    assert!(told(&journal, asked));
    assert!(!told(&journal, journal.events.len()));
}
