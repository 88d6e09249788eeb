//! A configured server as requests see it: its tools, its calls with their limits and their concurrency, and its
//! status. Its supervisor decides when to start, keep and restart it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;
use tokio_util::task::TaskTracker;
use toolgate_core::id::ServerId;
use toolgate_core::tool::{CallReply, DeliveredReply, FailureKind, Outcome, ServerTools, TaskHandle};
use toolgate_core::trace::SpanContext;
use toolgate_ports::{McpCall, McpTask};

use super::call_counters::{CallCounters, InFlightGuard, WaitGuard};
use super::call_transport::LastRequest;
use super::dialer::Dialer;
use super::exchange::ProgressReceiver;
use super::fault::{Fault, seconds};
use super::limits::Limits;
use super::settings::{Recheck, ServerSettings, Start};
use super::status::ServerStatus;
use super::supervisor::{StartLimiter, Supervisor};
use super::watch::Watcher;
use super::{call, task};

/// A server and its state.
pub(super) struct Server {
    id: ServerId,
    settings: ServerSettings,
    slots: Semaphore,
    counters: CallCounters,
    supervisor: Arc<Supervisor<Dialer>>,
}

impl Server {
    /// A server that is not needed yet.
    pub(super) fn new(id: ServerId, settings: ServerSettings, starts: &StartLimiter) -> Self {
        let tasks = TaskTracker::new();
        let dialer = Dialer::new(settings.clone(), tasks.clone());
        Self {
            supervisor: Supervisor::new(id.clone(), dialer, settings.start_timeout, tasks, starts.clone()),
            slots: Semaphore::new(settings.max_concurrency.clamp(1, Semaphore::MAX_PERMITS)),
            counters: CallCounters::default(),
            id,
            settings,
        }
    }

    /// Ends the wait of runs for its tools, until it is ready.
    pub(super) fn skip_wait(&self) {
        self.supervisor.skip_wait();
    }

    /// Starts it now, unless its settings are `Start::Lazy`.
    pub(super) fn start(&self) {
        match self.settings.start {
            Start::Eager => self.supervisor.start(),
            Start::Lazy => {}
        }
    }

    /// Reports its finished exchanges to `watcher`.
    pub(super) fn watched_by(&self, watcher: Watcher) {
        self.supervisor.watched_by(watcher);
    }

    /// Its tools, or why there are none, within the start budget.
    pub(super) async fn list(&self, trace: &SpanContext) -> ServerTools {
        let offer = self.supervisor.offer(self.meta(trace), self.settings.trusted).await;
        ServerTools {
            endpoint: self.settings.transport.endpoint(),
            authorization: self.supervisor.dial().authorization().latest_of(&self.id),
            ..self.settings.pinned.hidden(offer)
        }
    }

    /// Lists its tools again, even if they are current. The error states why that failed.
    pub(super) async fn refresh(&self) -> Result<(), String> {
        self.supervisor.refresh(Map::new()).await
    }

    /// Ensures, as its settings require, that its list is newer than the approval of a call, which was given this long
    /// ago; `None` for calls without an approval.
    pub(super) async fn confirm(&self, approved: Option<Duration>, trace: &SpanContext) {
        let age = match (self.settings.recheck, approved) {
            (Recheck::Never, _) | (Recheck::Approved, None) => return,
            (Recheck::Always, _) => Duration::ZERO,
            // An approval holds for the definition of its time, so the list must not be older (decision 0017).
            (Recheck::Approved, Some(age)) => age,
        };
        self.supervisor.confirm(self.meta(trace), age).await;
    }

    /// Replaces the connection or the process.
    pub(super) async fn restart(&self) -> Result<(), String> {
        self.supervisor.restart(Map::new()).await
    }

    /// A number that changes when [`list`](Self::list) may return something else.
    pub(super) fn generation(&self) -> u64 {
        self.supervisor.generation() + self.supervisor.dial().authorization().changes()
    }

    /// When the current connection was opened.
    pub(super) fn connected_at(&self) -> Option<Timestamp> {
        let connection_state = self.supervisor.connection_state();
        connection_state.link().map(|_| connection_state.since)
    }

