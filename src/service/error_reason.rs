//! Error reasons: why a request is refused, where its code alone does not tell a program what to do next.

use serde::Serialize;
use toolgate_core::run::ResumeError;
use toolgate_runner::RunnerError;
use utoipa::ToSchema;

macro_rules! error_reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// A stable reason. Each has a page in `docs/errors`. Open: later versions may add values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorReason {
            $($(#[$doc])* $name,)*
        }

        impl ErrorReason {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The reason as text.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

error_reasons! {
    /// The run has ended.
    RunOver = "run_over";
    /// The run has not ended, which the request requires.
    RunNotOver = "run_not_over";
    /// The run or session was deleted.
    Deleted = "deleted";
    /// Another process executes the run.
    OwnedElsewhere = "owned_elsewhere";
    /// The run or session is not at the version that the request names.
    VersionMoved = "version_moved";
    /// The run is not the latest of its session.
    NotLatestRun = "not_latest_run";
    /// The run is not paused.
    NotPaused = "not_paused";
    /// The call was answered before, with a different answer.
    AlreadyAnswered = "already_answered";
    /// The approval was decided before, with a different decision.
    AlreadyDecided = "already_decided";
    /// The call changed since it was shown to the approver.
    CallChanged = "call_changed";
    /// The deadline of the item has passed.
    TooLate = "too_late";
    /// The approval is not required any more.
    Withdrawn = "withdrawn";
    /// The item has no deadline to extend.
    NoDeadline = "no_deadline";
    /// The answers would send a call a second time, without consent to that.
    RepeatRequired = "repeat_required";
    /// The run has no pending item with this call.
    UnknownCall = "unknown_call";
    /// The item requires an answer of another type.
    WrongType = "wrong_type";
    /// A call is answered twice in one request.
    AnsweredTwice = "answered_twice";
    /// Required actions without an answer, in a resume that is not partial.
    AnswersMissing = "answers_missing";
    /// The latest run of the session has not ended.
    SessionBusy = "session_busy";
    /// Another request changes the session at this moment.
    SessionChanging = "session_changing";
    /// A session with this id exists.
    SessionExists = "session_exists";
    /// The session has used up one of its limits, or the tenant has all webhook endpoints or files, or the run all feedback, that
    /// it may have.
    LimitReached = "limit_reached";
    /// The tenant or the caller has used up a daily quota.
    QuotaExceeded = "quota_exceeded";
    /// The agent of the run is not configured on this server.
    AgentMissing = "agent_missing";
    /// A server or the mode of the run is not configured on this server.
    ServerMissing = "server_missing";
    /// The queue for runs is full.
    QueueFull = "queue_full";
    /// The server is stopping.
    ServerStopping = "server_stopping";
    /// The same request is being handled.
    IdempotencyInFlight = "idempotency_in_flight";
    /// The `Idempotency-Key` was used for another request.
    KeyReused = "key_reused";
    /// The same request was handled, and its outcome is not known or not stored.
    OutcomeUnknown = "outcome_unknown";
    /// Another webhook endpoint has this URL.
    UrlTaken = "url_taken";
    /// The credentials lack a scope.
    ScopeMissing = "scope_missing";
    /// The credentials act for another principal.
    OtherPrincipal = "other_principal";
    /// A second person is required.
    FourEyes = "four_eyes";
}

impl ErrorReason {
    /// The reason of the first refusal, where there is one.
    pub(crate) fn of_refusals(refusals: &[ResumeError]) -> Option<Self> {
        Some(match refusals.first()? {
            ResumeError::UnknownCall { .. } => Self::UnknownCall,
            ResumeError::AlreadySettled { .. } => Self::AlreadyAnswered,
            ResumeError::WrongKind { .. } => Self::WrongType,
            ResumeError::Duplicate { .. } => Self::AnsweredTwice,
            ResumeError::Drifted { .. } => Self::CallChanged,
            ResumeError::TooLate { .. } => Self::TooLate,
            ResumeError::RepeatUnconfirmed { .. } => Self::RepeatRequired,
            ResumeError::NoDeadline { .. } => Self::NoDeadline,
            ResumeError::Incomplete { .. } => Self::AnswersMissing,
            ResumeError::VersionConflict { .. } => Self::VersionMoved,
            ResumeError::NotPaused => Self::NotPaused,
            ResumeError::RunEnded { .. } => Self::RunOver,
            ResumeError::NotLater { .. }
            | ResumeError::InThePast { .. }
            | ResumeError::Invalid { .. }
            | ResumeError::Oversized { .. }
            | ResumeError::EmptyMessage => return None,
        })
    }

    /// The reason of a runner's error, where a program can act on it.
    pub(crate) fn of_runner(error: &RunnerError) -> Option<Self> {
        Some(match error {
            RunnerError::Refused(refusals) => return Self::of_refusals(refusals),
            RunnerError::NotOver { .. } | RunnerError::NotEnded { .. } => Self::RunNotOver,
            RunnerError::Purged { .. } | RunnerError::SessionDeleted { .. } => Self::Deleted,
            RunnerError::DrivenElsewhere { .. } | RunnerError::StillDriven(_) => Self::OwnedElsewhere,
            RunnerError::SessionVersion(_) => Self::VersionMoved,
            RunnerError::NotTheHead { .. } => Self::NotLatestRun,
            RunnerError::SessionBusy { .. } => Self::SessionBusy,
            RunnerError::SessionChanging(_) => Self::SessionChanging,
            RunnerError::SessionExists(_) => Self::SessionExists,
            RunnerError::SessionLimit { .. } | RunnerError::FeedbackLimit(_) => Self::LimitReached,
            RunnerError::SessionOfAnotherPrincipal(_) => Self::OtherPrincipal,
            RunnerError::Busy => Self::QueueFull,
            RunnerError::Closed | RunnerError::Released(_) => Self::ServerStopping,
            RunnerError::Incomplete(_)
            | RunnerError::ModelTwice { .. }
            | RunnerError::NoSuchAgent { .. }
            | RunnerError::NoSuchTool { .. }
            | RunnerError::NotOfAServer(_)
            | RunnerError::InvalidArguments { .. }
            | RunnerError::NoSuchModel { .. }
            | RunnerError::NoSuchMode { .. }
            | RunnerError::UnusableCondition(_)
            | RunnerError::NoSuchServer { .. }
            | RunnerError::ForeignTool { .. }
            | RunnerError::WiderLimit { .. }
            | RunnerError::InjectionMissing { .. }
            | RunnerError::ServerMissing { .. }
            | RunnerError::ModeMissing { .. }
            | RunnerError::ServerTwice(_)
            | RunnerError::DuplicateTool(_)
            | RunnerError::UnusableTool { .. }
            | RunnerError::UnusableOutputSchema(_)
            | RunnerError::UnusableModelOptions { .. }
            | RunnerError::InstructionsRefused(_)
            | RunnerError::EmptyMessage
            | RunnerError::FileMissing
            | RunnerError::NoSuchRun(_)
            | RunnerError::NoSuchSession(_)
            | RunnerError::InvalidSession { .. }
            | RunnerError::InvalidFeedback { .. }
            | RunnerError::NoSuchFeedback { .. }
            | RunnerError::RunOfAnotherSession { .. }
            | RunnerError::WiderThanSession { .. }
            | RunnerError::SessionHasHistory(_)
            | RunnerError::SessionOfAnotherAgent { .. }
            | RunnerError::NoSuchPosition { .. }
            | RunnerError::ForkEnds { .. }
            | RunnerError::Drive(_)
            | RunnerError::Envelope(_)
            | RunnerError::Lost(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_reason_is_the_one_in_json() {
        for reason in ErrorReason::ALL {
            assert_eq!(serde_json::json!(reason), reason.as_str());
        }
    }
}
