//! `toolgate approvals` alone at a terminal: the inbox. It lists what waits for the person, asks about the chosen run, and
//! continues the run with the answers.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::list;
use crate::app::App;
use crate::cli::drive_to_idle::{Tasks, settle};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::follow::Display;
use crate::cli::interrupt::Interrupts;
use crate::cli::output::Output;
use crate::cli::prompt::{self, Recall};
use crate::cli::prompt_line::{Entered, next_line};
use crate::cli::report;
use crate::cli::setup::{self, ConfigFlag, ConfigOverrides};
use crate::cli::text::{count, one_line};
use crate::core::id::RunId;
use crate::service::{Inbox, InboxFilter, InboxItem};

/// Asks about the pending approvals and questions of all runs, until none is left or the person leaves.
pub(super) async fn decide(config: &ConfigFlag, out: &mut Output) -> Result<Exit, CliError> {
    let app = setup::open(setup::settings(config)?).await?;
    let ended = ask(&app, config, out).await;
    setup::close_after(&ended, app, out).await;
    ended
}

async fn ask(app: &App, config: &ConfigFlag, out: &mut Output) -> Result<Exit, CliError> {
    let again = setup::again(config, &ConfigOverrides::default());
    let mut left = BTreeSet::new();
    loop {
        let waiting = waiting(app, out).await?;
        if waiting.is_empty() {
            out.note("there are no pending approvals or questions");
            return Ok(Exit::Done);
        }
        if waiting.iter().all(|item| left.contains(&item.run_id)) {
            out.note("left pending; `toolgate approvals` asks again");
            return Ok(Exit::Done);
        }
        let runs = print(&waiting, out);
        let Some(run) = chosen(&runs, out).await? else { return Ok(Exit::Done) };
        let known = app.runner.journal(&run).await?;
        let execution = match app.runner.resume_or_follow(&run).await {
            Ok(execution) => execution,
            Err(error) => {
                report::error(&error.into(), out);
                continue;
            }
        };
        settle(app, execution, &known, Display::conversation(out), Tasks::InTerminal.into(), &again, out).await?;
        left.insert(run);
    }
}

/// What is pending in all runs.
async fn waiting(app: &App, out: &mut Output) -> Result<Vec<InboxItem>, CliError> {
    let Inbox { waiting, unreadable } = app.operator().inbox(&InboxFilter::default()).await?;
    list::warn_of_unreadable(&unreadable, out);
    Ok(waiting)
}

/// Prints what is pending, each run with its number. Returns the runs.
fn print(waiting: &[InboxItem], out: &mut Output) -> Vec<RunId> {
    let (now, paint) = (Timestamp::now(), out.paint());
    let mut runs: Vec<RunId> = Vec::new();
    for item in waiting {
        if !runs.contains(&item.run_id) {
            runs.push(item.run_id.clone());
            let asked_by = format!("{}. agent {}", runs.len(), item.agent);
            let room = out.width().saturating_sub(asked_by.chars().count() + 2).max(24);
            let task = one_line(&item.context.task, room);
            out.line(format!("\n{}: {task}", paint.bold(asked_by)));
        }
        list::lines(item, now, paint).iter().for_each(|line| out.line(line));
    }
    out.note(format!("\n{} in {}", count(waiting.len(), "pending item"), count(runs.len(), "run")));
    runs
}

/// The run that the person chooses; `None` to leave.
async fn chosen(runs: &[RunId], out: &mut Output) -> Result<Option<RunId>, CliError> {
    let mut interrupts = Interrupts::listen();
    loop {
        let question = "which run (its number; empty: the first; q: leave): ";
        let line = match next_line(question, &Recall::default(), &mut interrupts).await {
            Entered::Line(line) => line,
            Entered::Interrupt | Entered::End | Entered::Leave => return Ok(None),
        };
        let position = match line.trim() {
            "" => Some(0),
            "q" => return Ok(None),
            number => prompt::position(number, runs.len()),
        };
        match position.and_then(|position| runs.get(position)) {
            Some(run) => return Ok(Some(run.clone())),
            None => out.note(format!("there is no number {}", one_line(&line, 20))),
        }
    }
}
