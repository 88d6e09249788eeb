//! `If-Match` (RFC 9110, 13.1.1): a condition on the version of a run that the client saw.

use axum::http::HeaderMap;
use axum::http::header::IF_MATCH;
use toolgate_core::error::ErrorCode;
use toolgate_core::run::ResumeError;
use toolgate_ports::RunRow;
use toolgate_runner::RunnerError;
use toolgate_service::{CurrentState, ServiceError};

use crate::etag;

/// Refuses a request for another version of the run. Returns the version that the request requires, if it requires
/// exactly one.
pub(super) fn required(headers: &HeaderMap, row: &RunRow) -> Result<Option<u64>, ServiceError> {
    // An empty list matches nothing.
    let known: Vec<&str> = etag::listed(headers, &IF_MATCH).filter(|tag| !tag.is_empty()).collect();
    if known.is_empty() || known.contains(&"*") {
        return Ok(None);
    }
    if known.contains(&etag::of_version(row.version).as_str()) {
        return Ok(Some(row.version));
    }
    Err(ServiceError { current: Some(Box::new(CurrentState::of_run(row))), ..changed(row.version) })
}

/// The problem from an error of the runner, for a request that requires this version of the run, if it requires one.
pub(super) fn unmet(
    error: RunnerError,
    seen: Option<u64>,
    otherwise: impl FnOnce(RunnerError) -> ServiceError,
) -> ServiceError {
    match error.refusals() {
        [ResumeError::VersionConflict { actual, .. }, ..] if seen.is_some() => changed(*actual),
        _ => otherwise(error),
    }
}

fn changed(version: u64) -> ServiceError {
    let detail = format!("the run is now at version {version}; read it again, and send its `ETag` in `If-Match`");
    ServiceError::new(ErrorCode::PreconditionFailed, detail)
}
