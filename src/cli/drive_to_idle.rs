//! Shared final step of `run`, `resume` and `fork`: follows a run until it is idle, and asks the person at the
//! terminal.

mod task_wait;
mod until_idle;

use serde::Serialize;

use super::blobs;
use super::error::CliError;
use super::exit::Exit;
use super::follow::{Display, Follow};
use super::follow_options::{FollowOptions, Tasks};
use super::output::Output;
use super::prompt;
use super::terminal_user;
use super::text::{block, count};
use super::view::{DisplaySettings, RepeatedFlags, UsageJson, pending_lines};
use crate::app::App;
use crate::config::StoreSettings;
use crate::core::blob::BlobHandle;
use crate::core::error::{ErrorCode, Failure};
use crate::core::id::{ModelName, RunId, SessionId};
use crate::core::lifecycle::{optional_failure, optional_output, warnings};
use crate::core::run::{
    AnswerForm, JournalEntry, Output as Answer, PendingItem, RunPhase, RunResult, RunWarning, Status,
};
use crate::runner::{Execution, Report};
use crate::service::binding_digest;
pub(super) use until_idle::until_idle;

/// Follows an execution until the run ends, or needs an action that is not available here.
pub(super) async fn settle(
    app: &App,
    execution: Execution,
    known: &[JournalEntry],
    display: Display,
    options: FollowOptions<'_>,
    again: &RepeatedFlags,
    out: &mut Output,
) -> Result<Exit, CliError> {
    let run = execution.run.clone();
    // No other process has the calls of a store in memory.
    let has_calls_elsewhere = again.is_in_conversation() || app.settings.store != StoreSettings::Memory;
    let display = if has_calls_elsewhere { display.naming_calls(again) } else { display };
    let waits = options.tasks == Tasks::Everywhere || display.is_live();
    let mut follow = Follow::new(app, &run, known, display, options);
    let seen_before = follow.seen;
    let mut report = until_idle(&mut follow, execution, out).await?;
    // A paused run waits for the command that continues it, whatever else is pending.
    while report.status == Status::Pending && !report.pending.iter().any(is_pause) {
        if follow.display.is_live() && !follow.is_cancelled {
            let prompted = terminal_user::answer(&mut follow, &report, out).await?;
            if prompted.stops {
                report = stop(&mut follow, &run, out).await?;
                continue;
            }
            if prompted.is_interrupted {
                let settled = prompted.remove_settled(&mut report.pending);
                if settled > 0 {
                    out.note(format!(
                        "{} kept; nothing starts before the run is continued",
                        count(settled, "decision")
                    ));
                }
                break;
            }
            if prompted.has_news() {
                report = until_idle(&mut follow, app.runner.resume_or_follow(&run).await?, out).await?;
                continue;
            }
        }
        let news = match waits {
            true => task_wait::for_tasks(app, &run, &report.pending, &mut follow, out).await?,
            false => None,
        };
        let Some(execution) = news else { break };
        report = until_idle(&mut follow, execution, out).await?;
    }
    if report.status == Status::Pending {
        follow.display.left_unread(out);
    }
    let media = blobs::named(app, report.output.as_ref().map_or(&[], |output| &output.media)).await;
    conclude(&report, &media, &follow.display, again, out);
    let is_retryable = report.error.as_ref().is_some_and(|error| error.retryable);
    if report.status.is_ended() && follow.seen == seen_before && follow.display.is_told() {
        had_ended(&report, again, out);
    } else if report.status == Status::Failed
        && (is_retryable || again.is_in_conversation())
        && follow.display.is_told()
    {
        out.note(again.retrying(&run));
    }
    let typed = prompt::typed_ahead::text();
    if !again.is_in_conversation() && !typed.trim().is_empty() {
        out.note(format!("not sent: {}", block(typed.trim())));
    }
    if report.status == Status::Pending && app.settings.store == StoreSettings::Memory && !follow.display.is_json() {
        out.warning(
            "the store is in memory, so this run is lost when the command ends, and no later command can answer it; to keep \
             runs in a file, remove `memory` from `store` in the configuration",
        );
    }
    Ok(Exit::from(report.status))
}

