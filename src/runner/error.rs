//! Errors of the runner.

mod examples;

use jiff::Timestamp;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::{AgentName, FeedbackId, ModelName, NodeId, RunId, ServerId, SessionId};
use toolgate_core::run::{ResumeError, Status, WiderLimit};
use toolgate_core::tool::ForeignName;
use toolgate_driver::DriveError;
use toolgate_ports::{MAX_FEEDBACK, QuotaExceeded, SessionHead, SessionRow, StoreError};

pub use examples::every_error;

/// A request that the runner could not carry out. A *failed* run is not such an error: it has a [`super::Report`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunnerError {
    /// The builder lacks a required port.
    #[error("the runner cannot be built: {0}")]
    Incomplete(&'static str),
    /// An agent names a model twice: a model cannot be its own fallback.
    #[error("agent `{agent}` names model `{model}` twice; name each model once, as `model` or in `fallback`")]
    ModelTwice { agent: AgentName, model: ModelName },
    /// Unknown agent.
    #[error("unknown agent `{name}`; configured agents: {}", names(known.iter().map(AgentName::as_str)))]
    NoSuchAgent {
        /// The requested name.
        name: AgentName,
        known: Vec<AgentName>,
    },
    /// The agent does not have the tool, at least not now.
    #[error("agent `{agent}` has no tool `{tool}` now; the list of its tools says what was left out and why")]
    NoSuchTool {
        agent: AgentName,
        /// The requested name.
        tool: String,
    },
    /// The application or the user answers the tool, so there is nothing to call.
    #[error("tool `{0}` belongs to no server: the calling application or a person answers its calls")]
    NotOfAServer(String),
    /// Arguments that do not match the schema of their tool.
    #[error("tool `{tool}`: {problems}")]
    InvalidArguments {
        tool: String,
        /// The validation problems.
        problems: String,
    },
    /// The run requests a model that its agent does not allow.
    #[error("agent `{agent}` does not allow model `{model}`; it allows {}", names(known.iter().map(ModelName::as_str)))]
    NoSuchModel {
        agent: AgentName,
        /// The requested model.
        model: ModelName,
        /// The models that it allows.
        known: Vec<ModelName>,
    },
    /// The run or session requests a permission mode that its agent does not have.
    #[error("agent `{agent}` has no permission mode `{mode}`; it has {}", names(known.iter().map(String::as_str)))]
    NoSuchMode {
        agent: AgentName,
        /// The requested mode.
        mode: String,
        known: Vec<String>,
    },
    /// The condition of a grant cannot be used.
    #[error("the condition of the grant: {0}")]
    UnusableCondition(String),
    /// The run requests a server that its agent does not have.
    #[error("agent `{agent}` has no server `{server}`; a run may narrow its agent's servers, never widen them")]
    NoSuchServer {
        agent: AgentName,
        /// The requested server.
        server: ServerId,
    },
    /// The run's filter names a tool that its agent does not have.
    #[error(
        "agent `{agent}` has no tool `{}`; a run may narrow its agent's tools, never widen them",
        foreign.name
    )]
    ForeignTool {
        agent: AgentName,
        /// The requested name.
        foreign: ForeignName,
    },
    /// The run requests a wider limit than its agent's.
    #[error(
        "`{}` of {} is wider than the {} of agent `{agent}`; a run may narrow its agent's limits, never widen them",
        limit.name, limit.wanted, limit.most
    )]
    WiderLimit {
        agent: AgentName,
        /// The requested limit.
        limit: WiderLimit,
    },
    /// The run was started with an injected server that is missing now.
    #[error(
        "run `{run}` uses the MCP server `{server}` of the host application, and that server is missing; the input was not \
         accepted. Inject it again (`AgentRunner::inject`) before you resume the run"
    )]
    InjectionMissing { run: RunId, server: ServerId },
    /// The run uses a server that its agent does not have in this process.
    #[error(
        "run `{run}` uses MCP server `{server}`, which agent `{agent}` does not have here; the input was not accepted. \
         Configure the server again"
    )]
    ServerMissing { run: RunId, agent: AgentName, server: ServerId },
    /// The run has a permission mode that its agent does not have in this process.
    #[error(
        "run `{run}` has the permission mode `{mode}`, which agent `{agent}` does not have here; the input was not \
         accepted. Add it to the `modes` of the agent"
    )]
    ModeMissing { run: RunId, agent: AgentName, mode: String },
    /// An injected server has the name of another server of the run.
    #[error("MCP server `{0}` is already configured; inject the server under another name")]
    ServerTwice(ServerId),
    /// Two external tools of a run have the same name.
    #[error("external tool `{0}` is declared twice")]
    DuplicateTool(String),
    /// An external tool of a run is invalid.
    #[error("external tool `{tool}` cannot be used: {why}")]
    UnusableTool {
        /// Its index in the request, from 0.
        place: usize,
        tool: String,
        why: String,
    },
    /// The output schema is invalid.
    #[error("the output schema {0}")]
    UnusableOutputSchema(String),
    /// A model of the run does not support its model options.
    #[error("the model `{model}` cannot be used with the options of the run: {why}")]
    UnusableModelOptions {
        model: ModelName,
        /// The option, if it is one alone.
        option: Option<&'static str>,
        why: String,
    },
    /// The agent does not allow instructions of a run.
    #[error("agent `{0}` allows no instructions of a run; set its `run_instructions` to true")]
    InstructionsRefused(AgentName),
    /// The message is empty.
    #[error("the message is empty; describe the task of the run")]
    EmptyMessage,
    /// The store does not have a file that the input names: it was deleted meanwhile.
    #[error("a file of the input does not exist any more; upload it again")]
    FileMissing,
    /// Unknown run.
    #[error("unknown run `{0}`")]
    NoSuchRun(RunId),
    /// The content of the run was deleted.
    #[error("run `{run}` was deleted at {at}")]
    Purged {
        run: RunId,
        /// The time of the deletion.
        at: Timestamp,
    },
    /// The run has not ended, so its content cannot be deleted.
    #[error("run `{run}` is {}, and only an ended run can be deleted; cancel it first", status.as_str())]
    NotOver { run: RunId, status: Status },
    /// The run has not ended, so it cannot be retried.
    #[error(
        "run `{run}` is {}, and only an ended run can be retried; answer it, cancel it or wait for it", status.as_str()
    )]
    NotEnded { run: RunId, status: Status },
    /// Another run is the latest of the session, so that this one cannot be retried.
    #[error("run `{run}` is not the latest of its session; fork it")]
    NotTheHead {
        run: RunId,
        /// The latest run of its session.
        head: Option<Box<SessionHead>>,
    },
    /// The run has ended, but its driver has not released it yet.
    #[error("run `{0}` is being released; delete it again in a moment")]
    StillDriven(RunId),
    /// Unknown session.
    #[error("there is no session `{0}`")]
    NoSuchSession(SessionId),
    /// The session was deleted.
    #[error("session `{session}` was deleted at {at}, and its id is not used again; choose another one")]
    SessionDeleted {
        session: SessionId,
        /// The time of the deletion.
        at: Timestamp,
    },
    /// A session to create exists.
    #[error("there is a session `{0}`; start a run in it, or choose another id")]
    SessionExists(SessionId),
    /// A session is not at the version that the caller saw. The session as it is now is given.
    #[error("session `{}` is now at version {}; read it again", .0.id, .0.version)]
    SessionVersion(Box<SessionRow>),
    /// A session would get an invalid title or metadata.
    #[error("{member}: {why}")]
    InvalidSession {
        /// `title` or `metadata`.
        member: &'static str,
        why: String,
    },
    /// A session id is that of a run in another session.
    #[error("run `{run}` belongs to session `{session}`; name that session")]
    RunOfAnotherSession { run: RunId, session: SessionId },
    /// The session has a live run. It runs one at a time.
    #[error(
        "session `{session}` has a run that is {}: {}; answer it, cancel it or wait for it",
        head.status.as_str(), head.run
    )]
    SessionBusy {
        session: SessionId,
        /// The live run.
        head: Box<SessionHead>,
    },
    /// Other runs claimed the session again and again.
    #[error("session `{0}` is changing; try again")]
    SessionChanging(SessionId),
    /// A limit of the session is used up.
    #[error("session `{session}` has used up its `{limit}` of {max}; raise the limit, or start another session")]
    SessionLimit { session: SessionId, limit: &'static str, max: String },
    /// A raised limit of a live run exceeds what is left of its session's.
    #[error(
        "session `{session}` leaves this run a `{}` of {}, not {}; raise the limit of the session first",
        limit.name, limit.most, limit.wanted
    )]
    WiderThanSession { session: SessionId, limit: WiderLimit },
    /// A request brings messages before its input, but the session has a conversation.
    #[error("session `{0}` has a history of its own; send only the new message")]
    SessionHasHistory(SessionId),
    /// The session belongs to another agent.
    #[error("session `{session}` belongs to agent `{agent}`; name that agent, or another session")]
    SessionOfAnotherAgent { session: SessionId, agent: AgentName },
    /// The session belongs to another principal, or to none.
    #[error("session `{0}` belongs to another principal; name that principal, or another session")]
    SessionOfAnotherPrincipal(SessionId),
    /// No such position in the journal of the run.
    #[error("run `{run}` has {length} events; it cannot be forked at {at}")]
    NoSuchPosition {
        run: RunId,
        /// The length of its journal.
        length: u64,
        /// The requested position.
        at: u64,
    },
    /// A fork that would end before it does anything.
    #[error(
        "run `{run}` cannot be forked at {at}: it is {} there, and its fork would end before the model is called. Fork \
         it at {latest} or earlier, or omit the position; to continue after an answer, send a message",
        status.as_str()
    )]
    ForkEnds {
        run: RunId,
        /// The requested position.
        at: u64,
        /// The status with which the fork would end.
        status: Status,
        /// The latest earlier position from which a fork continues.
        latest: u64,
    },
    /// The feedback is invalid.
    #[error("{member}: {why}")]
    InvalidFeedback {
        /// The member, such as `score` or `annotator/id`.
        member: &'static str,
        why: String,
    },
    /// The run has as much feedback as a run may have.
    #[error("run `{0}` has {MAX_FEEDBACK} judgements, and may have no more; delete some")]
    FeedbackLimit(RunId),
    #[error("run `{run}` has no feedback `{id}`")]
    NoSuchFeedback { run: RunId, id: FeedbackId },
    /// The input was rejected as a whole.
    #[error("{}", refusals(.0))]
    Refused(Vec<ResumeError>),
    /// Another process executes the run.
    #[error(
        "another process ({node}) executes run `{run}`; if that process died, the run is free once its lease expires"
    )]
    DrivenElsewhere {
        run: RunId,
        /// The node of that process.
        node: NodeId,
    },
    /// The runner is shutting down.
    #[error("this runner is shutting down and accepts no runs; use another process")]
    Closed,
    /// The queue of runs is full.
    #[error("this server executes the maximum number of runs, and its queue is full; try again later")]
    Busy,
    /// The process that executed the run is stopping.
    #[error("this process is stopping and released run `{0}`; another process resumes it")]
    Released(RunId),
    /// The run could not be executed.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// An error of making or accepting an envelope.
    #[error(transparent)]
    Envelope(#[from] super::envelope::EnvelopeError),
    /// The task that executed the run has disappeared.
    #[error("the task that executed run `{0}` stopped unexpectedly; the run can be resumed")]
    Lost(RunId),
}

