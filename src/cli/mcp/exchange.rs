//! One tool call from dispatch to its end. The exchange shows progress, answers the server's questions from flags or
//! from the person at the terminal, and polls MCP tasks. It is no run (decision 0030).

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::oneshot;

use super::answer_flags::{self, AnswerFlags};
use super::connected_server::milliseconds;
use super::report::CallOutcome;
use crate::app::ToolServers;
use crate::cli::answers;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::cli::paint::Paint;
use crate::cli::text::{duration, one_line};
use crate::cli::view::in_words;
use crate::cli::waiting::{Wait, WaitOutcome};
use crate::core::id::{CallId, RunId, ServerId};
use crate::core::run::{AnsweredElicitation, Channel, ElicitationAnswer};
use crate::core::tool::{
    CallFailure, CallReply, ElicitationRequest, ElicitationResponses, FailureKind, Outcome, Progress, TaskHandle,
    escape_untrusted,
};
use crate::core::trace::SpanContext;
use crate::ports::{ElicitationHandler, McpCall, McpTask, TaskAction};

/// The limit on question rounds: a server that asks more often never stops.
const MOST_ROUNDS: usize = 20;
/// The limit on failed polls in a row, after which the exchange gives a task up.
const MOST_FAILURES: usize = 5;
/// The time that a server gets to receive the cancellation of a task.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// The poll interval for a server that requests none, and the bounds of the interval that a server may request.
const USUAL: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// A call, with everything that brings it to its end.
pub(super) struct Exchange<'a> {
    pub(super) servers: &'a ToolServers,
    pub(super) server: &'a ServerId,
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) trace: &'a SpanContext,
    /// The time limit of the whole call, without the time that a person takes to answer.
    pub(super) total: Duration,
    pub(super) prepared: AnswerFlags,
    /// Whether the exchange may ask a person at the terminal.
    pub(super) asks: bool,
    /// The server's stderr during a call that failed.
    pub(super) stderr: Vec<String>,
}

/// A question on the open call, with the channel for its answer. Dropping it leaves the question unanswered.
struct Elicitation {
    needed: ElicitationRequest,
    answer: oneshot::Sender<ElicitationResponses>,
}

/// Elicitation handler that passes questions of the open call to the command.
struct Elicitor(UnboundedSender<Elicitation>);

#[async_trait]
impl ElicitationHandler for Elicitor {
    async fn elicit(&self, needed: ElicitationRequest) -> Option<ElicitationResponses> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Elicitation { needed, answer }).ok()?;
        answered.await.ok()
    }
}

/// The next step of a call.
enum Next {
    Ended(CallReply),
    Asked(Elicitation),
}

/// The ids that a call keeps when it becomes a task.
struct Ids {
    run: RunId,
    call: CallId,
}

