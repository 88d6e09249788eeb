//! Lifecycle events as a client of the stream reads them.

use jiff::Timestamp;
use serde_json::{Value, json};
use toolgate::core::lifecycle::{Content, Delta, FragmentPosition, Lifecycle, LifecycleEvent};
use toolgate::core::run::{PendingExternalResult, PendingItem};
use toolgate::core::tool::{Arguments, Origin, ToolName};

use super::journals::{self, Journal};

const START: Timestamp = Timestamp::UNIX_EPOCH;

fn lines(journal: &Journal, content: Content) -> String {
    let mut lifecycle = Lifecycle::new(journal.run.clone(), content);
    let events = journal.events.iter().flat_map(|recorded| lifecycle.observe(recorded));
    events.map(|event| serde_json::to_string(&event).unwrap() + "\n").collect()
}

fn names(journal: &Journal) -> Vec<&'static str> {
    let mut lifecycle = Lifecycle::new(journal.run.clone(), Content::Omit);
    let events = journal.events.iter().flat_map(|recorded| lifecycle.observe(recorded));
    events.map(|event| event.name()).collect()
}

#[test]
fn every_kind_of_run_has_its_events() {
    for journal in journals::all(START) {
        insta::assert_snapshot!(format!("lifecycle_{}", journal.run), lines(&journal, Content::Omit));
    }
}

#[test]
fn with_content_included_the_stream_carries_arguments_results_and_answers() {
    insta::assert_snapshot!(lines(&journals::parallel_calls(START), Content::Include));
}

#[test]
fn without_content_the_stream_quotes_no_text() {
    for journal in journals::all(START) {
        let lines = lines(&journal, Content::Omit);
        for said in ["A question", "Oslo", "/nowhere", "celsius", "sunny", "Tuesday", "Which day", "Graz", "Paris"] {
            assert!(!lines.contains(said), "{said} in {lines}");
        }
    }
}

#[test]
fn a_plain_run_has_the_event_order_of_source_002() {
    let expected = [
        "execution.started",
        "tools.listed",
        "context.build.started",
        "context.build.success",
        "llm.call.started",
        "llm.call.completed",
        "execution.completed",
    ];
    assert_eq!(names(&journals::plain_answer(START)), expected);
}

#[test]
fn every_event_name_is_its_name_in_json() {
    for journal in journals::all(START) {
        let mut lifecycle = Lifecycle::new(journal.run.clone(), Content::Include);
        for event in journal.events.iter().flat_map(|recorded| lifecycle.observe(recorded)) {
            assert_eq!(serde_json::to_value(&event).unwrap()["type"], event.name());
        }
    }
}

#[test]
fn row_3_36_a_fragment_names_the_attempt_that_streams_it() {
    let journal = journals::plain_answer(START);
    let mut lifecycle = Lifecycle::new(journal.run.clone(), Content::Omit);
    let call = journal.events.iter().position(|recorded| recorded.event.name() == "llm.call.started").unwrap();
    journal.events[..=call].iter().for_each(|recorded| drop(lifecycle.observe(recorded)));
    let call = journal.events[call].seq;
    let event = lifecycle.delta(Delta::Text { text: "ré".into() }, Some(FragmentPosition { call, index: 2 }));
    let json = serde_json::to_string(&event).unwrap();
    let expected = concat!(
        r#"{"seq":null,"run_id":"run_plain","at":null,"iteration":1,"type":"llm.text.delta","text":"ré","#,
        r#""model":"main","attempt":1,"index":2,"next_index":4}"#
    );
    assert_eq!(json, expected);
    assert_eq!(event.name(), "llm.text.delta");
}

#[test]
fn row_3_38_each_attempt_reports_the_cumulative_usage_of_its_run() {
    let mut reported = Vec::new();
    for journal in [journals::retried(START), journals::fell_back(START), journals::approved_call(START)] {
        let lines = lines(&journal, Content::Omit);
        let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let attempts = events.iter().filter(|event| event.get("cumulative").is_some());
        let totals: Vec<&Value> = attempts.map(|event| &event["cumulative"]["cost_usd"]).collect();
        let end = &events.last().unwrap()["usage"];
        assert_eq!(totals.last(), Some(&&end["cost_usd"]), "the last total is that of the run");
        reported.push(json!(totals));
    }
    let expected = [json!([null, "0.001", "0.001"]), json!([null, "0.001", "0.002"]), json!(["0.001", "0.002"])];
    assert_eq!(reported, expected);
}

#[test]
fn a_waiting_run_lists_its_pending_items() {
    let item = PendingItem::ExternalResult(PendingExternalResult {
        call_id: "call_d".into(),
        tool: Origin::External { tool: "ask_user".into() }.into(),
        tool_name: ToolName::parse("ext_ask_user").unwrap(),
        arguments: Arguments::parse("{\"question\":\"Which day?\"}"),
        result_schema: None,
        requested_at: None,
        expires_at: None,
    });
    let event = LifecycleEvent::pending(&"run_1".into(), START, 2, &[item], Content::Omit);
    assert_eq!(
        serde_json::to_string(&event).unwrap(),
        concat!(
            r#"{"seq":null,"run_id":"run_1","at":"1970-01-01T00:00:00.000Z","iteration":2,"type":"execution.pending","pending":["#,
            r#"{"type":"external_result","call_id":"call_d","tool_name":"ext_ask_user","tool":{"type":"external","server":null,"name":"ask_user","title":null},"priority":null}]}"#
        )
    );
}
