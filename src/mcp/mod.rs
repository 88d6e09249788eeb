//! MCP servers: [`Servers`] implements the port [`McpServers`](toolgate_ports::McpServers) over the official SDK.
//!
//! Servers are other people's programs. They start slowly, die, write to the wrong stream, list broken tools and never
//! answer. Each such failure becomes a reason in words and stays with its server: nothing in this module fails a run,
//! delays another server, or repeats a call that may have been made. No type of the SDK crosses this border: its major
//! versions change often, ours must not.
//!
//! Out of scope: naming, filtering and judging tools (`core::tool`), validating arguments (`validation`), and deciding
//! whether a call may be repeated (`core::run`).

mod answer;
mod answered_elicitations;
pub mod auth;
mod call;
mod call_counters;
mod call_transport;
mod client_handler;
mod closable;
mod connection;
mod content;
pub mod demo;
mod dialer;
mod elicitation;
mod elicitation_exchange;
mod elicitation_router;
mod exchange;
mod fault;
mod headers;
mod http;
mod in_process;
mod limits;
mod listing;
mod measure;
mod negotiation;
mod pinned;
mod result_json;
mod server;
mod servers;
mod session_loss;
mod settings;
mod signals;
mod status;
mod stdio;
mod subscription;
mod supervisor;
mod task;
mod task_handle;
mod task_only;
mod traffic;
mod transport;
mod watch;

pub use call_counters::{CallStats, Latency};
pub use http::egress::Egress;
pub use in_process::InProcess;
pub use pinned::{PinnedTools, PinnedValue};
/// The official SDK, for handlers that run in this process ([`InProcess`]).
pub use rmcp;
pub use servers::Servers;
pub use settings::{HttpSettings, ProtocolVersionChoice, Recheck, ServerSettings, Start, StdioSettings, Transport};
pub use status::{LastError, ServerState, ServerStatus};
pub use stdio::StdoutNoise;
pub use watch::{Exchange, ExchangeKind, Watcher};
