//! Measurements of facts, over the hand-written journals, and the table of all metrics.

use std::collections::BTreeSet;

use jiff::Timestamp;
use toolgate::core::run::Event;
use toolgate::ports::{EventSink, Update};
use toolgate::telemetry::metrics::Metric;

use super::Records;
use crate::telemetry::journals::{self, Journal};

fn tell(sink: &dyn EventSink, journal: &Journal, from: usize, to: usize) {
    for recorded in &journal.events[from..to] {
        sink.observe(&journal.run, &Update::JournalEntry(recorded.clone()));
    }
}

fn recorded(journal: &Journal) -> Vec<String> {
    let records = Records::default();
    tell(&*records.sink(), journal, 0, journal.events.len());
    records.lines()
}

#[test]
fn the_table_of_metrics_is_what_dashboards_were_promised() {
    let rows: Vec<String> = Metric::ALL
        .iter()
        .map(|metric| {
            let row = metric.definition();
            format!("{} | {:?} | {} | {}\n    {:?}", row.name, row.shape, row.unit, row.description, row.buckets)
        })
        .collect();
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn every_metric_has_a_name_of_its_own_and_buckets_that_rise() {
    let names: BTreeSet<&str> = Metric::ALL.iter().map(|metric| metric.definition().name).collect();
    assert_eq!(names.len(), Metric::ALL.len());
    for metric in Metric::ALL {
        let row = metric.definition();
        assert!(row.buckets.windows(2).all(|pair| pair[0] < pair[1]), "{}", row.name);
        assert!(row.description.ends_with('.'), "{}", row.name);
    }
}

#[test]
fn each_fact_is_worth_what_it_says() {
    let journals = journals::all(Timestamp::UNIX_EPOCH);
    let told: Vec<String> =
        journals.iter().map(|journal| format!("# {}\n{}\n", journal.run, recorded(journal).join("\n"))).collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn facts_are_counted_once_wherever_a_run_is_resumed() {
    for journal in journals::all(Timestamp::UNIX_EPOCH) {
        let whole = recorded(&journal);
        for cut in 1..journal.events.len() {
            let (first, second) = (Records::default(), Records::default());
            let (sink, other) = (first.sink(), second.sink());
            tell(&*sink, &journal, 0, cut);
            sink.released(&journal.run, Timestamp::UNIX_EPOCH);
            other.claimed(&journal.run, &journal.events[..cut]);
            tell(&*other, &journal, 0, journal.events.len()); // history is observed again
            let both: Vec<String> = first.lines().into_iter().chain(second.lines()).collect();
            assert_eq!(both, whole, "{} cut at {cut}", journal.run);
        }
    }
}

#[test]
fn a_run_driven_elsewhere_is_counted_there() {
    let journal = journals::cancelled(Timestamp::UNIX_EPOCH);
    let records = Records::default();
    let end = journal.events.len();
    tell(&*records.sink(), &journal, end - 1, end);
    assert_eq!(records.lines(), [""; 0]);
}

#[test]
fn the_process_that_writes_to_an_idle_run_counts_the_fact() {
    let journal = journals::approved_call(Timestamp::UNIX_EPOCH);
    let decided = journal.events.iter().position(|fact| matches!(fact.event, Event::ApprovalDecided { .. })).unwrap();
    let records = Records::default();
    records.sink().wrote_idle(&journal.run, &journal.events[..decided], &journal.events[decided..=decided]);
    assert_eq!((records.count("toolgate.approvals.decided"), records.lines().len()), (1.0, 2));
}

#[test]
fn no_attribute_names_a_run_session_call_or_content() {
    for journal in journals::all(Timestamp::UNIX_EPOCH) {
        for line in recorded(&journal) {
            for told in ["run_", "session_1", "call_", "ann", "make_coffee", "Oslo", "/nowhere", "Which day", "says no"]
            {
                assert!(!line.contains(told), "{told} in {line}");
            }
        }
    }
}
