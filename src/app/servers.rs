//! MCP servers by themselves, without a store, a model or a run: for people who look at a server or try its tools.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config;
use crate::core::id::ServerId;
use crate::core::tool::{ServerTools, Toolset, ToolsetRules};
use crate::core::trace::Propagation;
use crate::mcp::Servers;
use crate::ports::{McpServers, ToolInputValidator};
use crate::validation::SchemaValidator;

/// Servers that are connected when they are first needed. Call [`close`](Self::close) at the end.
pub struct ToolServers {
    servers: Servers,
    validator: SchemaValidator,
}

impl ToolServers {
    /// Starts and dials nothing yet. What was granted for servers is read and renewed in the folder `credentials`.
    /// `propagation` is what they may be told of the trace that a request belongs to.
    pub fn new(
        settings: &BTreeMap<ServerId, config::ServerSettings>,
        credentials: &Path,
        propagation: Propagation,
    ) -> Self {
        let reached = |(id, server): (&ServerId, _)| (id.clone(), super::reached(id, server, credentials, propagation));
        let reached = settings.iter().map(reached);
        Self { servers: Servers::new(reached), validator: SchemaValidator::default() }
    }

    /// Lists and calls.
    pub fn port(&self) -> &dyn McpServers {
        &self.servers
    }

    /// Checks arguments and results as runs do.
    pub fn inputs(&self) -> &dyn ToolInputValidator {
        &self.validator
    }

    /// What a server listed, named as a model would see it, without the tools that no run could use.
    pub fn offered(&self, listed: &ServerTools) -> Toolset {
        let rules = ToolsetRules::default();
        let tools = Toolset::assemble(&[], std::slice::from_ref(listed), &rules);
        tools.without(|tool| self.validator.accepts(tool).err())
    }

    /// How every server stands.
    pub fn status(&self) -> Vec<super::ServerStatus> {
        self.servers.status()
    }

    /// Stops them and returns when nothing of them is left.
    pub async fn close(self) {
        self.servers.close().await;
    }
}
