//! Tool mapping: the tool of an MCP server that stands for a built-in tool of another program.

use std::str::FromStr;

use serde_json::{Map, Value, json};
use toolgate_core::pattern::Pattern;
use toolgate_core::policy::Verdict;

/// The names of the shell: in Claude Code, and in codex.
const SHELL: [&str; 2] = ["Bash", "shell"];

/// A tool of an MCP server in place of a built-in tool, written `Read=files/read_file` or `Read=files/read_file:file_path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolMapping {
    /// The built-in tool: `Bash`, `Read`, `Edit`, `WebFetch`, …
    pub builtin: String,
    /// The id of the server in the configuration.
    pub server: String,
    pub tool: String,
    /// The argument with the command, the path or the address.
    pub argument: Option<String>,
}

impl ToolMapping {
    /// Whether the tool stands for the shell, by either of its names.
    pub(super) fn is_shell(&self) -> bool {
        SHELL.contains(&self.builtin.as_str())
    }

    /// The criteria of a rule that match the tool alone.
    pub(super) fn criteria(&self) -> Map<String, Value> {
        let names = [("server", &self.server), ("tool_name", &self.tool)];
        names.into_iter().map(|(key, name)| (key.to_owned(), json!(Pattern::exactly(name)))).collect()
    }
}

/// The criteria for the tools that run commands: the mapped shells with their mappings, or any tool if no mapping is one.
pub(super) fn shells(tools: &[ToolMapping], verdict: Verdict) -> Vec<(Map<String, Value>, Option<&ToolMapping>)> {
    let mapped: Vec<_> =
        tools.iter().filter(|tool| tool.is_shell()).map(|tool| (tool.criteria(), Some(tool))).collect();
    if mapped.is_empty() { vec![(any_tool(verdict), None)] } else { mapped }
}

/// The criteria for any tool: of a trusted server to allow, of every server to ask or deny.
pub(super) fn any_tool(verdict: Verdict) -> Map<String, Value> {
    let (key, value) = match verdict {
        Verdict::Allow => ("trusted", json!(true)),
        Verdict::Ask | Verdict::Deny => ("tool", json!("*")),
    };
    [(key.to_owned(), value)].into_iter().collect()
}

impl FromStr for ToolMapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || format!("`{text}` is not `NAME=SERVER/TOOL`, for example `Bash=work/run_command`");
        let (builtin, place) = text.split_once('=').ok_or_else(usage)?;
        let (server, tool) = place.split_once('/').ok_or_else(|| {
            let shown = place.strip_prefix("mcp_").and_then(|name| name.split_once('_'));
            let meant = shown.map(|(server, tool)| format!("; `{place}` is perhaps `{server}/{tool}`"));
            usage() + &meant.unwrap_or_default()
        })?;
        let (tool, argument) = match tool.split_once(':') {
            Some((tool, argument)) => (tool, Some(argument)),
            None => (tool, None),
        };
        let parts = [builtin, server, tool].into_iter().chain(argument);
        if parts.into_iter().any(|part| part.trim().is_empty()) {
            return Err(usage());
        }
        Ok(Self {
            builtin: builtin.to_owned(),
            server: server.to_owned(),
            tool: tool.to_owned(),
            argument: argument.map(str::to_owned),
        })
    }
}
