//! What the supervisor needs of a server: somebody who dials, and a connection that can be lost. The real ones speak MCP;
//! those of the tests live in a paused clock.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::mcp::listing::Listing;
use crate::mcp::signals::Signals;

/// Makes connections to one server.
pub(in crate::mcp) trait Dial: Send + Sync + 'static {
    /// What is made.
    type Link: Link;

    /// Starts or dials the server, within its start budget. `meta` goes along with the handshake.
    fn open(&self, meta: Map<String, Value>) -> impl Future<Output = Result<Self::Link, NotOpened>> + Send;
}

/// One connection.
pub(in crate::mcp) trait Link: Send + Sync + 'static {
    /// Its bells.
    fn signals(&self) -> &Signals;

    /// Waits until it is of no more use, and rings.
    fn lost(&self) -> impl Future<Output = ()> + Send;

    /// Whether the server promised to say when its tools change.
    fn announces_changes(&self) -> bool;

    /// Asks for the tools. The error completes the sentence "the MCP server `x` ...".
    fn list(&self, meta: &Map<String, Value>, budget: Duration)
    -> impl Future<Output = Result<Listing, String>> + Send;

    /// Why it was lost, as far as it can be known.
    fn last_words(&self) -> impl Future<Output = String> + Send;

    /// Says goodbye and waits until nothing is left of it.
    fn close(&self) -> impl Future<Output = ()> + Send;

    /// Sweeps away what is left of it once it was lost. Returns when the server may be started again, which is not before
    /// its process is gone. Calls that may still be answered are left alone until `closing`.
    fn retire(self: Arc<Self>, closing: CancellationToken) -> impl Future<Output = ()> + Send;
}

/// Why there is no connection.
#[derive(Clone, Debug)]
pub(in crate::mcp) struct NotOpened {
    /// Completes the sentence "the MCP server `x` ...".
    pub(in crate::mcp) reason: String,
    /// Whether another try may help without anybody changing anything.
    pub(in crate::mcp) may_pass: bool,
}
