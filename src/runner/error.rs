//! Why the runner could not do what it was asked to do.

use jiff::Timestamp;

use crate::core::error::ErrorCode;
#[cfg(test)]
use crate::core::id::CallId;
use crate::core::id::{AgentName, ModelName, NodeId, RunId, ServerId};
use crate::core::run::{Refusal, Status, WiderLimit};
use crate::driver::DriveError;
use crate::ports::StoreError;

/// A request the runner could not carry out. A run that *fails* is no such error: it has a [`super::Report`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunnerError {
    /// The builder misses something.
    #[error("the runner cannot be built: {0}")]
    Incomplete(&'static str),
    /// The models of an agent stand in for each other, and one cannot stand in for itself.
    #[error("agent `{agent}` names model `{model}` twice: as its model or in its fallback, each model is named once")]
    ModelTwice {
        /// The agent.
        agent: AgentName,
        /// The model.
        model: ModelName,
    },
    /// There is no such agent.
    #[error("there is no agent `{name}`; configured are: {}", names(known))]
    NoSuchAgent {
        /// The name that was asked for.
        name: AgentName,
        /// The names there are.
        known: Vec<AgentName>,
    },
    /// The agent has no such tool, or it is not there now.
    #[error(
        "agent `{agent}` has no tool `{tool}` now; `toolgate tools` lists what it has, and what was left out and why"
    )]
    NoSuchTool {
        /// The agent.
        agent: AgentName,
        /// The name that was asked for.
        tool: String,
    },
    /// The tool is answered from outside, so that there is nothing here to call.
    #[error("tool `{0}` is not run by a server: the calling application, or a person, answers its calls")]
    NotOfAServer(String),
    /// Arguments that do not fit their tool.
    #[error("tool `{tool}`: {problems}")]
    InvalidArguments {
        /// The tool.
        tool: String,
        /// What is wrong.
        problems: String,
    },
    /// The run asks for a server its agent does not have.
    #[error("agent `{agent}` has no server `{server}`; a run may narrow its agent's servers, never widen them")]
    NoSuchServer {
        /// The agent.
        agent: AgentName,
        /// The server that was asked for.
        server: ServerId,
    },
    /// The run asks for a limit wider than its agent's.
    #[error(
        "`{}` of {} is wider than the {} of agent `{agent}`; a run may narrow its agent's limits, never widen them",
        limit.name, limit.wanted, limit.most
    )]
    WiderLimit {
        /// The agent.
        agent: AgentName,
        /// The limit that was asked for.
        limit: WiderLimit,
    },
    /// The run was started with a server that was not brought along now.
    #[error(
        "run `{run}` was started with an MCP server `{server}` of the host application; nothing was taken. Bring it again \
         (`AgentRunner::inject`) before the run is taken up"
    )]
    InjectionMissing {
        /// The run.
        run: RunId,
        /// The server.
        server: ServerId,
    },
    /// The run uses a server that its agent does not have here.
    #[error(
        "run `{run}` uses MCP server `{server}`, which agent `{agent}` does not have here; nothing was taken. Configure \
         the server, or name its file with --mcp-config"
    )]
    ServerMissing {
        /// The run.
        run: RunId,
        /// Its agent.
        agent: AgentName,
        /// The server it uses.
        server: ServerId,
    },
    /// A server that a run brings along has the name of one it has already.
    #[error("MCP server `{0}` is configured already; bring a server along under a name of its own")]
    ServerTwice(ServerId),
    /// Two external tools of a run have one name.
    #[error("external tool `{0}` is declared twice")]
    DuplicateTool(String),
    /// An external tool of a run cannot be used.
    #[error("external tool `{tool}` cannot be used: {why}")]
    UnusableTool {
        /// Which of those that the request declares, from 0.
        place: usize,
        /// The tool.
        tool: String,
        /// What is wrong with it.
        why: String,
    },
    /// The schema that answers are to fit cannot be used.
    #[error("the output schema {0}")]
    UnusableOutputSchema(String),
    /// There is nothing in the message.
    #[error("the message is empty; say what the run is to do")]
    EmptyMessage,
    /// There is no such run.
    #[error("there is no run `{0}`")]
    NoSuchRun(RunId),
    /// What the run held was deleted.
    #[error("run `{run}` was deleted at {at}; only that it was there is still known")]
    Purged {
        /// The run.
        run: RunId,
        /// When it was.
        at: Timestamp,
    },
    /// The run is not over, and what it holds is needed.
    #[error("run `{run}` is {}, and only what is over can be deleted; cancel it first", status.as_str())]
    NotOver {
        /// The run.
        run: RunId,
        /// Where it stands.
        status: Status,
    },
    /// The run is over, and whoever drove it is just leaving it.
    #[error("run `{0}` is just being laid down; delete it again in a moment")]
    StillDriven(RunId),
    /// There is no such place in the run's journal.
    #[error("run `{run}` has {length} events; it cannot be forked at {at}")]
    NoSuchPosition {
        /// The run.
        run: RunId,
        /// Its journal's length.
        length: u64,
        /// The position that was asked for.
        at: u64,
    },
    /// A fork that would end before it does anything.
    #[error(
        "run `{run}` cannot be forked at {at}: it is {} there, and its fork would end before the model is asked. Fork it \
         at {latest} or earlier, or leave the position out; after an answer, a message goes on as well",
        status.as_str()
    )]
    ForkEnds {
        /// The run.
        run: RunId,
        /// The position that was asked for.
        at: u64,
        /// How the fork would end.
        status: Status,
        /// The latest position before it from which a fork goes on.
        latest: u64,
    },
    /// The input was refused; nothing of it was taken.
    #[error("{}", refusals(.0))]
    Refused(Vec<Refusal>),
    /// Another process drives the run.
    #[error(
        "run `{run}` is driven by another process ({node}); if that process died, the run is free when its lease runs out"
    )]
    DrivenElsewhere {
        /// The run.
        run: RunId,
        /// The process.
        node: NodeId,
    },
    /// The runner is being closed.
    #[error("this runner is being closed and takes up no more runs; ask another process")]
    Closed,
    /// As many runs wait for their turn as may.
    #[error("this server drives as many runs as it may, and as many as may wait do; try again later")]
    Busy,
    /// The process that drove the run is stopping.
    #[error("run `{0}` was laid down because this process is stopping; another one goes on with it")]
    LaidDown(RunId),
    /// The run could not be driven on.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// An envelope was not made, or not taken.
    #[cfg(feature = "envelope")]
    #[error(transparent)]
    Envelope(#[from] super::envelope::EnvelopeError),
    /// The task that drove the run is gone.
    #[error("the task that drove run `{0}` stopped unexpectedly; the run can be taken up again")]
    Lost(RunId),
}

