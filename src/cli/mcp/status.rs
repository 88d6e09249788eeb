//! `toolgate mcp status`: connection state of the configured servers, checked concurrently.

use std::path::PathBuf;

use clap::Args;
use futures::future::join_all;
use serde_json::{Value, json};

use super::connected_server::{ConnectedServer, milliseconds, new_trace};
use super::target::{ConfiguredServers, configured};
use super::wire_proxy;
use crate::app::{self, ServerState, ToolServers};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::paint::Paint;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::table;
use crate::cli::text::{block, count, duration, list};
use crate::cli::view::left_out_lines;
use crate::cli::waiting::{Wait, WaitOutcome};
use crate::core::id::ServerId;
use crate::core::tool::{LeftOut, escape_untrusted};

/// The number of stderr lines to show, counted from the end.
const TAIL: usize = 8;

const EXAMPLES: &str = "\
Examples:
  toolgate mcp status
  toolgate mcp status shop git
  toolgate mcp status --mcp-config ~/.cursor/mcp.json
  toolgate mcp status --json | jq -r '.servers[] | select(.state != \"ready\") | .id'

The command connects to every server and lists its tools. Exit codes: 0 all are ready, 2 wrong
usage or configuration, 5 a server is not ready, 130 interrupted.";

/// Connect to the configured servers concurrently, and show the state of each
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Status {
    /// Only these servers
    #[arg(value_name = "SERVER")]
    servers: Vec<String>,

    #[command(flatten)]
    config: ConfigFlag,

    /// Adds the MCP servers of this file, in the format of Claude Desktop, Cursor or VS Code (repeatable)
    #[arg(long, value_name = "FILE")]
    mcp_config: Vec<PathBuf>,

    /// Writes every line of both sides with its time to this file, as JSON lines; for one server
    #[arg(long, value_name = "FILE")]
    wire: Option<PathBuf>,

    /// Prints JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Status {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        setup::log(setup::QUIET_LOG)?;
        let wanted = self.wanted()?;
        if wanted.servers.is_empty() {
            if self.json {
                out.pretty(&json!({ "servers": [] }));
            }
            out.note("no MCP servers are configured; add one under `servers`, or name a file with --mcp-config");
            return Ok(Exit::Done);
        }
        let Some(visits) = visit_all(&wanted, out).await? else { return Ok(Exit::Cancelled) };
        self.print(&visits, out);
        Ok(if visits.iter().all(ConnectedServer::is_ready) { Exit::Done } else { Exit::ServerFailed })
    }

    fn wanted(&self) -> Result<ConfiguredServers, CliError> {
        let mut known = configured(&self.config, &self.mcp_config)?;
        let is_known = |name: &&String| known.servers.contains_key(&ServerId::from(name.as_str()));
        if let Some(unknown) = self.servers.iter().find(|name| !is_known(name)) {
            let known = list(known.servers.keys());
            return Err(CliError::not_found(format!("there is no MCP server `{unknown}`; configured are: {known}")));
        }
        if !self.servers.is_empty() {
            known.servers.retain(|id, _| self.servers.iter().any(|name| name == id.as_str()));
        }
        if let Some(file) = &self.wire {
            if known.servers.len() != 1 {
                return Err(CliError::usage("--wire writes the wire of one server").with_remedy("name that server"));
            }
            wire_proxy::create(file)?;
            known.servers.iter_mut().try_for_each(|(id, server)| wire_proxy::insert_proxy(id, server, file))?;
        }
        Ok(known)
    }

    fn print(&self, visits: &[ConnectedServer], out: &mut Output) {
        if self.json {
            out.pretty(&json!({ "servers": visits.iter().map(as_json).collect::<Vec<_>>() }));
            return;
        }
        print(visits, out);
        for visit in visits {
            troubles(visit, out.paint()).iter().for_each(|line| out.line(line));
        }
    }
}

/// Connects to the servers concurrently, lists their tools, and closes the connections. `None` if the user interrupted it.
pub(in crate::cli) async fn visit_all(
    wanted: &ConfiguredServers,
    out: &mut Output,
) -> Result<Option<Vec<ConnectedServer>>, CliError> {
    let ids: Vec<ServerId> = wanted.servers.keys().cloned().collect();
    let servers = ToolServers::new(&wanted.servers, &wanted.credentials, app::propagation()?);
    let mut wait = Wait::new();
    let trace = new_trace();
    let visits = join_all(ids.iter().map(|id| ConnectedServer::new(&servers, id, &trace)));
    let doing = format!("starting {}", count(ids.len(), "server"));
    let visited = match wait.until(&doing, visits, out).await {
        WaitOutcome::Done(visits) => Some(visits.into_iter().flatten().collect()),
        WaitOutcome::Interrupted(_) => None,
    };
    wait.until("stopping", servers.close(), out).await;
    Ok(visited)
}

