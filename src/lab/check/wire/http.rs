//! Streamable HTTP endpoint: requests with every header under control, and answers as JSON or as an event stream.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use toolgate_core::sse::Decoder;

use super::answer::NoAnswer;
use super::inbox::Inbox;
use super::json;
use super::log::{Direction, WireLog};
use crate::check::finding::one_line;
use crate::check::revision::Revision;
use crate::check::rules::{http as rules, wire};

/// The largest event, and the largest body.
const MAX_EVENT: usize = 64 << 20;
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
            label: label.into(),
            log: log.clone(),
        })
    }

    /// The session that the server gave.
    pub(in crate::check) fn session(&self) -> Option<String> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the URL is on this machine.
    pub(in crate::check) fn is_local(&self) -> bool {
        let host =
            reqwest::Url::parse(&self.url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
        matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]")
    }

    /// The address of another document of the same server.
    pub(in crate::check) fn well_known(&self, path: &str) -> Option<String> {
        reqwest::Url::parse(&self.url).ok()?.join(path).ok().map(String::from)
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
        if let Some(revision) = revision.filter(|revision| *revision >= Revision::V2025June) {
            set("mcp-protocol-version", revision.as_str());
        }
        if let Some(message) = message.filter(|_| revision.is_some_and(Revision::is_modern)) {
            set("mcp-method", message.get("method").and_then(Value::as_str).unwrap_or_default());
            let params = message.get("params").unwrap_or(&Value::Null);
            if let Some(name) = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str) {
                set("mcp-name", name);
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

    /// Posts a message, and hands what the server sends to the inbox until the connection of this request ends.
    /// Returns the status and the replies to send.
    pub(in crate::check) async fn post(&self, message: &Value, inbox: &Inbox) -> Result<(u16, Vec<Value>), NoAnswer> {
        let body = message.to_string();
        self.log.record(&self.label, Direction::Sent, body.as_bytes(), None);
        let headers = self.usual_headers(inbox.revision(), Some(message));
        let sent = self.client.post(&self.url).headers(headers).body(body).send().await;
        let response = sent.map_err(|error| NoAnswer::Closed(in_words(&error)))?;
        self.record_head(&response);
        let status = response.status().as_u16();
        if status >= 500 {
            inbox.report(&rules::HTTP_SERVER_ERROR, format!("{} was answered with HTTP {status}", name_of(message)));
        }
        if let Some(session) = response.headers().get("mcp-session-id").and_then(|value| value.to_str().ok()) {
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.to_owned());
        }
        let replies = self.read(response, message, inbox).await?;
        Ok((status, replies))
    }

    async fn read(&self, mut response: Response, message: &Value, inbox: &Inbox) -> Result<Vec<Value>, NoAnswer> {
        let (status, kind) = (response.status().as_u16(), content_type(&response));
        let mut replies = Vec::new();
        if kind.starts_with("text/event-stream") {
            let mut decoder = Decoder::up_to(MAX_EVENT);
            while let Ok(Some(chunk)) = response.chunk().await {
                for event in decoder.push(&chunk).into_iter().flatten() {
                    let data = event.data.unwrap_or_default();
                    if data.trim_ascii().is_empty() {
                        continue;
                    }
                    replies.extend(self.take(&data, status, inbox));
                }
            }
            return Ok(replies);
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| NoAnswer::Closed(in_words(&error)))? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_EVENT {
                return Err(NoAnswer::Closed(format!("the body is larger than {} MiB", MAX_EVENT >> 20)));
            }
        }
        let is_request = message.get("id").is_some() && message.get("method").is_some();
        if kind.starts_with("application/json") && !body.is_empty() {
            return Ok(self.take(&body, status, inbox));
        }
        self.log.record(&self.label, Direction::Received, &body, Some("not JSON"));
        if is_request {
            let excerpt = one_line(&String::from_utf8_lossy(&body), 160);
            if status < 300 {
                let named = if kind.is_empty() { "no content type".to_owned() } else { format!("`{kind}`") };
                inbox.report(
                    &rules::HTTP_CONTENT_TYPE,
                    format!("{} was answered with {named}: {excerpt}", name_of(message)),
                );
                // The answer may be right all the same.
                return Ok(self.take(&body, status, inbox));
            }
            return Err(NoAnswer::Http(status, excerpt));
        }
        Ok(replies)
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
