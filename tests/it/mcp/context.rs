//! Trace context in MCP requests: every request of a run carries the caller's context, in both eras and over both
//! transports, and a server receives only the parts that its settings allow.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use toolgate::core::id::ServerId;
use toolgate::core::trace::{Propagation, Trace};
use toolgate::mcp::{ProtocolVersionChoice, ServerSettings};
use toolgate::ports::{McpServers as _, TaskAction};

use super::elicitation::{answered, asked, name, send};
use super::faults::{Endpoint, watched};
use super::http::{Till, serve_router};
use super::support::*;
use super::tasks::{ask, news, task};

const FIELDS: [&str; 3] = ["traceparent", "tracestate", "baggage"];
const ERAS: [(ProtocolVersionChoice, &str, &str); 2] = [
    (ProtocolVersionChoice::Legacy, "2025-11-25", "initialize"),
    (ProtocolVersionChoice::Modern, "2026-07-28", "server/discover"),
];

/// Every posted message, with its headers, and the request that ends the session.
type Posted = Arc<Mutex<Vec<(HeaderMap, Value)>>>;

async fn note(State(posted): State<Posted>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    if parts.method == "DELETE" {
        posted.lock().unwrap().push((parts.headers.clone(), json!({"method": "DELETE"})));
    }
    if let Ok(message) = serde_json::from_slice(&body) {
        posted.lock().unwrap().push((parts.headers.clone(), message));
    }
    next.run(Request::from_parts(parts, Body::from(body))).await
}

async fn serve() -> (String, Posted, Arc<LocalSessionManager>) {
    let (posted, sessions) = (Posted::default(), Arc::new(LocalSessionManager::default()));
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(|| Ok(Till::default()), sessions.clone(), config);
    let router = Router::new().route_service("/mcp", service).layer(from_fn_with_state(posted.clone(), note));
    (serve_router(router).await, posted, sessions)
}

/// The parts of the context in the `_meta` of a request.
fn in_meta(request: &Value) -> [Option<&str>; 3] {
    FIELDS.map(|field| request["params"]["_meta"][field].as_str())
}

fn in_headers(headers: &HeaderMap) -> [Option<&str>; 3] {
    FIELDS.map(|field| headers.get(field).map(|value| value.to_str().expect("text")))
}

