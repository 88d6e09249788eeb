//! Bridge: a stdio server as streamable HTTP on 127.0.0.1, so that the faults of HTTP can be injected before a command.
//!
//! Each session has a process of its own, as has the stateless revision as a whole. A session ends with its process, and
//! a later request of it gets HTTP 404. Messages of the server that answer nothing go to the newest open request, or to
//! the stream that the client opened with GET.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin};
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use toolgate_settings::mcp::StdioSettings;

use super::http::{is_local, json_response, listen, serve_target};
use super::report::Report;
use super::stdio::next_line;
use super::{MAX_MESSAGE, ProxyOptions, locked};
use crate::check::wire::process::{command, signal};
use crate::check::{CheckTarget, Revision};

const SESSION: &str = "mcp-session-id";
/// The name of the process of the stateless revision, which no session has.
const STATELESS: &str = "";

type Sender = mpsc::UnboundedSender<String>;

/// A process, and where its messages go. Dropping it kills its process group.
struct Served {
    pid: u32,
    stdin: AsyncMutex<ChildStdin>,
    streams: Mutex<Streams>,
    _child: Child,
}

#[derive(Default)]
struct Streams {
    /// The open requests by their id as text, the newest last.
    requests: Vec<(String, Sender)>,
    /// The stream of GET.
    general: Option<Sender>,
}

impl Drop for Served {
    fn drop(&mut self) {
        signal::kill_group(self.pid);
    }
}

/// All processes, by their sessions.
struct Bridge {
    settings: StdioSettings,
    served: Mutex<HashMap<String, Arc<Served>>>,
}

/// Serves a command that the bridge starts. The client gets streamable HTTP, with the faults of HTTP.
///
/// # Errors
/// A port cannot be used, or the connection of a listener failed.
pub async fn serve_command(
    listener: TcpListener,
    settings: &StdioSettings,
    options: ProxyOptions,
    stop: impl Future<Output = ()>,
) -> Result<Report, String> {
    let (inner, url) = listen(0).map_err(|error| error.to_string())?;
    let target = CheckTarget::Stdio(settings.clone());
    tokio::select! {
        report = serve_target(listener, &target, &url, &[], options, stop) => report,
        ended = serve(inner, settings.clone()) => Err(ended.err().unwrap_or_else(|| "the bridge ended".into())),
    }
}

/// Serves until it is dropped.
async fn serve(listener: TcpListener, settings: StdioSettings) -> Result<(), String> {
    let bridge = Arc::new(Bridge { settings, served: Mutex::default() });
    let router = Router::new().fallback(receive).with_state(bridge);
    axum::serve(listener, router).await.map_err(|error| error.to_string())
}

async fn receive(State(bridge): State<Arc<Bridge>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if !is_local(&head.headers) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let named = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    if named("mcp-protocol-version").is_some_and(|version| Revision::parse(version).is_none()) {
        return (StatusCode::BAD_REQUEST, "unsupported protocol version").into_response();
    }
    let (session, accepts_events) = (named(SESSION).map(str::to_owned), accepts_events(&head.headers));
    if head.method == Method::DELETE {
        let ended = session.and_then(|session| locked(&bridge.served).remove(&session));
        return if ended.is_some() { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }.into_response();
    }
    if head.method == Method::GET {
        return match session.and_then(|session| bridge.find(&session)) {
            Some(_) if !accepts_events => StatusCode::NOT_ACCEPTABLE.into_response(),
            Some(served) => served.listen(),
            None => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        };
    }
    if head.method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let Ok(body) = to_bytes(body, MAX_MESSAGE).await else { return StatusCode::PAYLOAD_TOO_LARGE.into_response() };
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        let error = json!({"code": -32700, "message": "the body is not JSON"});
        return json_response(StatusCode::BAD_REQUEST, &json!({"jsonrpc": "2.0", "id": null, "error": error}));
    };
    bridge.post(accepts_events, session, &message).await
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let accept = headers.get("accept").and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/event-stream"))
}

impl Bridge {
    fn find(&self, session: &str) -> Option<Arc<Served>> {
        locked(&self.served).get(session).cloned()
    }

