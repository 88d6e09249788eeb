//! Laboratory for the authors of MCP servers: `toolgate mcp check`, `record`, `replay`, `test` and `break`.
//!
//! It reads the wire itself, without an SDK in between, because an SDK tolerates and hides the mistakes that a check has to name.

pub mod recording;
pub mod scenario;
