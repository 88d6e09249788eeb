//! Streamable HTTP endpoint: requests with every header under control, and answers as JSON or as an event stream.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use toolgate_core::sse::Decoder;

use super::answer::NoAnswer;
use super::inbox::Inbox;
use super::json;
use super::log::{Direction, WireLog};
use super::param_headers;
use crate::check::finding::one_line;
use crate::check::revision::Revision;
use crate::check::rules::{http as rules, wire};

/// The largest event, and the largest body.
const MAX_EVENT: usize = 64 << 20;
/// The well-known path of protected resource metadata.
const METADATA: &str = "/.well-known/oauth-protected-resource";
/// The methods with a header `Mcp-Name`, and the member of the parameters that it repeats.
const NAMED: [(&str, &str); 6] = [
    ("tools/call", "name"),
    ("prompts/get", "name"),
    ("resources/read", "uri"),
    ("tasks/get", "taskId"),
    ("tasks/update", "taskId"),
    ("tasks/cancel", "taskId"),
];
/// The headers of an answer that the wire log shows.
const SHOWN: [&str; 5] = ["content-type", "mcp-protocol-version", "allow", "location", "retry-after"];

/// A raw answer to a probe.
pub(in crate::check) struct RawAnswer {
    pub(in crate::check) status: u16,
    pub(in crate::check) headers: HeaderMap,
    /// The body, or the beginning of an event stream.
    pub(in crate::check) body: String,
}

impl RawAnswer {
    /// A header as text.
    pub(in crate::check) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Whether the body is an event stream.
    pub(in crate::check) fn is_stream(&self) -> bool {
        self.header("content-type").to_ascii_lowercase().starts_with("text/event-stream")
    }

    /// The message in the body, or in the first event of the stream.
    pub(in crate::check) fn message(&self) -> Option<Value> {
        if !self.is_stream() {
            return Some(json::parse(self.body.as_bytes())?.value);
        }
        let mut decoder = Decoder::up_to(MAX_EVENT);
        let events = decoder.push(self.body.as_bytes());
        let mut data = events.into_iter().flatten().filter_map(|event| event.data);
        data.find_map(|data| Some(json::parse(&data)?.value))
    }
}

/// An endpoint, and the session that it gave.
pub(in crate::check) struct Endpoint {
    client: Client,
    url: String,
    headers: Vec<(String, SecretString)>,
    session: Mutex<Option<String>>,
    /// The schemas of the tools whose parameters headers repeat, by name.
    repeated: Mutex<HashMap<String, Value>>,
    label: Arc<str>,
    log: WireLog,
}

impl Endpoint {
    /// An endpoint without a session.
    pub(in crate::check) fn new(
        url: &str,
        headers: &[(String, SecretString)],
        label: &str,
        log: &WireLog,
    ) -> Result<Self, String> {
        let client = Client::builder().redirect(reqwest::redirect::Policy::none()).tcp_nodelay(true).build();
        let client = client.map_err(|error| error.to_string())?;
        let session = Mutex::new(None);
        Ok(Self {
            client,
            url: url.to_owned(),
            headers: headers.to_vec(),
            session,
            repeated: Mutex::default(),
            label: label.into(),
            log: log.clone(),
        })
    }

    /// The session that the server gave.
    pub(in crate::check) fn session(&self) -> Option<String> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Repeats parameters of these tools in headers from now on.
    pub(in crate::check) fn repeat_parameters(&self, tools: &[Value]) {
        let named = tools
            .iter()
            .filter_map(|tool| Some((tool.get("name")?.as_str()?.to_owned(), tool.get("inputSchema")?.clone())));
        *self.repeated.lock().unwrap_or_else(PoisonError::into_inner) = named.collect();
    }

    /// Whether the URL is on this machine.
    pub(in crate::check) fn is_local(&self) -> bool {
        let host =
            reqwest::Url::parse(&self.url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
        matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]")
    }

    /// The addresses of its protected resource metadata (RFC 9728), in the order in which clients try them: below the
    /// well-known path with the endpoint's own path, and without it.
    pub(in crate::check) fn metadata_addresses(&self) -> Vec<String> {
        let Ok(url) = reqwest::Url::parse(&self.url) else { return Vec::new() };
        let own = url.path().trim_end_matches('/');
        let paths = [format!("{METADATA}{own}"), METADATA.to_owned()];
        let mut addresses: Vec<String> = paths.iter().filter_map(|path| Some(url.join(path).ok()?.into())).collect();
        addresses.dedup();
        addresses
    }