impl RunnerError {
    /// Why an input was rejected; empty for other errors.
    pub fn refusals(&self) -> &[ResumeError] {
        if let Self::Refused(refusals) = self { refusals } else { &[] }
    }

    /// The error of the store, if the store failed.
    pub fn store_fault(&self) -> Option<&StoreError> {
        if let Self::Drive(DriveError::Store(fault)) = self { Some(fault) } else { None }
    }

    /// The quota that forbids the run, if one does.
    pub fn quota_exceeded(&self) -> Option<&QuotaExceeded> {
        if let Self::Drive(DriveError::OverQuota(over)) = self { Some(over) } else { None }
    }

    /// The closed code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Incomplete(_)
            | Self::ModelTwice { .. }
            | Self::ServerMissing { .. }
            | Self::ModeMissing { .. }
            | Self::InjectionMissing { .. } => ErrorCode::Configuration,
            Self::NoSuchAgent { .. }
            | Self::NoSuchTool { .. }
            | Self::NoSuchRun(_)
            | Self::NoSuchSession(_)
            | Self::NoSuchFeedback { .. }
            | Self::NoSuchPosition { .. } => ErrorCode::NotFound,
            Self::NoSuchServer { .. }
            | Self::ForeignTool { .. }
            | Self::ServerTwice(_)
            | Self::DuplicateTool(_)
            | Self::UnusableTool { .. }
            | Self::UnusableOutputSchema(_)
            | Self::UnusableModelOptions { .. }
            | Self::InstructionsRefused(_)
            | Self::WiderLimit { .. }
            | Self::WiderThanSession { .. }
            | Self::NoSuchMode { .. }
            | Self::ForkEnds { .. }
            | Self::EmptyMessage
            | Self::FileMissing
            | Self::SessionHasHistory(_)
            | Self::SessionOfAnotherAgent { .. }
            | Self::RunOfAnotherSession { .. }
            | Self::InvalidSession { .. }
            | Self::InvalidFeedback { .. }
            | Self::NotOfAServer(_)
            | Self::NoSuchModel { .. }
            | Self::UnusableCondition(_)
            | Self::InvalidArguments { .. } => ErrorCode::Validation,
            Self::Purged { .. } | Self::SessionDeleted { .. } => ErrorCode::Gone,
            Self::NotOver { .. } | Self::NotEnded { .. } | Self::NotTheHead { .. } | Self::StillDriven(_) => {
                ErrorCode::Conflict
            }
            Self::SessionBusy { .. } | Self::SessionChanging(_) | Self::SessionExists(_) | Self::FeedbackLimit(_) => {
                ErrorCode::Conflict
            }
            Self::SessionLimit { .. } => ErrorCode::BudgetExhausted,
            Self::SessionVersion(_) => ErrorCode::PreconditionFailed,
            Self::SessionOfAnotherPrincipal(_) => ErrorCode::Forbidden,
            Self::Refused(refusals) => refusals.first().map_or(ErrorCode::InvalidRequest, refusal_code),
            Self::Busy | Self::Released(_) | Self::Closed => ErrorCode::Unavailable,
            Self::DrivenElsewhere { .. } | Self::Drive(DriveError::Owned(_) | DriveError::SessionChanged) => {
                ErrorCode::Conflict
            }
            Self::Drive(DriveError::Store(StoreError::Unavailable(_) | StoreError::Full(_))) => {
                ErrorCode::StoreUnavailable
            }
            Self::Drive(DriveError::Store(StoreError::Corrupt(_)) | DriveError::Corrupt { .. }) => {
                ErrorCode::JournalCorrupt
            }
            Self::Drive(DriveError::OverQuota(_)) => ErrorCode::RateLimited,
            Self::Envelope(error) => error.code(),
            Self::Lost(_) => ErrorCode::Internal,
        }
    }

    /// Whether the same request may succeed later, the same for every API. A run that rejects an input in its current
    /// state rejects it again, even if other conflicts with that code are retryable; so does a run with all its feedback, and a
    /// session that exists, or that a later run continued.
    pub fn is_retryable(&self) -> bool {
        if let Self::Envelope(error) = self {
            return error.is_retryable();
        }
        !matches!(self, Self::Refused(_) | Self::SessionExists(_) | Self::NotTheHead { .. } | Self::FeedbackLimit(_))
            && self.code().is_retryable()
    }
}

fn refusal_code(refusal: &ResumeError) -> ErrorCode {
    match refusal {
        ResumeError::UnknownCall { .. } => ErrorCode::NotFound,
        ResumeError::AlreadySettled { .. } | ResumeError::VersionConflict { .. } | ResumeError::RunEnded { .. } => {
            ErrorCode::Conflict
        }
        ResumeError::Drifted { .. } | ResumeError::TooLate { .. } | ResumeError::NoDeadline { .. } => {
            ErrorCode::Conflict
        }
        ResumeError::WrongKind { .. } | ResumeError::Duplicate { .. } | ResumeError::EmptyMessage => {
            ErrorCode::InvalidRequest
        }
        ResumeError::RepeatUnconfirmed { .. } | ResumeError::NotPaused => ErrorCode::Conflict,
        ResumeError::Incomplete { .. } | ResumeError::Invalid { .. } | ResumeError::Oversized { .. } => {
            ErrorCode::Validation
        }
        ResumeError::NotLater { .. } | ResumeError::InThePast { .. } => ErrorCode::Validation,
    }
}

fn refusals(refusals: &[ResumeError]) -> String {
    refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
