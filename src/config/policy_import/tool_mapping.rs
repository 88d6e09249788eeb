//! Tool mapping: the tool of an MCP server that stands for a built-in tool of another program.

use std::str::FromStr;

use serde_json::{Map, Value, json};
use toolgate_core::pattern::Pattern;

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
    /// The criteria of a rule that match the tool alone.
    pub(super) fn criteria(&self) -> Map<String, Value> {
        let names = [("server", &self.server), ("tool_name", &self.tool)];
        names.into_iter().map(|(key, name)| (key.to_owned(), json!(Pattern::exactly(name)))).collect()
    }
}

impl FromStr for ToolMapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || format!("`{text}` is not `NAME=SERVER/TOOL`, for example `Bash=work/run_command`");
        let (builtin, place) = text.split_once('=').ok_or_else(usage)?;
        let (server, tool) = place.split_once('/').ok_or_else(usage)?;
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