    fn usual_headers(&self, revision: Option<Revision>, message: Option<&Value>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut set = |name: &str, value: &str| {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        };
        self.headers.iter().for_each(|(name, value)| set(name, value.expose_secret()));
        set(ACCEPT.as_str(), "application/json, text/event-stream");
        set(CONTENT_TYPE.as_str(), "application/json");
        if let Some(session) = self.session() {
            set("mcp-session-id", &session);
        }
        let method = message.and_then(|message| message.get("method")?.as_str()).unwrap_or_default();
        let params = message.and_then(|message| message.get("params")).unwrap_or(&Value::Null);
        // A stateless request names its revision in its body, also before the revision is agreed on.
        let stated = params.pointer("/_meta/io.modelcontextprotocol~1protocolVersion").and_then(Value::as_str);
        let agreed = revision.filter(|revision| *revision >= Revision::V2025June).map(Revision::as_str);
        if let Some(version) = stated.or(agreed) {
            set("mcp-protocol-version", version);
        }
        if stated.is_some() {
            set("mcp-method", method);
            let name = NAMED.iter().find(|(known, _)| *known == method).and_then(|(_, member)| params.get(*member));
            if let Some(name) = name.and_then(Value::as_str) {
                set("mcp-name", &header_text(name));
                let schemas = self.repeated.lock().unwrap_or_else(PoisonError::into_inner);
                let arguments = params.get("arguments").unwrap_or(&Value::Null);
                let schema = schemas.get(name).filter(|_| method == "tools/call");
                for (header, value) in
                    schema.map(|schema| param_headers::of_call(schema, arguments)).unwrap_or_default()
                {
                    set(&header, &header_text(&value));
                }
            }
        }
        headers
    }

    /// Sends a request with the usual headers, after these changes to them. A header without a value is left out.
    pub(in crate::check) async fn probe(
        &self,
        method: Method,
        changes: &[(&str, Option<&str>)],
        body: Option<&str>,
        revision: Option<Revision>,
        limit: Duration,
    ) -> Result<RawAnswer, String> {
        let message = body.and_then(|body| serde_json::from_str(body).ok());
        let mut headers = self.usual_headers(revision, message.as_ref());
        for (name, value) in changes {
            let name = HeaderName::try_from(*name).map_err(|error| error.to_string())?;
            match value {
                Some(value) => headers.insert(name, HeaderValue::try_from(*value).map_err(|error| error.to_string())?),
                None => headers.remove(name),
            };
        }
        self.log.record(&self.label, Direction::Sent, body.unwrap_or(method.as_str()).as_bytes(), None);
        let mut request = self.client.request(method, &self.url).headers(headers);
        if let Some(body) = body {
            request = request.body(body.to_owned());
        }
        let answered = async {
            let response = request.send().await.map_err(|error| in_words(&error))?;
            self.raw(response, limit).await
        };
        tokio::time::timeout(limit, answered).await.unwrap_or_else(|_| Err("no answer in time".into()))
    }

