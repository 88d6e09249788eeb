//! Exchange of an HTTP proxy: one request of a client, until its answer is complete.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::Value;
use toolgate_core::redact::{Secrets, SecretsBuilder, Style};

use super::interceptor::{Interceptor, Outgoing, Passage};
use super::locked;
use crate::check::wire::log::{Direction, WireLog};

/// Headers with credentials of the client, which the wire log never shows.
const CREDENTIALS: [&str; 3] = ["authorization", "cookie", "x-api-key"];
/// The time between half of an answer and the end of its connection, in which the half is sent.
pub(super) const BEFORE_BREAK: Duration = Duration::from_millis(50);

/// The state of an HTTP proxy.
pub(super) struct Proxy {
    pub(super) upstream: reqwest::Client,
    pub(super) url: String,
    /// The headers of every request to the server.
    pub(super) headers: HeaderMap,
    pub(super) interceptor: Mutex<Interceptor>,
    pub(super) lost_sessions: Mutex<BTreeSet<String>>,
    pub(super) log: Option<WireLog>,
}

/// A request of a client that has no complete answer yet. Dropping it before its end records that the client left.
pub(super) struct Exchange {
    pub(super) proxy: Arc<Proxy>,
    pub(super) passage: Passage,
    id: Option<Value>,
    secrets: Secrets,
    /// Whether the server answered.
    is_answered: bool,
    /// Whether the client got everything.
    is_complete: bool,
}

impl Exchange {
    /// Takes a message of a client.
    pub(super) fn new(proxy: Arc<Proxy>, headers: &HeaderMap, session: &str, message: &Value) -> Self {
        let passage = locked(&proxy.interceptor).client_message(session, message);
        let (id, secrets) = (message.get("id").cloned(), credentials(headers));
        Self { proxy, passage, id, secrets, is_answered: false, is_complete: false }
    }

    /// Records a line, without the credentials of this client.
    pub(super) fn log(&self, side: &str, direction: Direction, line: &[u8]) {
        if let Some(log) = &self.proxy.log {
            log.record(side, direction, self.secrets.redacted(&String::from_utf8_lossy(line)).as_bytes(), None);
        }
    }

    /// What the client gets in place of this message.
    pub(super) fn take(&mut self, line: &[u8]) -> Vec<Outgoing> {
        self.log("server", Direction::Received, line);
        let message = serde_json::from_slice::<Value>(line).unwrap_or_default();
        let is_answer =
            message.get("method").is_none() && message.get("id").is_some() && message.get("id") == self.id.as_ref();
        self.is_answered |= is_answer;
        match self.passage.number.filter(|_| is_answer) {
            Some(number) => locked(&self.proxy.interceptor).answer(number, &message, line),
            None => vec![Outgoing::now(line)],
        }
    }

    /// Records that the server did not answer, or that its answer broke off.
    pub(super) fn server_failed(&self, reason: &str) {
        self.log("server", Direction::Event, reason.as_bytes());
        locked(&self.proxy.interceptor).server_failed(self.passage.injection, reason);
    }

    /// Ends the exchange if what was sent contains the answer. The server may keep its stream open.
    pub(super) fn sent(&mut self) {
        if self.is_answered {
            self.end();
        }
    }

    /// The response, after which nothing of the exchange is left.
    pub(super) fn complete(mut self, response: Response) -> Response {
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

fn credentials(headers: &HeaderMap) -> Secrets {
    let mut secrets = SecretsBuilder::default();
    let values = CREDENTIALS.iter().flat_map(|name| headers.get_all(*name));
    for value in values.filter_map(|value| value.to_str().ok()) {
        let bare = value.split_once(' ').map_or(value, |(_, credential)| credential);
        secrets.credential(bare);
    }
    secrets.build(Style::MESSAGE)
}
