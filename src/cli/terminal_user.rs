//! Prompts for the person at the terminal: the pending items of a run, and elicitations of calls that stay open while
//! the run continues.

use std::time::Duration;

use super::error::CliError;
use super::follow::Follow;
use super::interrupt::Interrupt;
use super::output::Output;
use super::prompt;
use super::refusal;
use super::text::block;
use crate::core::id::{CallId, RunId};
use crate::core::run::{Answer, PendingItem, Resume};
use crate::runner::Report;
use crate::service::binding_digest;

/// The poll interval for answers of other processes while a prompt is open.
const POLL: Duration = Duration::from_millis(500);

struct PromptResult {
    /// The person's answers; `None` when there is no person or no answer.
    given: Option<Resume>,
    /// The calls that another process answered in the meantime.
    elsewhere: Vec<CallId>,
}

/// How a pending run resumes.
pub(super) enum ResumeSource {
    /// With the person's answers.
    Given(Resume),
    /// With answers from another process.
    Elsewhere,
    /// The run stays pending.
    None,
}

/// Prompts for the pending items of a run.
pub(super) async fn answers(
    follow: &mut Follow<'_>,
    report: &Report,
    out: &mut Output,
) -> Result<ResumeSource, CliError> {
    let items = unanswered(follow, &report.pending);
    let PromptResult { given, elsewhere } = prompt_for(follow, &report.run_id, report.version, items, out).await?;
    Ok(match given {
        Some(given) => ResumeSource::Given(given),
        None if elsewhere.is_empty() => ResumeSource::None,
        None => ResumeSource::Elsewhere,
    })
}

/// Prompts for the open calls of an active run, and passes on the answers. Releases a call when the person leaves its
/// prompt open.
pub(super) async fn ask(follow: &mut Follow<'_>, run: &RunId, out: &mut Output) -> Result<(), CliError> {
    loop {
        let state = follow.app.runner.load(run).await?;
        let held: Vec<PendingItem> = state.pending_items().into_iter().filter(PendingItem::is_held).collect();
        let items = unanswered(follow, &held);
        if items.is_empty() {
            return Ok(());
        }
        let calls: Vec<CallId> = items.iter().filter_map(|item| item.call_id().cloned()).collect();
        let PromptResult { given, elsewhere } = prompt_for(follow, run, state.length(), items.clone(), out).await?;
        let answered = given.iter().flat_map(|given| &given.answers).map(|(call, _)| call);
        let answered: Vec<CallId> = answered.chain(&elsewhere).cloned().collect();
        for call in calls.iter().filter(|call| !answered.contains(call)) {
            follow.app.runner.release_held(run, call);
        }
        match given {
            None if elsewhere.is_empty() => return Ok(()),
            None => {}
            Some(given) => {
                let is_elsewhere = |item: &PendingItem| item.call_id().is_some_and(|call| elsewhere.contains(call));
                let shown: Vec<PendingItem> = items.into_iter().filter(|item| !is_elsewhere(item)).collect();
                if let Err(error) = follow.app.operator().record_as_shown(run, given, &shown).await {
                    let error = refusal::with_journal_details(error, &follow.app.runner.journal(run).await?);
                    out.note(format!("error: {}", block(&error.to_string())));
                }
            }
        }
    }
}

/// The items that the person has not left open.
fn unanswered(follow: &Follow<'_>, items: &[PendingItem]) -> Vec<PendingItem> {
    let is_news = |item: &&PendingItem| item.wants_answer() && !follow.left_open.contains(&named(item));
    items.iter().filter(is_news).cloned().collect()
}

/// Prompts for each item in turn. Withdraws the prompt when another process answers the item; the display of events
/// then shows the decision and its author.
async fn prompt_for(
    follow: &mut Follow<'_>,
    run: &RunId,
    mut version: u64,
    items: Vec<PendingItem>,
    out: &mut Output,
) -> Result<PromptResult, CliError> {
    let mut elsewhere = Vec::new();
    let nothing = |elsewhere| Ok(PromptResult { given: None, elsewhere });
    if items.is_empty() {
        return nothing(elsewhere);
    }
    let Some(mut prompt) = prompt::at_terminal() else { return nothing(elsewhere) };
    // Dropping it withdraws the prompt.
    let mut open = Some(prompt.withdrawal());
    let operator = follow.app.operator();
    let mut resume = Resume::default().partial();
    for item in &items {
        let question = item.clone();
        let asking = tokio::task::spawn_blocking(move || {
            let answered = prompt.ask(std::slice::from_ref(&question));
            (prompt, answered)
        });
        follow.left_open.insert(named(item));
        tokio::select! {
            answered = asking => match answered {
                Ok((returned, Ok(answered))) => {
                    prompt = returned;
                    resume.answers.extend(answered.answers);
                }
                // An unreadable terminal counts as no person.
                Ok((_, Err(_))) | Err(_) => return nothing(elsewhere),
            },
            length = operator.settled(run, item, POLL) => {
                drop(open.take());
                version = length;
                follow.left_open.remove(&named(item));
                elsewhere.extend(item.call_id().cloned());
                // The prompt does not end its line.
                out.note("");
                follow.catch_up(run, length, out).await?;
                let Some(again) = prompt::at_terminal() else { return nothing(elsewhere) };
                prompt = again;
                open = Some(prompt.withdrawal());
            }
            // The run stays pending; only the prompt is withdrawn.
            interrupt = follow.interrupts.next() => return match interrupt {
                Interrupt::Stop => nothing(elsewhere),
                Interrupt::Leave => Err(CliError::Terminated(run.clone())),
            },
        }
    }
    if resume.answers.is_empty() {
        return nothing(elsewhere);
    }
    for (call, answer) in &mut resume.answers {
        // An answered item may need another prompt, because its answer was rejected or its server asks another question.
        follow.left_open.retain(|(left_open, _)| left_open.as_ref() != Some(call));
        // An approval covers the call that was shown, whatever changed since.
        if let Answer::Decision { digest: shown, .. } = answer {
            *shown = digest(run, call, &items);
        }
    }
    // The same answer to another question has another meaning.
    let answers_a_server = resume.answers.iter().any(|(_, answer)| answer.elicitation().is_some());
    resume.expected_version = answers_a_server.then_some(version);
    Ok(PromptResult { given: Some(resume), elsewhere })
}

/// The digest of a call as the prompt showed it.
fn digest(run: &RunId, call: &CallId, shown: &[PendingItem]) -> Option<String> {
    let item = shown.iter().find(|item| item.call_id() == Some(call))?;
    binding_digest(run, item)
}

fn named(item: &PendingItem) -> (Option<CallId>, &'static str) {
    (item.call_id().cloned(), item.kind())
}
