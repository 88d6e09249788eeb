//! `If-Match` (RFC 9110, 13.1.1): a condition on the version of a session that the client saw. What its latest run did
//! meanwhile does not matter to a change of the session.

use axum::http::HeaderMap;
use axum::http::header::IF_MATCH;
use toolgate_ports::SessionRow;
use toolgate_runner::RunnerError;

use crate::etag;
use crate::problem::Problem;

/// Refuses a request for another version of the session. Returns the version that the request requires, if it requires
/// one.
pub(super) fn required(headers: &HeaderMap, row: &SessionRow) -> Result<Option<u64>, Problem> {
    match is_met(headers, row.version) {
        None => Ok(None),
        Some(true) => Ok(Some(row.version)),
        Some(false) => Err(RunnerError::SessionVersion(Box::new(row.clone())).into()),
    }
}

/// Whether the client names the current version; `None` if it requires none.
fn is_met(headers: &HeaderMap, current: u64) -> Option<bool> {
    // An empty list matches nothing.
    let known: Vec<&str> = etag::listed(headers, &IF_MATCH).filter(|tag| !tag.is_empty()).collect();
    if known.is_empty() || known.contains(&"*") {
        return None;
    }
    Some(known.iter().filter_map(|tag| version(tag)).any(|version| version == current))
}

/// The version of the session in its `ETag`.
fn version(tag: &str) -> Option<u64> {
    let tag = tag.strip_prefix('"')?.strip_suffix('"')?;
    tag.split_once('.').map_or(tag, |(version, _)| version).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_met_by_the_current_version() {
        let of = |known: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_MATCH, known.parse().unwrap());
            is_met(&headers, 7)
        };
        for known in ["\"7\"", "\"7.12\"", "\"3.1\", \"7.9\""] {
            assert_eq!(of(known), Some(true), "{known}");
        }
        assert_eq!((of("*"), of("")), (None, None));
        for other in ["\"6.12\"", "7", "W/\"7.12\"", "\"seven\""] {
            assert_eq!(of(other), Some(false), "{other}");
        }
    }
}