    /// Makes a call as soon as the concurrency limit allows it.
    pub(super) async fn call(&self, call: McpCall<'_>, progress: ProgressReceiver<'_>) -> DeliveredReply {
        let arguments = self.settings.pinned.added_to(call.tool, call.arguments);
        let call = McpCall { arguments: &arguments, ..call };
        let total = call.deadline.map_or(self.settings.total_timeout, |own| own.min(self.settings.total_timeout));
        let limits = Limits::new(self.settings.call_timeout, total);
        let waiting = self.counters.wait();
        let Ok(_slot) = timeout_at(limits.deadline, self.slots.acquire()).await else {
            let remedy = ". A higher `max_concurrency` lets more run at a time";
            return self.never_sent(&call, limits, "was busy with other calls", "", remedy).into();
        };
        if let Ok(reply) = self.attempt(waiting, &call, limits, progress).await {
            return reply;
        }
        // The server rejected it unprocessed, together with its session. In a new session the call is made for the
        // first time.
        let second = self.attempt(self.counters.wait(), &call, limits, progress).await;
        second.unwrap_or_else(|fault| self.outcome_without_reply(&call, fault, None).into())
    }

    /// Makes the call over the current or the next connection. The error is that the session expired, so that the call
    /// was certainly not made.
    async fn attempt(
        &self,
        waiting: WaitGuard<'_>,
        call: &McpCall<'_>,
        limits: Limits,
        progress: ProgressReceiver<'_>,
    ) -> Result<DeliveredReply, Fault> {
        let meta = self.meta(call.trace);
        self.supervisor.need_for(&meta);
        let connection = match timeout_at(limits.deadline, self.supervisor.link(limits.deadline)).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(reason)) => return Ok(not_made(call, FailureKind::Unavailable, reason).into()),
            Err(_) => {
                let before = self.supervisor.connection_state().before();
                return Ok(self.never_sent(call, limits, "was still starting", &before, "").into());
            }
        };
        let Ok(_turn) = timeout_at(limits.deadline, connection.turn(call.answered)).await else {
            return Ok(self.never_sent(call, limits, "was busy with other calls", "", "").into());
        };
        let output = self.supervisor.dial().output().map(|output| (output.mark(), output));
        let (flight, _under_way) = (waiting.sent(), connection.calls.token());
        let (sent, heard) = (LastRequest::default(), connection.traffic().so_far());
        let made = call::make(&connection, call, meta, limits, progress, &sent).await;
        let wire = sent.wire(connection.protocol_version(), &self.settings.transport, made.as_ref().err());
        let mut reply = match made {
            Ok(reply) => {
                flight.answered();
                reply
            }
            Err(fault) => {
                count(flight, &fault);
                if let Fault::SessionOver(_) = fault {
                    return Err(fault);
                }
                let flood = connection.traffic().flood_since(&heard);
                self.outcome_without_reply(call, fault, flood)
            }
        };
        if let (CallReply::Ended { outcome, stderr }, Some((mark, output))) = (&mut reply, output)
            && outcome.is_error()
        {
            *stderr = output.stderr_since(mark).await;
        }
        Ok(DeliveredReply { reply, wire })
    }

    /// Polls a task. The error states why that failed.
    pub(super) async fn task(&self, task: &McpTask<'_>) -> Result<DeliveredReply, String> {
        let limits = Limits::new(self.settings.call_timeout, self.settings.call_timeout);
        let late = |_| format!("the MCP server `{}` was still starting", self.id);
        let meta = self.meta(task.trace);
        self.supervisor.need_for(&meta);
        let connection = timeout_at(limits.deadline, self.supervisor.link(limits.deadline)).await.map_err(late)??;
        let _under_way = connection.calls.token();
        let sent = LastRequest::default();
        let polled = task::ask(&connection, task, meta, limits, &sent).await;
        let reply = polled.map_err(|fault| format!("the MCP server `{}` {fault}", self.id))?;
        Ok(DeliveredReply { reply, wire: sent.wire(connection.protocol_version(), &self.settings.transport, None) })
    }

    /// The trace context that this server may see.
    fn meta(&self, trace: &SpanContext) -> Map<String, Value> {
        call::trace_meta(trace, self.settings.propagation)
    }

    fn failed(&self, fault: Fault, flood: Option<String>) -> Outcome {
        let mut fault = fault;
        if let Fault::Late(total) = fault
            && total < self.settings.total_timeout
        {
            // The caller's deadline ended the wait, not a setting of the server.
            fault = Fault::OutOfTime(total);
        }
        let noise = match fault {
            // The output of a child process is part of these already, or has nothing to do with them.
            Fault::Disconnected(_) | Fault::NotSent(_) | Fault::SessionOver(_) | Fault::TooLong(_) => None,
            Fault::Refused { .. } | Fault::Rejected(_) | Fault::NoMcp(_) | Fault::Garbled(_) => None,
            Fault::Demands(_) | Fault::CancelledForElicitation | Fault::Deferred { .. } => None,
            // The answer may have been among the lines that are not messages.
            Fault::Silent(_) | Fault::Late(_) | Fault::OutOfTime(_) => flood.or_else(|| self.stdout_noise()),
            Fault::Unreadable(_) => self.stdout_noise(),
        };
        match (fault.into_outcome(self.id.as_str()), noise) {
            (Outcome::Failed(failure), Some(noise)) => {
                Outcome::failed(failure.kind, format!("{}; {noise}", failure.message))
            }
            (outcome, _) => outcome,
        }
    }

    fn stdout_noise(&self) -> Option<String> {
        self.supervisor.dial().output().and_then(|output| output.stdout_noise().describe())
    }

    /// Its current status.
    pub(super) fn status(&self) -> ServerStatus {
        let output = self.supervisor.dial().output();
        ServerStatus::new(&self.id, &self.supervisor, output, self.counters.stats())
    }

    /// Shuts it down for good and waits until its resources are released.
    pub(super) async fn close(&self) {
        self.supervisor.close().await;
    }

    /// The outcome of a call without a reply.
    fn outcome_without_reply(&self, call: &McpCall<'_>, fault: Fault, flood: Option<String>) -> CallReply {
        match task_of(call) {
            Some(task) => task::unsent_reply(task, &format!("the MCP server `{}` {fault}", self.id)),
            None => self.failed(fault, flood).into(),
        }
    }

    fn never_sent(&self, call: &McpCall<'_>, limits: Limits, why: &str, before: &str, remedy: &str) -> CallReply {
        let (id, total) = (&self.id, seconds(limits.total));
        let why = format!("the MCP server `{id}` {why} for {total} s{before}; the call was not made{remedy}");
        not_made(call, FailureKind::Unavailable, why)
    }
}