#[tokio::test]
async fn every_request_over_http_carries_the_callers_context_twice() {
    for (protocol_version, _, handshake) in ERAS {
        let (url, posted, _) = serve().await;
        let servers = servers([("till", ServerSettings { protocol_version, ..ServerSettings::http(url) })]);
        names(&servers, "till").await;
        text(call(&servers, "till", "headers", json!({})).await);
        servers.close().await;
        let (context, posted) = (trace(), posted.lock().unwrap());
        let whole = [Some(context.traceparent()), context.state, context.baggage];
        let whole = whole.each_ref().map(Option::as_deref);
        for method in [handshake, "tools/list", "tools/call"] {
            let asked: Vec<_> = posted.iter().filter(|(_, message)| message["method"] == method).collect();
            assert!(!asked.is_empty(), "{method} was sent with {protocol_version:?}");
            for (headers, request) in asked {
                assert_eq!(
                    (in_meta(request), in_headers(headers)),
                    (whole, whole),
                    "{method} with {protocol_version:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn row_2_57_the_end_of_a_session_carries_the_context_of_its_latest_request() {
    for (propagation, told) in [(Propagation::ALL, [true; 3]), (Propagation::NOTHING, [false; 3])] {
        let (url, posted, _) = serve().await;
        let protocol_version = ProtocolVersionChoice::Legacy;
        let settings = ServerSettings { protocol_version, propagation, ..ServerSettings::http(url) };
        let servers = servers([("till", settings)]);
        text(call(&servers, "till", "headers", json!({})).await);
        servers.close().await;
        let posted = posted.lock().unwrap();
        let ended: Vec<_> = posted.iter().filter(|(_, message)| message["method"] == "DELETE").collect();
        let [(headers, _)] = ended[..] else { panic!("{posted:?}") };
        let (_, called) = posted.iter().find(|(_, message)| message["method"] == "tools/call").expect("a call");
        assert_eq!(in_headers(headers), in_meta(called));
        assert_eq!(in_headers(headers).map(|field| field.is_some()), told);
    }
}

#[tokio::test]
async fn every_request_to_a_child_carries_the_callers_context() {
    for (_, era, handshake) in ERAS {
        let (settings, wire) = watched(&[&format!("protocol-version={era}")]);
        let servers = servers([("shop", settings)]);
        list(&servers, &["shop"]).await;
        text(call(&servers, "shop", "echo", json!({"text": "hello"})).await);
        servers.close().await;
        let context = trace();
        let whole = [Some(context.traceparent()), context.state, context.baggage];
        for method in [handshake, "tools/list", "tools/call"] {
            let asked = wire.received(method);
            assert!(!asked.is_empty(), "{method} was sent in the {era} era");
            for request in asked {
                assert_eq!(in_meta(&request), whole.each_ref().map(Option::as_deref), "{method} in the {era} era");
            }
        }
    }
}

#[tokio::test]
async fn every_request_about_a_task_carries_the_callers_context() {
    let faults = ["protocol-version=2026-07-28", "task-input"];
    let (child, stdio) = watched(&faults);
    let endpoint = Endpoint::with(&faults).await;
    let servers = servers([("stdio", child), ("http", endpoint.settings())]);
    for id in ["stdio", "http"] {
        let started = task(send(&servers, id, "echo", None).await);
        task(news(&servers, id, &started).await);
        let needed = asked(news(&servers, id, &started).await);
        task(send(&servers, id, "echo", Some(&answered(needed, &name("Ada")))).await);
        let unwanted = task(send(&servers, id, "echo", None).await);
        ask(&servers, id, &unwanted, TaskAction::Stop).await.expect("the server answers");
    }
    servers.close().await;
    let context = trace();
    let whole = [Some(context.traceparent()), context.state, context.baggage];
    let whole = whole.each_ref().map(Option::as_deref);
    for (method, times) in [("tasks/get", 2), ("tasks/update", 1), ("tasks/cancel", 1)] {
        for wire in [&stdio, &endpoint.wire] {
            let asked = wire.received(method);
            assert_eq!(asked.iter().map(in_meta).collect::<Vec<_>>(), vec![whole; times], "{method}");
        }
        let posted = endpoint.wire.noted("posted").into_iter().filter(|posted| posted["method"] == method);
        let headers: Vec<_> =
            posted.map(|posted| FIELDS.map(|field| posted[field].as_str().map(str::to_owned))).collect();
        assert_eq!(headers, vec![whole.map(|field| field.map(str::to_owned)); times], "{method}");
    }
}

#[tokio::test]
async fn a_server_receives_only_the_allowed_parts_of_the_context() {
    for (propagation, told) in [
        (Propagation::TRACE_CONTEXT, [true, true, false]),
        (Propagation { trace_context: false, baggage: true }, [false, false, true]),
        (Propagation::NOTHING, [false, false, false]),
    ] {
        let (url, posted, _) = serve().await;
        let servers = servers([("till", ServerSettings { propagation, ..ServerSettings::http(url) })]);
        names(&servers, "till").await;
        text(call(&servers, "till", "headers", json!({})).await);
        servers.close().await;
        for (headers, message) in posted.lock().unwrap().iter().filter(|(_, message)| !message["id"].is_null()) {
            if message["method"] == "subscriptions/listen" {
                continue; // It is the connection's own.
            }
            assert_eq!(in_meta(message).map(|field| field.is_some()), told, "{propagation:?}: {message}");
            assert_eq!(in_headers(headers).map(|field| field.is_some()), told, "{propagation:?}: {message}");
        }
    }
}

#[tokio::test]
async fn a_new_connection_carries_the_context_of_the_run_that_needs_it() {
    let (url, posted, sessions) = serve().await;
    let servers = servers([(
        "till",
        ServerSettings { protocol_version: ProtocolVersionChoice::Legacy, ..ServerSettings::http(url) },
    )]);
    let first = "00-11111111111111111111111111111111-2222222222222222-01";
    let first = Trace::from_traceparent(first).expect("valid").context("first");
    servers.list(&[ServerId::from("till")], &first).await;
    sessions.sessions.write().await.clear();
    text(call(&servers, "till", "headers", json!({})).await);
    servers.close().await;
    let posted = posted.lock().unwrap();
    let shaken = posted.iter().filter(|(_, message)| message["method"] == "initialize");
    let parents: Vec<_> = shaken.map(|(_, message)| in_meta(message)[0].expect("a parent").to_owned()).collect();
    assert_eq!(parents, [first.traceparent(), trace().traceparent()]);
}
