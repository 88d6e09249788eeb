//! HTTP proxy: serves streamable HTTP on 127.0.0.1, and forwards each request to the URL of the server.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt as _, stream};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::event_stream::EventStream;
use super::exchange::{BEFORE_BREAK, Exchange, Proxy};
use super::faults::{Fault, Refusal};
use super::interceptor::{Interceptor, Outgoing};
use super::report::Report;
use super::{MAX_MESSAGE, ProxyOptions, locked};
use crate::check::CheckTarget;
use crate::check::wire::http::in_words;
use crate::check::wire::log::{Direction, WireLog};

const PATH: &str = "/mcp";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Headers of one connection, and those that describe the bytes of a body that may change.
const OWN_HEADERS: [&str; 8] = [
    "host",
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-length",
    "content-encoding",
    "accept-encoding",
    "upgrade",
];

/// Listens on 127.0.0.1. Port 0 selects a free port. Returns the URL of the proxy as well. Needs a runtime.
///
/// # Errors
/// The port cannot be used.
pub fn listen(port: u16) -> std::io::Result<(TcpListener, String)> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    let url = format!("http://{}{PATH}", listener.local_addr()?);
    Ok((TcpListener::from_std(listener)?, url))
}

/// Serves until `stop` is ready. The server at the URL gets these headers with every request, in place of those of the
/// client.
///
/// # Errors
/// A header is invalid, or the connection of the listener failed.
pub async fn serve(
    listener: TcpListener,
    url: &str,
    headers: &[(String, SecretString)],
    options: ProxyOptions,
    stop: impl Future<Output = ()>,
) -> Result<Report, String> {
    let target = CheckTarget::Http { url: url.to_owned(), headers: headers.to_vec() };
    serve_target(listener, &target, url, headers, options, stop).await
}

/// The same for a target with another name in the report, and with its own secrets.
pub(super) async fn serve_target(
    listener: TcpListener,
    target: &CheckTarget,
    url: &str,
    headers: &[(String, SecretString)],
    options: ProxyOptions,
    stop: impl Future<Output = ()>,
) -> Result<Report, String> {
    let secrets = target.secrets();
    let upstream = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).tcp_nodelay(true).build();
    let proxy = Arc::new(Proxy {
        upstream: upstream.map_err(|error| error.to_string())?,
        url: url.to_owned(),
        headers: headers.iter().map(|(name, value)| header_of(name, value)).collect::<Result<_, _>>()?,
        interceptor: Mutex::new(Interceptor::new(options.plan, secrets.clone())),
        lost_sessions: Mutex::default(),
        log: options.wire.map(|file| WireLog::new(Some(file), secrets)),
    });
    let router = Router::new().fallback(receive).with_state(proxy.clone());
    tokio::select! {
        served = axum::serve(listener, router) => served.map_err(|error| error.to_string())?,
        () = stop => {}
    }
    Ok(locked(&proxy.interceptor).finish(&target.in_words(), false))
}

fn header_of(name: &str, value: &SecretString) -> Result<(HeaderName, HeaderValue), String> {
    let invalid = || format!("the header `{name}` is invalid");
    let value = HeaderValue::try_from(value.expose_secret()).map_err(|_| invalid())?;
    Ok((HeaderName::try_from(name).map_err(|_| invalid())?, value))
}

async fn receive(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if !is_local(&head.headers) {
        return (StatusCode::FORBIDDEN, "the proxy serves this machine alone").into_response();
    }
    if head.uri.path() != PATH {
        return (StatusCode::NOT_FOUND, "the proxy serves /mcp alone").into_response();
    }
    let Ok(body) = to_bytes(body, MAX_MESSAGE).await else { return StatusCode::PAYLOAD_TOO_LARGE.into_response() };
    let message = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    let session = head.headers.get(SESSION).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let exchange = Exchange::new(proxy, &head.headers, &session, &message);
    exchange.log("client", Direction::Received, if body.is_empty() { head.method.as_str().as_bytes() } else { &body });
    match refusal(&exchange, &session) {
        Some(refused) => {
            exchange.log("client", Direction::Event, format!("HTTP {}, by the proxy", refused.status()).as_bytes());
            exchange.complete(refused)
        }
        None => forward(exchange, &head, body).await,
    }
}

/// Whether the request names this machine, and comes from no web page of another one: the proxy may add credentials.
pub(super) fn is_local(headers: &HeaderMap) -> bool {
    let is_this_machine = |name: HeaderName| {
        let value = headers.get(name).map(|value| value.to_str().unwrap_or_default())?;
        let host = value.split_once("://").map_or(value, |(_, host)| host);
        let name = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(host, |(name, _)| name);
        Some(matches!(name, "localhost" | "127.0.0.1" | "[::1]"))
    };
    is_this_machine(header::HOST).unwrap_or_default() && is_this_machine(header::ORIGIN).unwrap_or(true)
}

