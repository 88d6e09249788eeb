//! `/v1/tools`: the tools of agents, and tool calls without a model.

mod call;
mod view;

use axum::response::Response;
use serde::Deserialize;
use toolgate_core::id::{AgentName, ServerId};
use toolgate_core::tool::{LeftOut, Origin, Tool};
use toolgate_service::TenantRunner;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use self::view::ToolsView;
use crate::body::Query;
use crate::etag::IfNoneMatch;
use crate::problem::Problem;
use crate::runs::pending::ToolType;
use crate::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(call::call))
}

/// Filters of the tools.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParams {
    /// The agent. Default: the only agent, or `assistant`.
    #[param(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// Only tools of this MCP server.
    #[param(value_type = Option<String>)]
    server: Option<ServerId>,
    /// Only tools of this type.
    #[param(inline)]
    r#type: Option<ToolType>,
}

/// List the tools of an agent
///
/// Returns the tools that the agent's model would see now. Servers that were not needed yet are started, and the
/// response waits for them.
#[utoipa::path(
    get, path = "/v1/tools", tag = "tools", operation_id = "listTools",
    params(ListParams, IfNoneMatch),
    responses(
        (status = 200, description = "The tools, and those that are not available", body = ToolsView),
        (status = 304, description = "The tools have not changed"),
    ),
)]
async fn list(
    runner: TenantRunner,
    if_none_match: IfNoneMatch,
    Query(which): Query<ListParams>,
) -> Result<Response, Problem> {
    let name = which.agent.clone().map_or_else(|| runner.default_agent(), Ok);
    let agent = name.and_then(|name| runner.agent(name.as_str())).map_err(|unknown| unknown.of_parameter("agent"))?;
    let tools = runner.tools(&agent.name).await?;
    let wanted = tools.iter().filter(|tool| which.wants(tool)).map(|tool| runner.subject(&agent, tool));
    let view = ToolsView::new(&agent, wanted, tools.left_out().iter().filter(|left| which.misses(left)));
    if_none_match.hashed(&view)
}

impl ListParams {
    fn wants(&self, tool: &Tool) -> bool {
        let fits = |of: ToolType| match (&tool.origin, of) {
            (Origin::Mcp { .. }, ToolType::Mcp)
            | (Origin::External { .. }, ToolType::External)
            | (Origin::Builtin { .. }, ToolType::Builtin) => true,
            (Origin::Mcp { .. } | Origin::External { .. } | Origin::Builtin { .. }, _) => false,
        };
        self.r#type.is_none_or(fits) && self.server.as_ref().is_none_or(|server| tool.server() == Some(server))
    }

    fn misses(&self, left: &LeftOut) -> bool {
        self.server.as_ref().is_none_or(|server| left.server.as_ref() == Some(server))
    }
}
