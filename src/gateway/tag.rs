//! `ETag` of what has no version: the hash of what is sent.

use axum::Json;
use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::problem::Problem;
use crate::core::error::ErrorCode;
use crate::core::json;

/// The answer with its tag, or that it is as whoever asks has it.
pub(super) fn tagged<T: Serialize>(asked: &HeaderMap, view: &T) -> Result<Response, Problem> {
    let value = serde_json::to_value(view).map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
    let tag = format!("\"{}\"", json::hash(&value));
    let known = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    if known.flat_map(|value| value.split(',')).any(|known| known.trim() == tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
    }
    Ok(([(ETAG, tag)], Json(value)).into_response())
}
