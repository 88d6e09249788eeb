//! MCP tasks: calls that their servers continue in the background. The run waits without a connection, and the servers
//! are polled.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use toolgate_core::id::{CallId, RunId};
use toolgate_core::run::{Event, Input, OpenTask, Resume};
use toolgate_core::tool::{CallReply, DeliveredReply, Origin, TaskHandle};
use toolgate_driver::{DriveError, Journal, WakeSignal};
use toolgate_ports::{McpServers, McpTask, TaskAction};

use super::{AgentRunner, Execution, Report, RunnerError};

/// The poll interval for servers that request none.
const POLL: Duration = Duration::from_secs(2);
/// The bounds of a requested poll interval. A server must neither make toolgate poll excessively nor let a run wait
/// forever.
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(300));

/// The result of a poll of a run's tasks.
#[derive(Debug)]
pub enum PollOutcome {
    /// There are results, and the run resumes.
    GoesOn(Execution),
    /// There are no results yet.
    StillWaits {
        /// The status of the tasks, as far as their servers report it.
        statuses: Vec<TaskStatus>,
        /// The time until the next poll.
        again_in: Duration,
    },
    /// The run waits for no task.
    NoTasks(Box<Report>),
}

/// The status of an unfinished task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStatus {
    /// The call that became the task.
    pub call: CallId,
    /// The message of its server, or why the server could not be polled.
    pub message: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct PollResults {
    /// The events. Empty if all tasks are unfinished.
    pub(super) events: Vec<Event>,
    statuses: Vec<TaskStatus>,
    again_in: Option<Duration>,
}

impl AgentRunner {
    /// Polls the servers of a run's tasks once, and resumes the run if there are results. [`resume`](Self::resume) does
    /// the same; this also returns the status of the tasks.
    pub async fn poll_tasks(&self, run: &RunId) -> Result<PollOutcome, RunnerError> {
        let (journal, _) = self.open(run).await?;
        if journal.run().tasks().next().is_none() {
            return Ok(PollOutcome::NoTasks(Report::new(run.clone(), journal.run()).into()));
        }
        let news = self.poll_servers(&journal, |_| true).await;
        if news.events.is_empty() {
            return Ok(PollOutcome::StillWaits { statuses: news.statuses, again_in: news.again_in.unwrap_or(POLL) });
        }
        let nothing = Input::Resume(Resume::default());
        Ok(PollOutcome::GoesOn(self.resume_run_with(run, nothing, Some(news.events), None, None).await?))
    }

    /// Polls the servers. A server that cannot be reached is polled again later, because the task may be fine.
    pub(super) async fn poll_servers(&self, journal: &Journal, of: impl Fn(&CallId) -> bool) -> PollResults {
        let run = journal.run();
        let servers = self.servers_of(journal.id());
        let polls = run.tasks().filter(|(call, ..)| of(call)).map(|(call, origin, task)| {
            let (servers, trace) = (&servers, run.call_context(call));
            async move {
                let Origin::Mcp { server, tool } = origin else { return None };
                let request =
                    McpTask { run: journal.id(), call, server, tool, task, trace: &trace, action: TaskAction::Poll };
                Some((call.clone(), task.clone(), servers.task(request).await))
            }
        });
        let mut news = PollResults::default();
        for (call, before, reply) in join_all(polls).await.into_iter().flatten() {
            let reply = match (reply, run.call(&call).and_then(|call| call.tool.as_deref())) {
                (Ok(DeliveredReply { reply, wire }), Some(tool)) => {
                    let limits = &run.started().spec.limits;
                    Ok(DeliveredReply { reply: self.inner.ports.fit(journal.id(), limits, tool, reply).await, wire })
                }
                (reply, _) => reply,
            };
            news.take(call, before, reply);
        }
        news
    }

    /// Polls the servers of these tasks once the run waits for nothing else, and stages the results for the next
    /// commit. Other input for the run takes precedence. Returns whether there were results.
    pub(super) async fn poll_open_tasks(
        &self,
        journal: &mut Journal,
        calls: &BTreeSet<CallId>,
        wake: &WakeSignal,
    ) -> Result<bool, DriveError> {
        if !journal.run().tasks().any(|(call, ..)| calls.contains(call)) {
            return Ok(false);
        }
        let news = tokio::select! {
            biased;
            () = wake.next_notification() => return Ok(false),
            news = self.poll_servers(journal, |call| calls.contains(call)) => news.events,
        };
        let news: Vec<Event> = news.into_iter().filter(|event| journal.run().admit(event).is_ok()).collect();
        let is_any = !news.is_empty();
        journal.stage_all(news)?;
        Ok(is_any)
    }

    /// Asks servers to stop tasks whose run has ended. The runner does not wait for the answers, and the requests may
    /// fail.
    pub(super) fn stop_tasks(&self, id: &RunId, servers: &Arc<dyn McpServers>, tasks: Vec<OpenTask>) {
        for OpenTask { call, origin, task, trace } in tasks {
            let (servers, id) = (servers.clone(), id.clone());
            self.inner.tasks.spawn(async move {
                let Origin::Mcp { server, tool } = &origin else { return };
                let request =
                    McpTask { run: &id, call: &call, server, tool, task: &task, trace: &trace, action: TaskAction::Stop };
                if let Err(reason) = servers.task(request).await {
                    let (trace_id, span_id) = (trace.trace, trace.span);
                    tracing::info!(run = %id, %trace_id, %span_id, %call, %reason, "a task of a run that is over could not be stopped");
                }
            });
        }
    }
}

impl PollResults {
    fn take(&mut self, call: CallId, before: TaskHandle, replied: Result<DeliveredReply, String>) {
        let (message, poll_ms) = match replied {
            Ok(DeliveredReply { reply: CallReply::Task(task), .. }) => (task.message, task.poll_ms.or(before.poll_ms)),
            Err(reason) => (Some(reason), before.poll_ms),
            Ok(news @ DeliveredReply { reply: CallReply::Ended { .. } | CallReply::NeedsInput(_), .. }) => {
                return self.events.push(Event::of_reply(call, news));
            }
        };
        let (shortest, longest) = POLL_BOUNDS;
        let again = poll_ms.map_or(POLL, Duration::from_millis).clamp(shortest, longest);
        self.again_in = Some(self.again_in.map_or(again, |earlier| earlier.min(again)));
        self.statuses.push(TaskStatus { call, message });
    }
}
