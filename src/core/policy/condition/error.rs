//! Errors of conditions.

/// The reason why a condition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConditionError(pub(in crate::policy) String);
