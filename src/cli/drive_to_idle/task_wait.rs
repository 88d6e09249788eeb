//! Waiting for MCP tasks: calls that servers continue in the background.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::follow::Follow;
use crate::cli::output::Output;
use crate::cli::text::{list, one_line};
use crate::core::id::{CallId, RunId};
use crate::core::run::{AnswerForm, PendingItem};
use crate::runner::{Execution, PollOutcome};

/// The first poll interval for a server that requests none.
const FIRST: Duration = Duration::from_secs(1);
/// The longest poll interval that a server may request.
const LONGEST: Duration = Duration::from_secs(60);

/// The pending tasks, with the messages shown about them.
struct Tasks<'a> {
    run: &'a RunId,
    began: Instant,
    names: BTreeMap<&'a CallId, &'a str>,
    shown: BTreeMap<CallId, String>,
}

/// Polls the servers until a task has news, then resumes the run. `None` when there is no task to wait for, or the user
/// interrupts the wait: the run then stays pending.
pub(super) async fn for_tasks(
    app: &App,
    run: &RunId,
    items: &[PendingItem],
    follow: &mut Follow<'_>,
    out: &mut Output,
) -> Result<Option<Execution>, CliError> {
    let waiting = items.iter().filter_map(|item| match item.form() {
        AnswerForm::Background(work) => item.call().map(|call| (call.id, call.name, work)),
        AnswerForm::Decision(_)
        | AnswerForm::Result { .. }
        | AnswerForm::Choice(_)
        | AnswerForm::Elicitation { .. }
        | AnswerForm::Continue { .. } => None,
    });
    let names: BTreeMap<&CallId, &str> = waiting.clone().map(|(call, name, _)| (call, name.as_str())).collect();
    let polls = waiting.filter_map(|(_, _, work)| work.poll_ms).map(Duration::from_millis);
    let mut pause = polls.min().unwrap_or(FIRST).min(LONGEST);
    if names.is_empty() {
        return Ok(None);
    }
    let mut tasks = Tasks { run, began: Instant::now(), names, shown: BTreeMap::new() };
    if !follow.display.is_json() && !out.shows_passing() {
        out.note(tasks.describe());
    }
    loop {
        if !tasks.wait(pause, follow, out).await {
            return Ok(None);
        }
        let polled = tokio::select! {
            polled = app.runner.poll_tasks(run) => polled?,
            _ = follow.interrupts.next() => return Ok(None),
        };
        match polled {
            PollOutcome::GoesOn(execution) => return Ok(Some(execution)),
            PollOutcome::NoTasks(_) => return Ok(None),
            PollOutcome::StillWaits { statuses, again_in } => {
                pause = again_in;
                for status in statuses {
                    tasks.show_message(status.call, status.message, follow, out);
                }
            }
        }
    }
}

impl Tasks<'_> {
    /// `false` when the user interrupts.
    async fn wait(&self, pause: Duration, follow: &mut Follow<'_>, out: &mut Output) -> bool {
        let until = tokio::time::Instant::now() + pause;
        let waited = loop {
            let seconds = self.began.elapsed().as_secs();
            let line = format!("{}… {seconds} s (Ctrl-C leaves the run pending)", self.describe());
            out.passing(&[one_line(&line, out.width().saturating_sub(1))]);
            tokio::select! {
                () = tokio::time::sleep_until(until) => break true,
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
                _ = follow.interrupts.next() => break false,
            }
        };
        out.passed();
        waited
    }

    /// Shows a server's message once.
    fn show_message(&mut self, call: CallId, message: Option<String>, follow: &Follow<'_>, out: &mut Output) {
        let Some(message) = message.filter(|message| self.shown.get(&call) != Some(message)) else { return };
        if !follow.display.is_json() {
            let name = self.names.get(&call).copied().unwrap_or_default();
            out.note(out.note_paint().dim(format!("  … {name}: {}", one_line(&message, 120))));
        }
        self.shown.insert(call, message);
    }

    fn describe(&self) -> String {
        let names = list(self.names.values());
        let which = if self.names.len() == 1 { "the task" } else { "the tasks" };
        format!("{} waits for {which} of {names}", self.run)
    }
}
