//! Errors of envelopes. Each rejection has its own variant, and reveals nothing that its bearer does not know.

use jiff::Timestamp;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::RunId;

/// An error of making or accepting an envelope. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// The runner has no keys.
    #[error("envelopes are not configured; set `envelope.keys`")]
    NotConfigured,
    /// Only a pending run can be handed over.
    #[error("run `{run}` is {status}; only a pending run can be exported as an envelope")]
    NotPending { run: RunId, status: &'static str },
    /// The run is too large for an envelope.
    #[error(
        "run `{run}` is too large for an envelope, whose token has at most {most} bytes; resume it where it is stored"
    )]
    TooLarge { run: RunId, most: usize },
    /// The system's cryptography fails: no random numbers, or no signature.
    #[error("failed to encrypt the envelope: the system's cryptography does not work")]
    Sealing,
    /// The input is larger than any envelope.
    #[error("the envelope is larger than the limit of {most} bytes")]
    Oversized { most: usize },
    /// Not an envelope: truncated, or of another format.
    #[error("malformed or incomplete envelope; pass it as it was exported")]
    Malformed,
    /// This node does not have the key of the signature.
    #[error("the envelope is signed with an unknown key; export the run again")]
    UnknownKey,
    /// The algorithm of the signature is not that of its key.
    #[error("the signature algorithm of the envelope is not that of its key")]
    WrongAlgorithm,
    /// The signature is invalid.
    #[error("the signature of the envelope is invalid")]
    Forged,
    /// The token was made for another run.
    #[error("the token of this envelope belongs to another run")]
    AnotherRun,
    /// A part of the envelope outside the token was changed.
    #[error(
        "the envelope was changed after the export; pass `messages` and `pending` unchanged, and add answers beside them"
    )]
    Altered,
    /// The envelope has expired.
    #[error("the envelope expired at {at}")]
    Expired {
        /// The expiry time.
        at: Timestamp,
    },
    /// The signature is valid, but the sealed content cannot be read.
    #[error(
        "what is sealed in the envelope cannot be read here; nodes that exchange envelopes need the same keys and version"
    )]
    Unreadable,
    /// The envelope was used before, or the run continued without it.
    #[error("the envelope is outdated: run `{run}` has changed since the export; read the current state of the run")]
    Spent { run: RunId },
    /// The store has a different history of the run.
    #[error("the store holds another history of run `{run}` than the envelope; the input was not accepted")]
    Diverged { run: RunId },
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

    /// Whether the same request may succeed later. A spent envelope stays spent, and a history does not change.
    pub fn is_retryable(&self) -> bool {
        !matches!(self, Self::Spent { .. } | Self::Diverged { .. }) && self.code().is_retryable()
    }
}
