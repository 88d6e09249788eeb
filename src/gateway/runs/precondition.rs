//! `If-Match` (RFC 9110, 13.1.1): a request that is meant for a run as somebody saw it.

use axum::http::HeaderMap;
use axum::http::header::IF_MATCH;

use crate::core::error::ErrorCode;
use crate::core::run::Refusal;
use crate::gateway::problem::Problem;
use crate::gateway::tag;
use crate::runner::RunnerError;

/// Refuses what is meant for another version of the run. Says which one it is meant for, if for one alone.
pub(super) fn required(headers: &HeaderMap, version: u64) -> Result<Option<u64>, Problem> {
    // An empty list names nothing that could be matched.
    let known: Vec<&str> = tag::listed(headers, &IF_MATCH).filter(|tag| !tag.is_empty()).collect();
    if known.is_empty() || known.contains(&"*") {
        return Ok(None);
    }
    if known.contains(&tag::of_version(version).as_str()) {
        return Ok(Some(version));
    }
    Err(changed(version))
}

/// What the runner refused, of a request that is meant for this version of the run, if for one alone.
pub(super) fn unmet(error: RunnerError, seen: Option<u64>, otherwise: impl FnOnce(RunnerError) -> Problem) -> Problem {
    match error.refusals() {
        [Refusal::Stale { actual, .. }, ..] if seen.is_some() => changed(*actual),
        _ => otherwise(error),
    }
}

fn changed(version: u64) -> Problem {
    let detail = format!("the run is at version {version} by now; read it again, and send its `ETag` in `If-Match`");
    Problem::new(ErrorCode::PreconditionFailed, detail)
}