/// Without [`close`](Server::close) its process ends in the background, as far as the runtime allows it.
impl Drop for Server {
    fn drop(&mut self) {
        self.supervisor.abandon();
    }
}

fn not_made(call: &McpCall<'_>, kind: FailureKind, why: String) -> CallReply {
    match task_of(call) {
        Some(task) => task::unsent_reply(task, &why),
        None => Outcome::failed(kind, why).into(),
    }
}

/// The task of a call, if the call sends it something. The task continues, whatever the result.
fn task_of<'a>(call: &McpCall<'a>) -> Option<&'a TaskHandle> {
    call.answered.and_then(|answered| answered.needed.task.as_ref())
}

fn count(flight: InFlightGuard<'_>, fault: &Fault) {
    match fault {
        Fault::NotSent(_) | Fault::SessionOver(_) => flight.unsent(),
        Fault::Refused { .. } | Fault::Demands(_) | Fault::CancelledForElicitation | Fault::Deferred { .. } => {
            flight.answered()
        }
        Fault::Rejected(_) | Fault::NoMcp(_) | Fault::TooLong(_) => flight.answered(),
        Fault::Unreadable(_) | Fault::Garbled(_) => flight.answered(),
        Fault::Silent(_) | Fault::Late(_) | Fault::OutOfTime(_) | Fault::Disconnected(_) => flight.failed(),
    }
}