impl RunnerError {
    /// Why an input was refused; none if it is another error.
    pub fn refusals(&self) -> &[Refusal] {
        if let Self::Refused(refusals) = self { refusals } else { &[] }
    }

    /// What the store said, if it is at fault.
    pub fn store_fault(&self) -> Option<&StoreError> {
        if let Self::Drive(DriveError::Store(fault)) = self { Some(fault) } else { None }
    }

    /// The closed code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Incomplete(_)
            | Self::ModelTwice { .. }
            | Self::ServerMissing { .. }
            | Self::InjectionMissing { .. } => ErrorCode::Configuration,
            Self::NoSuchAgent { .. } | Self::NoSuchTool { .. } | Self::NoSuchRun(_) | Self::NoSuchPosition { .. } => {
                ErrorCode::NotFound
            }
            Self::NoSuchServer { .. }
            | Self::ServerTwice(_)
            | Self::DuplicateTool(_)
            | Self::UnusableTool { .. }
            | Self::UnusableOutputSchema(_)
            | Self::WiderLimit { .. }
            | Self::ForkEnds { .. }
            | Self::EmptyMessage
            | Self::NotOfAServer(_)
            | Self::InvalidArguments { .. } => ErrorCode::Validation,
            Self::Purged { .. } => ErrorCode::Gone,
            Self::NotOver { .. } | Self::StillDriven(_) => ErrorCode::Conflict,
            Self::Refused(refusals) => refusals.first().map_or(ErrorCode::InvalidRequest, refusal_code),
            Self::Busy | Self::LaidDown(_) | Self::Closed => ErrorCode::Unavailable,
            Self::DrivenElsewhere { .. } | Self::Drive(DriveError::Owned(_)) => ErrorCode::Conflict,
            Self::Drive(DriveError::Store(StoreError::Unavailable(_))) => ErrorCode::StoreUnavailable,
            Self::Drive(DriveError::Store(StoreError::Corrupt(_)) | DriveError::Corrupt { .. }) => {
                ErrorCode::JournalCorrupt
            }
            #[cfg(feature = "envelope")]
            Self::Envelope(error) => error.code(),
            Self::Lost(_) => ErrorCode::Internal,
        }
    }

    /// Whether the same request may succeed later, for every surface alike. A run that refuses an input as it is now
    /// refuses the same input again, whatever the code says of other conflicts.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Refused(_) => false,
            #[cfg(feature = "envelope")]
            Self::Envelope(error) => error.is_retryable(),
            Self::Incomplete(_)
            | Self::ModelTwice { .. }
            | Self::NoSuchAgent { .. }
            | Self::NoSuchTool { .. }
            | Self::NotOfAServer(_)
            | Self::InvalidArguments { .. }
            | Self::NoSuchServer { .. }
            | Self::WiderLimit { .. }
            | Self::InjectionMissing { .. }
            | Self::ServerMissing { .. }
            | Self::ServerTwice(_)
            | Self::DuplicateTool(_)
            | Self::UnusableTool { .. }
            | Self::UnusableOutputSchema(_)
            | Self::EmptyMessage
            | Self::NoSuchRun(_)
            | Self::Purged { .. }
            | Self::NotOver { .. }
            | Self::StillDriven(_)
            | Self::NoSuchPosition { .. }
            | Self::ForkEnds { .. }
            | Self::DrivenElsewhere { .. }
            | Self::Closed
            | Self::Busy
            | Self::LaidDown(_)
            | Self::Drive(_)
            | Self::Lost(_) => self.code().is_retryable(),
        }
    }
}

