//! Errors of a rejected resume for people: with details from the journal, and in words where the API returns JSON.

use super::error::CliError;
use super::exit::Exit;
use super::text::one_line;
use super::view::{by_way_of, clock, findings};
use crate::app::App;
use crate::core::id::{CallId, RunId};
use crate::core::run::{Authorization, CallVerdict, DecisionKind, Event, History, JournalEntry, Resume, ResumeError};
use crate::core::tool::escape_untrusted;
use crate::runner::RunnerError;

/// The length limit of a quoted reason for a rejected call.
const QUOTED: usize = 200;

/// The error with details from the journal of the run.
pub(super) fn with_journal_details(error: RunnerError, journal: &[JournalEntry]) -> CliError {
    let RunnerError::Refused(refusals) = &error else { return error.into() };
    let sentences: Vec<String> = refusals.iter().map(|refusal| in_words(refusal, journal)).collect();
    CliError::of_runner(&error, sentences.join("; "))
}

/// The calls that changed since they were approved or denied.
pub(super) fn drifted(error: &RunnerError) -> Vec<CallId> {
    let RunnerError::Refused(refusals) = error else { return Vec::new() };
    let drifted = |refusal: &ResumeError| {
        if let ResumeError::Drifted { call_id } = refusal { Some(call_id.clone()) } else { None }
    };
    refusals.iter().filter_map(drifted).collect()
}

/// The exit code for a rejected resume.
pub(super) fn exit(error: &RunnerError) -> Exit {
    if drifted(error).is_empty() { Exit::Code(error.code().exit_code()) } else { Exit::Drifted }
}

/// The calls with decisions.
pub(super) fn decided(resume: &Resume) -> Vec<CallId> {
    resume.decisions().map(|(call, _)| call.clone()).collect()
}

/// The exit code of a run that is idle after decisions. A decision may have no effect, because its call changed.
pub(super) async fn exit_after(app: &App, run: &RunId, rests: Exit, decided: &[CallId]) -> Result<Exit, CliError> {
    let is_again = rests == Exit::Pending && app.operator().requires_approval_again(run, decided).await?;
    Ok(if is_again { Exit::Drifted } else { rests })
}

fn in_words(refusal: &ResumeError, journal: &[JournalEntry]) -> String {
    with_details(refusal, journal).unwrap_or_else(|| refusal.to_string())
}

/// The errors whose text in the API has JSON, or less than the journal says.
fn with_details(refusal: &ResumeError, journal: &[JournalEntry]) -> Option<String> {
    if let ResumeError::AlreadySettled { call_id } = refusal {
        return settled(call_id, journal);
    }
    if let ResumeError::Invalid { call_id, what, problems, .. } = refusal {
        return Some(format!("{what} of call `{call_id}` cannot be used: {}", findings(problems)?));
    }
    if let ResumeError::NotLater { call_id, until } = refusal {
        return Some(format!("the deadline of call `{call_id}` is {} already; give a later time", clock(*until)));
    }
    let ResumeError::InThePast { call_id, until } = refusal else { return None };
    let until = clock(*until);
    Some(format!("the new deadline {until} of call `{call_id}` has passed; give a time in the future"))
}

/// The approver or rule that settled a call. `None` when the caller gave the result.
fn settled(call: &CallId, journal: &[JournalEntry]) -> Option<String> {
    let history = History::from_journal(journal)?;
    let called = history.call(call)?;
    let has_ended = called.entries.iter().any(|entry| matches!(entry.event, Event::CallCompleted { .. }));
    if has_ended && called.sent_at().is_none() {
        return None;
    }
    let by = |by: &str, via| format!("by {} {}", escape_untrusted(by), by_way_of(via));
    let undecided = |why: String| Some(format!("call `{call}` requires no decision: {why}"));
    let settled = |how: String| Some(format!("call `{call}` was {how} already; another answer changes nothing"));
    let tell = |event: &Event| {
        if let Event::ApprovalDecided { decision, .. } = event {
            let word = match decision.answer {
                DecisionKind::Approve => "approved",
                DecisionKind::Deny => "denied",
            };
            return settled(format!("{word} {}", by(&decision.by, decision.via)));
        }
        if let Event::QuestionAnswered { answer, .. } = event {
            return settled(format!("answered {}", by(&answer.by, answer.via)));
        }
        let Event::CallChecked { verdict, .. } = event else { return None };
        match verdict {
            CallVerdict::Run { by: Authorization::Policy { rule: Some(rule), .. } } => {
                undecided(format!("rule `{}` allows it", escape_untrusted(rule)))
            }
            CallVerdict::Run { by: Authorization::Policy { rule: None, .. } } => {
                undecided("the policy allows it".to_owned())
            }
            CallVerdict::Run { by: Authorization::Grant { grant } } => {
                undecided(format!("it was approved before, {grant}"))
            }
            CallVerdict::Rejected { reason, message, .. } => {
                let word = reason.as_str().replace('_', " ");
                undecided(format!("it was rejected, {word}: {}", one_line(message, QUOTED)))
            }
            // An approver decided, and the message repeats the decision.
            CallVerdict::Run { by: Authorization::HumanApproval } | CallVerdict::Ask { .. } => None,
        }
    };
    called.entries.iter().rev().find_map(|entry| tell(&entry.event))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::every_error;

    #[test]
    fn an_error_on_the_command_line_is_retryable_as_over_http() {
        for error in every_error() {
            let plain = CliError::from(error.clone()).failure();
            let in_words = with_journal_details(error.clone(), &[]).failure();
            for failure in [plain, in_words] {
                assert_eq!((failure.code, failure.retryable), (error.code(), error.is_retryable()), "{error:?}");
            }
        }
    }
}
