use rmcp::model::{CallToolRequest, CallToolRequestParams, InitializeRequest, InitializedNotification, PingRequest};
use serde_json::{Value, json};
use tokio::time::advance;

use super::*;
use crate::negotiation;
use crate::transport::json_rpc;

/// A tracker with these requests in flight.
fn in_flight(ids: &[i64]) -> Requests {
    let requests = Requests::default();
    ids.iter().for_each(|id| send(&requests, *id));
    requests
}

fn send(requests: &Requests, id: i64) {
    make(requests, id, ClientRequest::PingRequest(PingRequest::default()));
}

fn call(requests: &Requests, id: i64) {
    let call = CallToolRequest::new(CallToolRequestParams::new("charge"));
    make(requests, id, ClientRequest::CallToolRequest(call));
}

fn make(requests: &Requests, id: i64, request: ClientRequest) {
    requests.sending(&JsonRpcMessage::request(request, RequestId::Number(id)));
}

fn notify(requests: &Requests) {
    let done = ClientNotification::InitializedNotification(InitializedNotification::default());
    requests.sending(&JsonRpcMessage::notification(done));
}

/// The item that the SDK gets for a text: the message as JSON, or `null`.
fn admitted(requests: &Requests, text: &str, stream: &Stream) -> Value {
    let [incoming] = &mut json_rpc::read(text.as_bytes(), |id| requests.is_in_flight(id))[..] else { panic!("{text}") };
    match requests.admit(std::mem::replace(incoming, Incoming::Noise), stream) {
        Disposition::Message(message) => serde_json::to_value(message).expect("JSON"),
        Disposition::Ignored | Disposition::Noise => Value::Null,
    }
}

/// The items that the SDK gets for a text on a shared stream, at once and after the grace period.
async fn in_the_end(requests: &Requests, text: &str) -> (Value, Value) {
    let at_once = admitted(requests, text, &Stream::Shared);
    let before = requests.take_due(false);
    assert!(before.is_none(), "{text}: {before:?}");
    advance(GRACE).await;
    (at_once, serde_json::to_value(requests.take_due(false)).expect("JSON"))
}

const BROKEN: &str = r#"{"jsonrpc":"2.0","result":"#;
const NO_ID: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#;
const WORD: &str = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no"}}"#;
const NO_ID_RESULT: &str = r#"{"jsonrpc":"2.0","result":{}}"#;
const ANONYMOUS: [(&str, &str); 4] =
    [(BROKEN, "it is no JSON"), (NO_ID, "no"), (WORD, "no"), (NO_ID_RESULT, "no id that can be one")];
const STRANGER: &str = r#"{"jsonrpc":"2.0","id":99,"result":{}}"#;
const STRANGE_ERROR: &str = r#"{"jsonrpc":"2.0","id":99,"error":{"code":-1,"message":"no"}}"#;

#[test]
fn an_answer_belongs_to_the_request_of_its_id() {
    let requests = in_flight(&[1, 7]);
    for (text, id) in [(r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, 7), (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 1)]
    {
        assert_eq!(admitted(&requests, text, &Stream::Shared)["id"], id);
        assert!(!requests.is_in_flight(&RequestId::Number(id)));
    }
}

