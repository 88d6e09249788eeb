//! `GET /v1/runs/{run}/export`

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures::stream;
use toolgate_core::run::JournalEntry;
use toolgate_service::Scope;

use crate::access::{Authenticated, ReadPermit};
use crate::body::Path;
use crate::problem::Problem;
use crate::state::Gateway;

/// Export a run
///
/// Returns the run's journal, one entry per line, in the format of `toolgate runs export`. It contains all content.
#[utoipa::path(
    get, path = "/v1/runs/{run}/export", tag = "runs", operation_id = "exportRun",
    params(("run" = String, Path, description = "The run's id")),
    responses(
        (status = 200, description = "The journal's entries, one JSON object per line", body = String, content_type = "application/x-ndjson"),
    ),
)]
pub(super) async fn export(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(run): Path<String>,
    _permit: ReadPermit,
) -> Result<Response, Problem> {
    caller.require(Scope::RunsRead)?;
    let run = gateway.runner_of(&caller).run(&run).await?;
    let facts = run.facts().await?;
    let body = Body::from_stream(stream::iter(facts.into_iter().map(|fact| line(&fact))));
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

fn line(fact: &JournalEntry) -> serde_json::Result<String> {
    Ok(serde_json::to_string(fact)? + "\n")
}