impl Exchange<'_> {
    /// Runs the call to its end.
    pub(super) async fn ending(&mut self, wait: &mut Wait, out: &mut Output) -> Result<CallOutcome, CliError> {
        // Each attempt is a call of its own, so that a server that remembers idempotency keys does not take it for a
        // repeat.
        let ids = Ids { run: format!("try_{}", uuid::Uuid::now_v7().simple()).into(), call: "call".into() };
        let mut answered: Option<AnsweredElicitation> = None;
        for _ in 0..MOST_ROUNDS {
            let reply = self.sent(&ids, answered.as_ref(), wait, out).await?;
            let WaitOutcome::Done(mut reply) = reply else { return Ok(CallOutcome::Interrupted) };
            if let CallReply::Task(task) = reply {
                match self.task(&ids, task, wait, out).await {
                    WaitOutcome::Done(ended) => reply = ended,
                    WaitOutcome::Interrupted(_) => return Ok(CallOutcome::Interrupted),
                }
            }
            match reply {
                CallReply::Ended { outcome, stderr } => {
                    self.stderr = stderr;
                    return Ok(ended(outcome));
                }
                CallReply::Task(task) => return Ok(failed(FailureKind::Timeout, still_going(&task))),
                // The question was answered while the call was open, or it got no answer. The call is not sent again.
                CallReply::NeedsInput(needed) if needed.interrupted => return Ok(CallOutcome::Asked(needed.questions)),
                CallReply::NeedsInput(needed) => match self.reactions(&needed, wait, out).await? {
                    WaitOutcome::Done(Some(reactions)) => answered = Some(given(needed, reactions)),
                    WaitOutcome::Done(None) => return Ok(CallOutcome::Asked(needed.questions)),
                    WaitOutcome::Interrupted(_) => return Ok(CallOutcome::Interrupted),
                },
            }
        }
        Ok(failed(FailureKind::Unreadable, format!("the server asked {MOST_ROUNDS} times and gave no answer")))
    }

    /// Sends the call, and answers the server's questions on the open call.
    async fn sent(
        &self,
        ids: &Ids,
        answered: Option<&AnsweredElicitation>,
        wait: &mut Wait,
        out: &mut Output,
    ) -> Result<WaitOutcome<CallReply>, CliError> {
        let (asker, mut questions) = mpsc::unbounded_channel();
        let elicitor = Elicitor(asker);
        let call = McpCall {
            run: &ids.run,
            call: &ids.call,
            server: self.server,
            tool: self.tool,
            arguments: self.arguments,
            is_repeatable: false,
            trace: self.trace,
            deadline: Some(self.total),
            answered,
            elicitation: Some(&elicitor),
        };
        let show = progress_printer(wait.speaker(), out.note_paint());
        let mut calling = pin!(self.servers.port().call(call, &show));
        let mut rounds = 0;
        loop {
            let next = async {
                tokio::select! {
                    biased;
                    replied = &mut calling => Next::Ended(replied.reply),
                    Some(asked) = questions.recv() => Next::Asked(asked),
                }
            };
            let Elicitation { needed, answer } = match wait.until("calling", next, out).await {
                WaitOutcome::Done(Next::Ended(reply)) => return Ok(WaitOutcome::Done(reply)),
                WaitOutcome::Done(Next::Asked(asked)) => asked,
                WaitOutcome::Interrupted(interrupt) => return Ok(WaitOutcome::Interrupted(interrupt)),
            };
            rounds += 1;
            if rounds > MOST_ROUNDS {
                // Dropping the question ends the call.
                continue;
            }
            match self.reactions(&needed, wait, out).await? {
                // The call may have ended in the meantime.
                WaitOutcome::Done(Some(reactions)) => drop(answer.send(reactions)),
                WaitOutcome::Done(None) => {}
                WaitOutcome::Interrupted(interrupt) => return Ok(WaitOutcome::Interrupted(interrupt)),
            }
        }
    }

    /// Polls the task until it ends or asks a question. Cancels a task that is still running at the deadline.
    async fn task(&self, ids: &Ids, task: TaskHandle, wait: &mut Wait, out: &mut Output) -> WaitOutcome<CallReply> {
        let paint = out.note_paint();
        out.note(paint.dim(format!("  … continues at the server as task {}", one_line(&task.id, 80))));
        let polled = tokio::time::timeout(self.total, self.polled(ids, &task, wait.speaker(), paint));
        match wait.until("waiting for the task", polled, out).await {
            WaitOutcome::Done(Ok(reply)) => WaitOutcome::Done(reply),
            WaitOutcome::Done(Err(_)) => {
                self.stop(ids, &task).await;
                WaitOutcome::Done(CallReply::Task(task))
            }
            WaitOutcome::Interrupted(interrupt) => {
                self.stop(ids, &task).await;
                WaitOutcome::Interrupted(interrupt)
            }
        }
    }

    async fn polled(&self, ids: &Ids, task: &TaskHandle, speaker: UnboundedSender<String>, paint: Paint) -> CallReply {
        let (mut pause, mut last_message, mut failures) = (pause(task), task.message.clone(), 0);
        loop {
            tokio::time::sleep(pause).await;
            let polled = self.servers.port().task(self.about(ids, task, TaskAction::Poll)).await;
            match polled.map(|replied| replied.reply) {
                Ok(CallReply::Task(news)) => {
                    (pause, failures) = (self::pause(&news), 0);
                    if let Some(message) = news.message.as_ref().filter(|_| news.message != last_message) {
                        // The receiver may be closed already.
                        let _ = speaker.send(paint.dim(format!("    … {}", one_line(message, 120))));
                    }
                    last_message = news.message;
                }
                Ok(reply @ (CallReply::Ended { .. } | CallReply::NeedsInput(_))) => return reply,
                Err(reason) => {
                    failures += 1;
                    if failures == MOST_FAILURES {
                        return Outcome::failed(FailureKind::Disconnected, reason).into();
                    }
                }
            }
        }
    }

    /// Cancels the task. The call ends here even if the server does not receive the cancellation.
    async fn stop(&self, ids: &Ids, task: &TaskHandle) {
        let stopping = self.servers.port().task(self.about(ids, task, TaskAction::Stop));
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, stopping).await;
    }

    fn about<'b>(&'b self, ids: &'b Ids, task: &'b TaskHandle, action: TaskAction) -> McpTask<'b> {
        McpTask {
            run: &ids.run,
            call: &ids.call,
            server: self.server,
            tool: self.tool,
            task,
            trace: self.trace,
            action,
        }
    }

    /// The answers from the flags, or from the person at the terminal.
    async fn reactions(
        &self,
        needed: &ElicitationRequest,
        wait: &mut Wait,
        out: &mut Output,
    ) -> Result<WaitOutcome<Option<ElicitationResponses>>, CliError> {
        if let Some(reactions) = self.prepared.reactions(&needed.questions)? {
            return Ok(WaitOutcome::Done(Some(reactions)));
        }
        if !self.asks {
            return Ok(WaitOutcome::Done(None));
        }
        // The person types in the line that would show the elapsed time.
        Ok(wait.quietly(answer_flags::person(self.tool, &needed.questions), out).await)
    }
}

