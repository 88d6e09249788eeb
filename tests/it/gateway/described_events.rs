//! The description of events: each type has a schema, and what the lifecycle writes matches it.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::lifecycle::{Content, Delta, FragmentPosition, Lifecycle, LifecycleEvent, LifecycleKind};
use toolgate::core::run::{Event, JournalEntry};
use toolgate::core::tool::{AuthorizationStatus, Progress, ServerAuthorization};
use toolgate::ports::WebhookKind;

use super::described;

const LIVE: [&str; 3] = ["llm.text.delta", "llm.reasoning.delta", "tool.mcp.progress"];

/// The journals of every event that core keeps, one a line.
fn journals() -> Vec<Vec<JournalEntry>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core/tests/fixtures/journals.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let journal = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let events: Vec<Event> = serde_json::from_value(line["events"].clone()).unwrap();
        let entry = |(seq, event)| JournalEntry { seq, at: Timestamp::UNIX_EPOCH, event };
        (0..).zip(events).map(entry).collect()
    };
    text.lines().map(journal).collect()
}

/// The events of a journal, with those that only a live stream has.
fn events(journal: &[JournalEntry], content: Content) -> Vec<LifecycleEvent> {
    let mut lifecycle = Lifecycle::new(RunId::from("run_1"), content);
    let mut events = Vec::new();
    for entry in journal {
        events.extend(lifecycle.observe(entry));
        events.extend(lifecycle.pending(entry.at));
        if let Some(call) = lifecycle.model_call_in_flight() {
            let position = Some(FragmentPosition { call, index: 0 });
            events.push(lifecycle.delta(Delta::Text { text: "A".into() }, position));
            events.push(lifecycle.delta(Delta::Reasoning { text: "A".into() }, position));
        }
    }
    // The fixture has no authorization of a server.
    for (status, reason) in
        [(AuthorizationStatus::Authorized, None), (AuthorizationStatus::Required, Some("sign in".into()))]
    {
        let authorization = ServerAuthorization { server: ServerId::from("files"), status, reason };
        let fact = LifecycleKind::ServerAuth { authorization };
        events.push(LifecycleEvent { seq: Some(1), run_id: RunId::from("run_1"), at: None, iteration: 0, fact });
    }
    for (total, message) in [(None, None), (Some(2.0), Some("half".into()))] {
        let progress = Progress { progress: 1.0, total, message };
        events.push(lifecycle.delta(Delta::Progress { call: CallId::from("call_1"), progress }, None));
    }
    events
}

#[test]
fn every_type_of_event_has_a_schema_and_no_other_has() {
    let known = LifecycleEvent::JOURNALED.into_iter().chain(LIVE).chain(["server.draining", "stream.position"]);
    assert_eq!(described::types_of("StreamEvent"), known.map(str::to_owned).collect());
}

#[test]
fn every_type_of_webhook_message_has_a_schema_and_no_other_has() {
    let known = WebhookKind::OF_RUNS.into_iter().chain([WebhookKind::Test]).map(|kind| kind.as_str().to_owned());
    assert_eq!(described::types_of("WebhookMessage"), known.collect());
}

#[test]
fn events_of_stored_journals_match_their_schemas() {
    let mut seen = BTreeSet::new();
    for journal in journals() {
        for event in events(&journal, Content::Include).into_iter().chain(events(&journal, Content::Omit)) {
            let mut message = serde_json::to_value(&event).unwrap();
            message["id"] = json!("1");
            described::check(&message);
            seen.insert(event.name());
        }
    }
    let all: BTreeSet<&str> = LifecycleEvent::JOURNALED.into_iter().chain(LIVE).collect();
    assert_eq!(seen, all, "add a journal with the event to the fixture");
}

#[test]
fn an_event_without_a_described_member_or_with_another_one_is_refused() {
    let right = json!({"id": "1", "seq": 1, "run_id": "run_1", "at": null, "iteration": 0, "type": "execution.resumed", "trace_id": "t"});
    let (mut missing, mut further) = (right.clone(), right.clone());
    missing.as_object_mut().unwrap().remove("trace_id");
    further["colour"] = json!("red");
    let errors = [&right, &missing, &further].map(|event| described::errors("StreamEvent", event).len());
    assert_eq!(errors, [0, 1, 1]);
}
