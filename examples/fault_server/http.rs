//! HTTP endpoint of the server: each message is a POST. An immediate answer is JSON, everything else is an event
//! stream.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::calls::no_such_session_with_200;
use crate::faults::Fault;
use crate::log::Log;
use crate::message::{self, HEADER_MISMATCH, Message, UNKNOWN_METHOD, UNSUPPORTED_VERSION, text};
use crate::player::{Outlet, Player};
use crate::script::{FLOODED, HttpAnswer, Origin, Repeat, Target};
use crate::server::{Dialect, Server};

const SESSION: &str = "mcp-session-id";
/// The number of flood messages in a piece of a response.
const CHUNK_OF_REPEATS: u64 = 256;
/// Everything that the standard of event streams allows before the first event: a byte order mark, comments, an unknown
/// field, an id without a value, an invalid retry time, another event type, and an event without data.
const ODD_BEGINNING: &str = "\u{feff}: welcome\r\nfolder: inbox\r\nid\r\nretry: soon\r\n\r\nretry\nid:\n:\n\nevent: \
                             beat\ndata: tick\n\nwhatever\n\n";

/// Listens, and prints the address to stdout.
pub(crate) async fn serve(port: u16, server: Server, log: Log) -> std::io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("{}", json!({"url": format!("http://{}/mcp", listener.local_addr()?)}));
    let one_stream = server.faults.has(&Fault::AnswersOnOneStream);
    let outlet = Arc::new(Responses { one_stream, ..Responses::default() });
    let player = Player::new(outlet.clone());
    // Clients that connect in the meantime wait, as for any server that is starting.
    player.perform(server.opening()).await;
    let endpoint = Arc::new(Endpoint {
        streams_always: server.faults.has(&Fault::DuplicateReplies)
            || server.faults.has(&Fault::AnswersAsEvents)
            || server.faults.has(&Fault::AnswersOnOneStream)
            || server.faults.has(&Fault::OddEvents),
        oddities: server.faults.has(&Fault::OddEvents),
        odd_content_types: server.faults.has(&Fault::OddContentTypes),
        server: Mutex::new(server),
        player,
        outlet,
        log,
        exchanges: AtomicU64::new(0),
    });
    let routes = post(receive).get(listen).delete(end_session);
    let router = Router::new().route("/mcp", routes).with_state(endpoint);
    let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
    axum::serve(listener, router).await
}

struct Endpoint {
    server: Mutex<Server>,
    player: Arc<Player>,
    outlet: Arc<Responses>,
    log: Log,
    exchanges: AtomicU64,
    streams_always: bool,
    oddities: bool,
    odd_content_types: bool,
}

/// The unfinished responses, and the sessions.
#[derive(Default)]
struct Responses {
    open: Mutex<HashMap<u64, UnboundedSender<Piece>>>,
    /// Whether all answers go to the newest response.
    one_stream: bool,
    /// The exchanges whose responses are open although they have ended.
    ended: Mutex<HashSet<u64>>,
    listeners: Mutex<Vec<UnboundedSender<Piece>>>,
    /// Unsolicited messages that have no listener yet.
    unheard: Mutex<Vec<Value>>,
    sessions: Mutex<HashSet<String>>,
    opened_sessions: AtomicU64,
}

/// A piece of a response.
enum Piece {
    Message(Value),
    Bytes(Vec<u8>),
    Repeat(Flood),
    Answer(HttpAnswer),
    Break,
}

/// A flood and its progress.
struct Flood {
    exchange: u64,
    repeat: Repeat,
    times: u64,
}

async fn receive(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap, body: String) -> Response {
    let Ok(message) = serde_json::from_str::<Value>(&body) else {
        return endpoint.refuse(StatusCode::BAD_REQUEST, message::refusal(&Value::Null, -32700, "that is no JSON"));
    };
    endpoint.log.received(&message);
    endpoint.log.note("posted", &posted(&headers, &message));
    let dialect = locked(&endpoint.server).dialect(message.get("params").unwrap_or(&Value::Null));
    if let Some(refused) = endpoint.unconfirmed(&message) {
        return refused;
    }
    let session = match endpoint.admit(dialect, &headers, &message) {
        Ok(session) => session,
        Err(refused) => return *refused,
    };
    let exchange = endpoint.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
    let origin = Origin { session: session.clone().unwrap_or_default(), exchange };
    let (sender, pieces) = unbounded_channel();
    locked(&endpoint.outlet.open).insert(exchange, sender);
    let reader = Reader { pieces, exchange, endpoint: endpoint.clone() };
    let scripts = locked(&endpoint.server).receive(&origin, &message);
    endpoint.player.play(scripts).await;
    let mut response = match message::read(&message) {
        Message::Request { .. } => reader.respond(dialect).await,
        Message::Notification { .. } | Message::Response { .. } | Message::Nonsense => {
            endpoint.outlet.close(exchange);
            StatusCode::ACCEPTED.into_response()
        }
    };
    if let ("initialize", Some(Ok(session))) = (text(&message, "method"), session.map(HeaderValue::try_from)) {
        response.headers_mut().insert(SESSION, session);
    }
    response
}

