//! HTTP servers that forget a session, break off an answer, or disappear for a while. Whatever is repaired, a call
//! that may have been made is not repeated.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use toolgate::core::tool::FailureKind;
use toolgate::mcp::{ServerSettings, ServerState};

use super::support::*;

/// The behaviour of the server, and its received requests.
#[derive(Default)]
struct Till {
    /// How many sessions were opened; it knows only the newest.
    sessions: u32,
    /// Whether it forgot the newest, too.
    is_forgetful: bool,
    /// The beginning of an answer after which it forgets the session.
    breaks_off: Option<&'static str>,
    /// How many streams it was asked to resume.
    resumed: u32,
    /// The calls that it executed, and those that it rejected unseen.
    made: u32,
    turned_away: u32,
    gate: Arc<Gate>,
}

/// The waiting place of a call of `wait`.
#[derive(Default)]
struct Gate {
    arrived: Notify,
    go_on: Notify,
}

type Shared = Arc<Mutex<Till>>;

async fn answer(State(till): State<Shared>, headers: HeaderMap, Json(request): Json<Value>) -> Response {
    if request["params"]["name"] == "wait" {
        let gate = till.lock().unwrap().gate.clone();
        gate.arrived.notify_one();
        gate.go_on.notified().await;
    }
    let mut till = till.lock().unwrap();
    let method = request["method"].as_str().unwrap_or_default();
    let reply = |result: Value| Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    if method == "initialize" {
        till.sessions += 1;
        till.is_forgetful = false;
        let result = json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "till", "version": "1"},
        });
        return ([("mcp-session-id", till.sessions.to_string())], reply(result)).into_response();
    }
    let session = headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
    let knows = !till.is_forgetful && session == Some(till.sessions.to_string().as_str());
    match method {
        "tools/call" if !knows => {
            till.turned_away += 1;
            StatusCode::NOT_FOUND.into_response()
        }
        _ if !knows => StatusCode::NOT_FOUND.into_response(),
        "tools/call" => {
            till.made += 1;
            if let Some(beginning) = till.breaks_off {
                till.is_forgetful = true;
                return ([("content-type", "text/event-stream")], beginning).into_response();
            }
            reply(json!({"content": [{"type": "text", "text": "paid"}]})).into_response()
        }
        "tools/list" => reply(json!({"tools": [{"name": "pay", "inputSchema": {}}]})).into_response(),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

async fn resume(State(till): State<Shared>, headers: HeaderMap) -> StatusCode {
    let mut till = till.lock().unwrap();
    till.resumed += u32::from(headers.contains_key("last-event-id"));
    if till.is_forgetful { StatusCode::NOT_FOUND } else { StatusCode::METHOD_NOT_ALLOWED }
}

async fn serve(till: &Shared, address: &str) -> (String, JoinHandle<()>) {
    let router = Router::new().route("/mcp", post(answer).get(resume).delete(async || StatusCode::OK));
    let listener = TcpListener::bind(address).await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let router = router.with_state(till.clone());
    (address, tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") }))
}

fn at(address: &str) -> ServerSettings {
    ServerSettings::http(format!("http://{address}/mcp"))
}

#[tokio::test]
async fn a_call_that_is_turned_away_because_its_session_is_unknown_is_made_once_in_a_new_one() {
    let till = Shared::default();
    let (address, _serving) = serve(&till, "127.0.0.1:0").await;
    let servers = servers([("till", at(&address))]);
    names(&servers, "till").await;
    till.lock().unwrap().is_forgetful = true;
    assert_eq!(text(call(&servers, "till", "pay", json!({})).await), "paid");
    let seen = |till: &Till| (till.sessions, till.turned_away, till.made);
    assert_eq!(seen(&till.lock().unwrap()), (2, 1, 1));
    servers.close().await;
}

#[tokio::test]
async fn a_list_that_is_turned_away_with_its_session_is_that_of_a_new_one() {
    let till = Shared::default();
    let (address, _serving) = serve(&till, "127.0.0.1:0").await;
    let servers = servers([("till", at(&address))]);
    names(&servers, "till").await;
    till.lock().unwrap().is_forgetful = true;
    eventually("it is asked again", async || {
        let listed = list(&servers, &["till"]).await.remove(0);
        assert_eq!((listed.tools.len(), listed.stale), (1, None), "the loss is not visible");
        till.lock().unwrap().sessions == 2
    })
    .await;
    servers.close().await;
}

#[tokio::test]
async fn a_call_whose_answer_broke_off_with_its_session_is_not_made_again() {
    let till = Shared::default();
    // A stream that can be resumed, in a session that no longer exists.
    till.lock().unwrap().breaks_off = Some("id: 1\nretry: 10\ndata:\n\n");
    let (address, _serving) = serve(&till, "127.0.0.1:0").await;
    let servers = servers([("till", at(&address))]);
    names(&servers, "till").await;
    let (kind, message) = failed(call(&servers, "till", "pay", json!({})).await);
    assert_eq!(kind, FailureKind::Disconnected, "{message}");
    assert!(message.contains("it does not know the session any more (HTTP 404)"), "{message}");
    assert_eq!(names(&servers, "till").await, ["pay"]);
    let seen = |till: &Till| (till.made, till.turned_away);
    assert_eq!(seen(&till.lock().unwrap()), (1, 0));
    servers.close().await;
}

#[tokio::test]
async fn a_stream_with_an_empty_id_is_not_resumed() {
    let till = Shared::default();
    till.lock().unwrap().breaks_off = Some("id:\nretry: 10\ndata:\n\n");
    let (address, _serving) = serve(&till, "127.0.0.1:0").await;
    let servers = servers([("till", at(&address))]);
    names(&servers, "till").await;
    let (kind, message) = failed(call(&servers, "till", "pay", json!({})).await);
    assert_ne!(kind, FailureKind::Timeout, "{message}");
    let seen = |till: &Till| (till.made, till.resumed);
    assert_eq!(seen(&till.lock().unwrap()), (1, 0));
    servers.close().await;
}

#[tokio::test]
async fn an_http_server_that_was_away_is_reconnected_automatically() {
    let till = Shared::default();
    let (address, serving) = serve(&till, "127.0.0.1:0").await;
    // Kept-alive connections would still be served.
    let servers = servers([("till", at(&address))]);
    names(&servers, "till").await;
    serving.abort();
    let _ = serving.await;
    let mut outcome = failed_or_paid(&servers).await;
    while outcome.is_none() {
        outcome = failed_or_paid(&servers).await;
    }
    assert_eq!(outcome, Some(FailureKind::Unavailable));
    let kept = list(&servers, &["till"]).await.remove(0);
    assert_eq!((kept.tools.len(), kept.stale.is_some()), (1, true), "{kept:?}");

    let (_, _serving) = serve(&till, &address).await;
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while status(&servers, "till").state != ServerState::Ready {
        assert!(tokio::time::Instant::now() < deadline, "{:?}", status(&servers, "till"));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(names(&servers, "till").await, ["pay"]);
    assert_eq!(text(call(&servers, "till", "pay", json!({})).await), "paid");
    servers.close().await;
}

#[tokio::test]
async fn a_call_under_way_is_answered_although_the_server_takes_no_new_connections() {
    let till = Shared::default();
    let gate = till.lock().unwrap().gate.clone();
    let router = Router::new().route("/mcp", post(answer).get(resume)).with_state(till.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = axum::serve(listener, router).with_graceful_shutdown(async { stopped.await.unwrap_or(()) });
    let serving = tokio::spawn(async move { serving.await });
    let servers = servers([("till", at(&address))]);
    names(&servers, "till").await;

    let slow = call(&servers, "till", "wait", json!({}));
    let meanwhile = async {
        soon("the call arrives", gate.arrived.notified()).await;
        stop.send(()).expect("it serves");
        // Kept-alive connections are used up first.
        eventually("no connection can be opened", async || {
            failed_or_paid(&servers).await == Some(FailureKind::Unavailable)
        })
        .await;
        eventually("the loss is noticed", async || status(&servers, "till").state != ServerState::Ready).await;
        gate.go_on.notify_one();
    };
    let (slow, ()) = tokio::join!(slow, meanwhile);
    assert_eq!(text(slow), "paid");
    servers.close().await;
    serving.await.expect("it ends").expect("in order");
}

/// The kind of a call's failure, or nothing if it was made over an open connection.
async fn failed_or_paid(servers: &toolgate::mcp::Servers) -> Option<FailureKind> {
    match call(servers, "till", "pay", json!({})).await {
        outcome if outcome.is_error() => Some(failed(outcome).0),
        _ => None,
    }
}
