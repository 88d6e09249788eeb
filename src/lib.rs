//! toolgate runs agent tool loops. It executes MCP tools itself and returns the calling application's own tools to the
//! caller. Approvers decide about risky calls. Every step is an event in a journal and a span in a trace.
//!
//! # Quickstart
//!
//! A run that needs the calling application becomes *pending*: toolgate returns it with its pending calls, and resumes
//! it when their results arrive, in this process or another one, now or hours later.
//!
//! ```
//! use std::sync::Arc;
//!
//! use serde_json::json;
//! use toolgate::models::scripted::{Script, ScriptedModel};
//! use toolgate::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A scripted model. With an API key, `models::openai_chat` calls a real one.
//! let script = Script::from_json(
//!     r#"{"turns": [
//!         {"calls": [{"name": "ext_get_order", "arguments": {"id": "77"}}]},
//!         {"say": "Order 77 is paid."}
//!     ]}"#,
//! )?;
//! let agent = Agent {
//!     instructions: "You answer questions about orders.".into(),
//!     ..Agent::new("support", Arc::new(ScriptedModel::new("scripted", script)))
//! };
//! let runner = AgentRunner::builder().store(Arc::new(MemoryStore::new())).agent(agent).build()?;
//!
//! // Only this application can look up orders, so it declares the tool and runs it. toolgate validates the arguments.
//! let get_order = ExternalTool::new("get_order", "Looks an order up by its id.").input_schema(
//!     json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}),
//! );
//! let report = runner.execute(Request::new("support", "Is order 77 paid?").external_tool(get_order)).await?;
//! assert_eq!(report.status, Status::Pending);
//!
//! // Run the pending calls, and resume. Any process that opens the same store could do this.
//! let calls = report.pending.iter().filter_map(PendingItem::call_id);
//! let answers = calls.fold(Resume::new(), |answers, call| answers.output(call.clone(), json!({"status": "paid"})));
//! let report = runner.resume(&report.run_id, answers).await?;
//! assert_eq!(report.output.map(|output| output.text).as_deref(), Some("Order 77 is paid."));
//! # Ok(())
//! # }
//! ```
//!
//! `app::App::from_file` builds a runner with its models, MCP servers, policies and store from a `toolgate.yaml`.
//!
//! # Modules
//!
//! [`core`] is pure: it folds journals into runs and decides the next step. [`ports`] are the traits of the loop's
//! dependencies. [`driver`] is the loop, [`runner`] the public entry point. [`service`] is what surfaces share, and
//! [`gateway`] is the HTTP API. [`models`], [`mcp`], [`stores`], [`approvals`], [`validation`] and [`telemetry`] are
//! adapters. [`config`] reads files, and [`app`] builds a program from them. Each module except `app` and `cli` is a
//! crate (`toolgate-core`, `toolgate-runner`, …), and each except `core` and `ports` is a feature. ARCHITECTURE.md has the map, the laws, and where to add code.

#[cfg(feature = "app")]
pub mod app;
#[cfg(feature = "cli")]
pub mod cli;

#[cfg(feature = "approvals")]
pub use toolgate_approvals as approvals;
#[cfg(feature = "config")]
pub use toolgate_config as config;
pub use toolgate_core as core;
#[cfg(feature = "driver")]
pub use toolgate_driver as driver;
#[cfg(feature = "gateway")]
pub use toolgate_gateway as gateway;
#[cfg(feature = "lab")]
pub use toolgate_lab as lab;
#[cfg(feature = "mcp")]
pub use toolgate_mcp as mcp;
#[cfg(feature = "models")]
pub use toolgate_models as models;
pub use toolgate_ports as ports;
#[cfg(feature = "runner")]
pub use toolgate_runner as runner;
#[cfg(feature = "service")]
pub use toolgate_service as service;
#[cfg(feature = "stores")]
pub use toolgate_stores as stores;
#[cfg(feature = "telemetry")]
pub use toolgate_telemetry as telemetry;
#[cfg(feature = "validation")]
pub use toolgate_validation as validation;

#[cfg(feature = "app")]
pub use app::testing;

/// The types that most applications need: `use toolgate::prelude::*`.
#[cfg(feature = "runner")]
pub mod prelude {
    #[cfg(feature = "app")]
    pub use crate::app::App;
    pub use crate::core::policy::Policy;
    pub use crate::core::run::{Decision, DecisionKind, PendingItem, Scope, Status};
    pub use crate::core::tool::ExternalTool;
    #[cfg(feature = "mcp")]
    pub use crate::mcp::{HttpSettings, ServerSettings, Servers, StdioSettings};
    pub use crate::runner::{Agent, AgentRunner, Answer, Report, Request, Resume, RunnerError};
    #[cfg(feature = "stores")]
    pub use crate::stores::{MemoryStore, SqliteStore};
}