/// Cancels a pending run for the person at its prompts, and follows it to its end.
async fn stop(follow: &mut Follow<'_>, run: &RunId, out: &mut Output) -> Result<Report, CliError> {
    let app = follow.app;
    let report = app.runner.cancel(run, Some(until_idle::STOPPED.to_owned()), None).await?;
    if !report.status.is_ended() {
        // Calls are undone first.
        return until_idle(follow, app.runner.resume_or_follow(run).await?, out).await;
    }
    follow.catch_up(run, u64::MAX, out).await?;
    Ok(report)
}

fn is_pause(item: &PendingItem) -> bool {
    matches!(item.form(), AnswerForm::Continue { .. })
}

/// Reports how the run ended or why it is pending.
fn conclude(report: &Report, media: &[String], display: &Display, again: &RepeatedFlags, out: &mut Output) {
    match display {
        Display::Json => out.json(&ResultLine::new(report)),
        Display::Live(_) => {
            media.iter().for_each(|line| out.line(line));
            how_to_save(report, again, out);
            print_pending(report, again, out);
            note_asking_again(report, again, out);
            print_warnings(report, out);
        }
        Display::Lines(_) | Display::Quiet => {
            answer(report, out);
            media.iter().for_each(|line| out.line(line));
            match (display, &report.error) {
                (Display::Quiet, Some(error)) => out.note(format!("error: {}", block(&error.to_string()))),
                (Display::Quiet, None) => {}
                (Display::Lines(_) | Display::Live(_) | Display::Json, _) => how_to_save(report, again, out),
            }
            print_pending(report, again, out);
            // A person reads this, and standard output goes elsewhere.
            if out.notes_are_seen() && prompt::is_person_at_terminal() {
                note_asking_again(report, again, out);
            }
            print_warnings(report, out);
        }
    }
}

/// Names the command that asks about what is pending.
fn note_asking_again(report: &Report, again: &RepeatedFlags, out: &mut Output) {
    let asks = report.pending.iter().any(PendingItem::wants_answer);
    again.asking_again(&report.run_id).filter(|_| asks).iter().for_each(|line| out.note(line));
}

/// Says that there was nothing to resume, and what can be done with a run that did not complete.
fn had_ended(report: &Report, again: &RepeatedFlags, out: &mut Output) {
    let (run, status) = (report.run_id.as_str(), report.status.as_str());
    out.note(format!("{run} was {status} before; an ended run is not resumed"));
    if report.status != Status::Completed {
        let (retry, fork) = (again.command(&["runs", "retry", run]), again.command(&["runs", "fork", run]));
        out.note(format!("call the model again in its place, or in a copy, with:\n  {retry}\n  {fork}"));
    }
}

fn print_warnings(report: &Report, out: &mut Output) {
    report.warnings.iter().for_each(|warning| out.warning(warning));
}

fn answer(report: &Report, out: &mut Output) {
    match &report.output {
        Some(Answer { value: Some(value), .. }) => out.pretty(value),
        // An answer without text prints no line, not even an empty one.
        Some(Answer { text, .. }) if text.trim().is_empty() => {}
        Some(Answer { text, .. }) => out.verbatim(text.trim_end()),
        None => {}
    }
}

/// Shows the command that writes the first medium to a file.
fn how_to_save(report: &Report, again: &RepeatedFlags, out: &mut Output) {
    let media = report.output.iter().flat_map(|output| &output.media);
    let mut handles = media.filter_map(|media| media.url.as_deref()).filter(|url| BlobHandle::parse(url).is_ok());
    if let Some(handle) = handles.next() {
        out.note(format!("save it with:\n  {}", again.elsewhere(&["blobs", "save", handle])));
    }
}

