//! The adapters that a gateway reports: models and MCP servers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::models::Models;
use super::prices::Pricing;
use crate::config::{Settings, TransportSettings};
use crate::core::id::ServerId;
use crate::gateway::{Backends, ModelCard, ServerFailure, ServerHealth, ServerLatency, ServerState};
use crate::mcp::{self, Servers};

/// The adapters of an open program.
pub(super) struct Adapters {
    models: Vec<ModelCard>,
    transports: BTreeMap<ServerId, &'static str>,
    servers: Arc<Servers>,
}

impl Adapters {
    pub(super) fn new(settings: &Settings, models: &Models, servers: &Arc<Servers>) -> Self {
        let card = |(name, model): (&crate::core::id::ModelName, &Arc<dyn crate::ports::Model>)| {
            let identity = model.identity().clone();
            let price = match Pricing::new(settings, name, &identity) {
                Pricing::Configured(price) | Pricing::Listed(price) => Some((price.rates.input, price.rates.output)),
                Pricing::Reported | Pricing::Unknown => None,
            };
            ModelCard { name: name.clone(), identity, price }
        };
        let transport = |settings: &TransportSettings| match settings {
            TransportSettings::Stdio(_) => "stdio",
            TransportSettings::Http { .. } => "http",
            TransportSettings::Unavailable { .. } => "unavailable",
        };
        let transports = settings.servers.iter().map(|(id, server)| (id.clone(), transport(&server.transport)));
        Self { models: models.iter().map(card).collect(), transports: transports.collect(), servers: servers.clone() }
    }

    fn health(&self, status: mcp::ServerStatus) -> Option<ServerHealth> {
        let transport = *self.transports.get(&status.id)?;
        let (state, failures, next_attempt) = match status.state {
            mcp::ServerState::Idle => (ServerState::Idle, 0, None),
            mcp::ServerState::Starting => (ServerState::Starting, 0, None),
            mcp::ServerState::Listing => (ServerState::Listing, 0, None),
            mcp::ServerState::Ready => (ServerState::Ready, 0, None),
            mcp::ServerState::BackingOff { failures, next_attempt } => {
                (ServerState::BackingOff, failures, Some(next_attempt))
            }
            mcp::ServerState::Failed { failures } => (ServerState::Failed, failures, None),
            mcp::ServerState::Closed => (ServerState::Closed, 0, None),
        };
        Some(ServerHealth {
            transport,
            state,
            failures,
            next_attempt,
            since: status.since,
            name: status.name,
            version: status.version,
            protocol_version: status.protocol_version,
            tools: status.tools,
            stale: status.stale,
            restarts: status.restarts,
            last_error: status.last_error.map(|error| ServerFailure { message: error.message, at: error.at }),
            calls_made: status.calls.made,
            calls_failed: status.calls.failed,
            calls_in_flight: status.calls.in_flight,
            calls_waiting: status.calls.waiting,
            latency_ms: status.calls.latency.map(|latency| ServerLatency {
                last: milliseconds(latency.last),
                mean: milliseconds(latency.mean),
                longest: milliseconds(latency.longest),
            }),
            id: status.id,
        })
    }

    fn health_of(&self, server: &ServerId, done: Result<(), String>) -> Option<Result<ServerHealth, String>> {
        let health = self.health(self.servers.status_of(server)?)?;
        Some(done.map(|()| health))
    }
}

#[async_trait]
impl Backends for Adapters {
    fn models(&self) -> Vec<ModelCard> {
        self.models.clone()
    }

    fn servers(&self) -> Vec<ServerHealth> {
        self.servers.status().into_iter().filter_map(|status| self.health(status)).collect()
    }

    async fn refresh(&self, server: &ServerId) -> Option<Result<ServerHealth, String>> {
        let refreshed = self.servers.refresh(server).await?;
        self.health_of(server, refreshed)
    }

    async fn restart(&self, server: &ServerId) -> Option<Result<ServerHealth, String>> {
        let restarted = self.servers.restart(server).await?;
        self.health_of(server, restarted)
    }
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
