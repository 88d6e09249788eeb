//! `ETag` (RFC 9110, 8.8.3): the version of a resource that has one, or else the hash of the response.

use std::convert::Infallible;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use toolgate_core::error::ErrorCode;
use toolgate_core::json;
use utoipa::IntoParams;

use super::problem::Problem;

/// `If-None-Match` (RFC 9110, 13.1.2).
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(super) struct IfNoneMatch {
    /// The `ETag` that you have
    #[param(rename = "If-None-Match", value_type = Option<String>)]
    known: Vec<String>,
}

/// `If-Match` (RFC 9110, 13.1.1): a condition on the version that the client saw.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(super) struct IfMatch {
    /// The `ETag` that you saw; if the run or session has changed since, the request is refused
    #[param(rename = "If-Match", value_type = Option<String>)]
    seen: Vec<String>,
}

impl IfNoneMatch {
    /// The response with the hash of its body as `ETag`, or 304 if the client has it already.
    pub(super) fn hashed<T: Serialize>(&self, view: &T) -> Result<Response, Problem> {
        let value = serde_json::to_value(view).map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
        let tag = format!("\"{}\"", json::hash(&value));
        Ok(self.tagged(tag, value))
    }

    /// The response with this `ETag`, or 304 if the client has it already.
    pub(super) fn tagged<T: Serialize>(&self, tag: String, view: T) -> Response {
        // Compared weakly (RFC 9110, 13.1.2): a proxy may have made the tag a weak one.
        let is_known = |known: &String| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag;
        if self.known.iter().any(is_known) {
            return (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response();
        }
        ([(ETAG, tag)], Json(view)).into_response()
    }
}

impl IfMatch {
    /// Whether the client names the current version; `None` if it requires none.
    pub(super) fn is_met(&self, is_current: impl Fn(&str) -> bool) -> Option<bool> {
        // An empty list matches nothing.
        let mut known = self.seen.iter().filter(|tag| !tag.is_empty()).peekable();
        if known.peek().is_none() || self.seen.iter().any(|tag| tag == "*") {
            return None;
        }
        Some(known.any(|tag| is_current(tag)))
    }
}

impl<S: Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self { known: listed(&parts.headers, &IF_NONE_MATCH) })
    }
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self { seen: listed(&parts.headers, &IF_MATCH) })
    }
}

/// The `ETag` of a version.
pub(super) fn of_version(version: u64) -> String {
    format!("\"{version}\"")
}

/// The tags in a header of a request.
fn listed(headers: &HeaderMap, header: &HeaderName) -> Vec<String> {
    let given = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
    given.flat_map(|value| value.split(',')).map(|tag| tag.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strong_or_weak_tag_and_a_star_match() {
        let status = |known: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, known.parse().unwrap());
            let known = IfNoneMatch { known: listed(&headers, &IF_NONE_MATCH) };
            known.tagged(of_version(5), "a view").status().as_u16()
        };
        for known in ["\"5\"", "W/\"5\"", "\"4\", W/\"5\"", "*"] {
            assert_eq!(status(known), 304, "{known}");
        }
        for other in ["\"4\"", "W/\"4\"", "5", "w/\"5\""] {
            assert_eq!(status(other), 200, "{other}");
        }
    }
}
