//! How the program ends, as its parent process sees it.

use std::process::ExitCode;

use crate::core::run::Status;

/// What the exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// 0: it was done.
    Done,
    /// 1: the run, or the command, failed.
    Failed,
    /// 2: the command or the configuration is wrong; nothing was begun.
    Usage,
    /// 3: the tool answered that it failed.
    ToolError,
    /// 4: the arguments do not fit the tool's schema; nothing was sent.
    InvalidArguments,
    /// 5: an MCP server is not there, broke off, or refused.
    ServerFailed,
    /// 6: an MCP server did not answer in time.
    TimedOut,
    /// 7: the result does not fit the schema that the tool declares for it.
    InvalidResult,
    /// 8: what waits for a decision is not what the decision was about; it was shown anew and nothing ran.
    Drifted,
    /// 10: the run, or the call, is owed something; `toolgate resume` goes on with a run.
    Pending,
    /// 130: the run was cancelled.
    Cancelled,
    /// 143: a signal asked the program to go; the run can be taken up again.
    Terminated,
    /// Whatever an error code says.
    Code(u8),
}

impl Exit {
    /// The number.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::ToolError => 3,
            Self::InvalidArguments => 4,
            Self::ServerFailed => 5,
            Self::TimedOut => 6,
            Self::InvalidResult => 7,
            Self::Drifted => 8,
            Self::Pending => 10,
            Self::Cancelled => 130,
            Self::Terminated => 143,
            Self::Code(code) => code,
        }
    }
}

impl From<Status> for Exit {
    fn from(status: Status) -> Self {
        match status {
            Status::Completed => Self::Done,
            Status::Running | Status::Pending => Self::Pending,
            Status::Failed | Status::TurnLimit | Status::Expired => Self::Failed,
            Status::Cancelled => Self::Cancelled,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
