//! Laboratory for the authors of MCP servers: `toolgate mcp check`, `record`, `replay` and `test`.
//!
//! [`check`] reads the wire itself, without an SDK in between, because an SDK tolerates and hides the mistakes that a check
//! has to name. [`recording`] and [`scenario`] hold runs and expectations as files; what starts runs is `app::testing`.

pub mod check;
pub mod fault_proxy;
pub mod message_flaws;
pub mod recording;
pub mod scenario;
mod xml;
pub mod yaml;