    async fn post(self: &Arc<Self>, accepts_events: bool, session: Option<String>, message: &Value) -> Response {
        let is_start = message.get("method").is_some_and(|method| method == "initialize");
        let (name, served) = match session {
            Some(session) => match self.find(&session) {
                Some(served) => (session, served),
                None => return not_found(),
            },
            None if is_start => {
                let session = format!("{:016x}", RandomState::new().build_hasher().finish());
                match self.start(&session) {
                    Ok(served) => (session, served),
                    Err(error) => return (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
                }
            }
            None => match self.find(STATELESS).map_or_else(|| self.start(STATELESS), Ok) {
                Ok(served) => (STATELESS.to_owned(), served),
                Err(error) => return (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
            },
        };
        let mut response = served.post(message, accepts_events).await;
        if is_start && let Ok(value) = name.parse() {
            response.headers_mut().insert(SESSION, value);
        }
        response
    }

    fn start(self: &Arc<Self>, session: &str) -> std::io::Result<Arc<Served>> {
        let mut child = command(&self.settings).stderr(std::process::Stdio::inherit()).spawn()?;
        let no_pipes = || std::io::Error::other("the process has no pipes");
        let stdout = child.stdout.take().ok_or_else(no_pipes)?;
        let stdin = AsyncMutex::new(child.stdin.take().ok_or_else(no_pipes)?);
        let pid = child.id().unwrap_or_default();
        let served = Arc::new(Served { pid, stdin, streams: Mutex::default(), _child: child });
        locked(&self.served).insert(session.to_owned(), served.clone());
        let (bridge, session, streams) = (Arc::downgrade(self), session.to_owned(), Arc::downgrade(&served));
        tokio::spawn(async move {
            let mut reader = BufReader::with_capacity(1 << 16, stdout);
            while let (Some(line), Some(served)) = (line(&mut reader).await, streams.upgrade()) {
                served.take(line);
            }
            if let Some(bridge) = bridge.upgrade() {
                locked(&bridge.served).remove(&session);
            }
            // Open requests end without an answer.
            if let Some(served) = streams.upgrade() {
                *locked(&served.streams) = Streams::default();
            }
        });
        Ok(served)
    }
}

/// The next line without its line feed.
async fn line(reader: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    let is_line = next_line(reader, &mut line).await;
    is_line.then(|| String::from_utf8_lossy(line.trim_ascii_end()).into_owned())
}

impl Served {
    async fn post(&self, message: &Value, wants_events: bool) -> Response {
        let id = message.get("id").filter(|_| message.get("method").is_some()).map(Value::to_string);
        let (sender, receiver) = mpsc::unbounded_channel();
        if let Some(id) = &id {
            locked(&self.streams).requests.push((id.clone(), sender));
        }
        let line = format!("{message}\n");
        let mut stdin = self.stdin.lock().await;
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return not_found();
        }
        drop(stdin);
        match id {
            None => StatusCode::ACCEPTED.into_response(),
            Some(_) if wants_events => events(receiver),
            Some(_) => single(receiver).await,
        }
    }

    fn listen(&self) -> Response {
        let (sender, receiver) = mpsc::unbounded_channel();
        locked(&self.streams).general = Some(sender);
        events(receiver)
    }

    /// Hands a line to the request that it answers, or to an open stream.
    fn take(&self, line: String) {
        let message = serde_json::from_str::<Value>(&line).unwrap_or_default();
        let is_answer = message.get("method").is_none();
        let id = message.get("id").filter(|_| is_answer).map(Value::to_string);
        let mut streams = locked(&self.streams);
        streams.requests.retain(|(_, sender)| !sender.is_closed());
        if let Some(place) = id.and_then(|id| streams.requests.iter().position(|(open, _)| *open == id)) {
            let _ = streams.requests.remove(place).1.send(line);
        } else if !is_answer
            && let Some(sender) = streams.requests.last().map(|(_, sender)| sender).or(streams.general.as_ref())
        {
            let _ = sender.send(line);
        }
    }
}

fn not_found() -> Response {
    let error = json!({"code": -32001, "message": "Session not found"});
    json_response(StatusCode::NOT_FOUND, &json!({"jsonrpc": "2.0", "id": null, "error": error}))
}

fn events(receiver: mpsc::UnboundedReceiver<String>) -> Response {
    let lines = stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) });
    // A carriage return would end the line of the event.
    let events = lines.map(|line| Ok::<_, Infallible>(format!("data: {}\n\n", line.replace('\r', " "))));
    ([("content-type", "text/event-stream")], Body::from_stream(events)).into_response()
}

/// The answer as JSON, for a client that reads no event stream.
async fn single(mut receiver: mpsc::UnboundedReceiver<String>) -> Response {
    let mut last = None;
    while let Some(line) = receiver.recv().await {
        last = Some(line);
    }
    match last {
        Some(line) => ([("content-type", "application/json")], line).into_response(),
        None => StatusCode::BAD_GATEWAY.into_response(),
    }
}
