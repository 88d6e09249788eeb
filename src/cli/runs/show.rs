//! `toolgate runs show`: the summary of a run, or one of its calls in full.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use super::fork::copied_length;
use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::paint::Paint;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag, ConfigOverrides};
use crate::cli::text::list;
use crate::cli::view::{DisplaySettings, RunSummary, WholeCall, feedback_lines, pending_lines};
use crate::core::blob::BlobHandle;
use crate::core::id::{CallId, RunId};
use crate::core::run::{CallHistory, History, JournalEntry, Status};
use crate::core::tool::{Arguments, Outcome, escape_untrusted};
use crate::ports::Feedback;
use crate::runner::Report;

const EXAMPLES: &str = "\
Examples:
  toolgate runs show last
  toolgate runs show last 2                  the second call: its arguments, and its whole result
  toolgate runs show last 2 --json | jq .outcome";

/// Show a run: its turns, its calls, what it used, and what it waits for; or one of its calls in full
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Show {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    /// Only this call, in full: its number in the run, or its id
    call: Option<String>,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints the report as JSON: status, output, pending, messages, budget, feedback; of a call: number, id, name,
    /// arguments, outcome
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct ReportJson<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// Why the run cannot resume with this configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    feedback: Vec<Feedback>,
}

#[derive(Serialize)]
struct CallJson<'a> {
    number: usize,
    id: &'a CallId,
    name: &'a str,
    /// The arguments with which it was, or would be, sent.
    arguments: &'a Arguments,
    outcome: Option<&'a Outcome>,
}

impl Show {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let shown = self.show(&app, out).await;
        setup::close(app, out).await;
        shown.map(|()| Exit::Done)
    }

    async fn show(&self, app: &App, out: &mut Output) -> Result<(), CliError> {
        let run = find(app, &self.run).await?;
        match &self.call {
            Some(call) if self.json => return print_call_json(app, &run, call, out).await,
            Some(call) => return print_call(app, &run, call, out).await,
            None => {}
        }
        let report = app.runner.report(&run).await?;
        let blocked = app.runner.blocked(&run, &app.runner.load(&run).await?).map(|error| error.to_string());
        let feedback = app.runner.feedback(&run).await?;
        if self.json {
            out.pretty(&ReportJson { report: &report, blocked, feedback });
            return Ok(());
        }
        let journal = app.runner.journal(&run).await?;
        let look = DisplaySettings { paint: out.paint(), width: out.width() };
        let again = setup::again(&self.config, &ConfigOverrides::default());
        let typesets = out.is_terminal() && look.paint == Paint::Colour;
        let summary = RunSummary::from_journal(&journal);
        let summary = summary.map(|summary| if typesets { summary.typesetting() } else { summary });
        let is_interrupted = report.status == Status::Running && app.runner.is_orphaned(&run).await?;
        let lines = summary.map(|summary| summary.draw(&report, is_interrupted, &again, look)).unwrap_or_default();
        lines.iter().for_each(|line| out.line(line));
        if !feedback.is_empty() {
            out.line(look.paint.bold("feedback"));
            feedback_lines(&feedback, look).iter().for_each(|line| out.line(line));
        }
        if let Some(blocked) = blocked {
            let remedy = format!("configure it again, or end the run with `toolgate runs cancel {run}`");
            out.line(look.paint.yellow(format!("blocked: {}; {remedy}", escape_untrusted(&blocked))));
        }
        if !report.pending.is_empty() {
            pending_lines(&run, &report.pending, &again, look).iter().for_each(|line| out.line(line));
        }
        Ok(())
    }
}

/// Prints the call with this number or id in full.
pub(in crate::cli) async fn print_call(app: &App, run: &RunId, named: &str, out: &mut Output) -> Result<(), CliError> {
    let journal = app.runner.journal(run).await?;
    let is_over = app.runner.report(run).await?.status.is_ended();
    let calls = calls(&journal);
    let (_, call) = chosen(&calls, named, run)?;
    let copied = copied_length(&journal);
    let mut stored = BTreeMap::new();
    if let Some((_, outcome)) = call.outcome() {
        for kept in outcome.stored().iter().filter(|kept| kept.form.is_cut()) {
            stored.extend(stored_text(app, &kept.handle).await.map(|text| (kept.handle, text)));
        }
    }
    let look = DisplaySettings { paint: out.paint(), width: out.width() };
    WholeCall { call, is_over, copied, stored }.draw(look).iter().for_each(|line| out.line(line));
    Ok(())
}

async fn print_call_json(app: &App, run: &RunId, named: &str, out: &mut Output) -> Result<(), CliError> {
    let journal = app.runner.journal(run).await?;
    let calls = calls(&journal);
    let (number, call) = chosen(&calls, named, run)?;
    let outcome = call.outcome().map(|(_, outcome)| outcome);
    let (id, name) = (&call.requested.id, &call.requested.name);
    out.pretty(&CallJson { number, id, name, arguments: call.arguments(), outcome: outcome.as_deref() });
    Ok(())
}

/// A text of a result that is stored beside the journal; `None` if the store has it no more.
async fn stored_text(app: &App, handle: &BlobHandle) -> Option<String> {
    let blob = app.runner.blobs()?.get(handle).await.ok().flatten()?;
    String::from_utf8(blob.bytes().to_vec()).ok()
}

fn calls(journal: &[JournalEntry]) -> Vec<CallHistory<'_>> {
    History::from_journal(journal).map(|history| history.calls().cloned().collect()).unwrap_or_default()
}

/// The call with this id or number, and its number.
fn chosen<'c, 'j>(
    calls: &'c [CallHistory<'j>],
    named: &str,
    run: &RunId,
) -> Result<(usize, &'c CallHistory<'j>), CliError> {
    let numbered = || named.parse::<usize>().ok()?.checked_sub(1).filter(|position| *position < calls.len());
    let position = calls.iter().rposition(|call| call.requested.id.as_str() == named).or_else(numbered);
    position.and_then(|position| Some((position + 1, calls.get(position)?))).ok_or_else(|| {
        let error = CliError::not_found(format!("run {run} has no call `{}`", escape_untrusted(named)));
        let ids = calls.iter().enumerate();
        let ids =
            ids.map(|(position, call)| format!("{} {}", position + 1, escape_untrusted(call.requested.id.as_str())));
        error.with_remedy(format!("its calls are: {}", list(ids)))
    })
}
