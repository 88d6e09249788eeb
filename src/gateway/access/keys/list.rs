//! `GET /v1/keys`

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::view::KeyView;
use super::{keys, store_problem};
use crate::gateway::access::{Caller, Scope};
use crate::gateway::body::Query;
use crate::gateway::page::{Page, limit};
use crate::gateway::problem::{Problem, ProblemView};
use crate::gateway::state::Gateway;

/// Which keys.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// How many: 1 to 100, and 20 unless something else is said.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
    /// Those that come after this one: `last_id` of the page before.
    after: Option<String>,
}

/// List the keys of your tenant, newest first
#[utoipa::path(
    get, path = "/v1/keys", tag = "keys", operation_id = "listKeys", params(Which),
    responses(
        (status = 200, description = "A page of keys", body = Page<KeyView>),
        (status = "default", description = "The request was refused", body = ProblemView, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn list(
    State(gateway): State<Gateway>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<Page<KeyView>>, Problem> {
    caller.require(Scope::Admin)?;
    let limit = limit(which.limit)?;
    let all = keys(&gateway)?.keys(&caller.tenant).await.map_err(|error| store_problem(&error))?;
    let begin = match &which.after {
        None => 0,
        Some(after) => {
            let position = all.iter().position(|key| key.id.as_str() == after);
            let unknown = || Problem::not_found("key", after).of_parameter("after");
            position.map(|position| position + 1).ok_or_else(unknown)?
        }
    };
    let found = all.into_iter().skip(begin).take(limit + 1).collect();
    Ok(Json(Page::of(found, limit, |key| key.id.to_string(), KeyView::of)))
}
