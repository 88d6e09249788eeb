//! Order of a session's first call and the GET that opens its stream, on which the server asks questions.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolgate::mcp::ServerSettings;

use super::support::*;

/// A server whose answer to the GET takes a while. Records when it answered the GET and when it read a message.
#[derive(Clone, Default)]
struct Slow(Arc<Mutex<Vec<(String, Instant)>>>);

impl Slow {
    async fn open(self) -> ServerSettings {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new().fallback(answer).with_state(self);
        tokio::spawn(async move { axum::serve(listener, router).await });
        ServerSettings::http(format!("http://{address}/mcp"))
    }

    fn note(&self, event: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((event.to_owned(), Instant::now()));
    }

    fn first(&self, event: &str) -> Option<Instant> {
        let events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.iter().find(|(name, _)| name == event).map(|(_, at)| *at)
    }
}

async fn answer(State(server): State<Slow>, method: Method, body: Bytes) -> Response {
    match method {
        Method::GET => {
            tokio::time::sleep(Duration::from_millis(100)).await;
            server.note("stream");
            let silent = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
            ([(header::CONTENT_TYPE, "text/event-stream")], silent).into_response()
        }
        Method::POST => post(&server, &body),
        _ => StatusCode::OK.into_response(),
    }
}

fn post(server: &Slow, body: &[u8]) -> Response {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default();
    server.note(method);
    let result = match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "slow", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "asked"}]}),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    ([(header::CONTENT_TYPE, "application/json"), (header::HeaderName::from_static("mcp-session-id"), "s1")], answer)
        .into_response()
}

#[tokio::test]
async fn the_first_call_of_a_session_waits_for_its_stream_and_at_most_300_milliseconds() {
    let server = Slow::default();
    let servers = servers([("slow", server.clone().open().await)]);
    assert_eq!(text(call(&servers, "slow", "ask", json!({})).await), "asked");
    let [confirmed, called] =
        ["notifications/initialized", "tools/call"].map(|method| server.first(method).expect("it was sent"));
    let follows_stream = server.first("stream").is_some_and(|answered| answered <= called);
    assert!(follows_stream || called - confirmed >= Duration::from_millis(300), "the call overtook the GET");
    servers.close().await;
}