/// The trace context in the headers of a request.
fn posted(headers: &HeaderMap, message: &Value) -> Value {
    let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    json!({
        "method": message.get("method"), "traceparent": said("traceparent"), "tracestate": said("tracestate"),
        "baggage": said("baggage"),
    })
}

/// The stream of unsolicited messages of a session, in the legacy protocol.
async fn listen(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap) -> Response {
    if !endpoint.knows(&headers) {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let resumed = headers.contains_key("last-event-id").then(|| locked(&endpoint.server).resumed()).flatten();
    if let Some(answer) = resumed {
        endpoint.log.note("resumed", &json!(answer.status));
        return complete(answer);
    }
    let (sender, pieces) = unbounded_channel();
    for unheard in locked(&endpoint.outlet.unheard).drain(..) {
        let _ = sender.send(Piece::Message(unheard));
    }
    locked(&endpoint.outlet.listeners).push(sender);
    endpoint.log.note("listening", &Value::Null);
    Reader { pieces, exchange: 0, endpoint: endpoint.clone() }.stream(None)
}

async fn end_session(State(endpoint): State<Arc<Endpoint>>, headers: HeaderMap) -> StatusCode {
    let session = headers.get(SESSION).and_then(|session| session.to_str().ok()).unwrap_or_default();
    endpoint.log.note("ended", &json!(session));
    match locked(&endpoint.outlet.sessions).remove(session) {
        true => StatusCode::OK,
        false => StatusCode::NOT_FOUND,
    }
}

impl Endpoint {
    /// The session of a message: a new one for the handshake, `None` in the modern protocol.
    fn admit(&self, dialect: Dialect, headers: &HeaderMap, message: &Value) -> Result<Option<String>, Box<Response>> {
        let refuse = |status, code, why: &str| {
            let id = message.get("id").unwrap_or(&Value::Null);
            Err(Box::new(self.refuse(status, message::refusal(id, code, why))))
        };
        if dialect == Dialect::Modern {
            return match contradiction(headers, message) {
                Some(why) => refuse(StatusCode::BAD_REQUEST, HEADER_MISMATCH, &why),
                None => Ok(None),
            };
        }
        if text(message, "method") == "initialize" {
            let session = format!("session-{}", self.outlet.opened_sessions.fetch_add(1, Ordering::Relaxed) + 1);
            locked(&self.outlet.sessions).insert(session.clone());
            return Ok(Some(session));
        }
        match headers.get(SESSION).and_then(|session| session.to_str().ok()) {
            Some(session) if self.knows(headers) => Ok(Some(session.to_owned())),
            Some(_) if locked(&self.server).forgets_with_200().is_some() => {
                Err(Box::new(complete(no_such_session_with_200())))
            }
            Some(_) => {
                let id = message.get("id").unwrap_or(&Value::Null);
                let (status, refusal) = locked(&self.server).no_such_session(id);
                Err(Box::new(self.refuse(StatusCode::from_u16(status).unwrap_or(StatusCode::NOT_FOUND), refusal)))
            }
            None => refuse(StatusCode::BAD_REQUEST, -32000, "Bad Request: there is no session; initialize first"),
        }
    }

    /// The refusal of the first `notifications/initialized`.
    fn unconfirmed(&self, message: &Value) -> Option<Response> {
        let status = |fault| if let Fault::InitializedRefused(status) = fault { Some(status) } else { None };
        let mut server = locked(&self.server);
        let status = server.faults.find(status).filter(|_| text(message, "method") == "notifications/initialized")?;
        if std::mem::replace(&mut server.has_lost_session, true) {
            return None;
        }
        locked(&self.outlet.sessions).clear();
        let status = u16::try_from(status).unwrap_or(404);
        let headers = &[("content-type", "text/plain")];
        Some(complete(HttpAnswer { status, headers, body: "no such session here".into() }))
    }

    fn json(&self) -> &'static str {
        if self.odd_content_types { "Application/JSON ; Charset=\"UTF-8\"" } else { "application/json" }
    }

    fn events(&self) -> &'static str {
        if self.odd_content_types { "Text/Event-Stream;charset=utf-8" } else { "text/event-stream" }
    }

    fn knows(&self, headers: &HeaderMap) -> bool {
        let session = headers.get(SESSION).and_then(|session| session.to_str().ok());
        session.is_some_and(|session| locked(&self.outlet.sessions).contains(session))
    }

    /// The next events of a flood. Its answer goes to its exchange, which may be another stream.
    fn more_of(&self, flood: &mut Flood) -> Bytes {
        let numbers = flood.times..flood.times + CHUNK_OF_REPEATS;
        flood.times = numbers.end;
        if let Some((_, answer)) = flood.repeat.answer.as_ref().filter(|(times, _)| numbers.contains(times)) {
            self.outlet.put(flood.exchange, Piece::Message(answer.clone()));
        }
        if numbers.contains(&FLOODED) {
            self.log.note("flooded", &json!(FLOODED));
        }
        let event = |number: u64| format!("data: {}\n\n", flood.repeat.message.replace('@', &number.to_string()));
        Bytes::from(numbers.map(event).collect::<String>())
    }

    fn refuse(&self, status: StatusCode, refusal: Value) -> Response {
        self.log.note("refused", &json!({"status": status.as_u16(), "message": refusal}));
        (status, axum::Json(refusal)).into_response()
    }
}

