//! toolgate runs agent tool loops: MCP tools run inside it, the calling application's own tools come back to the
//! caller, people approve what matters, and every step is a fact in a journal and a span in a trace.

pub mod core;
pub mod ports;

#[cfg(feature = "app")]
pub mod app;
#[cfg(feature = "approvals")]
pub mod approvals;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "config")]
pub mod config;
#[cfg(feature = "runner")]
pub mod driver;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(feature = "models")]
pub mod models;
#[cfg(feature = "runner")]
pub mod runner;
#[cfg(feature = "stores")]
pub mod stores;
#[cfg(feature = "telemetry")]
pub mod telemetry;
#[cfg(feature = "validation")]
pub mod validation;
