//! Settings of the adapters, as plain values: `config` resolves a file into them, an application without a file writes
//! them itself, and the adapters take them. Decision 0046 says why they are a crate of their own.

pub mod mcp;
pub mod model;
