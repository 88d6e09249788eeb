//! `GET /v1/runs/{run}/blobs/{sha256}`

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use toolgate_core::blob::BlobHandle;
use toolgate_core::chat::Media;
use toolgate_service::Scope;

use crate::access::{Authenticated, ReadPermit};
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Retrieve a blob
///
/// A run stores media of its answers and large results of its tools outside its journal, and refers to them as
/// `media://sha256-` and the hash. Only blobs that the run's own replies and results refer to are returned.
#[utoipa::path(
    get, path = "/v1/runs/{run}/blobs/{sha256}", tag = "runs", operation_id = "readBlob",
    params(
        ("run" = String, Path, description = "The run's id"),
        ("sha256" = String, Path, description = "The SHA-256 of the bytes: 64 hex digits"),
    ),
    responses(
        (status = 200, description = "The bytes, with the media type they were stored with", body = Vec<u8>, content_type = "application/octet-stream"),
    ),
)]
pub(super) async fn blob(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path((run, sha256)): Path<(String, String)>,
    _permit: ReadPermit,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsRead)?;
    let run = gateway.runner_of(&caller).run(&run).await?;
    let none = || Problem::not_found("blob", &sha256);
    let handle = BlobHandle::parse(&format!("sha256-{sha256}")).map_err(|_| none())?;
    let blob = run.blob(&handle).await?.ok_or_else(none)?;
    let unknown = HeaderValue::from_static(Media::UNKNOWN_TYPE);
    let media_type = HeaderValue::from_str(&blob.media_type).unwrap_or(unknown);
    // A browser must not run output of a model or a tool in the name of this server.
    let headers = [
        (CONTENT_TYPE, media_type),
        (CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
    ];
    Ok((headers, blob.bytes).into_response())
}
