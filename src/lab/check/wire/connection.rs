//! Connection to a server: requests and notifications over either transport, with the metadata of the agreed revision.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::answer::{Answer, NoAnswer};
use super::http::Endpoint;
use super::inbox::Inbox;
use super::process::Process;
use crate::check::revision::Revision;

/// The transport below.
#[derive(Clone)]
pub(in crate::check) enum Channel {
    Stdio(Arc<Process>),
    Http(Arc<Endpoint>),
}

/// A connection. Clones share it.
#[derive(Clone)]
pub(in crate::check) struct Connection {
    pub(in crate::check) inbox: Arc<Inbox>,
    pub(in crate::check) channel: Channel,
    /// The time limit of a request.
    pub(in crate::check) limit: Duration,
}

impl Connection {
    /// Sends a request and waits for its answer.
    pub(in crate::check) async fn request(&self, method: &str, params: Value) -> Result<Answer, NoAnswer> {
        self.request_within(method, params, self.limit).await
    }

    /// The same with another time limit.
    pub(in crate::check) async fn request_within(
        &self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Answer, NoAnswer> {
        let (id, answer) = self.inbox.register(method);
        let message = self.message(Some(id), method, params);
        let answered = self.exchange(&message, answer);
        match tokio::time::timeout(limit, answered).await {
            Ok(answered) => {
                if answered.is_err() {
                    self.inbox.abandon(id);
                }
                answered
            }
            Err(_) => {
                self.inbox.abandon(id);
                Err(NoAnswer::TimedOut(limit))
            }
        }
    }

    async fn exchange(
        &self,
        message: &Value,
        mut answer: oneshot::Receiver<Result<Answer, NoAnswer>>,
    ) -> Result<Answer, NoAnswer> {
        let gone = |_| Err(NoAnswer::Closed("the connection ended".into()));
        match &self.channel {
            Channel::Stdio(process) => {
                process.send(message.to_string().into_bytes());
                answer.await.unwrap_or_else(gone)
            }
            Channel::Http(endpoint) => {
                let posting = endpoint.post(message, &self.inbox);
                tokio::pin!(posting);
                tokio::select! {
                    biased;
                    answered = &mut answer => answered.unwrap_or_else(gone),
                    posted = &mut posting => {
                        let status = posted?;
                        match answer.try_recv() {
                            Ok(answered) => answered,
                            Err(_) => Err(NoAnswer::Http(status, "the response ended without the answer".into())),
                        }
                    }
                }
            }
        }
    }

    /// Sends a request, and cancels it after the delay. Returns whether the server answered it all the same within the
    /// grace period; `None` if the answer arrived before the delay.
    pub(in crate::check) async fn request_and_cancel(
        &self,
        method: &str,
        params: Value,
        delay: Duration,
        grace: Duration,
    ) -> Option<bool> {
        let (id, answer) = self.inbox.register(method);
        let message = self.message(Some(id), method, params);
        let answered = self.exchange(&message, answer);
        tokio::pin!(answered);
        if tokio::time::timeout(delay, &mut answered).await.is_ok() {
            return None;
        }
        let cancelled = json!({"requestId": id, "reason": "the check cancels this call"});
        self.notify("notifications/cancelled", cancelled).await;
        let late = tokio::time::timeout(grace, &mut answered).await;
        self.inbox.abandon(id);
        // A response without content is the end of the stream, which is what a cancelled request gets.
        Some(late.is_ok_and(|answered| answered.is_ok_and(|answer| answer.result().is_some())))
    }

    /// Sends a notification. Returns the HTTP status, over HTTP.
    pub(in crate::check) async fn notify(&self, method: &str, params: Value) -> Option<u16> {
        let message = self.message(None, method, params);
        match &self.channel {
            Channel::Stdio(process) => {
                process.send(message.to_string().into_bytes());
                None
            }
            Channel::Http(endpoint) => {
                let posted = tokio::time::timeout(self.limit, endpoint.post(&message, &self.inbox)).await;
                posted.ok()?.ok()
            }
        }
    }

    /// A message with the metadata that the revision requires.
    pub(in crate::check) fn message(&self, id: Option<u64>, method: &str, params: Value) -> Value {
        let mut message = Map::new();
        message.insert("jsonrpc".into(), json!("2.0"));
        if let Some(id) = id {
            message.insert("id".into(), json!(id));
        }
        message.insert("method".into(), json!(method));
        let mut params = if params.is_null() { json!({}) } else { params };
        let is_modern = self.inbox.revision().is_some_and(Revision::is_modern) || method == "server/discover";
        if let Some(params) = params.as_object_mut().filter(|_| is_modern) {
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.entry("io.modelcontextprotocol/protocolVersion").or_insert_with(|| json!(Revision::V2026July));
                meta.entry("io.modelcontextprotocol/clientCapabilities").or_insert_with(|| json!({}));
                meta.entry("io.modelcontextprotocol/clientInfo").or_insert_with(client_info);
            }
        }
        if params.as_object().is_none_or(|params| !params.is_empty()) {
            message.insert("params".into(), params);
        }
        Value::Object(message)
    }

    /// The process, over stdio.
    pub(in crate::check) fn process(&self) -> Option<&Arc<Process>> {
        match &self.channel {
            Channel::Stdio(process) => Some(process),
            Channel::Http(_) => None,
        }
    }

    /// The endpoint, over HTTP.
    pub(in crate::check) fn endpoint(&self) -> Option<&Arc<Endpoint>> {
        match &self.channel {
            Channel::Http(endpoint) => Some(endpoint),
            Channel::Stdio(_) => None,
        }
    }
}

/// The identity of the check.
pub(in crate::check) fn client_info() -> Value {
    json!({"name": "toolgate-check", "version": env!("CARGO_PKG_VERSION")})
}
