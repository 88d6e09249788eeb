//! `ETag` (RFC 9110, 8.8.3): the version of a resource that has one, or else the hash of the response.

use axum::Json;
use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use toolgate_core::error::ErrorCode;
use toolgate_core::json;

use super::problem::Problem;

/// The response with its `ETag`, or 304 if the client has it already.
pub(super) fn tagged<T: Serialize>(headers: &HeaderMap, view: &T) -> Result<Response, Problem> {
    let value = serde_json::to_value(view).map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
    let tag = format!("\"{}\"", json::hash(&value));
    Ok(unless_known(headers, tag, value))
}

/// The response with this `ETag`, or 304 if the client has it already.
pub(super) fn unless_known<T: Serialize>(headers: &HeaderMap, tag: String, view: T) -> Response {
    // Compared weakly (RFC 9110, 13.1.2): a proxy may have made the tag a weak one.
    let is_known = |known: &str| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag;
    if listed(headers, &IF_NONE_MATCH).any(is_known) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
    }
    ([(ETAG, tag)], Json(view)).into_response()
}

/// The `ETag` of a version.
pub(super) fn of_version(version: u64) -> String {
    format!("\"{version}\"")
}

/// The tags in a header of a request.
pub(super) fn listed<'a>(headers: &'a HeaderMap, header: &HeaderName) -> impl Iterator<Item = &'a str> {
    let given = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
    given.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strong_or_weak_tag_and_a_star_match() {
        let status = |known: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, known.parse().unwrap());
            unless_known(&headers, of_version(5), "a view").status().as_u16()
        };
        for known in ["\"5\"", "W/\"5\"", "\"4\", W/\"5\"", "*"] {
            assert_eq!(status(known), 304, "{known}");
        }
        for other in ["\"4\"", "W/\"4\"", "5", "w/\"5\""] {
            assert_eq!(status(other), 200, "{other}");
        }
    }
}
