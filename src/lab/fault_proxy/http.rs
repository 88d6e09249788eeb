//! HTTP proxy: serves streamable HTTP on 127.0.0.1, and forwards each request to the URL of the server.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt as _, stream};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolgate_core::redact::{Secrets, SecretsBuilder, Style};

use super::event_stream::EventStream;
use super::faults::{Fault, Refusal};
use super::interceptor::{Delay, Interceptor, Outgoing, Passage};
use super::report::{Report, ServerFact};
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
/// Headers with credentials of the client, which the wire log never shows.
const CREDENTIALS: [&str; 3] = ["authorization", "cookie", "x-api-key"];
/// The time between half of an answer and the end of its connection, in which the half is sent.
pub(super) const BEFORE_BREAK: Duration = Duration::from_millis(50);

/// The state of an HTTP proxy.
pub(super) struct Proxy {
    upstream: reqwest::Client,
    url: String,
    headers: HeaderMap,
    pub(super) interceptor: Mutex<Interceptor>,
    lost_sessions: Mutex<BTreeSet<String>>,
    log: Option<WireLog>,
}

/// A request of a client that has no complete answer yet. Dropping it before its end records that the client left.
pub(super) struct Exchange {
    pub(super) proxy: Arc<Proxy>,
    pub(super) passage: Passage,
    id: Option<Value>,
    secrets: Secrets,
    is_complete: bool,
}

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
    let secrets = credentials(&head.headers);
    let passage = locked(&proxy.interceptor).client_message(&session, &message);
    let id = message.get("id").cloned();
    let exchange = Exchange { proxy: proxy.clone(), passage, id, secrets, is_complete: false };
    exchange.log("client", Direction::Received, if body.is_empty() { head.method.as_str().as_bytes() } else { &body });
    match exchange.refusal(&session) {
        Some(refused) => {
            exchange.log("client", Direction::Event, format!("HTTP {}, by the proxy", refused.status()).as_bytes());
            exchange.complete(refused)
        }
        None => exchange.forward(&head, body).await,
    }
}

/// Whether the request names this machine: a web page of another host that resolves to 127.0.0.1 does not.
fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

fn credentials(headers: &HeaderMap) -> Secrets {
    let mut secrets = SecretsBuilder::default();
    let values = CREDENTIALS.iter().flat_map(|name| headers.get_all(*name));
    for value in values.filter_map(|value| value.to_str().ok()) {
        let bare = value.split_once(' ').map_or(value, |(_, credential)| credential);
        secrets.credential(bare);
    }
    secrets.build(Style::MESSAGE)
}

impl Exchange {
    /// Records a line, without the credentials of this client.
    pub(super) fn log(&self, side: &str, direction: Direction, line: &[u8]) {
        if let Some(log) = &self.proxy.log {
            log.record(side, direction, self.secrets.redacted(&String::from_utf8_lossy(line)).as_bytes(), None);
        }
    }

    /// The response in place of the server's, if a fault refuses the request.
    fn refusal(&self, session: &str) -> Option<Response> {
        let not_found = || {
            let error = json!({"code": -32001, "message": "Session not found"});
            json_response(StatusCode::NOT_FOUND, &json!({"jsonrpc": "2.0", "id": null, "error": error}))
        };
        let mut lost = locked(&self.proxy.lost_sessions);
        if !session.is_empty() && lost.contains(session) {
            return Some(not_found());
        }
        let Some(Fault::Refused(refusal)) = self.passage.fault else { return None };
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

    async fn forward(self, head: &request::Parts, body: Bytes) -> Response {
        let mut headers = head.headers.clone();
        OWN_HEADERS.iter().for_each(|name| drop(headers.remove(*name)));
        headers.extend(self.proxy.headers.clone());
        self.log("server", Direction::Sent, &body);
        let request = self.proxy.upstream.request(head.method.clone(), &self.proxy.url).headers(headers).body(body);
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => {
                let reason = in_words(&error);
                self.log("server", Direction::Event, reason.as_bytes());
                let fact = |after_ms| ServerFact::Failed { after_ms, reason: reason.clone() };
                if self.passage.injection.is_some() {
                    locked(&self.proxy.interceptor).server_fact(self.passage.injection, fact);
                }
                return self.complete((StatusCode::BAD_GATEWAY, reason).into_response());
            }
        };
        self.log("server", Direction::Event, format!("HTTP {}", response.status().as_u16()).as_bytes());
        let (status, mut headers) = (response.status(), response.headers().clone());
        OWN_HEADERS.iter().for_each(|name| drop(headers.remove(*name)));
        let is_stream = headers.get(header::CONTENT_TYPE).is_some_and(|kind| {
            kind.to_str().is_ok_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"))
        });
        let mut answered = if is_stream {
            EventStream::respond(self, response)
        } else if head.method == Method::POST && self.passage.number.is_some() {
            self.respond(response).await
        } else {
            let body = Body::from_stream(response.bytes_stream());
            self.complete(body.into_response())
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
    async fn respond(self, mut response: reqwest::Response) -> Response {
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_MESSAGE {
                return self.complete((StatusCode::BAD_GATEWAY, "the answer is too large").into_response());
            }
        }
        let outgoing = self.take(&body);
        match <[Outgoing; 1]>::try_from(outgoing) {
            Ok([Outgoing::Send(bytes, delay)]) => {
                delay.wait().await;
                self.log("client", Direction::Sent, &bytes);
                self.complete(bytes.into_response())
            }
            Ok([Outgoing::Unterminated(bytes)]) => self.complete(bytes.into_response()),
            Ok([Outgoing::Hold | Outgoing::Swap]) => std::future::pending().await,
            Ok([Outgoing::Cut(half)]) => self.complete(broken_off(half)),
            Ok([Outgoing::Break]) => self.complete(broken_off(Vec::new())),
            Err(several) => EventStream::respond_with(self, several),
        }
    }

    /// What the client gets in place of this message.
    pub(super) fn take(&self, line: &[u8]) -> Vec<Outgoing> {
        self.log("server", Direction::Received, line);
        let message = serde_json::from_slice::<Value>(line).unwrap_or_default();
        let is_answer =
            message.get("method").is_none() && message.get("id").is_some() && message.get("id") == self.id.as_ref();
        match self.passage.number.filter(|_| is_answer) {
            Some(number) => locked(&self.proxy.interceptor).answer(number, &message, line),
            None => vec![Outgoing::Send(line.to_vec(), Delay::Nothing)],
        }
    }

    /// The response, after which nothing of the exchange is left.
    fn complete(mut self, response: Response) -> Response {
        self.end();
        response
    }

    /// Ends the exchange from the side of the proxy.
    pub(super) fn end(&mut self) {
        self.is_complete = true;
        if let Some(number) = self.passage.number {
            locked(&self.proxy.interceptor).abandon(number);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.proxy.log.iter().for_each(WireLog::flush);
        if !self.is_complete {
            self.end();
            if let Some(injection) = self.passage.injection {
                locked(&self.proxy.interceptor).disconnected(injection);
            }
        }
    }
}

/// A body that breaks off behind these bytes.
fn broken_off(half: Vec<u8>) -> Response {
    let end = async {
        tokio::time::sleep(BEFORE_BREAK).await;
        Err(std::io::Error::other("the fault breaks the connection"))
    };
    let half = stream::once(std::future::ready(Ok(Bytes::from(half))));
    Body::from_stream(half.chain(stream::once(end))).into_response()
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
