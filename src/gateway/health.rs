//! Health and readiness probes: `/healthz` and `/readyz`. They need no credentials, because a process supervisor has
//! none, and they disclose nothing about runs but the number of blocked ones. They are for operators, so the OpenAPI description leaves them out.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::time::timeout;

use super::state::Gateway;

/// How long the store may take to answer; probes have short timeouts.
const STORE_ANSWERS: Duration = Duration::from_secs(2);

/// The process answers.
#[derive(Debug, Serialize)]
struct HealthView {
    /// Always `ok`.
    status: &'static str,
}

/// Whether this process accepts requests.
#[derive(Debug, Serialize)]
struct ReadinessView {
    /// Either `ready` or `not_ready`.
    status: &'static str,
    /// The checks that decide the status.
    checks: ChecksView,
    /// The blocked runs that this process found. They do not affect the status: other runs are executed.
    blocked_runs: usize,
}

/// The readiness checks.
#[derive(Debug, Serialize)]
struct ChecksView {
    /// Whether the store answers.
    store: Check,
    /// Whether the store can be written; it cannot when its disk is full.
    store_writes: Check,
    /// Whether the process starts and resumes runs; not while it stops.
    takes_runs: Check,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Check {
    Ok,
    Failing,
}

/// The routes of the probes.
pub(super) fn routes() -> Router<Gateway> {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz))
}

async fn healthz() -> Json<HealthView> {
    Json(HealthView { status: "ok" })
}

async fn readyz(State(gateway): State<Gateway>) -> (StatusCode, Json<ReadinessView>) {
    let runner = gateway.service().runner();
    let (read, written) =
        tokio::join!(timeout(STORE_ANSWERS, runner.check_read()), timeout(STORE_ANSWERS, runner.check_write()));
    let checks = ChecksView {
        store: Check::new(matches!(read, Ok(Ok(())))),
        store_writes: Check::new(matches!(written, Ok(Ok(())))),
        takes_runs: Check::new(!gateway.service().stopping().is_cancelled()),
    };
    let is_ready = [checks.store, checks.store_writes, checks.takes_runs] == [Check::Ok; 3];
    let (code, status) =
        if is_ready { (StatusCode::OK, "ready") } else { (StatusCode::SERVICE_UNAVAILABLE, "not_ready") };
    (code, Json(ReadinessView { status, checks, blocked_runs: gateway.blocked_runs() }))
}

impl Check {
    fn new(is_fine: bool) -> Self {
        if is_fine { Self::Ok } else { Self::Failing }
    }
}
