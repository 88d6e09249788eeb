//! Exit codes of the program.

use std::process::ExitCode;

use crate::core::run::Status;

/// The meaning of an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// 0: success.
    Done,
    /// 1: the run, or the command, failed.
    Failed,
    /// 2: the command or the configuration is invalid; nothing was started.
    Usage,
    /// 3: the tool reported an error.
    ToolError,
    /// 4: the arguments do not match the tool's schema; nothing was sent.
    InvalidArguments,
    /// 5: an MCP server is unavailable, closed the connection, or rejected the request.
    ServerFailed,
    /// 6: an MCP server did not answer in time.
    TimedOut,
    /// 7: the result does not match the tool's `outputSchema`.
    InvalidResult,
    /// 8: the call changed since the approver saw it. The new call is shown, and nothing ran.
    Drifted,
    /// 9: `mcp check` found mistakes of at least the severity that fails, or a replayed run differs from its recording.
    Findings,
    /// 10: the run, or the call, has required actions; `toolgate resume` resumes a run.
    Pending,
    /// 130: the run was cancelled.
    Cancelled,
    /// 143: a signal ended the program; another process can resume the run.
    Terminated,
    /// The exit code of an error code.
    Code(u8),
}

impl Exit {
    /// The numeric exit code.
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
            Self::Findings => 9,
            Self::Pending => 10,
            Self::Cancelled => 130,
            Self::Terminated => 143,
            Self::Code(code) => code,
        }
    }
}

impl From<Status> for Exit {
    fn from(status: Status) -> Self {
        match status.exit_code() {
            None => Self::Pending,
            Some(0) => Self::Done,
            Some(code) => Self::Code(code),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
