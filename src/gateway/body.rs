//! What handlers read from a request: its body and its query, parsed once, at the door. What is not known is refused, so
//! that a slip of the keys is heard of.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use super::problem::{FieldProblem, Problem};
use crate::core::error::ErrorCode;

/// The body, JSON. An empty one is an empty object.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let is_json = request.headers().get(CONTENT_TYPE).map(|value| is_json(value.as_bytes()));
        let bytes = Bytes::from_request(request, state).await?;
        match is_json {
            Some(true) => read(&bytes).map(Self),
            None if bytes.is_empty() => read(b"{}").map(Self),
            Some(false) | None => Err(Problem::new(
                ErrorCode::UnsupportedMediaType,
                "bodies are JSON: send `Content-Type: application/json`",
            )),
        }
    }
}

fn is_json(media_type: &[u8]) -> bool {
    let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    essence.eq_ignore_ascii_case(b"application/json")
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let bytes = if bytes.trim_ascii().is_empty() { b"{}" } else { bytes };
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let pointer = pointer(error.path());
        let inner = error.inner();
        let detail = if inner.is_data() { without_place(inner) } else { format!("the body is no JSON: {inner}") };
        Problem::field(pointer, detail)
    })?;
    deserializer.end().map_err(|error| Problem::field("", format!("the body is no JSON: {error}")))?;
    Ok(value)
}

/// What is wrong, without the line and column that nobody sees: the pointer says where.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}

/// As RFC 6901 writes it.
fn pointer(path: &serde_path_to_error::Path) -> String {
    let step = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.replace('~', "~0").replace('/', "~1")),
        Segment::Enum { .. } | Segment::Unknown => None,
    };
    path.iter().filter_map(step).map(|step| format!("/{step}")).collect()
}

/// The query.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        read.map(|query| Self(query.0)).map_err(|rejection| {
            let detail = format!("the query cannot be read: {}", rejection.body_text());
            let error = FieldProblem { pointer: String::new(), detail: detail.clone() };
            Problem::new(ErrorCode::InvalidRequest, detail).and(error)
        })
    }
}

/// A part of the path.
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(axum::extract::Path::from_request_parts(parts, state).await?.0))
    }
}
