//! Errors of recordings and scenarios, each with a remedy where there is one.

use crate::app::AppError;
use crate::config::ConfigError;
use crate::runner::RunnerError;

/// Why a recording or a scenario cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// A file is invalid; the error has its place and the remedy.
    #[error("{}", .0.plain())]
    File(#[from] ConfigError),
    /// The adapters of a run cannot be opened, or its store fails.
    #[error(transparent)]
    App(#[from] AppError),
    /// The content of a file cannot be used.
    #[error("{message}")]
    Invalid { message: String, remedy: Option<String> },
}

impl TestError {
    /// An error without a place in a file.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into(), remedy: None }
    }

    /// Adds how to fix the error.
    #[must_use]
    pub(super) fn with_remedy(self, text: impl Into<String>) -> Self {
        match self {
            Self::Invalid { message, .. } => Self::Invalid { message, remedy: Some(text.into()) },
            Self::File(_) | Self::App(_) => self,
        }
    }
}

impl From<RunnerError> for TestError {
    fn from(error: RunnerError) -> Self {
        Self::App(error.into())
    }
}
