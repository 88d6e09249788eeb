//! Request parsing: bodies and queries are parsed once, before a handler runs. Unknown fields are refused, so that a
//! typing error is noticed.

use std::borrow::Cow;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde::de::{DeserializeOwned, IgnoredAny};
use toolgate_core::error::ErrorCode;
use toolgate_service::{StrictObjects, pointer, split_place};

use super::problem::Problem;

/// A JSON object as the body. An empty body is an empty object.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let is_patch = request.method() == Method::PATCH;
        let is_json = request.headers().get(CONTENT_TYPE).map(|value| is_json(value.as_bytes(), is_patch));
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

/// How many integers of one body may be written with a fraction.
const WHOLE_NUMBERS: usize = 32;

/// Whether the body is JSON. Every PATCH of this API is a merge patch (RFC 7396), which has a media type of its own.
fn is_json(media_type: &[u8], is_patch: bool) -> bool {
    let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    essence.eq_ignore_ascii_case(b"application/json")
        || is_patch && essence.eq_ignore_ascii_case(b"application/merge-patch+json")
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let bytes = if bytes.trim_ascii().is_empty() { b"{}" } else { bytes };
    let mut body = Cow::Borrowed(bytes);
    for _ in 0..WHOLE_NUMBERS {
        let mut deserializer = serde_json::Deserializer::from_slice(&body);
        let value = match serde_path_to_error::deserialize(StrictObjects::new(&mut deserializer)) {
            Ok(value) => value,
            Err(error) => match without_fraction(&body, error.inner()) {
                Some(whole) => {
                    body = Cow::Owned(whole);
                    continue;
                }
                None => return Err(unreadable(&body, &error)),
            },
        };
        deserializer.end().map_err(|error| Problem::field("", format!("the body is not valid JSON: {error}")))?;
        return Ok(value);
    }
    Err(Problem::field("", "too many integers of the body are written with a fraction; leave out `.0`"))
}

fn unreadable(body: &[u8], error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let inner = error.inner();
    // serde_json reports a value of a wrong type in place of an enum variant as a syntax error.
    let is_json = inner.is_data() || serde_json::from_slice::<IgnoredAny>(body).is_ok();
    let detail = if is_json { without_place(inner) } else { format!("the body is not valid JSON: {inner}") };
    let (detail, place) = split_place(&detail);
    Problem::field(format!("{}{place}", pointer(error.path())), detail)
}

/// The body again, if it was refused for a number like `5.0` where an integer is required: JSON Schema accepts it, and
/// some languages know no other numbers. Spaces replace the fraction, so that all positions stay the same.
fn without_fraction(body: &[u8], error: &serde_json::Error) -> Option<Vec<u8>> {
    if !error.is_data() {
        return None;
    }
    let lines_before: usize =
        body.split_inclusive(|byte| *byte == b'\n').take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    let (read, rest) = body.split_at_checked(lines_before + error.column())?;
    let zeros = read.iter().rev().take_while(|byte| **byte == b'0').count();
    let (number, fraction) = read.split_at_checked(read.len().checked_sub(zeros + 1)?)?;
    let goes_on = rest.first().is_some_and(|byte| byte.is_ascii_digit() || b"eE".contains(byte));
    if zeros == 0 || goes_on || !fraction.starts_with(b".") || !number.last()?.is_ascii_digit() {
        return None;
    }
    Some([number, &vec![b' '; fraction.len()], rest].concat())
}

/// The error without its line and column: the pointer says where it is.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}

pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        read.map(|query| Self(query.0)).map_err(|rejection| {
            let detail = format!("the query cannot be read: {}", rejection.body_text());
            Problem::new(ErrorCode::InvalidRequest, detail)
        })
    }
}

/// A path parameter.
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(axum::extract::Path::from_request_parts(parts, state).await?.0))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Sample {
        seconds: u64,
        #[serde(default)]
        times: Option<u32>,
        #[serde(default)]
        value: Value,
    }

    fn parsed(text: &str) -> Option<Sample> {
        read(text.as_bytes()).ok()
    }

    #[derive(Debug, serde::Deserialize)]
    struct Nested {
        #[serde(default)]
        sample: Option<Sample>,
        #[serde(default)]
        list: Vec<Sample>,
        #[serde(default)]
        kind: Option<Kind>,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    enum Kind {
        Timed { seconds: u64 },
    }

    #[test]
    fn an_array_is_no_object_at_any_depth() {
        let places = |text: &str| match read::<Nested>(text.as_bytes()) {
            Ok(_) => Some("accepted".to_owned()),
            Err(problem) => {
                let view = serde_json::to_value(problem.view("", String::new(), String::new())).unwrap();
                view["errors"][0]["pointer"].as_str().map(str::to_owned)
            }
        };
        let whole =
            r#"{"sample": {"seconds": 1, "value": [1]}, "list": [{"seconds": 2}], "kind": {"Timed": {"seconds": 3}}}"#;
        let nested: Nested = read(whole.as_bytes()).ok().unwrap();
        let sample = |seconds, value| Sample { seconds, times: None, value };
        assert_eq!((nested.sample, nested.list), (Some(sample(1, json!([1]))), vec![sample(2, Value::Null)]));
        assert_eq!(nested.kind, Some(Kind::Timed { seconds: 3 }));
        for (wrong, place) in [
            ("[]", ""),
            (r#"{"sample": [1, 2, 3]}"#, "/sample"),
            (r#"{"list": [[1, 2, 3]]}"#, "/list/0"),
            (r#"{"kind": {"Timed": [3]}}"#, "/kind"),
        ] {
            assert_eq!(places(wrong).as_deref(), Some(place), "{wrong}");
        }
    }

    #[test]
    fn an_integer_may_have_a_zero_fraction_and_no_other() {
        let some = |value: Value| Some(Sample { seconds: 50, times: Some(2), value });
        assert_eq!(parsed("{\"seconds\": 50.0,\n \"times\": 2.000}"), some(Value::Null));
        assert_eq!(parsed(r#"{"value": [1.0, "5.0"], "seconds": 50.0, "times": 2}"#), some(json!([1.0, "5.0"])));
        for wrong in ["5.5", "5.05", "5.0e1", "-5.0", "\"5.0\"", "[5.0]", "true", "18446744073709551616.0"] {
            assert_eq!(parsed(&format!(r#"{{"seconds": {wrong}}}"#)), None, "{wrong}");
        }
        let many = format!("[{}]", vec!["1.0"; WHOLE_NUMBERS + 1].join(","));
        assert!(read::<Vec<u8>>(many.as_bytes()).is_err());
    }
}
