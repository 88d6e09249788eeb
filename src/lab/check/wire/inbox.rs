//! Inbox of a connection: what each received message is, which request it answers, and what is wrong with it.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::answer::{Answer, NoAnswer, RpcError};
use super::json::{Flaw, Parsed};
use crate::check::finding::{Finding, Findings, one_line};
use crate::check::judge;
use crate::check::revision::Revision;
use crate::check::rules::{Rule, calls, protocol, wire};

type Waiter = oneshot::Sender<Result<Answer, NoAnswer>>;

/// A request without an answer.
struct Pending {
    method: String,
    sent: Instant,
    waiter: Waiter,
}

#[derive(Default)]
struct State {
    next_id: u64,
    pending: HashMap<u64, Pending>,
    answered: HashSet<u64>,
    /// Requests that were cancelled or given up: a late answer to them is no mistake of its own.
    abandoned: HashSet<u64>,
    revision: Option<Revision>,
    capabilities: Value,
    has_message: bool,
    /// Whether unmatched answers belong to a notification that was just sent.
    expects_silence: bool,
    progress: HashMap<String, Vec<f64>>,
    /// Why the connection ended.
    closed: Option<String>,
}

/// The inbox.
pub(in crate::check) struct Inbox {
    findings: Findings,
    state: Mutex<State>,
}

