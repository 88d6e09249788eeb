//! `POST /v1/approvals/{approval}/extend`

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::Deserialize;
use toolgate_service::Scope;
use utoipa::ToSchema;

use super::read::approval_view;
use super::view::ApprovalView;
use crate::access::Authenticated;
use crate::body::{Body, Path};
use crate::problem::Problem;
use crate::state::Gateway;

/// An extension: exactly one of `until` and `seconds`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Extension {
    /// The new deadline.
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// The new deadline, in seconds from now.
    #[schema(minimum = 1)]
    seconds: Option<u64>,
}

/// Extend the deadline of an approval
#[utoipa::path(
    post, path = "/v1/approvals/{approval}/extend", tag = "approvals", operation_id = "extendApproval",
    request_body = Extension, params(("approval" = String, Path, description = "The approval")),
    responses(
        (status = 200, description = "The approval as it is now", body = ApprovalView),
    ),
)]
pub(super) async fn extend(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(extension): Body<Extension>,
) -> Result<Json<ApprovalView>, Problem> {
    caller.require(Scope::ApprovalsDecide)?;
    let runner = gateway.runner_of(&caller);
    let until = extension.until(runner.now())?;
    approval_view(&runner.extend(&id, until).await?)
}

impl Extension {
    fn until(&self, now: Timestamp) -> Result<Timestamp, Problem> {
        match (self.until, self.seconds) {
            (Some(until), None) => Ok(until),
            (None, Some(seconds)) => now
                .checked_add(Duration::from_secs(seconds))
                .map_err(|_| Problem::invalid("/seconds", "this is too many seconds")),
            _ => Err(Problem::invalid("", "give exactly one of `until` and `seconds`")),
        }
    }
}