impl Outlet for Responses {
    fn send(&self, exchange: u64, to: Target, message: &Value) {
        let newest = || locked(&self.open).keys().max().copied().unwrap_or(exchange);
        let exchange = match to {
            Target::Here if self.one_stream => newest(),
            Target::Here => exchange,
            Target::Exchange(other) => other,
            Target::Unasked => return self.say(message),
        };
        self.put(exchange, Piece::Message(message.clone()));
    }

    fn send_bytes(&self, exchange: u64, bytes: &[u8]) {
        self.put(exchange, Piece::Bytes(bytes.to_vec()));
    }

    fn repeat(&self, exchange: u64, repeat: Repeat) {
        let (to, piece) = (repeat.to, Piece::Repeat(Flood { exchange, repeat, times: 0 }));
        match (to, locked(&self.listeners).last()) {
            (Target::Unasked, Some(listener)) => drop(listener.send(piece)),
            (Target::Unasked | Target::Here | Target::Exchange(_), _) => self.put(exchange, piece),
        }
    }

    fn answer_http(&self, exchange: u64, answer: HttpAnswer) {
        self.put(exchange, Piece::Answer(answer));
    }

    fn break_off(&self, exchange: u64) {
        self.put(exchange, Piece::Break);
    }

    fn break_everything(&self) {
        for response in locked(&self.open).values() {
            let _ = response.send(Piece::Break);
        }
    }

    fn close(&self, exchange: u64) {
        let mut open = locked(&self.open);
        let mut ended = locked(&self.ended);
        ended.insert(exchange);
        if !self.one_stream || open.keys().all(|open| ended.contains(open)) {
            open.retain(|open, _| !ended.contains(open));
            ended.clear();
        }
    }

    fn forget_sessions(&self) {
        locked(&self.sessions).clear();
        locked(&self.listeners).clear();
    }

    /// Over HTTP, stdout has no reader.
    fn print(&self, _: &str) {}
}

impl Responses {
    /// The exchange of a disconnected client has no response.
    fn put(&self, exchange: u64, piece: Piece) {
        if let Some(response) = locked(&self.open).get(&exchange) {
            let _ = response.send(piece);
        }
    }

    /// Sends a message to the current or next listener.
    fn say(&self, message: &Value) {
        let mut listeners = locked(&self.listeners);
        listeners.retain(|listener| listener.send(Piece::Message(message.clone())).is_ok());
        if listeners.is_empty() {
            locked(&self.unheard).push(message.clone());
        }
    }
}

/// An unfinished response. If it is dropped before the end, the client has disconnected.
struct Reader {
    pieces: UnboundedReceiver<Piece>,
    exchange: u64,
    endpoint: Arc<Endpoint>,
}

