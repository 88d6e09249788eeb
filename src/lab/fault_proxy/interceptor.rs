//! Interceptor: decides what becomes of each message that passes, for both transports. It parses messages to choose, and
//! leaves those without a fault as they are, byte by byte.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use toolgate_core::redact::Secrets;

use super::faults::Fault;
use super::observer::Observer;
use super::plan::FaultPlan;
use super::report::{Report, ServerFact};
use crate::message_flaws::Flaw;

/// The most requests without an answer that are followed. More pass without a fault.
const MOST_OPEN: usize = 10_000;
/// A log line as servers write it to stdout by mistake.
const GARBAGE: &[u8] = b"[INFO] listening for requests";

/// The state of a proxy.
pub(super) struct Interceptor {
    plan: FaultPlan,
    observer: Observer,
    open: BTreeMap<u64, OpenRequest>,
    passed: u64,
    /// The answer that waits for the next one.
    swapped: Option<Vec<u8>>,
    tools_changed: bool,
}

/// A request without an answer.
struct OpenRequest {
    session: String,
    id: Value,
    method: String,
    fault: Option<Fault>,
    /// The index of the fault in the plan.
    planned: Option<usize>,
    injection: Option<u64>,
    is_cancelled: bool,
    /// Wakes the answer that waits for a cancellation.
    cancellation: Option<oneshot::Sender<()>>,
}

/// A request as it passes: its number, and the fault that the transport injects.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passage {
    pub(super) number: Option<u64>,
    pub(super) fault: Option<Fault>,
    pub(super) injection: Option<u64>,
}

/// What the client gets in place of an answer.
#[derive(Debug)]
pub(super) enum Outgoing {
    Send(Vec<u8>, Delay),
    /// The bytes without a line feed behind them.
    Unterminated(Vec<u8>),
    /// The bytes, and then the end of the connection.
    Cut(Vec<u8>),
    /// The end of the connection.
    Break,
    /// Nothing, while the connection stays open.
    Hold,
    /// The answer is released behind the next one, or by [`Interceptor::take_swapped`].
    Swap,
}

impl Outgoing {
    /// The bytes, without a delay.
    pub(super) fn now(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Send(bytes.into(), Delay::Nothing)
    }
}

/// When to send.
#[derive(Debug)]
pub(super) enum Delay {
    Nothing,
    Time(Duration),
    Cancellation(oneshot::Receiver<()>),
}

impl Delay {
    /// Waits until the answer may be sent.
    pub(super) async fn wait(self) {
        match self {
            Self::Nothing => {}
            Self::Time(time) => tokio::time::sleep(time).await,
            Self::Cancellation(cancellation) => drop(cancellation.await),
        }
    }
}

impl Interceptor {
    pub(super) fn new(plan: FaultPlan, secrets: Secrets) -> Self {
        Self {
            plan,
            observer: Observer::new(secrets),
            open: BTreeMap::new(),
            passed: 0,
            swapped: None,
            tools_changed: false,
        }
    }

    /// Takes a message of the client. The session is empty over stdio.
    pub(super) fn client_message(&mut self, session: &str, message: &Value) -> Passage {
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(method), Some(id)) => self.request(session, method, id, message),
            (Some("notifications/cancelled"), None) => {
                let id = message.pointer("/params/requestId").unwrap_or(&Value::Null);
                self.cancel(session, id);
                Passage::default()
            }
            (Some(_), None) | (None, _) => Passage::default(),
        }
    }

    fn request(&mut self, session: &str, method: &str, id: &Value, message: &Value) -> Passage {
        if self.open.len() >= MOST_OPEN {
            return Passage::default();
        }
        let chosen = self.plan.choose(method);
        let injection = self.observer.request(session, message, chosen.as_ref());
        let fault = chosen.as_ref().map(|chosen| chosen.fault);
        let planned = chosen.and_then(|chosen| chosen.planned);
        self.passed += 1;
        self.open.insert(
            self.passed,
            OpenRequest {
                session: session.to_owned(),
                id: id.clone(),
                method: method.to_owned(),
                fault,
                planned,
                injection,
                is_cancelled: false,
                cancellation: None,
            },
        );
        Passage { number: Some(self.passed), fault, injection }
    }

    fn cancel(&mut self, session: &str, id: &Value) {
        self.observer.cancelled(session, id);
        let mut open = self.open.iter_mut().rev();
        let Some((number, open)) = open.find(|(_, open)| open.session == session && open.id == *id) else { return };
        open.is_cancelled = true;
        if let Some(wake) = open.cancellation.take() {
            let _ = wake.send(());
            let number = *number;
            self.open.remove(&number);
        }
    }

    /// The number of the open request with this id, over stdio.
    pub(super) fn number_of(&self, id: &Value) -> Option<u64> {
        self.open.iter().rev().find(|(_, open)| open.id == *id).map(|(number, _)| *number)
    }

    /// Forgets a request that gets no answer.
    pub(super) fn abandon(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// Records that the client closed the HTTP connection of this injection.
    pub(super) fn disconnected(&mut self, injection: u64) {
        self.observer.disconnected(injection);
    }

    /// Takes the answer to a request. Returns what the client gets, in this order.
    pub(super) fn answer(&mut self, number: u64, message: &Value, line: &[u8]) -> Vec<Outgoing> {
        let Some(mut open) = self.open.remove(&number) else { return vec![Outgoing::now(line)] };
        self.observer.answered(&open.method, open.injection, message);
        let before = self.swapped.take();
        let mut all = match open.fault {
            Some(Fault::OutOfOrder) => {
                self.swapped = Some(line.to_vec());
                vec![Outgoing::Swap]
            }
            Some(Fault::LateReply) if !open.is_cancelled => {
                let (wake, cancellation) = oneshot::channel();
                open.cancellation = Some(wake);
                self.open.insert(number, open);
                vec![Outgoing::Send(line.to_vec(), Delay::Cancellation(cancellation))]
            }
            Some(Fault::ToolsChange) => {
                self.tools_changed = true;
                let notification = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                vec![Outgoing::now(notification.to_string()), Outgoing::now(line)]
            }
            Some(fault) => distorted(fault, message, line).unwrap_or_else(|| {
                self.observer.withdraw(open.injection);
                open.planned.into_iter().for_each(|index| self.plan.postpone(index));
                vec![Outgoing::now(line)]
            }),
            None if self.tools_changed && open.method == "tools/list" => {
                vec![Outgoing::now(with_changed_tool(message))]
            }
            None => vec![Outgoing::now(line)],
        };
        all.extend(before.map(Outgoing::now));
        all
    }

    /// The answer that waits for the next one.
    pub(super) fn take_swapped(&mut self) -> Option<Vec<u8>> {
        self.swapped.take()
    }

    /// Records what happened to the server, for this injection, or for all without an answer.
    pub(super) fn server_fact(&mut self, injection: Option<u64>, fact: impl Fn(u64) -> ServerFact) {
        self.observer.process(injection, fact);
    }

    /// Records a failure of the server, for this injection, or for the report as a whole.
    pub(super) fn server_failed(&mut self, injection: Option<u64>, reason: &str) {
        self.observer.server_failed(injection, reason);
    }

    /// The report. `closed` says that the client closed the connection.
    pub(super) fn finish(&mut self, target: &str, closed: bool) -> Report {
        let mut report = self.observer.finish(target, closed);
        report.seed = self.plan.seed();
        report.not_injected = self.plan.not_injected();
        report
    }
}

