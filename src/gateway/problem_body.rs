//! Problem bodies: the layer that writes the [`Problem`] of a response as JSON.

use axum::extract::{OriginalUri, Request, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, HOST};
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use toolgate_service::CurrentState;

use super::problem::Problem;
use super::request_id::RequestId;
use super::state::Gateway;
use super::{etag, sessions};

/// Writes the problem of a response as its body. The problem stays in the extensions, for the access log.
pub(super) async fn write_problem(
    State(gateway): State<Gateway>,
    Extension(RequestId(id)): Extension<RequestId>,
    request: Request,
    next: Next,
) -> Response {
    let path = request
        .extensions()
        .get::<OriginalUri>()
        .map_or_else(|| request.uri().path().to_owned(), |uri| uri.path().to_owned());
    let base = base(&gateway.settings().public_url, &request);
    let response = next.run(request).await;
    let Some(problem) = response.extensions().get::<Problem>() else { return response };
    let view = problem.view(&base, path, id);
    let tag = problem.current().map(|current| match current {
        CurrentState::Run { version, .. } => etag::of_version(*version),
        CurrentState::Session { head, version, .. } => sessions::view::tag(*version, head.as_ref()),
    });
    let tag = tag.and_then(|tag| HeaderValue::from_str(&tag).ok());
    let (mut parts, _) = response.into_parts();
    let (_, body) = Json(view).into_response().into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    parts.headers.extend(tag.map(|tag| (ETAG, tag)));
    Response::from_parts(parts, body)
}

/// The address of this server, with which the `type` of a problem begins: the configured one, or the one that the client
/// used.
fn base(public_url: &str, request: &Request) -> String {
    if !public_url.is_empty() {
        return public_url.to_owned();
    }
    let of_header = || request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = request.uri().authority().map(Authority::as_str).or_else(of_header);
    let host = host.filter(|host| host.parse::<Authority>().is_ok());
    host.map_or_else(String::new, |host| format!("http://{host}"))
}
