//! `/v1/me`: the caller as its credentials identify it. It needs no scope, so that any credentials can be checked with it.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::Serialize;
use toolgate_core::chat::Usd;
use toolgate_core::timestamp::millis;
use toolgate_ports::{DayUsage, Quota};
use toolgate_service::{QuotaState, Scope};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Authenticated;
use crate::problem::Problem;
use crate::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(read))
}

/// The caller.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Me)]
struct MeView {
    /// Always `me`.
    object: &'static str,
    /// The caller's name, as runs, decisions and logs show it.
    #[schema(example = "key:ci")]
    name: String,
    /// The tenant whose resources the caller sees.
    #[schema(example = "default")]
    tenant: String,
    /// The principal on whose behalf all runs of the caller act; null if the caller names one for each run.
    principal: Option<String>,
    /// What the caller may do.
    scopes: Vec<Scope>,
    /// The daily quotas of the caller and of its tenant; null if the server has none for them.
    quotas: Option<QuotasView>,
}

/// Daily quotas, and what was used of them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Quotas)]
struct QuotasView {
    /// When the next UTC day begins, and usage counts from zero.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    resets_at: Timestamp,
    /// The quota of the caller: all keys with its name in its tenant.
    key: Option<QuotaView>,
    /// The quota of all callers of the tenant together.
    tenant: Option<QuotaView>,
}

/// A daily quota, and what was used of it. A limit that is not set is null.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Quota)]
struct QuotaView {
    /// The runs that began today.
    runs: Option<CountQuotaView>,
    /// The input and output tokens that were used today.
    tokens: Option<CountQuotaView>,
    /// The cost of today, in US dollars.
    cost_usd: Option<CostQuotaView>,
}

/// A quota of runs or tokens.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CountQuota)]
struct CountQuotaView {
    /// The most in a day.
    limit: u64,
    /// What was used today. It may exceed the limit: runs that are executed continue.
    used: u64,
    /// What is left; 0 if no run may begin.
    remaining: u64,
}

/// A quota of costs, in US dollars as decimals.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CostQuota)]
struct CostQuotaView {
    /// The most in a day.
    #[schema(example = "25")]
    limit: String,
    /// What was used today. It may exceed the limit: runs that are executed continue.
    #[schema(example = "3.75")]
    used: String,
    /// What is left; 0 if no run may begin.
    #[schema(example = "21.25")]
    remaining: String,
}

impl QuotasView {
    fn new(state: QuotaState) -> Self {
        let view = |(quota, used): (Quota, DayUsage)| QuotaView::new(&quota, &used);
        Self { resets_at: state.resets_at, key: state.caller.map(view), tenant: state.tenant.map(view) }
    }
}

impl QuotaView {
    fn new(quota: &Quota, used: &DayUsage) -> Self {
        let count = |limit: Option<u64>, used: u64| {
            limit.map(|limit| CountQuotaView { limit, used, remaining: limit.saturating_sub(used) })
        };
        let cost = |limit: Usd| CostQuotaView {
            limit: limit.to_string(),
            used: used.cost_usd.to_string(),
            remaining: (limit - used.cost_usd).max(Usd::ZERO).to_string(),
        };
        Self {
            runs: count(quota.runs, used.runs),
            tokens: count(quota.tokens, used.tokens),
            cost_usd: quota.cost_usd.map(cost),
        }
    }
}

/// Retrieve the caller
///
/// Returns what the credentials of the request stand for, and how much of their quotas is used. Any valid credentials may
/// do this.
#[utoipa::path(
    get, path = "/v1/me", tag = "keys", operation_id = "readMe",
    responses((status = 200, description = "The caller", body = MeView)),
)]
async fn read(State(gateway): State<Gateway>, Authenticated(caller): Authenticated) -> Result<Json<MeView>, Problem> {
    let quotas = gateway.service().quotas_of(&caller).await?;
    Ok(Json(MeView {
        object: "me",
        name: caller.name.to_string(),
        tenant: caller.tenant.to_string(),
        principal: caller.principal.map(|principal| principal.to_string()),
        scopes: caller.scopes.iter().collect(),
        quotas: quotas.map(QuotasView::new),
    }))
}