impl Inbox {
    /// An empty inbox that adds what it finds to these findings.
    pub(in crate::check) fn new(findings: Findings) -> Self {
        Self { findings, state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a request: its id, and where its answer will arrive. It fails at once when the connection has ended.
    pub(super) fn register(&self, method: &str) -> (u64, oneshot::Receiver<Result<Answer, NoAnswer>>) {
        let (waiter, answer) = oneshot::channel();
        let mut state = self.state();
        state.next_id += 1;
        let id = state.next_id;
        if let Some(reason) = &state.closed {
            let _ = waiter.send(Err(NoAnswer::Closed(reason.clone())));
            return (id, answer);
        }
        state.pending.insert(id, Pending { method: method.to_owned(), sent: Instant::now(), waiter });
        (id, answer)
    }

    /// No longer waits for this answer.
    pub(super) fn abandon(&self, id: u64) {
        let mut state = self.state();
        if state.pending.remove(&id).is_some() {
            state.abandoned.insert(id);
        }
    }

    /// The revision and the capabilities that were agreed on.
    pub(in crate::check) fn agree(&self, revision: Revision, capabilities: Value) {
        let mut state = self.state();
        state.revision = Some(revision);
        state.capabilities = capabilities;
    }

    /// The revision that was agreed on.
    pub(in crate::check) fn revision(&self) -> Option<Revision> {
        self.state().revision
    }

    /// Whether a message has been received.
    pub(super) fn has_message(&self) -> bool {
        self.state().has_message
    }

    /// Marks the moments in which only a mistaken answer to a notification can arrive.
    pub(in crate::check) fn watch_for_answers(&self, expects: bool) {
        self.state().expects_silence = expects;
    }

    /// Fails all requests that wait, and all later ones.
    pub(super) fn close(&self, reason: &str) {
        let mut state = self.state();
        state.closed.get_or_insert_with(|| reason.to_owned());
        for (_, pending) in state.pending.drain() {
            let _ = pending.waiter.send(Err(NoAnswer::Closed(reason.to_owned())));
        }
    }

    /// Why the connection ended, if it did.
    pub(in crate::check) fn closed(&self) -> Option<String> {
        self.state().closed.clone()
    }

    /// Fails the request of this id, whose answer cannot be read.
    pub(super) fn fail(&self, id: u64, why: NoAnswer) {
        if let Some(pending) = self.state().pending.remove(&id) {
            let _ = pending.waiter.send(Err(why));
        }
    }

    /// Adds a finding about the connection.
    pub(super) fn report(&self, rule: &'static Rule, message: impl AsRef<str>) {
        self.add(rule, Finding::new(rule, message));
    }

    fn add(&self, rule: &'static Rule, finding: Finding) {
        let revision = self.revision().unwrap_or(Revision::LAST_LEGACY);
        self.findings.add(finding.in_revision(rule, revision));
    }

    /// Takes a message. Returns the replies to send.
    pub(super) fn take(&self, parsed: Parsed, size: usize, status: Option<u16>) -> Vec<Value> {
        for flaw in &parsed.flaws {
            self.report_flaw(flaw, &parsed.value);
        }
        self.state().has_message = true;
        match parsed.value {
            Value::Array(batch) => {
                if self.revision() != Some(Revision::V2025March) {
                    self.report(&protocol::MESSAGE_INVALID, "a batch of messages; only 2025-03-26 has batches");
                }
                batch.into_iter().flat_map(|message| self.take_one(message, size, status)).collect()
            }
            message @ (Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                self.take_one(message, size, status).into_iter().collect()
            }
        }
    }

    fn report_flaw(&self, flaw: &Flaw, value: &Value) {
        let excerpt = one_line(&value.to_string(), 120);
        match flaw {
            Flaw::NotUtf8 => self.report(&wire::INVALID_UTF8, format!("bytes that are not UTF-8 in {excerpt}")),
            Flaw::ByteOrderMark => {
                self.report(&wire::BYTE_ORDER_MARK, format!("a byte order mark stands before {excerpt}"))
            }
            Flaw::NotANumber => self
                .report(&wire::JSON_NAN, format!("NaN, Infinity or a number out of range, read as null in {excerpt}")),
            Flaw::LoneSurrogate => {
                self.report(&wire::JSON_LONE_SURROGATE, format!("an unpaired surrogate in {excerpt}"))
            }
            Flaw::DuplicateKey(key) => {
                self.report(&wire::JSON_DUPLICATE_KEY, format!("`{key}` stands twice in {excerpt}"))
            }
        }
    }

    fn take_one(&self, message: Value, size: usize, status: Option<u16>) -> Option<Value> {
        if message.get("jsonrpc").is_none_or(|version| version != "2.0") {
            let excerpt = one_line(&message.to_string(), 120);
            self.report(&protocol::MESSAGE_INVALID, format!("`jsonrpc` is not \"2.0\" in {excerpt}"));
        }
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), Some(id)) => {
                let reply = self.reply_to(method, id, &message);
                Some(reply)
            }
            (Some(method), None) => {
                self.take_notification(method, &message);
                None
            }
            (None, _) => {
                self.take_response(message, size, status);
                None
            }
        }
    }

    /// Answers a request of the server. The check announces no capabilities, so only ping is allowed.
    fn reply_to(&self, method: &str, id: &Value, message: &Value) -> Value {
        if method == "ping" {
            return json!({"jsonrpc": "2.0", "id": id, "result": {}});
        }
        let known = ["roots/list", "sampling/createMessage", "elicitation/create"].contains(&method);
        let is_modern = self.revision().is_some_and(Revision::is_modern);
        if known || is_modern {
            self.report(
                &protocol::REQUEST_UNINVITED,
                format!("the server sent `{method}`, and the client announced no such capability"),
            );
        } else {
            judge::server_message(&self.findings, self.revision(), message);
        }
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "the client does not support this method"}})
    }

    fn take_notification(&self, method: &str, message: &Value) {
        let (revision, capabilities) = {
            let state = self.state();
            (state.revision, state.capabilities.clone())
        };
        judge::server_message(&self.findings, revision, message);
        judge::announced(&self.findings, revision, &capabilities, method);
        if method == "notifications/progress" {
            self.take_progress(message);
        }
    }

    fn take_progress(&self, message: &Value) {
        let params = message.get("params").unwrap_or(&Value::Null);
        let (Some(token), Some(progress)) =
            (params.get("progressToken"), params.get("progress").and_then(Value::as_f64))
        else {
            return;
        };
        let Some(name) = token.as_str().filter(|name| name.starts_with("progress-")) else {
            self.report(
                &calls::PROGRESS_TOKEN_UNKNOWN,
                format!("progress under the token {token}, which no request had"),
            );
            return;
        };
        let last = {
            let mut state = self.state();
            let values = state.progress.entry(name.to_owned()).or_default();
            let last = values.last().copied();
            values.push(progress);
            last
        };
        if let Some(last) = last.filter(|last| progress <= *last) {
            self.report(&calls::PROGRESS_NOT_INCREASING, format!("progress {progress} after {last}"));
        }
    }

    fn take_response(&self, message: Value, size: usize, status: Option<u16>) {
        let Some((id, pending)) = self.matching(&message, status) else { return };
        let Pending { method, sent, waiter } = pending;
        self.state().answered.insert(id);
        let (result, error) = (message.get("result"), message.get("error").filter(|error| !error.is_null()));
        if result.is_some() && error.is_some() {
            self.report(&protocol::RESULT_AND_ERROR, format!("the answer to {method} has `result` and `error`"));
        }
        let outcome = match (result, error) {
            (_, Some(error)) => {
                judge::error(&self.findings, self.revision(), &method, &message);
                Err(RpcError {
                    code: error.get("code").and_then(Value::as_i64).unwrap_or_default(),
                    message: error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
                    data: error.get("data").cloned().unwrap_or_default(),
                })
            }
            (Some(result), None) => {
                judge::result(&self.findings, self.revision(), &method, result);
                Ok(result.clone())
            }
            (None, None) => {
                let text = format!("the answer to {method} has neither `result` nor `error`");
                self.report(&protocol::MESSAGE_INVALID, &text);
                let _ = waiter.send(Err(NoAnswer::Unreadable(text)));
                return;
            }
        };
        let _ = waiter.send(Ok(Answer { outcome, took: sent.elapsed(), size, status }));
    }

    /// The request that a response answers. Reports a response to no request.
    fn matching(&self, message: &Value, status: Option<u16>) -> Option<(u64, Pending)> {
        let id = message.get("id").cloned().unwrap_or_default();
        let as_text = id.as_str().and_then(|text| text.parse::<u64>().ok());
        let number = id.as_u64().or(as_text).or_else(|| id.as_f64().filter(|id| id.fract() == 0.0).map(|id| id as u64));
        let mut state = self.state();
        if let Some(number) = number
            && let Some(pending) = state.pending.remove(&number)
        {
            drop(state);
            if !id.is_number() {
                self.report(
                    &protocol::ID_TYPE_CHANGED,
                    format!("the request had the id {number}, its answer has the id {id}"),
                );
            }
            return Some((number, pending));
        }
        if number.is_some_and(|number| state.abandoned.contains(&number)) {
            return None;
        }
        let excerpt = one_line(&message.to_string(), 160);
        if number.is_some_and(|number| state.answered.contains(&number)) {
            drop(state);
            self.report(&protocol::RESPONSE_DUPLICATE, format!("a second answer to the same request: {excerpt}"));
            return None;
        }
        if id.is_null() && message.get("error").is_some() && state.pending.is_empty() && !state.expects_silence {
            // The answer to text that is not JSON has no id.
            return None;
        }
        let only = state.pending.keys().next().copied().filter(|_| state.pending.len() == 1);
        let pending = only.filter(|_| id.is_null()).and_then(|only| Some((only, state.pending.remove(&only)?)));
        let expects_silence = state.expects_silence;
        drop(state);
        if expects_silence && pending.is_none() {
            self.report(&protocol::NOTIFICATION_ANSWERED, format!("a notification was answered: {excerpt}"));
        } else if pending.is_some() && status.is_some_and(|status| status >= 400) {
            // The body of a refused HTTP request may be an error without an id.
        } else if let Some((_, pending)) = &pending {
            self.report(&protocol::ID_UNKNOWN, format!("the answer to {} has no id: {excerpt}", pending.method));
        } else {
            self.report(&protocol::ID_UNKNOWN, format!("an answer to no request: {excerpt}"));
        }
        pending
    }
}
