//! Adapter information that the gateway shows but does not have itself: only the composition root knows the adapters.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;
use toolgate_core::chat::Usd;
use toolgate_core::id::{ModelName, ServerId};
use toolgate_core::timestamp::{millis, optional_millis};
use toolgate_ports::ModelIdentity;
use utoipa::ToSchema;

/// The gateway's view of the adapters.
#[async_trait]
pub trait Backends: Send + Sync {
    /// The configured models, by name.
    fn models(&self) -> Vec<ModelCard> {
        Vec::new()
    }

    /// The last known state of every MCP server, by id; contacts no server.
    fn servers(&self) -> Vec<ServerHealth> {
        Vec::new()
    }

    /// Lists the tools of a server again. The error says why that failed; `None`: there is no such server.
    async fn refresh(&self, _server: &ServerId) -> Option<Result<ServerHealth, String>> {
        None
    }

    /// Replaces the connection to a server, or its process, and lists its tools. The error says why the server is not
    /// available again; `None`: there is no such server.
    async fn restart(&self, _server: &ServerId) -> Option<Result<ServerHealth, String>> {
        None
    }
}

/// The adapters of a gateway that has only a runner.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBackends;

impl Backends for NoBackends {}

/// A configured model.
#[derive(Clone, Debug)]
pub struct ModelCard {
    /// The name under which the model is configured.
    pub name: ModelName,
    /// The provider's name of the model.
    pub identity: ModelIdentity,
    /// US dollars per million input tokens, and per million output tokens, if known.
    pub price: Option<(Usd, Usd)>,
}

/// The state of an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Server)]
pub struct ServerHealth {
    /// The configured id.
    #[schema(value_type = String)]
    pub id: ServerId,
    /// The transport.
    #[schema(value_type = TransportView)]
    pub transport: &'static str,
    /// The connection state.
    pub state: ServerState,
    /// Consecutive failures; 0 while the server is available.
    pub failures: u32,
    /// When the next retry is due, if the server is retried automatically.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(serialize_with = "optional_millis")]
    pub next_attempt: Option<Timestamp>,
    /// Since when the server is in this state.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    pub since: Timestamp,
    /// The server's own name.
    pub name: Option<String>,
    /// The server's own version.
    pub version: Option<String>,
    /// The negotiated protocol version.
    pub protocol_version: Option<String>,
    /// How many tools the server listed last.
    pub tools: Option<usize>,
    /// Why the tools are from an earlier list.
    pub stale: Option<String>,
    /// How often the server was restarted or reconnected.
    pub restarts: u64,
    /// The last error, even if the server has recovered.
    pub last_error: Option<ServerFailure>,
    /// How many calls were sent to the server.
    pub calls_made: u64,
    /// How many of them received no response.
    pub calls_failed: u64,
    /// How many calls are in progress.
    pub calls_in_flight: u64,
    /// How many calls wait for admission, or for the server.
    pub calls_waiting: u64,
    /// Response times; null before the first response.
    pub latency_ms: Option<ServerLatency>,
}

/// The transport of a server.
#[derive(ToSchema)]
#[schema(as = ServerTransport, rename_all = "snake_case")]
#[allow(dead_code)] // the backends write it; this describes what they write
enum TransportView {
    Stdio,
    Http,
}

/// The connection states of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// Not needed yet, or not for a while.
    Idle,
    /// Being started or connected.
    Starting,
    /// Connected, and its tools are not known: it has not listed them. It is asked again by itself; `last_error` says
    /// what went wrong.
    Listing,
    /// Connected, and its tools are known.
    Ready,
    /// Not available; retried automatically.
    BackingOff,
    /// Not available; retried when it is needed.
    Failed,
    /// Shut down for good.
    Closed,
}

/// An error of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ServerFailure {
    /// The error, in a sentence.
    pub message: String,
    /// When it happened.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    pub at: Timestamp,
}

/// Response times of a server, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct ServerLatency {
    /// The last response time.
    pub last: f64,
    /// The mean, weighted towards recent responses.
    pub mean: f64,
    /// The longest response time.
    pub longest: f64,
}
