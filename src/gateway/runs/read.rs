//! `GET` of a run, of its journal (`export`) and of its blobs.

use axum::body::Body;
use axum::extract::FromRequestParts as _;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use futures::stream;
use toolgate_core::blob::BlobHandle;
use toolgate_core::id::RunId;
use toolgate_core::run::JournalEntry;
use toolgate_service::{Caller, TenantRunner};

use super::response_mode::ResponsePreference;
use super::view::RunView;
use crate::access::Admitted;
use crate::body::Path;
use crate::download::download;
use crate::etag::{self, IfNoneMatch};
use crate::problem::Problem;
use crate::state::Gateway;

/// Retrieve a run
#[utoipa::path(
    get, path = "/v1/runs/{run}", tag = "runs", operation_id = "readRun",
    params(IfNoneMatch),
    responses(
        (status = 200, description = "The run", body = RunView),
        (status = 304, description = "The run has not changed"),
    ),
)]
pub(super) async fn read(
    if_none_match: IfNoneMatch,
    Path(run): Path<String>,
    runner: Admitted<TenantRunner>,
) -> Result<Response, Problem> {
    let run = runner.run(&run).await?;
    let view = RunView::read(&run).await?;
    Ok(if_none_match.tagged(etag::of_version(view.version()), view))
}

/// The current state of a run, as the response to a repeated request that started it.
pub(crate) async fn current(
    gateway: &Gateway,
    caller: &Caller,
    parts: &Parts,
    run: &RunId,
) -> Result<Response, Problem> {
    let preference = ResponsePreference::from_request_parts(&mut parts.clone(), gateway).await?;
    let found = gateway.runner_of(caller).run(run.as_str()).await?;
    preference.answer_again(found).await
}

/// Export a run
///
/// Returns the run's journal, one entry per line, in the format of `toolgate runs export`. It contains all content.
#[utoipa::path(
    get, path = "/v1/runs/{run}/export", tag = "runs", operation_id = "exportRun",
    responses(
        (status = 200, description = "The journal's entries, one JSON object per line", body = String, content_type = "application/x-ndjson"),
    ),
)]
pub(super) async fn export(Path(run): Path<String>, runner: Admitted<TenantRunner>) -> Result<Response, Problem> {
    let run = runner.run(&run).await?;
    let facts = run.facts().await?;
    let body = Body::from_stream(stream::iter(facts.into_iter().map(|fact| line(&fact))));
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

fn line(fact: &JournalEntry) -> serde_json::Result<String> {
    Ok(serde_json::to_string(fact)? + "\n")
}

/// Retrieve a blob
///
/// A run stores media of its answers and large results of its tools outside its journal, and refers to them as
/// `media://sha256-` and the hash. Only blobs that the run's own replies, results and files refer to are returned.
#[utoipa::path(
    get, path = "/v1/runs/{run}/blobs/{sha256}", tag = "runs", operation_id = "readBlob",
    responses(
        (status = 200, description = "The bytes, with the media type they were stored with", body = Vec<u8>, content_type = "application/octet-stream"),
    ),
)]
pub(super) async fn blob(
    Path((run, sha256)): Path<(String, String)>,
    runner: Admitted<TenantRunner>,
) -> Result<Response, Problem> {
    let run = runner.run(&run).await?;
    let none = || Problem::not_found("blob", &sha256);
    let handle = BlobHandle::parse(&format!("sha256-{sha256}")).map_err(|_| none())?;
    let blob = run.blob(&handle).await?.ok_or_else(none)?;
    Ok(download(&blob.media_type.clone(), None, blob))
}
