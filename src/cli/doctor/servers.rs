//! MCP server findings: connects to every configured server, as `toolgate mcp status` does.

use super::finding::{Finding, Section, Verdict};
use crate::cli::error::CliError;
use crate::cli::mcp::{ConfiguredServers, ConnectedServer, milliseconds, visit_all};
use crate::cli::output::Output;
use crate::cli::text::{block, count, duration};
use crate::config::Settings;

/// The findings, or `None` if the user interrupted the connections.
pub(super) async fn findings(settings: &Settings, out: &mut Output) -> Result<Option<Vec<Finding>>, CliError> {
    if settings.servers.is_empty() {
        let none = Section::Servers.finding(Verdict::Note, "servers", "no MCP server is configured");
        return Ok(Some(vec![none]));
    }
    let wanted = ConfiguredServers { servers: settings.servers.clone(), credentials: settings.credentials.clone() };
    let visits = visit_all(&wanted, out).await?;
    Ok(visits.map(|visits| visits.iter().map(finding).collect()))
}

fn finding(visit: &ConnectedServer) -> Finding {
    let id = visit.status.id.as_str();
    let took = duration(milliseconds(visit.took));
    if visit.is_ready() {
        let tools = count(visit.tools.len(), "tool");
        return Section::Servers.finding(Verdict::Ok, id, format!("{tools} after {took}, {}", visit.about()));
    }
    let fault = visit.fault().unwrap_or("it is not ready, for a reason that is not known");
    // Whole: the last line of its output often says why.
    let fault = block(fault).replace('\n', "\n    ");
    Section::Servers
        .finding(Verdict::Failed, id, format!("failed after {took}: {fault}"))
        .with_remedy(format!("`toolgate mcp status {id}` shows what the server printed"))
}
