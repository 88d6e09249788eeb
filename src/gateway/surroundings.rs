//! What the gateway shows and cannot know itself: it comes from adapters, which only the composition root knows.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::core::id::{ModelName, ServerId};
use crate::ports::ModelIdentity;

/// What surrounds a gateway.
#[async_trait]
pub trait Surroundings: Send + Sync {
    /// The configured models, by name.
    fn models(&self) -> Vec<ModelCard> {
        Vec::new()
    }

    /// How every MCP server stands, by id. Nobody is asked for it.
    fn servers(&self) -> Vec<ServerHealth> {
        Vec::new()
    }

    /// Lists the tools of a server anew. The error says why they are not known anew; `None`: there is no such server.
    async fn refresh(&self, _server: &ServerId) -> Option<Result<ServerHealth, String>> {
        None
    }

    /// Puts another connection, or process, in the place of the one to a server, and lists its tools. The error says why it is
    /// not there again; `None`: there is no such server.
    async fn restart(&self, _server: &ServerId) -> Option<Result<ServerHealth, String>> {
        None
    }
}

/// A gateway with a runner and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Surroundings for Alone {}

/// A configured model.
#[derive(Clone, Debug)]
pub struct ModelCard {
    /// The name it is configured under.
    pub name: ModelName,
    /// What it is called by those who serve it.
    pub identity: ModelIdentity,
    /// US dollars for a million tokens read, and for a million written, where anybody says.
    pub price: Option<(f64, f64)>,
}

/// How an MCP server stands.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Server)]
pub struct ServerHealth {
    /// The configured id.
    #[schema(value_type = String)]
    pub id: ServerId,
    /// How it is reached: `stdio` or `http`.
    pub transport: &'static str,
    /// How it stands.
    #[serde(flatten)]
    pub state: ServerState,
    /// Since when it is in this state.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// What it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version it says it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The revision of the protocol that was agreed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// How many tools it listed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Why these are the tools of before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
    /// How often it was started or dialled again.
    pub restarts: u64,
    /// What went wrong last, also if it is well by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<ServerFailure>,
    /// Calls that were sent to it.
    pub calls_made: u64,
    /// Those among them that got no answer.
    pub calls_failed: u64,
    /// Calls that are under way.
    pub calls_in_flight: u64,
    /// Calls that wait for their turn, or for the server.
    pub calls_waiting: u64,
    /// How long its answers took; none before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<ServerLatency>,
}

/// The states of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ServerState {
    /// Not needed yet, or not for a while.
    Idle,
    /// Being started or dialled.
    Starting,
    /// Connected, and its tools are not known: it has not listed them. It is asked again by itself; `last_error` says
    /// what went wrong.
    Listing,
    /// Connected, and its tools are known.
    Ready,
    /// Away; tried again by itself.
    BackingOff {
        /// How often it failed in a row.
        failures: u32,
        /// When it is tried again.
        #[schema(value_type = String, format = DateTime)]
        next_attempt: Timestamp,
    },
    /// Away; tried again when it is needed.
    Failed {
        /// How often it failed in a row.
        failures: u32,
    },
    /// Shut down for good.
    Closed,
}

/// Something that went wrong with a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ServerFailure {
    /// What, in a sentence.
    pub message: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
}

/// How long answers of a server took, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct ServerLatency {
    /// The last one.
    pub last: f64,
    /// The mean, in which newer ones weigh more.
    pub mean: f64,
    /// The longest.
    pub longest: f64,
}
