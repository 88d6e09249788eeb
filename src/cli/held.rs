//! Asking the person at the terminal: about everything that a pending run waits for, and about calls that are held open
//! for the answer while the run is at work.

use std::collections::BTreeSet;

use super::elsewhere::Elsewhere;
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

/// What came of asking.
struct Asked {
    /// What the person gives; `None` when there is no person, or nothing that they give.
    given: Option<Resume>,
    /// The calls about which something was decided elsewhere meanwhile.
    elsewhere: Vec<CallId>,
}

/// How a run that waits goes on.
pub(super) enum Answers {
    /// With what the person gives.
    Given(Resume),
    /// With what was decided elsewhere.
    Elsewhere,
    /// It does not.
    None,
}

/// Asks about what a run waits for.
pub(super) async fn answers(follow: &mut Follow<'_>, report: &Report, out: &mut Output) -> Result<Answers, CliError> {
    let debts = unanswered(follow, &report.pending);
    let Asked { given, elsewhere } = asked(follow, &report.run_id, report.version, debts, out).await?;
    Ok(match given {
        Some(given) => Answers::Given(given),
        None if elsewhere.is_empty() => Answers::None,
        None => Answers::Elsewhere,
    })
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
        let Asked { given, elsewhere } = asked(follow, run, state.length(), debts.clone(), out).await?;
        let answered = given.iter().flat_map(|given| &given.inputs).map(|(call, _)| call);
        let answered: Vec<CallId> = answered.chain(&elsewhere).cloned().collect();
        for call in calls.iter().filter(|call| !answered.contains(call)) {
            follow.app.runner.release_held(run, call);
        }
        match given {
            None if elsewhere.is_empty() => return Ok(()),
            None => {}
            Some(given) => {
                let shown: Vec<Debt> = debts.into_iter().filter(|debt| !elsewhere.contains(debt.call_id())).collect();
                if let Err(error) = hand_over(follow.app, run, given, &shown).await {
                    let error = refusal::told(error, &follow.app.runner.journal(run).await?);
                    out.note(format!("error: {}", block(&error.to_string())));
                }
            }
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

/// Asks about each in turn. What is decided elsewhere meanwhile is not asked about any more: its prompt is withdrawn, and the
/// facts say who decided what.
async fn asked(
    follow: &mut Follow<'_>,
    run: &RunId,
    mut version: u64,
    debts: Vec<Debt>,
    out: &mut Output,
) -> Result<Asked, CliError> {
    let mut elsewhere = Vec::new();
    let nothing = |elsewhere| Ok(Asked { given: None, elsewhere });
    if debts.is_empty() {
        return nothing(elsewhere);
    }
    let Some(mut prompt) = prompt::at_terminal() else { return nothing(elsewhere) };
    // Dropped, it withdraws the prompt.
    let mut open = Some(prompt.withdrawal());
    let mut decisions = Elsewhere::of(follow.app, run);
    let mut resume = Resume { partial: true, ..Resume::default() };
    for debt in &debts {
        let question = debt.clone();
        let asking = tokio::task::spawn_blocking(move || {
            let said = prompt.ask(std::slice::from_ref(&question));
            (prompt, said)
        });
        follow.person.left_open.insert(named(debt));
        tokio::select! {
            answered = asking => match answered {
                Ok((asked, Ok(said))) => {
                    prompt = asked;
                    add(&mut resume, said);
                }
                // A terminal that cannot be read is no person to ask.
                Ok((_, Err(_))) | Err(_) => return nothing(elsewhere),
            },
            length = decisions.settles(debt) => {
                drop(open.take());
                version = length;
                follow.person.left_open.remove(&named(debt));
                elsewhere.push(debt.call_id().clone());
                // The prompt has no end of line.
                out.note("");
                follow.catch_up(run, length, out).await?;
                let Some(again) = prompt::at_terminal() else { return nothing(elsewhere) };
                prompt = again;
                open = Some(prompt.withdrawal());
            }
            // The run keeps waiting; only the question is withdrawn.
            interrupt = follow.interrupts.next() => return match interrupt {
                Interrupt::Stop => nothing(elsewhere),
                Interrupt::Leave => Err(CliError::Terminated(run.clone())),
            },
        }
    }
    let calls = resume.results.iter().map(|(call, _)| call).chain(resume.decisions.iter().map(|(call, _)| call));
    let calls = calls.chain(resume.answers.iter().map(|(call, _)| call));
    let calls: Vec<&CallId> = calls.chain(resume.inputs.iter().map(|(call, _)| call)).collect();
    if calls.is_empty() {
        return nothing(elsewhere);
    }
    // What was answered may be asked again: because it was refused, or because its server has another question.
    follow.person.left_open.retain(|(call, _)| !calls.contains(&call));
    // A yes is to what was shown, whatever has become of it since.
    resume.seen = resume.decisions.iter().filter_map(|(call, _)| seen(run, call, &debts)).collect();
    // The same words to another question are another answer.
    resume.expected_version = (!resume.inputs.is_empty()).then_some(version);
    Ok(Asked { given: Some(resume), elsewhere })
}

/// Adds what was said to one item.
fn add(resume: &mut Resume, said: Resume) {
    resume.results.extend(said.results);
    resume.decisions.extend(said.decisions);
    resume.answers.extend(said.answers);
    resume.inputs.extend(said.inputs);
}

/// What a decision about a call is about, as it was shown.
fn seen(run: &RunId, call: &CallId, shown: &[Debt]) -> Option<(CallId, String)> {
    let debt = shown.iter().find(|debt| debt.call_id() == call)?;
    Some((call.clone(), debt.binding()?.digest(run, call)))
}

fn named(debt: &Debt) -> (CallId, &'static str) {
    (debt.call_id().clone(), debt.kind())
}
