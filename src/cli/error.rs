//! Errors of the command line, each with a remedy where there is one.

use std::path::Path;

use crate::app::AppError;
use crate::app::testing::TestError;
use crate::config::ConfigError;
use crate::core::error::{ErrorCode, Failure};
use crate::core::id::RunId;
use crate::core::run::ResumeError;
use crate::runner::RunnerError;

/// An error of the command line. A failed run is not an error: it has a report.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// An error with a code and a message.
    #[error("{message}")]
    Coded {
        /// The error code, which determines the exit code.
        code: ErrorCode,
        message: String,
        /// How to fix it.
        remedy: Option<String>,
        /// Whether the same command may succeed later.
        retryable: bool,
    },
    /// The configuration is invalid.
    #[error("{}", .0.plain())]
    Config(Box<ConfigError>),
    /// A signal ended the program.
    #[error("terminated; `toolgate resume {0}` resumes the run")]
    Terminated(RunId),
    /// The user pressed Ctrl-C twice.
    #[error("interrupted; `toolgate resume` resumes the run")]
    Interrupted,
}

impl CliError {
    /// An error in the user's command.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// The named item does not exist.
    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    /// A file that cannot be read or written.
    pub(super) fn file(what: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::usage(format!("{what} `{}`: {error}", path.display()))
    }

    /// A terminal that a question cannot use.
    pub(super) fn terminal(error: &std::io::Error) -> Self {
        Self::usage(format!("the terminal cannot be used: {error}"))
    }

    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Coded { code, message: message.into(), remedy: None, retryable: code.is_retryable() }
    }

    /// An error of the runner with another message.
    pub(super) fn of_runner(error: &RunnerError, words: impl Into<String>) -> Self {
        let (code, retryable) = (error.code(), error.is_retryable());
        Self::Coded { code, message: words.into(), remedy: remedy_of(error), retryable }
    }

    /// Adds a remedy to the error.
    pub(super) fn with_remedy(self, text: impl Into<String>) -> Self {
        match self {
            Self::Coded { code, message, retryable, .. } => {
                Self::Coded { code, message, remedy: Some(text.into()), retryable }
            }
            Self::Config(_) | Self::Interrupted | Self::Terminated(_) => self,
        }
    }

    /// How to fix the error.
    pub(super) fn remedy(&self) -> Option<&str> {
        match self {
            Self::Coded { remedy, .. } => remedy.as_deref(),
            Self::Config(_) | Self::Interrupted | Self::Terminated(_) => None,
        }
    }

    /// The error code.
    pub(super) fn code(&self) -> ErrorCode {
        match self {
            Self::Coded { code, .. } => *code,
            Self::Config(_) => ErrorCode::Configuration,
            Self::Interrupted | Self::Terminated(_) => ErrorCode::Cancelled,
        }
    }

    /// The error as a `--json` object.
    pub(super) fn failure(&self) -> Failure {
        let retryable = match self {
            Self::Coded { retryable, .. } => *retryable,
            Self::Config(_) | Self::Interrupted | Self::Terminated(_) => self.code().is_retryable(),
        };
        Failure::new(self.code(), self.to_string()).retryable(retryable)
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::Config(Box::new(error))
    }
}

impl From<RunnerError> for CliError {
    fn from(error: RunnerError) -> Self {
        Self::of_runner(&error, error.to_string())
    }
}

/// The command that remedies an error of the runner, whose own words are for every surface.
fn remedy_of(error: &RunnerError) -> Option<String> {
    if let RunnerError::SessionBusy { head, .. } = error {
        return Some(format!("finish it with `toolgate resume {}`, or begin another conversation", head.run));
    }
    if let RunnerError::NoSuchTool { .. } | RunnerError::ForeignTool { .. } = error {
        return Some("`toolgate tools` lists the tools of the agent".to_owned());
    }
    if let RunnerError::ServerMissing { .. } = error {
        return Some("configure the server, or name its file with `--mcp-config`".to_owned());
    }
    if let RunnerError::ModeMissing { .. } = error {
        return Some("name the `--variant` of the agent that has it, or add it to `modes`".to_owned());
    }
    let RunnerError::Refused(refusals) = error else { return None };
    refusals.iter().find_map(|refusal| {
        if let ResumeError::RepeatUnconfirmed { call_id } = refusal {
            return Some(format!("confirm that with `--repeat {call_id}`, or decline"));
        }
        let late = "`toolgate resume RUN` (or `toolgate approvals expire`) resumes a run that still waits for the call";
        matches!(refusal, ResumeError::TooLate { .. }).then(|| late.to_owned())
    })
}

impl From<AppError> for CliError {
    fn from(error: AppError) -> Self {
        match error {
            // The error has a file position, which the report shows.
            AppError::Config(error) => error.into(),
            AppError::Runner(error) => error.into(),
            AppError::Store(_)
            | AppError::NoModel { .. }
            | AppError::EnvelopeKey { .. }
            | AppError::EnvelopeKeys(_)
            | AppError::Telemetry(_)
            | AppError::Gateway(_)
            | AppError::NoRandomness => Self::new(error.code(), error.to_string()),
        }
    }
}

impl From<TestError> for CliError {
    fn from(error: TestError) -> Self {
        match error {
            TestError::File(error) => error.into(),
            TestError::App(error) => error.into(),
            TestError::Invalid { message, remedy } => {
                let error = Self::usage(message);
                match remedy {
                    Some(remedy) => error.with_remedy(remedy),
                    None => error,
                }
            }
        }
    }
}
