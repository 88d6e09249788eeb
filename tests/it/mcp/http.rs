//! Servers over streamable HTTP, the good ones served in process by the SDK's own server side.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
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
use toolgate::mcp::{EraChoice, ServerSettings, ServerState, Transport};

use super::support::*;

/// What happens in the server, for the test to wait for.
#[derive(Clone, Default)]
struct Till {
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

/// Serves the till with sessions; forgetting these is what a restart of the server does.
async fn serve(till: Till) -> (String, Arc<LocalSessionManager>) {
    let sessions = Arc::new(LocalSessionManager::default());
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(move || Ok(till.clone()), sessions.clone(), config);
    (serve_router(Router::new().route_service("/mcp", service)).await, sessions)
}

async fn serve_router(router: Router) -> String {
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
    settings.era = EraChoice::Legacy;
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
    let nobody = format!("http://{}/mcp", free.local_addr().expect("an address"));
    drop(free);
    let answering = async |status: StatusCode, headers: &'static [(&'static str, &'static str)]| {
        let answer = move || async move { (status, axum::response::AppendHeaders(headers.iter().copied()), "sorry") };
        ServerSettings::http(serve_router(Router::new().fallback(answer)).await)
    };
    let servers = servers([
        ("nobody", ServerSettings::http(nobody)),
        ("missing", answering(StatusCode::NOT_FOUND, &[]).await),
        ("locked", answering(StatusCode::UNAUTHORIZED, &[("www-authenticate", "Bearer")]).await),
        ("busy", answering(StatusCode::SERVICE_UNAVAILABLE, &[("retry-after", "7")]).await),
        ("elsewhere", ServerSettings::http("ftp://example.com/mcp")),
    ]);
    for (id, expected) in [
        ("nobody", "Connection refused (os error 111); is it running, and is the server's `url` right?"),
        ("missing", "404"),
        ("locked", "it answered HTTP 401 and wants credentials; give them in the server's `headers`"),
        ("busy", "it answered HTTP 503, retry after 7"),
        ("elsewhere", "`ftp://example.com/mcp` is no http or https address; correct the server's `url`"),
    ] {
        let reason = missing(&servers, id).await;
        assert!(reason.starts_with(&format!("the MCP server `{id}` could not be reached: ")), "{reason}");
        assert!(reason.contains(expected), "{reason}");
    }
    assert_eq!(failed(call(&servers, "nobody", "headers", json!({})).await).0, FailureKind::Unavailable);
    servers.close().await;
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
    assert!(message.contains("could not be reached: Connection refused"), "{message}");
    servers.close().await;
}
