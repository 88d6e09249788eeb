//! Prompts for the person at the terminal: the pending items of a run, and elicitations of calls that stay open while
//! the run continues. Each answer is recorded in the journal before the next question, so neither an answer that does not
//! fit nor Ctrl-C loses the others.

use std::time::Duration;

use tokio::runtime::Handle;

use super::error::CliError;
use super::follow::Follow;
use super::interrupt::Interrupt;
use super::output::Output;
use super::past_calls::read_past_calls;
use super::prompt;
use super::refusal;
use super::text::block;
use crate::core::id::{CallId, RunId};
use crate::core::run::{Answer, PendingItem, Resume, ResumeError};
use crate::runner::{Report, RunnerError};
use crate::service::binding_digest;

/// The poll interval for answers of other processes while a prompt is open.
const POLL: Duration = Duration::from_millis(500);

/// What became of an answer.
enum Recorded {
    Yes,
    /// The answer does not fit, and the item still waits for one.
    No,
    /// The item accepts no answer any more: it expired, or changed.
    TooLate,
}

/// Prompts for the pending items of a run. Whether the run has news: an answer from here or from another process, or an
/// expired item.
pub(super) async fn answer(follow: &mut Follow<'_>, report: &Report, out: &mut Output) -> Result<bool, CliError> {
    let items = unanswered(follow, &report.pending);
    Ok(!prompt_for(follow, &report.run_id, report.version, items, out).await?.is_empty())
}

/// Prompts for the open calls of an active run. Releases a call when the person leaves its prompt open.
pub(super) async fn ask(follow: &mut Follow<'_>, run: &RunId, out: &mut Output) -> Result<(), CliError> {
    loop {
        let state = follow.app.runner.load(run).await?;
        let held: Vec<PendingItem> = state.pending_items().into_iter().filter(PendingItem::is_held).collect();
        let items = unanswered(follow, &held);
        if items.is_empty() {
            return Ok(());
        }
        let calls: Vec<CallId> = items.iter().filter_map(|item| item.call_id().cloned()).collect();
        let settled = prompt_for(follow, run, state.length(), items, out).await?;
        for call in calls.iter().filter(|call| !settled.contains(call)) {
            follow.app.runner.release_held(run, call);
        }
        if settled.is_empty() {
            return Ok(());
        }
    }
}

/// The items that the person has not left open.
fn unanswered(follow: &Follow<'_>, items: &[PendingItem]) -> Vec<PendingItem> {
    let is_news = |item: &&PendingItem| item.wants_answer() && !follow.left_open.contains(&named(item));
    items.iter().filter(is_news).cloned().collect()
}

/// Prompts for each item in turn and records its answer. An answer that does not fit is asked for again. Withdraws the
/// prompt when another process answers the item; the display of events then shows the decision and its author. Returns
/// the calls that no longer wait: answered here or by another process, or expired.
async fn prompt_for(
    follow: &mut Follow<'_>,
    run: &RunId,
    mut version: u64,
    items: Vec<PendingItem>,
    out: &mut Output,
) -> Result<Vec<CallId>, CliError> {
    let mut settled = Vec::new();
    if items.is_empty() {
        return Ok(settled);
    }
    out.passed();
    let Some(mut prompt) = prompt::at_terminal() else { return Ok(settled) };
    // Dropping it withdraws the prompt.
    let mut open = Some(prompt.withdrawal());
    let operator = follow.app.operator();
    let count = items.len();
    let mut items = items.into_iter().enumerate().peekable();
    while let Some((index, item)) = items.peek().cloned() {
        let (question, runner, of_run) = (item.clone(), follow.app.runner.clone(), run.clone());
        let runtime = Handle::current();
        let asking = tokio::task::spawn_blocking(move || {
            let past = || {
                let call = question.call()?;
                runtime.block_on(read_past_calls(&runner, &of_run, &call)).ok()
            };
            let answered = prompt.ask(&question, (index + 1, count), &past);
            (prompt, answered)
        });
        follow.left_open.insert(named(&item));
        tokio::select! {
            answered = asking => {
                // An unreadable terminal counts as no person.
                let Ok((returned, Ok(given))) = answered else { return Ok(settled) };
                prompt = returned;
                if !given.answers.is_empty() {
                    // An answered item may need another prompt, because its server asks another question.
                    follow.left_open.remove(&named(&item));
                    match record(follow, run, version, given, &item, out).await? {
                        Recorded::No => continue,
                        Recorded::Yes | Recorded::TooLate => settled.extend(item.call_id().cloned()),
                    }
                }
            }
            length = operator.settled(run, &item, POLL) => {
                drop(open.take());
                version = length;
                follow.left_open.remove(&named(&item));
                settled.extend(item.call_id().cloned());
                // The prompt does not end its line.
                out.note("");
                follow.catch_up(run, length, out).await?;
                let Some(again) = prompt::at_terminal() else { return Ok(settled) };
                prompt = again;
                open = Some(prompt.withdrawal());
            }
            // Only the prompts are withdrawn: the answers before are kept, and the other items stay pending.
            interrupt = follow.interrupts.next() => match interrupt {
                Interrupt::Stop => {
                    follow.left_open.extend(items.map(|(_, item)| named(&item)));
                    return Ok(settled);
                }
                Interrupt::Leave => return Err(CliError::Terminated(run.clone())),
            },
        }
        items.next();
    }
    Ok(settled)
}

/// Records the answer to an item as it was shown at this version of the run.
async fn record(
    follow: &Follow<'_>,
    run: &RunId,
    version: u64,
    mut given: Resume,
    item: &PendingItem,
    out: &mut Output,
) -> Result<Recorded, CliError> {
    for (_, answer) in &mut given.answers {
        match answer {
            // An approval covers the call that was shown, whatever changed since.
            Answer::Decision { digest: shown, .. } => *shown = binding_digest(run, item),
            // The same answer to another question has another meaning.
            Answer::Elicitation(_) => given.expected_version = Some(version),
            Answer::Result(_) | Answer::Question(_) => {}
        }
    }
    let app = follow.app;
    let Err(error) = app.operator().record_as_shown(run, given, std::slice::from_ref(item)).await else {
        return Ok(Recorded::Yes);
    };
    let is_too_late = is_too_late(&error);
    let error = refusal::with_journal_details(error, &app.runner.journal(run).await?);
    out.note(format!("error: {}", block(&error.to_string())));
    let still_waits = || async { Ok::<_, CliError>(app.runner.load(run).await?.pending_items().contains(item)) };
    Ok(if is_too_late || !still_waits().await? { Recorded::TooLate } else { Recorded::No })
}

fn is_too_late(error: &RunnerError) -> bool {
    let RunnerError::Refused(refusals) = error else { return false };
    refusals.iter().any(|refusal| matches!(refusal, ResumeError::TooLate { .. }))
}

fn named(item: &PendingItem) -> (Option<CallId>, &'static str) {
    (item.call_id().cloned(), item.kind())
}
