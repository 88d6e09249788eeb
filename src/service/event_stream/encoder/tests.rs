//! A client that resumes a stream after any event receives exactly the rest of it.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_core::run::{Authorization, CallVerdict, JournalEntry};

use super::*;

const RUN: &str = "run_1";

/// A fact at a position, as a journal has it.
fn fact(seq: u64, mut event: Value) -> JournalEntry {
    event["seq"] = json!(seq);
    event["at"] = json!("2026-01-01T00:00:00Z");
    serde_json::from_value(event).unwrap()
}

fn started() -> Value {
    json!({"type": "execution.started", "spec": {"agent": "clerk", "model": "large"},
        "input": {"role": "user", "content": [{"type": "text", "text": "Hello"}]}, "session": "session_1",
        "trace": {"id": "0123456789abcdef0123456789abcdef", "sampled": true}})
}

/// Facts that yield one event, several, or no event.
fn journal(turns: &[u8]) -> Vec<JournalEntry> {
    let mut events = vec![started()];
    for turn in turns {
        let attempts = u32::from(turn % 3) + 1;
        for attempt in 1..=attempts {
            events.push(
                json!({"type": "llm.call.started", "model": "large", "attempt": attempt, "tool_access": "enabled"}),
            );
        }
        events.push(serde_json::to_value(checked(turn)).unwrap());
    }
    events.push(json!({"type": "execution.ended", "ending": {"status": "cancelled"}}));
    events.into_iter().zip(0..).map(|(event, seq)| fact(seq, event)).collect()
}

/// A verdict about a call that the model did not request: it yields no event, or a rejection.
fn checked(turn: &u8) -> Event {
    let call = "call_1".into();
    match turn % 2 {
        0 => Event::CallChecked {
            call,
            verdict: CallVerdict::Run { by: Authorization::HumanApproval },
            advisory: Vec::new(),
        },
        _ => Event::MessageAdded { message: toolgate_core::chat::Message::user("More") },
    }
}

fn told(journal: &[JournalEntry], seen: Option<EventId>) -> Vec<RunEvent> {
    let mut encoder = EventEncoder::new(RUN.into(), Content::Omit, seen);
    let told = journal.iter().flat_map(|fact| encoder.project(fact)).collect();
    assert!(encoder.has_ended());
    told
}

/// The events of an encoder that released the run after each of the first facts, and read the journal from its beginning
/// again.
fn told_with_releases(journal: &[JournalEntry]) -> Vec<RunEvent> {
    let mut encoder = EventEncoder::new(RUN.into(), Content::Omit, None);
    let told = (1..=journal.len()).flat_map(|length| {
        let told: Vec<RunEvent> = journal[..length].iter().flat_map(|fact| encoder.project(fact)).collect();
        assert!(encoder.has_sent(length as u64 - 1) && !encoder.has_sent(length as u64));
        encoder.release();
        assert!(encoder.has_sent(length as u64 - 1) && !encoder.has_sent(length as u64));
        told
    });
    told.collect()
}

proptest! {
    #[test]
    fn a_stream_resumes_after_any_event_with_exactly_the_rest(turns in prop::collection::vec(any::<u8>(), 0..12)) {
        let journal = journal(&turns);
        let whole = told(&journal, None);
        let ids: Vec<String> = whole.iter().map(|event| event.id.unwrap().to_string()).collect();
        prop_assert_eq!(&told_with_releases(&journal), &whole);
        let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
        prop_assert_eq!(distinct.len(), ids.len(), "duplicate id");
        for (index, id) in ids.iter().enumerate() {
            let rest = told(&journal, Some(id.parse().unwrap()));
            prop_assert_eq!(&rest[..], &whole[index + 1..], "after {}", id);
        }
    }
}

#[test]
fn the_last_event_of_a_fact_has_its_number_as_id() {
    let whole = told(&journal(&[0]), None);
    let ids: Vec<String> = whole.iter().map(|event| event.id.unwrap().to_string()).collect();
    assert_eq!(ids, ["0", "1.1", "1.2", "1", "3"], "fact 2 yields no event");
}

#[test]
fn known_facts_are_skipped_and_missing_ones_awaited() {
    let journal = journal(&[0]);
    let mut encoder = EventEncoder::new(RUN.into(), Content::Omit, None);
    assert_eq!(encoder.project(&journal[0]).len(), 1);
    assert!(encoder.project(&journal[0]).is_empty() && encoder.project(&journal[2]).is_empty());
    assert_eq!(encoder.next(), 1);
}

#[test]
fn content_is_sent_only_to_clients_that_may_read_it() {
    let progress = Progress { progress: 0.5, total: None, message: Some("a secret".into()) };
    let calls = json!({"type": "tool.started", "calls": ["call_1"]});
    let shown = |content| {
        let mut encoder = EventEncoder::new(RUN.into(), content, None);
        journal(&[0])[..2].iter().for_each(|fact| drop(encoder.project(fact)));
        encoder.project(&fact(2, calls.clone()));
        let event = encoder.progress("call_1".into(), progress.clone());
        serde_json::to_string(&event.unwrap()).unwrap().contains("a secret")
    };
    assert!(!shown(Content::Omit) && shown(Content::Include));
}
