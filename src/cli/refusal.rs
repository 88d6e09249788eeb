//! Errors of a rejected resume for people: with details from the journal, and in words where the API returns JSON.

use super::error::CliError;
use super::exit::Exit;
use super::text::one_line;
use super::view::{by_way_of, clock, findings};
use crate::app::App;
use crate::core::id::{CallId, RunId};
use crate::core::run::{
    AnswerForm, Authorization, CallVerdict, DecisionKind, Event, JournalEntry, Resume, ResumeError,
};
use crate::core::tool::escape_untrusted;
use crate::runner::RunnerError;
use crate::service::inbox_of;

/// The length limit of a quoted reason for a rejected call.
const QUOTED: usize = 200;

/// The error with details from the journal of the run.
pub(super) fn with_journal_details(error: RunnerError, journal: &[JournalEntry]) -> CliError {
    let RunnerError::Refused(refusals) = &error else { return error.into() };
    let told: Vec<String> = refusals.iter().map(|refusal| in_words(refusal, journal)).collect();
    CliError::of_runner(&error, told.join("; "))
}

/// The calls that changed since they were approved or denied.
pub(super) fn drifted(error: &RunnerError) -> Vec<CallId> {
    let RunnerError::Refused(refusals) = error else { return Vec::new() };
    let drifted = refusals.iter().filter_map(|refusal| match refusal {
        ResumeError::Drifted { call_id } => Some(call_id.clone()),
        ResumeError::UnknownCall { .. }
        | ResumeError::AlreadySettled { .. }
        | ResumeError::WrongKind { .. }
        | ResumeError::Duplicate { .. }
        | ResumeError::TooLate { .. }
        | ResumeError::RepeatUnconfirmed { .. }
        | ResumeError::NotLater { .. }
        | ResumeError::NoDeadline { .. }
        | ResumeError::InThePast { .. }
        | ResumeError::Incomplete { .. }
        | ResumeError::Invalid { .. }
        | ResumeError::VersionConflict { .. }
        | ResumeError::RunEnded { .. }
        | ResumeError::Oversized { .. }
        | ResumeError::EmptyMessage => None,
    });
    drifted.collect()
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
    let is_again = rests == Exit::Pending && asked_again(app, run, decided).await?;
    Ok(if is_again { Exit::Drifted } else { rests })
}

fn in_words(refusal: &ResumeError, journal: &[JournalEntry]) -> String {
    match refusal {
        ResumeError::AlreadySettled { call_id } => settled(call_id, journal).unwrap_or_else(|| refusal.to_string()),
        ResumeError::Invalid { call_id, what, problems, .. } => match findings(problems) {
            Some(findings) => format!("{what} of call `{call_id}` cannot be used: {findings}"),
            None => refusal.to_string(),
        },
        ResumeError::NotLater { call_id, until } => {
            format!("the deadline of call `{call_id}` is {} already; give a later time", clock(*until))
        }
        ResumeError::InThePast { call_id, until } => {
            let until = clock(*until);
            format!("the new deadline {until} of call `{call_id}` has passed; give a time in the future")
        }
        ResumeError::UnknownCall { .. }
        | ResumeError::WrongKind { .. }
        | ResumeError::Duplicate { .. }
        | ResumeError::Drifted { .. }
        | ResumeError::TooLate { .. }
        | ResumeError::RepeatUnconfirmed { .. }
        | ResumeError::NoDeadline { .. }
        | ResumeError::Incomplete { .. }
        | ResumeError::VersionConflict { .. }
        | ResumeError::RunEnded { .. }
        | ResumeError::Oversized { .. }
        | ResumeError::EmptyMessage => refusal.to_string(),
    }
}

/// The approver or rule that settled a call. `None` when the caller gave the result.
fn settled(call: &CallId, journal: &[JournalEntry]) -> Option<String> {
    let was_sent = |event: &Event| matches!(event, Event::CallsStarted { calls } if calls.contains(call));
    let has_ended = |event: &Event| matches!(event, Event::CallCompleted { call: ended, .. } if ended == call);
    let mut events = journal.iter().map(|recorded| &recorded.event);
    if events.clone().any(has_ended) && !events.clone().any(was_sent) {
        return None;
    }
    let by = |by: &str, via| format!("by {} {}", escape_untrusted(by), by_way_of(via));
    let undecided = |why: String| format!("call `{call}` requires no decision: {why}");
    let mut told = None;
    for event in &mut events {
        if let Event::ApprovalDecided { call: decided, decision } = event
            && decided == call
        {
            let word = match decision.answer {
                DecisionKind::Approve => "approved",
                DecisionKind::Deny => "denied",
            };
            let by = by(&decision.by, decision.via);
            told = Some(format!("call `{call}` was {word} {by} already; another answer changes nothing"));
        }
        if let Event::QuestionAnswered { call: answered, answer } = event
            && answered == call
        {
            let by = by(&answer.by, answer.via);
            told = Some(format!("call `{call}` was answered {by} already; another answer changes nothing"));
        }
        if let Event::CallChecked { call: checked, verdict } = event
            && checked == call
        {
            told = match verdict {
                CallVerdict::Run { by: Authorization::Policy { rule: Some(rule), .. } } => {
                    Some(undecided(format!("rule `{}` allows it", escape_untrusted(rule))))
                }
                CallVerdict::Run { by: Authorization::Policy { rule: None, .. } } => {
                    Some(undecided("the policy allows it".to_owned()))
                }
                CallVerdict::Run { by: Authorization::Grant { grant } } => {
                    Some(undecided(format!("it was approved before, {grant}")))
                }
                CallVerdict::Rejected { reason, message, .. } => {
                    let word = reason.as_str().replace('_', " ");
                    Some(undecided(format!("it was rejected, {word}: {}", one_line(message, QUOTED))))
                }
                // An approver decided, and the message repeats the decision.
                CallVerdict::Run { by: Authorization::HumanApproval } | CallVerdict::Ask { .. } => told,
            };
        }
    }
    told
}

/// Whether one of these calls requires approval again because something changed.
async fn asked_again(app: &App, run: &RunId, calls: &[CallId]) -> Result<bool, CliError> {
    Ok(inbox_of(&app.runner, run).await?.iter().any(|waiting| match waiting.item.form() {
        AnswerForm::Decision(review) => calls.contains(waiting.call()) && !review.differences.is_empty(),
        AnswerForm::Result { .. }
        | AnswerForm::Choice(_)
        | AnswerForm::Elicitation { .. }
        | AnswerForm::Background(_) => false,
    }))
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
