//! `ETag` (RFC 9110, 8.8.3): the version of what has one, and the hash of what is sent of everything else.

use axum::Json;
use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::problem::Problem;
use crate::core::error::ErrorCode;
use crate::core::json;

/// The answer with its tag, or that it is as whoever asks has it.
pub(super) fn tagged<T: Serialize>(asked: &HeaderMap, view: &T) -> Result<Response, Problem> {
    let value = serde_json::to_value(view).map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
    let tag = format!("\"{}\"", json::hash(&value));
    Ok(unless_known(asked, tag, value))
}

/// The answer with this tag, or that it is as whoever asks has it.
pub(super) fn unless_known<T: Serialize>(asked: &HeaderMap, tag: String, view: T) -> Response {
    if listed(asked, &IF_NONE_MATCH).any(|known| known == tag) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
    }
    ([(ETAG, tag)], Json(view)).into_response()
}

/// The tag of a version.
pub(super) fn of_version(version: u64) -> String {
    format!("\"{version}\"")
}

/// The tags that a header of a request names.
pub(super) fn listed<'a>(asked: &'a HeaderMap, header: &HeaderName) -> impl Iterator<Item = &'a str> {
    let given = asked.get_all(header).iter().filter_map(|value| value.to_str().ok());
    given.flat_map(|value| value.split(',')).map(str::trim)
}
