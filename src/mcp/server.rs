//! One configured server, as requests see it: its tools, its calls with their limits and their turn, how it stands.
//! Whether it is there, and what is done about it if not, is its supervisor's business.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::timeout_at;
use tokio_util::task::TaskTracker;

use super::exchange::Limits;
use super::fault::{Fault, seconds};
use super::line::Line;
use super::settings::{ServerSettings, Start};
use super::status::ServerStatus;
use super::supervisor::Supervisor;
use super::tally::{Tally, Waiting};
use super::{call, task};
use crate::core::id::ServerId;
use crate::core::tool::{CallReply, FailureKind, Outcome, ServerTools};
use crate::core::trace::SpanContext;
use crate::ports::{McpCall, McpTask, Progress};

/// A server and what is known of it.
pub(super) struct Server {
    id: ServerId,
    settings: ServerSettings,
    slots: Semaphore,
    tally: Tally,
    supervisor: Arc<Supervisor<Line>>,
}

impl Server {
    /// A server that nobody needed yet.
    pub(super) fn new(id: ServerId, settings: ServerSettings) -> Self {
        let tasks = TaskTracker::new();
        let line = Line::new(settings.clone(), tasks.clone());
        Self {
            supervisor: Supervisor::new(id.clone(), line, settings.start_timeout, tasks),
            slots: Semaphore::new(settings.max_concurrency.clamp(1, Semaphore::MAX_PERMITS)),
            tally: Tally::default(),
            id,
            settings,
        }
    }

    /// Starts it now, unless it is to be started when it is needed.
    pub(super) fn start(&self) {
        match self.settings.start {
            Start::Eager => self.supervisor.start(),
            Start::Lazy => {}
        }
    }

    /// Its tools, or why there are none, within the start budget.
    pub(super) async fn list(&self, trace: &SpanContext) -> ServerTools {
        self.supervisor.offer(call::trace_meta(trace), self.settings.trusted).await
    }

    /// A number that changes when [`list`](Self::list) may say something else.
    pub(super) fn generation(&self) -> u64 {
        self.supervisor.generation()
    }

    /// Makes a call when it is its turn.
    pub(super) async fn call(&self, call: McpCall<'_>, progress: &(dyn Fn(Progress) + Send + Sync)) -> CallReply {
        let total = call.deadline.map_or(self.settings.total_timeout, |own| own.min(self.settings.total_timeout));
        let limits = Limits::new(self.settings.call_timeout, total);
        let waiting = self.tally.wait();
        let Ok(_slot) = timeout_at(limits.deadline, self.slots.acquire()).await else {
            let remedy = ". A higher `max_concurrency` lets more run at a time";
            return self.never_sent(limits, "was busy with other calls", "", remedy).into();
        };
        if let Ok(reply) = self.attempt(waiting, &call, limits, progress).await {
            return reply;
        }
        // The server turned it away unseen, together with its session. In a new one it is made for the first time.
        let second = self.attempt(self.tally.wait(), &call, limits, progress).await;
        second.unwrap_or_else(|fault| self.failed(fault).into())
    }

    /// Makes the call over the connection that there is, or is about to be. The error is that the session was over, so that
    /// the call was certainly not made.
    async fn attempt(
        &self,
        waiting: Waiting<'_>,
        call: &McpCall<'_>,
        limits: Limits,
        progress: &(dyn Fn(Progress) + Send + Sync),
    ) -> Result<CallReply, Fault> {
        let connection = match timeout_at(limits.deadline, self.supervisor.link(limits.deadline)).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(reason)) => return Ok(Outcome::failed(FailureKind::Unavailable, reason).into()),
            Err(_) => {
                let before = self.supervisor.standing().before();
                return Ok(self.never_sent(limits, "was still starting", &before, "").into());
            }
        };
        let said = self.supervisor.dial().output().map(|output| (output.mark(), output));
        let (flight, _under_way) = (waiting.sent(), connection.calls.token());
        let mut reply = match call::make(&connection, call, limits, progress).await {
            Ok(reply) => {
                flight.answered();
                reply
            }
            Err(fault) => {
                flight.failed();
                if let Fault::SessionOver(_) = fault {
                    return Err(fault);
                }
                self.failed(fault).into()
            }
        };
        if let (CallReply::Ended { outcome, stderr }, Some((mark, output))) = (&mut reply, said)
            && outcome.is_error()
        {
            *stderr = output.stderr_since(mark).await;
        }
        Ok(reply)
    }

    /// Asks about a task. The error says why it could not be asked now.
    pub(super) async fn task(&self, task: &McpTask<'_>) -> Result<CallReply, String> {
        let limits = Limits::new(self.settings.call_timeout, self.settings.call_timeout);
        let late = |_| format!("the MCP server `{}` was still starting", self.id);
        let connection = timeout_at(limits.deadline, self.supervisor.link(limits.deadline)).await.map_err(late)??;
        let _under_way = connection.calls.token();
        let asked = task::ask(&connection, task, call::trace_meta(task.trace), limits).await;
        asked.map_err(|fault| format!("the MCP server `{}` {fault}", self.id))
    }

    fn failed(&self, fault: Fault) -> Outcome {
        let mut fault = fault;
        if let Fault::Late(total) = fault
            && total < self.settings.total_timeout
        {
            // What ended the wait was no setting of the server.
            fault = Fault::OutOfTime(total);
        }
        let noise = match fault {
            // What a child wrote is part of these already, or has nothing to do with them.
            Fault::Disconnected(_) | Fault::NotSent(_) | Fault::SessionOver(_) => None,
            Fault::Refused { .. } | Fault::Rejected(_) | Fault::NoMcp(_) => None,
            Fault::Demands(_) | Fault::TakenBack | Fault::PutOff { .. } => None,
            // The answer may have been among it.
            Fault::Silent(_) | Fault::Late(_) | Fault::OutOfTime(_) | Fault::Unreadable(_) => {
                self.supervisor.dial().output().and_then(|output| output.stdout_noise().told())
            }
        };
        match (fault.into_outcome(self.id.as_str()), noise) {
            (Outcome::Failed(failure), Some(noise)) => {
                Outcome::failed(failure.kind, format!("{}; {noise}", failure.message))
            }
            (outcome, _) => outcome,
        }
    }

    /// What can be said of it now.
    pub(super) fn status(&self) -> ServerStatus {
        let said = self.supervisor.dial().output();
        ServerStatus::of(&self.id, &self.supervisor, said, self.tally.stats())
    }

    /// Ends a start that is under way, and refuses all later requests.
    pub(super) fn abandon(&self) {
        self.supervisor.abandon();
    }

    /// Shuts it down for good and waits until nothing is left of it.
    pub(super) async fn close(&self) {
        self.supervisor.close().await;
    }

    fn never_sent(&self, limits: Limits, why: &str, before: &str, remedy: &str) -> Outcome {
        let (id, total) = (&self.id, seconds(limits.total));
        let message = format!("the MCP server `{id}` {why} for {total} s{before}; the call was not made{remedy}");
        Outcome::failed(FailureKind::Timeout, message)
    }
}
