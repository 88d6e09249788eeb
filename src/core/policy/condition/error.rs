//! Errors of conditions, and the budget of an evaluation.

/// The reason why a condition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConditionError(pub(in crate::policy) String);

/// The budget of one evaluation. A unit is about a nanosecond of an optimised build.
pub(super) const BUDGET: u64 = 100_000_000;

/// The reason why a condition is not evaluated to its end.
pub(super) const TOO_LONG: &str = "it could take too long for arguments of this size";
