//! Streamable HTTP servers. The SDK's server side serves the good ones in process.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::IntoResponse;
use rmcp::model::{CallToolResult, ContentBlock, ServerCapabilities, ServerConfig};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use toolgate::core::tool::FailureKind;
use toolgate::mcp::{ProtocolVersionChoice, ServerSettings, ServerState, Transport};

use super::support::*;

/// Events in the server, for the test to wait for.
#[derive(Clone, Default)]
pub(super) struct Till {
    started: Arc<Notify>,
    cancelled: Arc<Notify>,
}

#[tool_router]
impl Till {
    /// The headers of the request.
    #[tool]
    async fn headers(&self, context: RequestContext<RoleServer>) -> String {
        let parts = context.extensions.get::<axum::http::request::Parts>().expect("an HTTP request");
        let headers = parts.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().expect("text")));
        json!(headers.collect::<std::collections::BTreeMap<_, _>>()).to_string()
    }

    /// Waits for the cancellation.
    #[tool]
    async fn slow(&self, context: RequestContext<RoleServer>) -> CallToolResult {
        self.started.notify_one();
        context.ct.cancelled().await;
        self.cancelled.notify_one();
        CallToolResult::success(vec![ContentBlock::text("cancelled")])
    }
}

#[tool_handler]
impl ServerHandler for Till {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

/// Serves the till with sessions; clearing these simulates a restart of the server.
async fn serve(till: Till) -> (String, Arc<LocalSessionManager>) {
    let sessions = Arc::new(LocalSessionManager::default());
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(move || Ok(till.clone()), sessions.clone(), config);
    (serve_router(Router::new().route_service("/mcp", service)).await, sessions)
}

pub(super) async fn serve_router(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/mcp")
}

#[tokio::test]
async fn an_http_call_carries_the_configured_headers_and_the_trace() {
    let (url, _) = serve(Till::default()).await;
    let mut settings = ServerSettings::http(url);
    if let Transport::Http(http) = &mut settings.transport {
        http.headers.insert("Authorization".into(), SecretString::from("Bearer s3cret"));
    }
    assert!(!format!("{settings:?}").contains("s3cret"), "settings can be logged");
    let servers = servers([("till", settings)]);
    let mut tools = names(&servers, "till").await;
    tools.sort();
    assert_eq!(tools, ["headers", "slow"]);
    let headers: Value = serde_json::from_str(&text(call(&servers, "till", "headers", json!({})).await)).expect("JSON");
    assert_eq!(headers["authorization"], "Bearer s3cret");
    assert_eq!(headers["traceparent"], trace().traceparent());
    assert_eq!(headers["tracestate"], "vendor=1");
    let ready = status(&servers, "till");
    assert_eq!((ready.state, ready.pid), (ServerState::Ready, None));
    servers.close().await;
}

#[tokio::test]
async fn dropping_a_call_cancels_it_at_an_http_server_too() {
    let till = Till::default();
    let (url, _) = serve(till.clone()).await;
    let servers = servers([("till", ServerSettings::http(url))]);
    tokio::select! {
        outcome = call(&servers, "till", "slow", json!({})) => panic!("it ended: {outcome:?}"),
        () = soon("the call starts", till.started.notified()) => {}
    }
    soon("the server is told", till.cancelled.notified()).await;
    servers.close().await;
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_opened_again() {
    let (url, sessions) = serve(Till::default()).await;
    let mut settings = ServerSettings::http(url);
    settings.protocol_version = ProtocolVersionChoice::Legacy;
    let servers = servers([("till", settings)]);
    names(&servers, "till").await;
    let before: Vec<_> = sessions.sessions.write().await.drain().map(|(id, _)| id).collect();
    assert_eq!(before.len(), 1);
    assert!(text(call(&servers, "till", "headers", json!({})).await).contains("traceparent"));
    let after: Vec<_> = sessions.sessions.read().await.keys().cloned().collect();
    assert!(after.len() == 1 && after != before, "{before:?}, {after:?}");
    servers.close().await;
    assert_eq!(sessions.sessions.read().await.len(), 0, "closing ends the session");
}

#[tokio::test]
async fn an_http_server_that_is_not_there_or_refuses_is_a_reason() {
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let unknown = format!("http://{}/mcp", free.local_addr().expect("an address"));
    drop(free);
    let answering = async |status: StatusCode, headers: &'static [(&'static str, &'static str)]| {
        let headers = headers.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        let headers: HeaderMap = headers.collect();
        let answer = move || async move { (status, headers, "sorry") };
        ServerSettings::http(serve_router(Router::new().fallback(answer)).await)
    };
    let html = &[("content-type", "text/html")];
    let servers = servers([
        ("unknown", ServerSettings::http(unknown.clone())),
        ("nameless", ServerSettings::http("http://no-such-host.invalid/mcp")),
        ("missing", answering(StatusCode::NOT_FOUND, html).await),
        ("older", answering(StatusCode::METHOD_NOT_ALLOWED, &[]).await),
        ("strict", answering(StatusCode::BAD_REQUEST, &[]).await),
        ("page", answering(StatusCode::OK, html).await),
        ("rest", answering(StatusCode::OK, &[("content-type", "application/json")]).await),
        ("mute", answering(StatusCode::ACCEPTED, &[]).await),
        ("moved", answering(StatusCode::FOUND, &[("location", "https://example.com/")]).await),
        ("locked", answering(StatusCode::UNAUTHORIZED, &[("www-authenticate", "Bearer")]).await),
        ("silently", answering(StatusCode::UNAUTHORIZED, &[]).await),
        ("forbidden", answering(StatusCode::FORBIDDEN, &[]).await),
        ("busy", answering(StatusCode::TOO_MANY_REQUESTS, &[("retry-after", "7")]).await),
        ("elsewhere", ServerSettings::http("ftp://example.com/mcp")),
    ]);
    let credentials = "could not be reached: it answered HTTP 401 and wants credentials; give them in the server's \
                       `headers`, or set its `auth`";
    for (id, expected) in [
        (
            "unknown",
            "could not be reached: no process listens there (connection refused); is it running, and is the server's `url` \
             right?",
        ),
        (
            "missing",
            "answered the handshake with HTTP 404 Not Found (sorry); is the path in the server's `url` right? Many \
             servers answer at `/mcp`",
        ),
        (
            "older",
            "answered the handshake with HTTP 405 Method Not Allowed (sorry); is the path in the server's `url` right? \
             The older transport HTTP+SSE is not spoken here: look for the streamable HTTP endpoint",
        ),
        ("strict", "answered the handshake with HTTP 400 Bad Request (sorry)"),
        ("page", "answered the handshake with a web page (text/html); is the server's `url` right?"),
        (
            "rest",
            "answered the handshake with what it calls JSON and is none: expected value at line 1 column 1: `sorry`; is \
             the server's `url` right?",
        ),
        (
            "mute",
            "answered the handshake with HTTP 202 Accepted without an answer; a request is answered with JSON or an \
             event stream",
        ),
        (
            "moved",
            "answered the handshake with HTTP 302 Found (sorry); it wants to be asked elsewhere: give the address where \
             it ends up as the server's `url`",
        ),
        ("locked", credentials),
        ("silently", credentials),
        (
            "forbidden",
            "answered the handshake with HTTP 403 Forbidden (sorry); are the credentials in the server's `headers` \
             right, and may this machine use it?",
        ),
        (
            "busy",
            "answered the handshake with HTTP 429 Too Many Requests, and wants to be left alone for 7 s; call it less \
             often, or lower its `max_concurrency`",
        ),
        (
            "elsewhere",
            "could not be reached: `ftp://example.com/mcp` is no http or https address; correct the server's `url`",
        ),
    ] {
        assert_eq!(missing(&servers, id).await, format!("the MCP server `{id}` {expected}"));
    }
    let nameless = missing(&servers, "nameless").await;
    assert!(nameless.starts_with("the MCP server `nameless` could not be reached: the name of its host"), "{nameless}");
    assert_eq!(failed(call(&servers, "unknown", "headers", json!({})).await).0, FailureKind::Unavailable);
    servers.close().await;
}

#[tokio::test]
async fn tls_to_a_plain_port_and_a_port_that_hangs_up_are_distinguished() {
    let plain = serve_router(Router::new()).await.replace("http://", "https://");
    let hanging_up = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", hanging_up.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((connection, _)) = hanging_up.accept().await {
            let _ = connection.readable().await;
        }
    });
    let servers = servers([("plain", ServerSettings::http(plain)), ("hangs-up", ServerSettings::http(url))]);
    assert_eq!(
        missing(&servers, "plain").await,
        "the MCP server `plain` could not be reached: what listens there does not speak TLS; does the server's `url` \
         begin with `http://`?"
    );
    let reason = missing(&servers, "hangs-up").await;
    let told =
        ["broke off the connection in the handshake: it was ", "so that its `url` has to begin with `https://`?"];
    assert!(reason.contains(told[0]) && reason.ends_with(told[1]), "{reason}");
    servers.close().await;
}