/// The answer with a fault that depends on nothing else. `None` if the fault changes nothing in this answer.
fn distorted(fault: Fault, message: &Value, line: &[u8]) -> Option<Vec<Outgoing>> {
    let changed = |bytes: Vec<u8>| (bytes != message.to_string().as_bytes()).then(|| vec![Outgoing::now(bytes)]);
    let with = |name: &str, value: Value| {
        let mut answer = message.clone();
        let members = answer.as_object_mut();
        if let Some(members) = members {
            match name {
                "error" => drop(members.shift_remove("result")),
                "result" => drop(members.shift_remove("error")),
                _ => {}
            }
            members.insert(name.to_owned(), value);
        }
        changed(answer.to_string().into())
    };
    let all = match fault {
        Fault::Slow(time) => vec![Outgoing::Send(line.to_vec(), Delay::Time(time))],
        Fault::Hang | Fault::Die => vec![Outgoing::Hold],
        Fault::DieInAnswer => vec![Outgoing::Cut(line.get(..line.len() / 2).unwrap_or_default().to_vec())],
        Fault::ConnectionReset => vec![Outgoing::Break],
        Fault::HugeResult(mib) => {
            let text = "x".repeat(usize::try_from(mib << 20).unwrap_or_default());
            return with("result", json!({"content": [{"type": "text", "text": text}]}));
        }
        Fault::Malformed => vec![Outgoing::now(String::from_utf8_lossy(line).replace('"', "'"))],
        Fault::DuplicateReplies => vec![Outgoing::now(line), Outgoing::now(line)],
        Fault::WrongIds => {
            let id = message.get("id").unwrap_or(&Value::Null);
            let other =
                id.as_u64().map_or_else(|| json!(format!("{id}-other")), |id| json!(id.wrapping_add(1_000_000)));
            return with("id", other);
        }
        Fault::IsError => {
            let mut result = message.get("result").cloned().unwrap_or_else(|| json!({}));
            result.as_object_mut().map(|result| result.insert("isError".into(), true.into()));
            return with("result", result);
        }
        Fault::RpcError => return with("error", json!({"code": -32603, "message": "Internal error"})),
        Fault::ResultNull => return with("result", Value::Null),
        Fault::StdoutGarbage => vec![Outgoing::now(GARBAGE), Outgoing::now(line)],
        Fault::Flawed(Flaw::NoLineFeed) => vec![Outgoing::Unterminated(line.to_vec())],
        Fault::Flawed(flaw) => return changed(flaw.spoil(message)),
        // These act elsewhere: on the transport, or on the state of the proxy.
        Fault::LateReply | Fault::RestartsInside | Fault::ToolsChange | Fault::OutOfOrder | Fault::Refused(_) => {
            vec![Outgoing::now(line)]
        }
    };
    Some(all)
}

/// The list with another description of its first tool.
fn with_changed_tool(message: &Value) -> Vec<u8> {
    let mut changed = message.clone();
    if let Some(tool) = changed.pointer_mut("/result/tools/0").and_then(Value::as_object_mut) {
        let description = tool.get("description").and_then(Value::as_str).unwrap_or_default();
        tool.insert("description".into(), format!("{description} (changed)").trim().into());
    }
    changed.to_string().into()
}
