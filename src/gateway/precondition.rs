//! Preconditions of a request (`If-Match`): the version of a run or a session that the client saw.

use toolgate_core::error::ErrorCode;
use toolgate_core::run::ResumeError;
use toolgate_ports::{RunRow, SessionRow};
use toolgate_runner::RunnerError;
use toolgate_service::{CurrentState, ErrorReason, ServiceError};

use super::etag::{self, IfMatch};

impl IfMatch {
    /// Refuses a request for another version of the run. Returns the version that the request requires, if it requires
    /// exactly one.
    pub(super) fn of_run(&self, row: &RunRow) -> Result<Option<u64>, ServiceError> {
        match self.is_met(|tag| tag == etag::of_version(row.version)) {
            None => Ok(None),
            Some(true) => Ok(Some(row.version)),
            Some(false) => {
                Err(ServiceError { current: Some(Box::new(CurrentState::of_run(row))), ..changed(row.version) })
            }
        }
    }

    /// The same for a session. What its latest run did meanwhile does not matter to a change of the session.
    pub(super) fn of_session(&self, row: &SessionRow) -> Result<Option<u64>, ServiceError> {
        match self.is_met(|tag| version_of_session(tag) == Some(row.version)) {
            None => Ok(None),
            Some(true) => Ok(Some(row.version)),
            Some(false) => Err(RunnerError::SessionVersion(Box::new(row.clone())).into()),
        }
    }
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
    ServiceError::new(ErrorCode::PreconditionFailed, detail).with(ErrorReason::VersionMoved)
}

/// The version of the session in its `ETag`.
fn version_of_session(tag: &str) -> Option<u64> {
    let tag = tag.strip_prefix('"')?.strip_suffix('"')?;
    tag.split_once('.').map_or(tag, |(version, _)| version).parse().ok()
}

#[cfg(test)]
mod tests {
    use axum::extract::FromRequestParts as _;
    use axum::http::Request;
    use axum::http::header::IF_MATCH;

    use super::*;

    #[tokio::test]
    async fn a_condition_on_a_session_is_met_by_its_current_version() {
        let is_met = async |known: &str| {
            let (mut parts, ()) = Request::builder().header(IF_MATCH, known).body(()).unwrap().into_parts();
            let Ok(condition) = IfMatch::from_request_parts(&mut parts, &()).await;
            condition.is_met(|tag| version_of_session(tag) == Some(7))
        };
        for known in ["\"7\"", "\"7.12\"", "\"3.1\", \"7.9\""] {
            assert_eq!(is_met(known).await, Some(true), "{known}");
        }
        assert_eq!((is_met("*").await, is_met("").await), (None, None));
        for other in ["\"6.12\"", "7", "W/\"7.12\"", "\"seven\""] {
            assert_eq!(is_met(other).await, Some(false), "{other}");
        }
    }
}
