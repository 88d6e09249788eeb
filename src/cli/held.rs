//! Asking the person at the terminal: about everything that a pending run waits for, and about calls that are held open
//! for the answer while the run is at work.

use std::collections::BTreeSet;

use super::error::CliError;
use super::follow::Follow;
use super::interrupt::Interrupt;
use super::output::Output;
use super::prompt;
use super::refusal;
use super::text::block;
use crate::app::App;
use crate::core::id::{CallId, RunId};
use crate::core::run::{Debt, Refusal, Resume};
use crate::runner::{Report, RunnerError};

/// The person at the terminal, and what they left open: they are not asked about it again.
#[derive(Default)]
pub(super) struct Person {
    left_open: BTreeSet<(CallId, &'static str)>,
}

/// What the person gives a run that waits. `None` when there is no person, or nothing that they give.
pub(super) async fn answers(follow: &mut Follow<'_>, report: &Report) -> Result<Option<Resume>, CliError> {
    let debts = unanswered(follow, &report.pending);
    asked(follow, &report.run_id, report.version, debts).await
}

/// Asks about the calls of a run at work that are held open, and hands the answers to them. A call about which the person
/// leaves the question open is not held any longer.
pub(super) async fn ask(follow: &mut Follow<'_>, run: &RunId, out: &mut Output) -> Result<(), CliError> {
    loop {
        let state = follow.app.runner.load(run).await?;
        let held: Vec<Debt> = state.debts().into_iter().filter(Debt::is_held).collect();
        let debts = unanswered(follow, &held);
        if debts.is_empty() {
            return Ok(());
        }
        let calls: Vec<CallId> = debts.iter().map(|debt| debt.call_id().clone()).collect();
        let given = asked(follow, run, state.length(), debts.clone()).await?;
        let answered: Vec<CallId> =
            given.iter().flat_map(|given| &given.inputs).map(|(call, _)| call.clone()).collect();
        for call in calls.iter().filter(|call| !answered.contains(call)) {
            follow.app.runner.release_held(run, call);
        }
        let Some(given) = given else { return Ok(()) };
        if let Err(error) = hand_over(follow.app, run, given, &debts).await {
            let error = refusal::told(error, &follow.app.runner.journal(run).await?);
            out.note(format!("error: {}", block(&error.to_string())));
        }
    }
}

/// Gives answers to a run at work. Others may write to it meanwhile; only the questions have to be those that were shown.
async fn hand_over(app: &App, run: &RunId, given: Resume, shown: &[Debt]) -> Result<(), RunnerError> {
    loop {
        let state = app.runner.load(run).await?;
        let still_asked = shown.iter().all(|debt| state.debts().contains(debt));
        let version = if still_asked { Some(state.length()) } else { given.expected_version };
        match app.runner.record(run, Resume { expected_version: version, ..given.clone() }).await {
            Err(error) if still_asked && is_stale(&error) => {}
            done => return done.map(drop),
        }
    }
}

fn is_stale(error: &RunnerError) -> bool {
    let RunnerError::Refused(refusals) = error else { return false };
    refusals.iter().all(|refusal| matches!(refusal, Refusal::Stale { .. }))
}

/// What is not left open already.
fn unanswered(follow: &Follow<'_>, debts: &[Debt]) -> Vec<Debt> {
    let is_news = |debt: &&Debt| debt.wants_answer() && !follow.person.left_open.contains(&named(debt));
    debts.iter().filter(is_news).cloned().collect()
}

async fn asked(
    follow: &mut Follow<'_>,
    run: &RunId,
    version: u64,
    debts: Vec<Debt>,
) -> Result<Option<Resume>, CliError> {
    if debts.is_empty() {
        return Ok(None);
    }
    let Some(mut prompt) = prompt::at_terminal() else { return Ok(None) };
    follow.person.left_open.extend(debts.iter().map(named));
    let shown = debts.clone();
    let _open = prompt.withdrawal();
    let asking = tokio::task::spawn_blocking(move || prompt.ask(&debts));
    let answered = tokio::select! {
        answered = asking => answered,
        // The run keeps waiting; only the question is withdrawn.
        interrupt = follow.interrupts.next() => return match interrupt {
            Interrupt::Stop => Ok(None),
            Interrupt::Leave => Err(CliError::Terminated(run.clone())),
        },
    };
    // A terminal that cannot be read is no person to ask.
    let Some(mut resume) = answered.ok().and_then(Result::ok) else { return Ok(None) };
    let calls = resume.results.iter().map(|(call, _)| call).chain(resume.decisions.iter().map(|(call, _)| call));
    let calls = calls.chain(resume.answers.iter().map(|(call, _)| call));
    let calls: Vec<&CallId> = calls.chain(resume.inputs.iter().map(|(call, _)| call)).collect();
    if calls.is_empty() {
        return Ok(None);
    }
    // What was answered may be asked again: because it was refused, or because its server has another question.
    follow.person.left_open.retain(|(call, _)| !calls.contains(&call));
    // A yes is to what was shown, whatever has become of it since.
    resume.seen = resume.decisions.iter().filter_map(|(call, _)| seen(run, call, &shown)).collect();
    // The same words to another question are another answer.
    resume.expected_version = (!resume.inputs.is_empty()).then_some(version);
    Ok(Some(resume))
}

/// What a decision about a call is about, as it was shown.
fn seen(run: &RunId, call: &CallId, shown: &[Debt]) -> Option<(CallId, String)> {
    let debt = shown.iter().find(|debt| debt.call_id() == call)?;
    Some((call.clone(), debt.binding()?.digest(run, call)))
}

fn named(debt: &Debt) -> (CallId, &'static str) {
    (debt.call_id().clone(), debt.kind())
}