#[test]
fn a_response_belongs_to_its_request_whatever_id_it_names() {
    for (text, why) in ANONYMOUS.into_iter().chain([(STRANGER, "under the id `99`"), (STRANGE_ERROR, "no")]) {
        let requests = in_flight(&[6, 7]);
        let answer = admitted(&requests, text, &Stream::Of(RequestId::Number(6)));
        assert_eq!(answer["id"], 6, "{text}");
        assert!(answer["error"]["message"].as_str().is_some_and(|words| words.contains(why)), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_anonymous_answer_fails_the_only_request_after_the_grace_period() {
    for (text, why) in ANONYMOUS {
        let requests = in_flight(&[7]);
        let (at_once, later) = in_the_end(&requests, text).await;
        assert_eq!((&at_once, &later["id"]), (&Value::Null, &json!(7)), "{text}");
        assert!(later["error"]["message"].as_str().is_some_and(|words| words.contains(why)), "{later}");
        assert!(!requests.is_in_flight(&RequestId::Number(7)) && requests.due().is_none(), "{text}");

        let two = in_flight(&[6, 7]);
        assert_eq!(in_the_end(&two, text).await, (Value::Null, Value::Null), "{text}: it may be for either");
    }
}

#[tokio::test(start_paused = true)]
async fn the_right_answer_counts_when_it_comes_behind_an_anonymous_one() {
    for (text, _) in ANONYMOUS {
        let requests = in_flight(&[7]);
        assert_eq!(admitted(&requests, text, &Stream::Shared), Value::Null, "{text}");
        let right = admitted(&requests, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, &Stream::Shared);
        assert_eq!(right["result"], json!({}), "{text}");
        send(&requests, 8);
        advance(GRACE).await;
        assert!(requests.take_due(true).is_none(), "{text}: it was not for the next request");
    }
}

#[test]
fn an_anonymous_answer_counts_at_once_in_the_handshake_and_when_the_stream_is_over() {
    for (text, _) in ANONYMOUS {
        let requests = Requests::default();
        let hello = InitializeRequest::new(negotiation::introduction(negotiation::Era::Legacy, false));
        make(&requests, 7, ClientRequest::InitializeRequest(hello));
        assert_eq!(admitted(&requests, text, &Stream::Shared)["id"], 7, "{text}");

        let requests = in_flight(&[7]);
        admitted(&requests, text, &Stream::Shared);
        assert!(requests.take_due(true).is_some(), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_under_an_id_that_was_never_in_use_fails_no_request() {
    for text in [STRANGER, STRANGE_ERROR, r#"{"jsonrpc":"2.0","id":99,"result":{"a":"#] {
        let requests = in_flight(&[7]);
        assert_eq!(in_the_end(&requests, text).await, (Value::Null, Value::Null), "{text}");
        assert!(requests.is_in_flight(&RequestId::Number(7)), "{text}");
    }
}

#[test]
fn a_finding_about_an_answer_is_kept_for_its_request_alone() {
    let requests = in_flight(&[7]);
    admitted(&requests, r#"{"jsonrpc":"2.0","id":7,"result":"#, &Stream::Shared);
    assert_eq!(requests.take_finding(&RequestId::Number(6)), None);
    assert!(matches!(requests.take_finding(&RequestId::Number(7)), Some(ResponseFinding::Unreadable(_))));
    assert_eq!(requests.take_finding(&RequestId::Number(7)), None);
}

#[test]
fn a_late_answer_fails_no_request() {
    let requests = in_flight(&[6]);
    requests.over(&RequestId::Number(6));
    send(&requests, 7);
    let late = admitted(&requests, r#"{"jsonrpc":"2.0","id":6,"result":{}}"#, &Stream::Shared);
    assert_eq!(late["id"], 6, "the SDK passes over it");
    assert!(requests.is_in_flight(&RequestId::Number(7)));
}

#[tokio::test(start_paused = true)]
async fn an_anonymous_answer_that_may_be_to_a_notification_fails_no_call() {
    for (text, _) in ANONYMOUS {
        let requests = in_flight(&[6]);
        requests.over(&RequestId::Number(6));
        notify(&requests);
        call(&requests, 7);
        assert_eq!(in_the_end(&requests, text).await, (Value::Null, Value::Null), "{text}");
        assert_eq!(admitted(&requests, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, &Stream::Shared)["id"], 7);
        call(&requests, 8);
        assert_eq!(in_the_end(&requests, text).await.1["id"], 8, "{text}: the notification lies before an answer");

        notify(&requests);
        send(&requests, 9);
        assert_eq!(in_the_end(&requests, text).await.1["id"], 9, "{text}: what can be asked again may fail");
    }
}

#[test]
fn a_notification_without_an_effect_does_not_reach_the_sdk() {
    let requests = in_flight(&[7]);
    for (method, is_of_use) in
        [("notifications/message", false), ("notifications/made-up", false), ("notifications/tools/list_changed", true)]
    {
        let params = json!({"level": "info", "data": 1});
        let text = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
        assert_eq!(!admitted(&requests, &text, &Stream::Shared).is_null(), is_of_use, "{method}");
    }
}