fn refusal_code(refusal: &Refusal) -> ErrorCode {
    match refusal {
        Refusal::UnknownCall { .. } => ErrorCode::NotFound,
        Refusal::AlreadySettled { .. } | Refusal::Stale { .. } | Refusal::Over { .. } => ErrorCode::Conflict,
        Refusal::Drifted { .. } | Refusal::TooLate { .. } | Refusal::NoDeadline { .. } => ErrorCode::Conflict,
        Refusal::WrongKind { .. } | Refusal::Twice { .. } | Refusal::EmptyMessage => ErrorCode::InvalidRequest,
        Refusal::RepeatUnconfirmed { .. } => ErrorCode::Conflict,
        Refusal::Incomplete { .. } | Refusal::Invalid { .. } | Refusal::Oversized { .. } => ErrorCode::Validation,
        Refusal::NotLater { .. } | Refusal::Past { .. } => ErrorCode::Validation,
    }
}

fn refusals(refusals: &[Refusal]) -> String {
    refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn names(names: &[AgentName]) -> String {
    if names.is_empty() { "none".into() } else { names.iter().map(AgentName::as_str).collect::<Vec<_>>().join(", ") }
}

/// An error of each kind, and each refusal of an input: every surface is compared with them.
#[cfg(test)]
pub(crate) fn every_error() -> Vec<RunnerError> {
    let call = || CallId::from("call_1");
    let (run, agent, server) = (|| RunId::from("run_1"), || AgentName::from("desk"), || ServerId::from("shop"));
    let at = Timestamp::UNIX_EPOCH;
    let text = || "text".to_owned();
    let refusals = vec![
        Refusal::UnknownCall { call_id: call() },
        Refusal::AlreadySettled { call_id: call() },
        Refusal::WrongKind { call_id: call(), owed: text(), given: text() },
        Refusal::Twice { call_id: call() },
        Refusal::Drifted { call_id: call() },
        Refusal::TooLate { call_id: call() },
        Refusal::NotLater { call_id: call(), until: at },
        Refusal::NoDeadline { call_id: call() },
        Refusal::Past { call_id: call(), until: at },
        Refusal::Incomplete { missing: vec![call()] },
        Refusal::Invalid { call_id: call(), what: text(), at: String::new(), problems: text() },
        Refusal::Stale { expected: 1, actual: 2, status: text() },
        Refusal::Over { status: text() },
        Refusal::Oversized { what: text(), most: 1 },
        Refusal::EmptyMessage,
    ];
    let mut errors: Vec<RunnerError> =
        refusals.into_iter().map(|refusal| RunnerError::Refused(vec![refusal])).collect();
    errors.extend([
        RunnerError::Incomplete("store"),
        RunnerError::ModelTwice { agent: agent(), model: "m".into() },
        RunnerError::NoSuchAgent { name: agent(), known: Vec::new() },
        RunnerError::NoSuchTool { agent: agent(), tool: text() },
        RunnerError::NotOfAServer(text()),
        RunnerError::InvalidArguments { tool: text(), problems: text() },
        RunnerError::NoSuchServer { agent: agent(), server: server() },
        RunnerError::WiderLimit {
            agent: agent(),
            limit: WiderLimit { name: "max_iterations", wanted: text(), most: text() },
        },
        RunnerError::InjectionMissing { run: run(), server: server() },
        RunnerError::ServerMissing { run: run(), agent: agent(), server: server() },
        RunnerError::ServerTwice(server()),
        RunnerError::DuplicateTool(text()),
        RunnerError::UnusableTool { place: 0, tool: text(), why: text() },
        RunnerError::UnusableOutputSchema(text()),
        RunnerError::EmptyMessage,
        RunnerError::NoSuchRun(run()),
        RunnerError::Purged { run: run(), at },
        RunnerError::NotOver { run: run(), status: Status::Running },
        RunnerError::StillDriven(run()),
        RunnerError::NoSuchPosition { run: run(), length: 1, at: 2 },
        RunnerError::DrivenElsewhere { run: run(), node: "node_1".into() },
        RunnerError::Closed,
        RunnerError::Busy,
        RunnerError::LaidDown(run()),
        RunnerError::Drive(StoreError::Unavailable(text()).into()),
        RunnerError::Drive(StoreError::Corrupt(text()).into()),
        RunnerError::Drive(DriveError::Owned("node_1".into())),
        RunnerError::Lost(run()),
    ]);
    #[cfg(feature = "envelope")]
    errors.extend([
        RunnerError::Envelope(super::envelope::EnvelopeError::NotPending { run: run(), status: "running" }),
        RunnerError::Envelope(super::envelope::EnvelopeError::Spent { run: run() }),
        RunnerError::Envelope(super::envelope::EnvelopeError::Diverged { run: run() }),
        RunnerError::Envelope(super::envelope::EnvelopeError::Expired { at }),
        RunnerError::Envelope(super::envelope::EnvelopeError::Forged),
    ]);
    errors
}
