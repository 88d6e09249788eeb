//! `If-Match` (RFC 9110, 13.1.1): a request that is meant for a run as somebody saw it.

use axum::http::HeaderMap;
use axum::http::header::IF_MATCH;

use crate::core::error::ErrorCode;
use crate::gateway::problem::Problem;
use crate::gateway::tag;

/// Refuses what is meant for another version of the run. Says whether it is meant for this one alone.
pub(super) fn required(headers: &HeaderMap, version: u64) -> Result<bool, Problem> {
    // An empty list names nothing that could be matched.
    let known: Vec<&str> = tag::listed(headers, &IF_MATCH).filter(|tag| !tag.is_empty()).collect();
    if known.is_empty() || known.contains(&"*") {
        return Ok(false);
    }
    if known.contains(&tag::of_version(version).as_str()) {
        return Ok(true);
    }
    Err(changed(version))
}

/// The run is not as it was seen.
pub(super) fn changed(version: u64) -> Problem {
    let detail = format!("the run is at version {version} by now; read it again, and send its `ETag` in `If-Match`");
    Problem::new(ErrorCode::PreconditionFailed, detail)
}
