//! Interceptor without a transport: injections that change nothing, sessions, and judgements of repetitions.

use serde_json::{Value, json};
use toolgate_core::redact::Secrets;

use super::client::{call, cancelled, plan};
use crate::fault_proxy::interceptor::{Interceptor, Outgoing};
use crate::fault_proxy::{ClientFact, FaultTransport, Report};

fn interceptor(faults: &[&str]) -> Interceptor {
    Interceptor::new(plan(faults, FaultTransport::Stdio), Secrets::default())
}

/// Passes a call and its answer. Returns what the client gets, as text.
fn exchange(interceptor: &mut Interceptor, answer: &Value) -> String {
    let id = answer["id"].as_u64().unwrap();
    let number = interceptor.client_message("", &call(id)).number.unwrap();
    let first = interceptor.answer(number, answer, answer.to_string().as_bytes()).remove(0);
    let Outgoing::Send(bytes, _) = first else { panic!("{first:?}") };
    String::from_utf8(bytes).unwrap()
}

fn error(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "unknown tool"}})
}

fn result(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}})
}

fn finished(mut interceptor: Interceptor) -> Report {
    interceptor.finish("server", true)
}

#[test]
fn a_fault_that_changes_nothing_waits_for_the_next_request() {
    for fault in ["nan#2", "nan#all"] {
        let mut proxy = interceptor(&[fault]);
        for id in 1..=2 {
            assert_eq!(exchange(&mut proxy, &error(id)), error(id).to_string());
        }
        let third = exchange(&mut proxy, &result(3));
        assert!(third.contains("NaN"), "{third}");
        let report = finished(proxy);
        let ids: Vec<&str> = report.injections.iter().map(|injection| injection.id.as_str()).collect();
        assert_eq!((ids, report.not_injected.len()), (vec!["3"], 0), "{fault}");
    }
}

#[test]
fn a_fault_that_changed_nothing_is_not_injected() {
    for fault in ["unknown-result-type", "latin-1#all"] {
        let mut proxy = interceptor(&[fault]);
        exchange(&mut proxy, &error(1));
        let report = finished(proxy);
        assert_eq!((report.injections.len(), &report.not_injected), (0, &vec![fault.to_owned()]), "{report}");
    }
}

#[test]
fn a_fault_of_the_result_replaces_an_error() {
    let mut proxy = interceptor(&["is-error"]);
    assert_eq!(exchange(&mut proxy, &error(1)), r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true}}"#);
}

#[test]
fn the_largest_id_has_another_one() {
    let mut proxy = interceptor(&["wrong-ids"]);
    assert_eq!(exchange(&mut proxy, &result(u64::MAX)), result(999_999).to_string());
}

#[test]
fn a_cancellation_counts_in_its_session() {
    let mut proxy = interceptor(&["hang#all"]);
    for session in ["one", "two"] {
        proxy.client_message(session, &call(1));
    }
    proxy.client_message("one", &cancelled(1));
    let is_cancelled = |fact: &ClientFact| matches!(fact, ClientFact::Cancelled { .. });
    let report = finished(proxy);
    let found: Vec<bool> = report.injections.iter().map(|it| it.client.iter().any(is_cancelled)).collect();
    assert_eq!(found, [true, false], "{report}");
}

#[test]
fn a_repetition_is_judged_if_the_fault_lost_the_answer() {
    let judged = ["truncated", "no-id", "error-null", "malformed"].map(|fault| (fault, 1));
    let read = ["indented", "byte-order-mark", "unknown-result-type", "restarts-inside"].map(|fault| (fault, 0));
    for (fault, findings) in judged.into_iter().chain(read) {
        let mut proxy = interceptor(&[fault]);
        exchange(&mut proxy, &result(1));
        exchange(&mut proxy, &result(2));
        let report = finished(proxy);
        assert_eq!(report.injections[0].findings.len(), findings, "{report}");
    }
}
