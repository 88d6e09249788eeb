//! Problem of a request beyond a limit.

use std::time::Duration;

use toolgate_core::error::ErrorCode;
use toolgate_service::ServiceError;

use crate::problem::{Problem, whole_seconds};

/// The `Retry-After` of a caller without a free permit: when one becomes free is not known.
pub(super) const PERMIT_PAUSE: Duration = Duration::from_secs(1);

/// The problem, with the time to wait.
pub(super) fn limited(what: &str, wait: Duration) -> Problem {
    ServiceError::new(ErrorCode::RateLimited, format!("{what}; wait {} s", whole_seconds(wait))).after(wait).into()
}