#[tokio::test]
async fn an_endpoint_that_echoes_is_quoted_without_the_credentials() {
    let repeat = async |headers: HeaderMap| (StatusCode::BAD_REQUEST, format!("you sent {headers:?}"));
    let mut settings = ServerSettings::http(serve_router(Router::new().fallback(repeat)).await);
    let Transport::Http(http) = &mut settings.transport else { panic!("it is dialled") };
    http.headers.insert("authorization".into(), "Bearer sk-very-secret".into());
    let servers = servers([("echo", settings)]);
    let reason = missing(&servers, "echo").await;
    assert!(reason.contains("HTTP 400 Bad Request (you sent {"), "{reason}");
    assert!(!reason.contains("very-secret"), "{reason}");
    servers.close().await;
}

#[tokio::test]
async fn a_session_that_is_never_confirmed_is_told_with_status_and_words() {
    let answering = async |refusal: StatusCode| {
        let answer = move |axum::Json(request): axum::Json<Value>| async move {
            let result = json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "n", "version": "1"},
            });
            match request["method"].as_str() {
                Some("initialize") => {
                    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
                    ([("mcp-session-id", "s1")], axum::Json(answer)).into_response()
                }
                Some("server/discover") => StatusCode::BAD_REQUEST.into_response(),
                _ => (refusal, "no such session on this node").into_response(),
            }
        };
        ServerSettings::http(serve_router(Router::new().route("/mcp", axum::routing::post(answer))).await)
    };
    for protocol_version in [ProtocolVersionChoice::Auto, ProtocolVersionChoice::Legacy] {
        for (status, told) in [(404, "HTTP 404 Not Found"), (500, "HTTP 500 Internal Server Error")] {
            let settings = answering(StatusCode::from_u16(status).expect("a status")).await;
            let servers = servers([("nodes", ServerSettings { protocol_version, ..settings })]);
            assert_eq!(
                missing(&servers, "nodes").await,
                format!(
                    "the MCP server `nodes` opened a session and did not accept `notifications/initialized` in it: it \
                     answered with {told} (no such session on this node); if several instances stand behind its `url`, \
                     all requests of a session have to reach the same one"
                )
            );
            servers.close().await;
        }
    }
}

