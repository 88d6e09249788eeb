//! Whether the process lives, and whether it is to be sent requests. Nobody has to show who they are: whoever looks after
//! the process has no key, and is told nothing about runs. They are for operators, so the API's description leaves them out.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::time::timeout;

use super::state::Gateway;

/// How long the store may take to answer; whoever asks has little patience.
const STORE_ANSWERS: Duration = Duration::from_secs(2);

/// The process answers.
#[derive(Debug, Serialize)]
struct HealthView {
    /// `ok`.
    status: &'static str,
}

/// Whether requests are to be sent here.
#[derive(Debug, Serialize)]
struct ReadinessView {
    /// `ready`, or `not_ready`.
    status: &'static str,
    /// What that follows from.
    checks: ChecksView,
}

/// What is looked at.
#[derive(Debug, Serialize)]
struct ChecksView {
    /// Whether the store answers.
    store: Check,
    /// Whether the store can be written; it cannot when its disk is full.
    store_writes: Check,
    /// Whether runs are taken up; not by a server that is being stopped.
    takes_runs: Check,
}

/// How one of them is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Check {
    Ok,
    Failing,
}

/// The routes of this folder.
pub(super) fn routes() -> Router<Gateway> {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz))
}

async fn healthz() -> Json<HealthView> {
    Json(HealthView { status: "ok" })
}

async fn readyz(State(gateway): State<Gateway>) -> (StatusCode, Json<ReadinessView>) {
    let runner = gateway.runner();
    let (read, written) =
        tokio::join!(timeout(STORE_ANSWERS, runner.check_read()), timeout(STORE_ANSWERS, runner.check_write()));
    let checks = ChecksView {
        store: Check::of(matches!(read, Ok(Ok(())))),
        store_writes: Check::of(matches!(written, Ok(Ok(())))),
        takes_runs: Check::of(!gateway.stopping().is_cancelled()),
    };
    let is_ready = [checks.store, checks.store_writes, checks.takes_runs] == [Check::Ok; 3];
    let (code, status) =
        if is_ready { (StatusCode::OK, "ready") } else { (StatusCode::SERVICE_UNAVAILABLE, "not_ready") };
    (code, Json(ReadinessView { status, checks }))
}

impl Check {
    fn of(is_fine: bool) -> Self {
        if is_fine { Self::Ok } else { Self::Failing }
    }
}
