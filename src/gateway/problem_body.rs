//! Problem bodies: the layer that writes the [`Problem`] of a response as JSON.

use axum::extract::{OriginalUri, Request, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG};
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
    let response = next.run(request).await;
    let Some(problem) = response.extensions().get::<Problem>() else { return response };
    let view = problem.view(&gateway.settings().public_url, path, id);
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
