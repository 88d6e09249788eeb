//! Result of a visit: a connected server with its status, its tools and the warnings for its author.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::app::{ServerState, ServerStatus, ToolServers};
use crate::cli::caller;
use crate::cli::text::{count, list, one_line};
use crate::core::id::ServerId;
use crate::core::tool::{Annotations, Tool, Toolset};
use crate::core::trace::SpanContext;

/// The limit on tools that a warning lists.
const NAMED: usize = 5;

/// A trace without a parent.
pub(super) fn new_trace() -> SpanContext {
    caller::new_trace().context("mcp")
}

/// A connected server and its tools.
pub(in crate::cli) struct ConnectedServer {
    /// The connection state of the server.
    pub(in crate::cli) status: ServerStatus,
    /// Its tools under the names that a model sees, with the tools that were left out.
    pub(in crate::cli) tools: Toolset,
    /// Time from connecting to the tool list.
    pub(in crate::cli) took: Duration,
    /// Why the tool list is an earlier one, if it is.
    stale: Option<String>,
}

impl ConnectedServer {
    /// Connects and lists the tools. `None` when no server has this id.
    pub(super) async fn new(servers: &ToolServers, id: &ServerId, trace: &SpanContext) -> Option<Self> {
        let began = Instant::now();
        let listed = servers.port().list(std::slice::from_ref(id), trace).await.into_iter().next()?;
        let took = began.elapsed();
        let status = servers.status().into_iter().find(|status| status.id == *id)?;
        let tools = servers.offered(&listed);
        Some(Self { status, tools, took, stale: listed.stale })
    }

    /// Why the server has no tools available, if so.
    pub(super) fn missing(&self) -> Option<&str> {
        let whole = self.tools.left_out().iter().find(|left| left.tool.is_none());
        whole.map(|left| left.reason.as_str()).filter(|_| self.tools.is_empty())
    }

    /// Whether the server is connected and its tools are available.
    pub(in crate::cli) fn is_ready(&self) -> bool {
        self.status.state == ServerState::Ready && self.missing().is_none()
    }

    /// Why the server is not ready, if it is not and the reason is known.
    pub(in crate::cli) fn fault(&self) -> Option<&str> {
        let last_error = self.status.last_error.as_ref().map(|error| error.message.as_str());
        self.missing().or(last_error).filter(|_| !self.is_ready())
    }

    /// Finds a tool by the server's name for it, or by the name that a model sees.
    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        let own = self.tools.iter().find(|tool| tool.origin.tool_name() == name);
        own.or_else(|| self.tools.get(name)).map(AsRef::as_ref)
    }

    /// Warnings about a server that works.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        warnings.extend(self.stale.as_ref().map(|why| format!("this is an earlier tool list: {why}")));
        warnings.extend(self.status.stdout_noise.describe());
        let silent = self.named(|tool| tool.description.trim().is_empty());
        warnings.extend(silent.map(|(number, names)| {
            let have = if number == 1 { "has" } else { "have" };
            format!("{} {have} no description: {names}; a model cannot tell when to call it", count(number, "tool"))
        }));
        let unhinted = self.named(|tool| tool.annotations == Annotations::default());
        warnings.extend(unhinted.map(|(number, names)| {
            let have = if number == 1 { "has" } else { "have" };
            let why = "a policy cannot tell whether it only reads";
            format!("{} {have} no annotations: {names}; {why}", count(number, "tool"))
        }));
        let renamed =
            self.named(|tool| tool.name.as_str() != format!("mcp_{}_{}", self.status.id, tool.origin.tool_name()));
        warnings.extend(renamed.map(|(number, names)| {
            let have = if number == 1 { "has a name" } else { "have names" };
            let why = "that model providers refuse or that is too long, and is shown under another one";
            format!("{} {have} {why}: {names}", count(number, "tool"))
        }));
        warnings
    }

    /// The number of tools that match, and the names of the first few.
    fn named(&self, is_so: impl Fn(&Tool) -> bool) -> Option<(usize, String)> {
        let names: Vec<&str> =
            self.tools.iter().filter(|tool| is_so(tool)).map(|tool| tool.origin.tool_name()).collect();
        let first = names.iter().take(NAMED).map(|name| one_line(name, 80));
        let more = names.len().checked_sub(NAMED).filter(|more| *more > 0).map(|more| format!("{more} more"));
        (!names.is_empty()).then(|| (names.len(), list(first.chain(more))))
    }

    /// One line with the server's name, its version and the protocol version.
    pub(in crate::cli) fn about(&self) -> String {
        let status = &self.status;
        let name = status.name.as_deref().unwrap_or("a server without a name");
        let version = status.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        one_line(&format!("{name}{version}"), 200)
    }

    /// The server as a `--json` object.
    pub(super) fn to_json(&self) -> Value {
        let mut server = json!(self.status);
        if let Some(server) = server.as_object_mut() {
            server.insert("ready_ms".into(), json!(milliseconds(self.took)));
        }
        let tools: Vec<Value> = self.tools.iter().map(|tool| tool_as_json(tool)).collect();
        json!({
            "server": server, "tools": tools, "skipped": self.tools.left_out(), "warnings": self.warnings(),
        })
    }
}

pub(in crate::cli) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn tool_as_json(tool: &Tool) -> Value {
    json!({
        "name": tool.origin.tool_name(), "model_sees": tool.name, "description": tool.description,
        "annotations": tool.annotations, "input_schema": tool.input_schema, "output_schema": tool.output_schema,
    })
}