fn ended(outcome: Outcome) -> CallOutcome {
    match outcome {
        Outcome::Returned(mut output) => {
            let problems = std::mem::take(&mut output.problems);
            CallOutcome::Answered(output, problems)
        }
        Outcome::Failed(failure) => CallOutcome::Failed(failure),
        Outcome::Unknown => failed(FailureKind::Disconnected, "the outcome of the call is unknown"),
    }
}

fn failed(kind: FailureKind, message: impl Into<String>) -> CallOutcome {
    CallOutcome::Failed(CallFailure { kind, message: message.into() })
}

fn still_going(task: &TaskHandle) -> String {
    let id = escape_untrusted(&task.id);
    format!("the task {id} did not end in time and was cancelled; --timeout extends the time")
}

fn given(needed: ElicitationRequest, reactions: ElicitationResponses) -> AnsweredElicitation {
    AnsweredElicitation {
        needed: needed.into(),
        given: Arc::new(ElicitationAnswer { reactions, by: answers::who(), via: Channel::Terminal, repeat: false }),
    }
}

fn progress_printer(speaker: UnboundedSender<String>, paint: Paint) -> impl Fn(Progress) + Send + Sync {
    let began = Instant::now();
    move |progress| {
        let at = duration(milliseconds(began.elapsed()));
        // The receiver may be closed already.
        let _ = speaker.send(paint.dim(format!("  … {} ({at})", in_words(&progress))));
    }
}

fn pause(task: &TaskHandle) -> Duration {
    task.poll_ms.map_or(USUAL, Duration::from_millis).clamp(SHORTEST, LONGEST)
}
