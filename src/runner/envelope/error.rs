//! Why an envelope was not made, or not taken. Each refusal has its own name, and says no more than its bearer knows.

use jiff::Timestamp;

use crate::core::error::ErrorCode;
use crate::core::id::RunId;

/// An envelope that was refused, or could not be made. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The runner has no keys.
    #[error("this runner has no keys for envelopes; configure `envelope.keys`")]
    NotConfigured,
    /// Only what waits can be handed to somebody.
    #[error("run `{run}` is {status}; only a pending run can be exported as an envelope")]
    NotPending {
        /// The run.
        run: RunId,
        /// Where it stands.
        status: &'static str,
    },
    /// The run has become too large to be carried.
    #[error(
        "run `{run}` is too large for an envelope, whose token has at most {most} bytes; resume it where it is stored"
    )]
    TooLarge {
        /// The run.
        run: RunId,
        /// The limit.
        most: usize,
    },
    /// The system has no random numbers, or refuses to sign.
    #[error("the envelope could not be sealed; the system's cryptography does not work")]
    Sealing,
    /// What was given is larger than anything made here.
    #[error("the envelope is larger than any that is accepted ({most} bytes)")]
    Oversized {
        /// The limit.
        most: usize,
    },
    /// It is no envelope: cut off, or of another form.
    #[error("this is no envelope, or only a part of one; give it back as it was exported")]
    Malformed,
    /// The key that signed it is not known here, or no longer.
    #[error("the envelope is signed with a key that is not accepted here; the run has to be exported again")]
    UnknownKey,
    /// The signature is of another kind than its key makes.
    #[error("the envelope is not signed the way its key signs")]
    WrongAlgorithm,
    /// The signature does not fit.
    #[error("the signature of the envelope does not fit")]
    Forged,
    /// The token was made for another run.
    #[error("the token of this envelope belongs to another run")]
    AnotherRun,
    /// Something beside the token is not as it was exported.
    #[error("the envelope is not as it was exported; give messages and pending back unchanged, answers go beside them")]
    Altered,
    /// It is too old.
    #[error("the envelope expired at {at}")]
    Expired {
        /// When.
        at: Timestamp,
    },
    /// The signature fits, and what is sealed cannot be read here.
    #[error(
        "what is sealed in the envelope cannot be read here; nodes that exchange envelopes need the same keys and version"
    )]
    Unreadable,
    /// It was used before, or the run went on without it.
    #[error("the envelope is spent: run `{run}` has moved on since it was exported; look at the run as it is now")]
    Spent {
        /// The run.
        run: RunId,
    },
    /// The store has another past under the run's id.
    #[error("the store knows run `{run}` with another past than the envelope's; nothing was taken")]
    Diverged {
        /// The run.
        run: RunId,
    },
}

impl EnvelopeError {
    /// The closed code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotConfigured | Self::Sealing => ErrorCode::Configuration,
            Self::NotPending { .. } | Self::Spent { .. } | Self::Diverged { .. } => ErrorCode::Conflict,
            Self::Expired { .. } => ErrorCode::Expired,
            Self::TooLarge { .. } => ErrorCode::Validation,
            Self::Oversized { .. }
            | Self::Malformed
            | Self::UnknownKey
            | Self::WrongAlgorithm
            | Self::Forged
            | Self::AnotherRun
            | Self::Altered
            | Self::Unreadable => ErrorCode::InvalidRequest,
        }
    }

    /// Whether the same request may succeed later. What is spent stays spent, and a past does not change.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Spent { .. } | Self::Diverged { .. } => false,
            Self::NotConfigured
            | Self::NotPending { .. }
            | Self::TooLarge { .. }
            | Self::Sealing
            | Self::Oversized { .. }
            | Self::Malformed
            | Self::UnknownKey
            | Self::WrongAlgorithm
            | Self::Forged
            | Self::AnotherRun
            | Self::Altered
            | Self::Expired { .. }
            | Self::Unreadable => self.code().is_retryable(),
        }
    }
}