fn print_pending(report: &Report, again: &RepeatedFlags, out: &mut Output) {
    if report.status == Status::Pending {
        let look = DisplaySettings { paint: out.note_paint(), width: out.width() };
        pending_lines(&report.run_id, &report.pending, again, look).iter().for_each(|line| out.note(line));
    }
}

/// The result line of `--json`. Every member is there; one without a value is null.
#[derive(Serialize)]
pub(super) struct ResultLine<'a> {
    r#type: &'static str,
    status: Status,
    run_id: Option<&'a RunId>,
    session_id: Option<&'a SessionId>,
    version: Option<u64>,
    #[serde(serialize_with = "optional_output")]
    output: Option<Answer>,
    #[serde(serialize_with = "warnings")]
    warnings: &'a [RunWarning],
    pending: Vec<PendingJson<'a>>,
    #[serde(serialize_with = "optional_failure")]
    error: Option<Failure>,
    usage: Option<UsageJson>,
    summary: Option<&'a str>,
    error_code: Option<ErrorCode>,
    phase: Option<RunPhase>,
    exit_code: Option<u8>,
    duration_ms: Option<u64>,
    models: &'a [ModelName],
    iterations: u32,
}

/// A pending item, with the digest that binds a decision about it to what was shown.
#[derive(Serialize)]
struct PendingJson<'a> {
    #[serde(flatten)]
    item: &'a PendingItem,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

fn with_digests<'a>(run: &RunId, items: &'a [PendingItem]) -> Vec<PendingJson<'a>> {
    items.iter().map(|item| PendingJson { item, digest: binding_digest(run, item) }).collect()
}

impl<'a> ResultLine<'a> {
    /// The state of a run that ended or is pending.
    pub(super) fn new(report: &'a Report) -> Self {
        let RunResult { summary, error_code, phase, exit_code, duration_ms, models, iterations } = &report.result;
        Self {
            r#type: "result",
            status: report.status,
            run_id: Some(&report.run_id),
            session_id: Some(&report.session_id),
            version: Some(report.version),
            output: report.output.clone(),
            warnings: &report.warnings,
            pending: with_digests(&report.run_id, &report.pending),
            error: report.error.clone(),
            usage: Some(report.budget.usage.into()),
            summary: summary.as_deref(),
            error_code: *error_code,
            phase: *phase,
            exit_code: *exit_code,
            duration_ms: *duration_ms,
            models,
            iterations: *iterations,
        }
    }

    /// The state of a run that stored an answer without execution. The result lists the other pending items too,
    /// although another process may resume the run with its answers.
    pub(super) fn stored(report: &'a Report, pending: &'a [PendingItem]) -> Self {
        let waits = report.status == Status::Running && pending.iter().any(PendingItem::wants_answer);
        let status = if waits { Status::Pending } else { report.status };
        Self { status, pending: with_digests(&report.run_id, pending), ..Self::new(report) }
    }

    /// The state of a run that rejected an answer.
    pub(super) fn refused(report: &'a Report, error: &CliError) -> Self {
        Self { error: Some(error.failure()), ..Self::new(report) }
    }

    /// A command that failed before it had a run.
    pub(super) fn failed(error: &'a CliError) -> Self {
        let (status, run_id) = match error {
            // The run itself is unchanged.
            CliError::Terminated(run) => (Status::Running, Some(run)),
            CliError::Coded { .. } | CliError::Config(_) | CliError::Interrupted => (Status::Failed, None),
        };
        Self {
            r#type: "result",
            status,
            run_id,
            session_id: None,
            version: None,
            output: None,
            warnings: &[],
            pending: Vec::new(),
            error: Some(error.failure()),
            usage: None,
            summary: None,
            error_code: None,
            phase: None,
            exit_code: None,
            duration_ms: None,
            models: &[],
            iterations: 0,
        }
    }
}