    async fn raw(&self, mut response: Response, limit: Duration) -> Result<RawAnswer, String> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        self.record_head(&response);
        let is_stream = content_type(&response).starts_with("text/event-stream");
        let limit = if is_stream { limit.min(Duration::from_millis(700)) } else { limit };
        let mut body = Vec::new();
        let reading = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                body.extend_from_slice(&chunk);
                if body.len() > MAX_EVENT
                    || (is_stream && body.windows(2).any(|end| end == b"\n\n") && is_answered(&body))
                {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(limit, reading).await;
        self.log.record(&self.label, Direction::Received, &body, None);
        Ok(RawAnswer { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
    }

    /// Gets another document.
    pub(in crate::check) async fn get(&self, url: &str, limit: Duration) -> Result<RawAnswer, String> {
        let answered = async {
            let response = self.client.get(url).send().await.map_err(|error| in_words(&error))?;
            self.raw(response, limit).await
        };
        tokio::time::timeout(limit, answered).await.unwrap_or_else(|_| Err("no answer in time".into()))
    }

    /// Posts a message, and hands what the server sends to the inbox until the connection of this request ends. Requests
    /// of the server are answered meanwhile. Returns the status.
    pub(in crate::check) async fn post(&self, message: &Value, inbox: &Inbox) -> Result<u16, NoAnswer> {
        let response = self.send(message, inbox).await?;
        let status = response.status().as_u16();
        self.read(response, message, inbox).await?;
        Ok(status)
    }

    async fn send(&self, message: &Value, inbox: &Inbox) -> Result<Response, NoAnswer> {
        let body = message.to_string();
        self.log.record(&self.label, Direction::Sent, body.as_bytes(), None);
        let headers = self.usual_headers(inbox.revision(), Some(message));
        let sent = self.client.post(&self.url).headers(headers).body(body).send().await;
        let response = sent.map_err(|error| {
            if error.is_connect() {
                // The server is gone, and not only this answer.
                inbox.close(&in_words(&error));
            }
            NoAnswer::Closed(in_words(&error))
        })?;
        self.record_head(&response);
        let status = response.status().as_u16();
        if status >= 500 {
            inbox.report(&rules::HTTP_SERVER_ERROR, format!("{} was answered with HTTP {status}", name_of(message)));
        }
        if let Some(session) = response.headers().get("mcp-session-id").and_then(|value| value.to_str().ok()) {
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.to_owned());
        }
        Ok(response)
    }

    /// Sends replies to requests of the server. What the server makes of them is its own affair.
    async fn reply(&self, replies: Vec<Value>, inbox: &Inbox) {
        for reply in replies {
            let _ = self.send(&reply, inbox).await;
        }
    }

    async fn read_stream(&self, mut response: Response, inbox: &Inbox) {
        let status = response.status().as_u16();
        let mut decoder = Decoder::up_to(MAX_EVENT);
        // A server may wait for a reply before it goes on with this stream.
        let mut replying = FuturesUnordered::new();
        loop {
            let chunk = tokio::select! {
                chunk = response.chunk() => chunk,
                Some(()) = replying.next() => continue,
            };
            let Ok(Some(chunk)) = chunk else { break };
            for event in decoder.push(&chunk) {
                let Ok(event) = event else {
                    inbox.report(&wire::MESSAGE_TOO_LARGE, format!("an event is longer than {} MiB", MAX_EVENT >> 20));
                    continue;
                };
                let data = event.data.unwrap_or_default();
                if !data.trim_ascii().is_empty() {
                    replying.push(self.reply(self.take(&data, status, inbox), inbox));
                }
            }
        }
        while replying.next().await.is_some() {}
    }

    async fn read(&self, mut response: Response, message: &Value, inbox: &Inbox) -> Result<(), NoAnswer> {
        let (status, kind) = (response.status().as_u16(), content_type(&response));
        if kind.starts_with("text/event-stream") {
            self.read_stream(response, inbox).await;
            return Ok(());
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| NoAnswer::Closed(in_words(&error)))? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_EVENT {
                let text = format!("the body is longer than {} MiB", MAX_EVENT >> 20);
                inbox.report(&wire::MESSAGE_TOO_LARGE, &text);
                return Err(NoAnswer::Unreadable(text));
            }
        }
        let is_request = message.get("id").is_some() && message.get("method").is_some();
        // The body of a refusal may be JSON of its own format (RFC 6750) and no message.
        let is_refusal = matches!(status, 401 | 403) || (status >= 400 && !is_message(&body));
        if kind.starts_with("application/json") && !body.is_empty() && !(is_request && is_refusal) {
            self.reply(self.take(&body, status, inbox), inbox).await;
            return Ok(());
        }
        self.log.record(&self.label, Direction::Received, &body, Some("not a message"));
        if is_request {
            let excerpt = one_line(&String::from_utf8_lossy(&body), 160);
            if status < 300 {
                let named = if kind.is_empty() { "no content type".to_owned() } else { format!("`{kind}`") };
                inbox.report(
                    &rules::HTTP_CONTENT_TYPE,
                    format!("{} was answered with {named}: {excerpt}", name_of(message)),
                );
                // The answer may be right all the same.
                self.take(&body, status, inbox);
                return Ok(());
            }
            return Err(NoAnswer::Http(status, excerpt));
        }
        Ok(())
    }

    fn take(&self, data: &[u8], status: u16, inbox: &Inbox) -> Vec<Value> {
        match json::parse(data) {
            Some(parsed) => {
                self.log.record(&self.label, Direction::Received, data, None);
                inbox.take(parsed, data.len(), Some(status))
            }
            None => {
                self.log.record(&self.label, Direction::Received, data, Some("not JSON"));
                let excerpt = one_line(&String::from_utf8_lossy(data), 160);
                inbox.report(&wire::JSON_MALFORMED, format!("a message that is not valid JSON: `{excerpt}`"));
                Vec::new()
            }
        }
    }

    fn record_head(&self, response: &Response) {
        let shown = SHOWN.iter().filter_map(|name| {
            let value = response.headers().get(*name)?.to_str().ok()?;
            Some(format!(" {name}: {value};"))
        });
        let line = format!("HTTP {};{}", response.status().as_u16(), shown.collect::<String>());
        self.log.record(&self.label, Direction::Event, line.as_bytes(), None);
    }
}

/// A text as a header value: as it is, or in the Base64 form of the revision where a header would change it.
fn header_text(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim() == text;
    match is_plain && !text.starts_with("=?base64?") {
        true => text.into(),
        false => format!("=?base64?{}?=", BASE64_STANDARD.encode(text)).into(),
    }
}

/// Whether a body is meant as a message of JSON-RPC.
fn is_message(body: &[u8]) -> bool {
    json::parse(body).is_some_and(|parsed| parsed.value.get("jsonrpc").is_some())
}

/// Whether an event with an answer has arrived.
fn is_answered(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    text.contains("\"result\"") || text.contains("\"error\"")
}

fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_ascii_lowercase()
}

fn name_of(message: &Value) -> &str {
    message.get("method").and_then(Value::as_str).unwrap_or("an answer")
}

/// The error with its cause, without the URL, which may have secrets.
pub(crate) fn in_words(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let what = if error.is_connect() { "the connection failed" } else { "the connection broke" };
    format!("{what} ({cause})")
}
