//! MCP servers without a store, a model or a run, for commands that inspect a server or call its tools.

use std::collections::BTreeMap;
use std::path::Path;

use super::server_settings::server_settings;
use crate::config;
use crate::core::id::ServerId;
use crate::core::tool::{ServerTools, Toolset, ToolsetRules};
use crate::core::trace::Propagation;
use crate::mcp::{ServerStatus, Servers};
use crate::ports::{McpServers, ToolInputValidator};
use crate::validation::SchemaValidator;

/// MCP servers that connect on first use. Call [`close`](Self::close) at the end.
pub struct ToolServers {
    servers: Servers,
    validator: SchemaValidator,
}

impl ToolServers {
    /// Creates the servers without starting or connecting to them. Credentials are read from and refreshed in the
    /// folder `credentials`. `propagation` limits the trace context that they receive.
    pub fn new(
        settings: &BTreeMap<ServerId, config::ServerSettings>,
        credentials: &Path,
        propagation: Propagation,
    ) -> Self {
        let reached =
            |(id, server): (&ServerId, _)| (id.clone(), server_settings(id, server, credentials, propagation));
        let reached = settings.iter().map(reached);
        Self { servers: Servers::new(reached), validator: SchemaValidator::default() }
    }

    /// Lists tools and calls them.
    pub fn port(&self) -> &dyn McpServers {
        &self.servers
    }

    /// Validates arguments and results as runs do.
    pub fn inputs(&self) -> &dyn ToolInputValidator {
        &self.validator
    }

    /// The listed tools under the names that a model sees, without tools that no run can use.
    pub fn offered(&self, listed: &ServerTools) -> Toolset {
        let rules = ToolsetRules::default();
        let tools = Toolset::assemble(&[], std::slice::from_ref(listed), &rules);
        tools.without(|tool| self.validator.accepts(tool).err())
    }

    /// The status of every server.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.servers.status()
    }

    /// Stops the servers and returns when their processes have ended.
    pub async fn close(self) {
        self.servers.close().await;
    }
}