/// A server whose answer to a call is a stream that ends at once.
async fn breaking_off(axum::Json(request): axum::Json<Value>) -> axum::response::Response {
    let result = match request["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "breaking off", "version": "1"},
        }),
        Some("tools/call") => return ([("content-type", "text/event-stream")], ": no\n\n").into_response(),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    axum::Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).into_response()
}

#[tokio::test]
async fn a_call_whose_stream_ends_without_an_answer_is_disconnected() {
    let url = serve_router(Router::new().route("/mcp", axum::routing::post(breaking_off))).await;
    let servers = servers([("till", ServerSettings::http(url))]);
    let (kind, message) = failed(call(&servers, "till", "pay", json!({})).await);
    assert_eq!(
        (kind, message.as_str()),
        (
            FailureKind::Disconnected,
            "the MCP server `till` broke off the connection: the stream ended before the answer"
        )
    );
    assert_eq!(status(&servers, "till").protocol_version.as_deref(), Some("2025-06-18"));
    servers.close().await;
}

#[tokio::test]
async fn a_call_to_an_http_server_that_went_away_was_not_made() {
    let till = Till::default();
    let service = StreamableHttpService::new(
        move || Ok(till.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let router = Router::new().route_service("/mcp", service);
    let serving = axum::serve(listener, router).with_graceful_shutdown(async { stopped.await.unwrap_or(()) });
    let serving = tokio::spawn(async move { serving.await });

    let servers = servers([("till", ServerSettings::http(url))]);
    names(&servers, "till").await;
    stop.send(()).expect("it serves");
    serving.await.expect("it ends").expect("in order");
    let (kind, message) = failed(call(&servers, "till", "headers", json!({})).await);
    assert_eq!(kind, FailureKind::Unavailable, "{message}");
    assert!(message.contains("could not be reached: no process listens there (connection refused)"), "{message}");
    servers.close().await;
}