impl Reader {
    /// The response, once its kind is known.
    async fn respond(mut self, dialect: Dialect) -> Response {
        match self.pieces.recv().await {
            Some(Piece::Answer(answer)) => {
                self.endpoint.log.note("answered", &json!({"status": answer.status, "body": answer.body}));
                complete(answer)
            }
            Some(Piece::Message(message)) if message::is_response(&message) && !self.endpoint.streams_always => {
                self.endpoint.log.sent(&message);
                let json = [("content-type", self.endpoint.json())];
                (status_of(&message, dialect), json, message.to_string()).into_response()
            }
            Some(Piece::Bytes(bytes)) if !self.endpoint.streams_always => {
                ([("content-type", self.endpoint.json())], bytes).into_response()
            }
            first => self.stream(first),
        }
    }

    fn stream(self, first: Option<Piece>) -> Response {
        let kind = self.endpoint.events();
        let beginning = if self.endpoint.oddities { ODD_BEGINNING } else { "" };
        let events = stream::unfold((first, self, None), |(first, mut reader, mut flood)| async move {
            let piece = match (first, &mut flood) {
                (Some(piece), _) => piece,
                (None, None) => reader.pieces.recv().await?,
                (None, Some(flooding)) => match reader.pieces.try_recv() {
                    Ok(piece) => piece,
                    Err(_) => return Some((Ok(reader.endpoint.more_of(flooding)), (None, reader, flood))),
                },
            };
            let event = match piece {
                Piece::Message(message) if reader.endpoint.oddities => {
                    reader.endpoint.log.sent(&message);
                    // A line break is white space in JSON, and each `data` field is one line.
                    let lines =
                        format!("{message:#}").lines().map(|line| format!("data:{line}\r\n")).collect::<String>();
                    Ok(Bytes::from(format!("{lines}\r\n")))
                }
                Piece::Message(message) => {
                    reader.endpoint.log.sent(&message);
                    Ok(Bytes::from(format!("event: message\ndata: {message}\n\n")))
                }
                Piece::Bytes(bytes) => {
                    let lines = bytes.split(|byte| *byte == b'\n').map(|line| [b"data: ", line, b"\n"].concat());
                    Ok(Bytes::from([lines.collect::<Vec<_>>().concat(), b"\n".to_vec()].concat()))
                }
                Piece::Repeat(mut flooding) => {
                    let events = reader.endpoint.more_of(&mut flooding);
                    flood = Some(flooding);
                    Ok(events)
                }
                Piece::Answer(answer) => Ok(Bytes::from(answer.body)),
                // An error in a body makes hyper drop the connection.
                Piece::Break => Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
            };
            Some((event, (None, reader, flood)))
        });
        let beginning = stream::iter((!beginning.is_empty()).then(|| Ok(Bytes::from(beginning))));
        ([("content-type", kind), ("cache-control", "no-cache")], Body::from_stream(beginning.chain(events)))
            .into_response()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let was_open = locked(&self.endpoint.outlet.open).remove(&self.exchange).is_some();
        if let (true, Ok(runtime)) = (was_open, tokio::runtime::Handle::try_current()) {
            self.endpoint.log.note("abandoned", &json!(self.exchange));
            let scripts = locked(&self.endpoint.server).cancel(self.exchange);
            let player = self.endpoint.player.clone();
            runtime.spawn(async move { player.play(scripts).await });
        }
    }
}

fn complete(answer: HttpAnswer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, answer.body).into_response();
    for (name, value) in answer.headers {
        response.headers_mut().insert(*name, HeaderValue::from_static(value));
    }
    response
}

/// The HTTP status of an error. In the modern protocol, some errors have a status of their own.
fn status_of(message: &Value, dialect: Dialect) -> StatusCode {
    let code = message.get("error").and_then(|error| error.get("code")).and_then(Value::as_i64);
    match (dialect, code) {
        (Dialect::Modern, Some(UNKNOWN_METHOD)) => StatusCode::NOT_FOUND,
        (Dialect::Modern, Some(UNSUPPORTED_VERSION)) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// The header of a modern request that contradicts the body.
fn contradiction(headers: &HeaderMap, message: &Value) -> Option<String> {
    let Message::Request { method, params, .. } = message::read(message) else {
        return None;
    };
    let version = params.get("_meta").map_or("", |meta| text(meta, "io.modelcontextprotocol/protocolVersion"));
    let name = (method == "tools/call").then(|| text(params, "name"));
    let expected = [("mcp-protocol-version", Some(version)), ("mcp-method", Some(method)), ("mcp-name", name)];
    expected.into_iter().find_map(|(header, expected)| {
        let said = headers.get(header).and_then(|value| value.to_str().ok());
        let wrong = expected.is_some_and(|expected| said != Some(expected));
        wrong.then(|| format!("the header {header} is {said:?}, the body says {expected:?}"))
    })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