fn as_json(visit: &ConnectedServer) -> Value {
    let mut row = json!(visit.status);
    if let Some(row) = row.as_object_mut() {
        row.insert("ready".into(), json!(visit.is_ready()));
        row.insert("ready_ms".into(), json!(milliseconds(visit.took)));
        row.insert("tools".into(), json!(visit.tools.len()));
        row.insert("skipped".into(), json!(visit.tools.left_out()));
        row.insert("warnings".into(), json!(visit.warnings()));
    }
    row
}

fn print(visits: &[ConnectedServer], out: &mut Output) {
    let columns: Vec<&Column> = COLUMNS.iter().filter(|column| visits.iter().any(column.is_needed)).collect();
    let headings: Vec<&str> = columns.iter().map(|column| column.head).collect();
    let row = |visit| columns.iter().map(move |column| (column.cell)(visit).unwrap_or_else(|| "–".into()));
    table::print(&headings, visits.iter().map(row), out);
    let ready = visits.iter().filter(|visit| visit.is_ready()).count();
    out.line(format!("{ready} of {} ready", count(visits.len(), "server")));
}

/// A column of the table, shown when at least one server has a value for it.
struct Column {
    head: &'static str,
    is_needed: fn(&ConnectedServer) -> bool,
    /// `None` for an empty cell.
    cell: fn(&ConnectedServer) -> Option<String>,
}

const fn always(_: &ConnectedServer) -> bool {
    true
}

const COLUMNS: &[Column] = &[
    Column { head: "SERVER", is_needed: always, cell: |visit| Some(visit.status.id.to_string()) },
    Column { head: "STATE", is_needed: always, cell: |visit| Some(state(visit)) },
    Column { head: "MCP", is_needed: always, cell: |visit| visit.status.protocol_version.clone() },
    Column {
        head: "TOOLS",
        is_needed: always,
        cell: |visit| visit.status.tools.map(|_| visit.tools.len().to_string()),
    },
    Column {
        head: "STARTUP",
        is_needed: always,
        cell: |visit| visit.is_ready().then(|| duration(milliseconds(visit.took))),
    },
    Column {
        head: "RESTARTS",
        is_needed: |visit| visit.status.restarts > 0,
        cell: |visit| Some(visit.status.restarts.to_string()),
    },
    Column {
        head: "IN FLIGHT",
        is_needed: |visit| visit.status.calls.made > 0,
        cell: |visit| Some(visit.status.calls.in_flight.to_string()),
    },
    Column {
        head: "LATENCY",
        is_needed: |visit| visit.status.calls.made > 0,
        cell: |visit| visit.status.calls.latency.map(|latency| duration(milliseconds(latency.mean))),
    },
    Column { head: "SERVER INFO", is_needed: always, cell: |visit| visit.status.name.as_ref().map(|_| visit.about()) },
];

fn state(visit: &ConnectedServer) -> String {
    match visit.status.state {
        ServerState::Ready if visit.missing().is_some() => "not usable".into(),
        ServerState::Listing => "listing".into(),
        ServerState::Ready => "ready".into(),
        ServerState::Idle => "idle".into(),
        ServerState::Starting => "starting".into(),
        ServerState::BackingOff { failures, .. } | ServerState::Failed { failures } if failures > 1 => {
            format!("failed {failures} times")
        }
        ServerState::BackingOff { .. } | ServerState::Failed { .. } => "failed".into(),
        ServerState::Closed => "closed".into(),
    }
}

/// The problems of a server, one a line; empty for a healthy one.
fn troubles(visit: &ConnectedServer, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    let id = &visit.status.id;
    if let Some(reason) = visit.fault() {
        lines.push(format!("\n{} {}", paint.red(format!("✗ {id}:")), block(reason)));
        let stderr = &visit.status.stderr;
        let tail = stderr.iter().skip(stderr.len().saturating_sub(TAIL));
        // The reason may quote the line already.
        let news = tail.filter(|line| !reason.contains(line.as_str()));
        lines.extend(news.map(|line| paint.dim(format!("  stderr │ {}", escape_untrusted(line)))));
    }
    let left_out: Vec<LeftOut> = visit.tools.left_out().iter().filter(|left| left.tool.is_some()).cloned().collect();
    let named = left_out_lines(&left_out).into_iter();
    lines.extend(named.map(|line| format!("{} {line}", paint.yellow(format!("! {id}:")))));
    lines.extend(visit.warnings().iter().map(|warning| format!("{} {warning}", paint.yellow(format!("! {id}:")))));
    lines
}