/// The response in place of the server's, if a fault refuses the request.
fn refusal(exchange: &Exchange, session: &str) -> Option<Response> {
    let not_found = || {
        let error = json!({"code": -32001, "message": "Session not found"});
        json_response(StatusCode::NOT_FOUND, &json!({"jsonrpc": "2.0", "id": null, "error": error}))
    };
    let mut lost = locked(&exchange.proxy.lost_sessions);
    if !session.is_empty() && lost.contains(session) {
        return Some(not_found());
    }
    let Some(Fault::Refused(refusal)) = exchange.passage.fault else { return None };
    Some(match refusal {
        Refusal::LostSession => {
            lost.insert(session.to_owned());
            not_found()
        }
        Refusal::Unauthorized => {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")];
            (StatusCode::UNAUTHORIZED, challenge, "Unauthorized").into_response()
        }
        Refusal::InternalError => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Refusal::RetryAfter(status, time) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            let seconds = time.as_secs_f64().ceil().to_string();
            (status, [(header::RETRY_AFTER, seconds)], "try again later").into_response()
        }
        Refusal::Html => {
            let page = "<!DOCTYPE html><title>Sign in</title><h1>Please sign in</h1>";
            ([(header::CONTENT_TYPE, "text/html")], page).into_response()
        }
    })
}

async fn forward(exchange: Exchange, head: &request::Parts, body: Bytes) -> Response {
    let mut headers = head.headers.clone();
    OWN_HEADERS.iter().for_each(|name| drop(headers.remove(*name)));
    headers.extend(exchange.proxy.headers.clone());
    exchange.log("server", Direction::Sent, &body);
    let request = exchange.proxy.upstream.request(head.method.clone(), &exchange.proxy.url).headers(headers).body(body);
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) => {
            let reason = in_words(&error);
            exchange.server_failed(&reason);
            return exchange.complete((StatusCode::BAD_GATEWAY, reason).into_response());
        }
    };
    exchange.log("server", Direction::Event, format!("HTTP {}", response.status().as_u16()).as_bytes());
    let (status, mut headers) = (response.status(), response.headers().clone());
    OWN_HEADERS.iter().for_each(|name| drop(headers.remove(*name)));
    let is_stream = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.to_str().is_ok_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream")));
    let mut answered = if is_stream {
        EventStream::respond(exchange, response)
    } else if head.method == Method::POST && exchange.passage.number.is_some() {
        respond(exchange, response).await
    } else {
        let body = Body::from_stream(response.bytes_stream());
        exchange.complete(body.into_response())
    };
    if answered.status() == StatusCode::OK {
        *answered.status_mut() = status;
    }
    let kind = answered.headers().get(header::CONTENT_TYPE).filter(|kind| *kind == "text/event-stream").cloned();
    answered.headers_mut().extend(headers);
    if let Some(kind) = kind {
        answered.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    answered
}

/// Answers a request whose answer is one body.
async fn respond(mut exchange: Exchange, mut response: reqwest::Response) -> Response {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => {
                exchange.log("server", Direction::Received, &body);
                exchange.server_failed(&in_words(&error));
                exchange.log("client", Direction::Sent, &body);
                return exchange.complete(broken_off(body));
            }
        }
        if body.len() > MAX_MESSAGE {
            let reason = "the answer is too large";
            exchange.server_failed(reason);
            return exchange.complete((StatusCode::BAD_GATEWAY, reason).into_response());
        }
    }
    let outgoing = exchange.take(&body);
    match <[Outgoing; 1]>::try_from(outgoing) {
        Ok([Outgoing::Send(bytes, delay)]) => {
            delay.wait().await;
            exchange.log("client", Direction::Sent, &bytes);
            exchange.complete(bytes.into_response())
        }
        Ok([Outgoing::Unterminated(bytes)]) => {
            exchange.log("client", Direction::Sent, &bytes);
            exchange.complete(bytes.into_response())
        }
        Ok([Outgoing::Hold | Outgoing::Swap]) => std::future::pending().await,
        Ok([Outgoing::Cut(half)]) => {
            exchange.log("client", Direction::Sent, &half);
            exchange.complete(broken_off(half))
        }
        Ok([Outgoing::Break]) => exchange.complete(broken_off(Vec::new())),
        Err(several) => EventStream::respond_with(exchange, several),
    }
}

/// A body that breaks off behind these bytes.
fn broken_off(half: Vec<u8>) -> Response {
    let end = async {
        tokio::time::sleep(BEFORE_BREAK).await;
        Err(std::io::Error::other("the proxy breaks the connection"))
    };
    let half = stream::once(std::future::ready(Ok(Bytes::from(half))));
    Body::from_stream(half.chain(stream::once(end))).into_response()
}

pub(super) fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
