//! `toolgate approvals` alone at a terminal: the inbox. It lists what waits for the person, asks about the chosen run, and
//! continues the run with the answers.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::context::note_context;
use super::list::{self, external_line, whose};
use crate::app::App;
use crate::cli::drive_to_idle::settle;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::follow::Display;
use crate::cli::follow_options::Tasks;
use crate::cli::interrupt::Interrupts;
use crate::cli::output::Output;
use crate::cli::prompt::{self, Menu};
use crate::cli::prompt_line::{Entered, LineInput, next_line};
use crate::cli::report;
use crate::cli::setup::{self, ConfigFlag, ConfigOverrides};
use crate::cli::text::{count, one_line};
use crate::cli::view::SharedViewState;
use crate::cli::wrap::wrap;
use crate::core::id::RunId;
use crate::core::run::{AnswerForm, PendingCall};
use crate::core::tool::summary;
use crate::service::{Inbox, InboxFilter, InboxItem};

/// The most lines of a pending item, because the prompts show the items whole.
const ITEM_LINES: usize = 4;

/// Asks about the pending approvals and questions of all runs, until none is left or the person leaves.
pub(super) async fn decide(config: &ConfigFlag, out: &mut Output) -> Result<Exit, CliError> {
    let app = setup::open(setup::settings(config)?).await?;
    let ended = ask(&app, config, out).await;
    setup::close_after(&ended, app, out).await;
    ended
}

async fn ask(app: &App, config: &ConfigFlag, out: &mut Output) -> Result<Exit, CliError> {
    let again = setup::again(config, &ConfigOverrides::default());
    let (mut left, mut is_first) = (BTreeSet::new(), true);
    loop {
        let Inbox { waiting, external, unreadable } = app.operator().inbox(&InboxFilter::default()).await?;
        list::warn_of_unreadable(&unreadable, out);
        let now = Timestamp::now();
        if std::mem::take(&mut is_first) {
            external.iter().filter_map(|item| external_line(item, now)).for_each(|line| out.note(line));
        }
        if waiting.is_empty() {
            out.note("there are no pending approvals or questions");
            return Ok(Exit::Done);
        }
        if waiting.iter().all(|item| left.contains(&item.run_id)) {
            out.note("left pending; `toolgate approvals` asks again");
            return Ok(Exit::Done);
        }
        let runs = by_run(&waiting, out, now);
        out.note(format!("\n{} in {}", count(waiting.len(), "pending item"), count(runs.len(), "run")));
        let chosen = match &runs[..] {
            [(only, _)] => Some(only.clone()),
            several => chosen(several, out).await?,
        };
        let Some(run) = chosen else { return Ok(Exit::Done) };
        // The only run is chosen without a question, so one that cannot be resumed would be chosen again and again.
        left.insert(run.clone());
        note_context(app, &run, out).await?;
        let known = app.runner.journal(&run).await?;
        let execution = match app.runner.resume_or_follow(&run).await {
            Ok(execution) => execution,
            Err(error) => {
                report::error(&error.into(), out);
                continue;
            }
        };
        let display = Display::conversation(&SharedViewState::default(), out);
        settle(app, execution, &known, display, Tasks::InTerminal.into(), &again, out).await?;
    }
}

/// The runs, each with its items, agent, age and task.
fn by_run(waiting: &[InboxItem], out: &Output, now: Timestamp) -> Vec<(RunId, String)> {
    let room = out.width().saturating_sub(12).max(24);
    let mut runs: Vec<(&InboxItem, String)> = Vec::new();
    for item in waiting {
        // The menu indents each line of an option alike.
        let line = wrap(&one_line(&item_line(item), room * ITEM_LINES), room).replace('\n', "\n    ");
        match runs.iter_mut().find(|(first, _)| first.run_id == item.run_id) {
            Some((_, lines)) => lines.push_str(&format!("\n{line}")),
            None => runs.push((item, line)),
        }
    }
    let with_task = |(first, lines): (&InboxItem, String)| {
        let task = one_line(&first.context.task, room);
        (first.run_id.clone(), format!("{lines}\n  {}: {task}", whose(first, now)))
    };
    runs.into_iter().map(with_task).collect()
}

/// What waits.
fn item_line(item: &InboxItem) -> String {
    let Some(PendingCall { tool, arguments, .. }) = item.item.call() else { return String::new() };
    let called = || summary(&tool.origin, &arguments);
    match item.item.form() {
        AnswerForm::Choice(ask) => format!("the model asks: {}", ask.question),
        AnswerForm::Elicitation { .. } => format!("{} asks for input", called()),
        AnswerForm::Decision(_)
        | AnswerForm::Result { .. }
        | AnswerForm::Background(_)
        | AnswerForm::Continue { .. } => called(),
    }
}

/// The run that the person chooses; `None` to leave.
async fn chosen(runs: &[(RunId, String)], out: &mut Output) -> Result<Option<RunId>, CliError> {
    let mut interrupts = Interrupts::listen();
    let menu = Menu::new(runs.iter().map(|(_, lines)| lines.clone()).collect()).marked_at(0);
    loop {
        let question = "which run (number; empty: marked; q, Esc: leave): ";
        let line = match next_line(question, LineInput::Choice(menu.clone()), &mut interrupts).await {
            Entered::Line(line) => line,
            Entered::Interrupt | Entered::End | Entered::Leave => return Ok(None),
        };
        let position = match line.trim() {
            "" => Some(0),
            "q" => return Ok(None),
            number => prompt::position(number, runs.len()),
        };
        match position.and_then(|position| runs.get(position)) {
            Some((run, _)) => return Ok(Some(run.clone())),
            None => out.note(format!("there is no number {}", one_line(&line, 20))),
        }
    }
}
