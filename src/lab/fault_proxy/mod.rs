//! Fault proxy: stands between any client and an MCP server, injects faults, and reports what both sides made of them.
//!
//! Over stdio it is the command that a client starts, and starts the server itself (`stdio`). Over HTTP it serves on
//! 127.0.0.1 and forwards to a URL, or to a command (`http`, `bridge`). The `plan` chooses the request, the `faults` table says what there is,
//! the interceptor changes the answers, and the observer records facts for the [`Report`]. Messages without a fault pass
//! as they are. No SDK and no model is involved.

mod bridge;
mod event_stream;
mod exchange;
mod faults;
mod http;
mod interceptor;
mod observer;
mod plan;
mod report;
mod stdio;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use bridge::serve_command;
pub use faults::{Fault, FaultKind, FaultTransport, Refusal, kinds};
pub use http::{listen, serve};
pub use plan::FaultPlan;
pub use report::{ClientFact, Injection, ProxyFinding, Report, ServerFact};
pub use stdio::relay;

/// The largest message that passes.
const MAX_MESSAGE: usize = 64 << 20;

/// The faults to inject, and where the wire is logged.
#[derive(Debug, Default)]
pub struct ProxyOptions {
    pub plan: FaultPlan,
    /// Receives every line of both sides with its time.
    pub wire: Option<File>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
