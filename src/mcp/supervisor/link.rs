//! Traits between the supervisor and a server: a dialer, and a connection that can be lost. The production
//! implementations speak MCP; those of the tests run in a paused clock.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::listing::Listing;
use crate::signals::Signals;

/// Opens connections to one server.
pub(crate) trait Dial: Send + Sync + 'static {
    /// The connection type.
    type Link: Link;

    /// Starts or dials the server within its start budget, and sends `meta` with the handshake.
    fn open(&self, meta: Map<String, Value>) -> impl Future<Output = Result<Self::Link, NotOpened>> + Send;
}

/// One connection.
pub(crate) trait Link: Send + Sync + 'static {
    /// The signals of this connection.
    fn signals(&self) -> &Signals;

    /// Waits until the connection is unusable, then signals its loss.
    fn lost(&self) -> impl Future<Output = ()> + Send;

    /// Whether the server announces changes of its tools.
    fn announces_changes(&self) -> bool;

    /// Requests the tool list. The error completes the sentence "the MCP server `x` ...".
    fn list(&self, meta: &Map<String, Value>, budget: Duration)
    -> impl Future<Output = Result<Listing, String>> + Send;

    /// The reason for the loss, as far as it can be determined.
    fn exit_report(&self) -> impl Future<Output = String> + Send;

    /// Closes the connection and waits until its resources are released.
    fn close(&self) -> impl Future<Output = ()> + Send;

    /// Cleans up after a loss. Returns when the server may be started again, which is after its process has exited.
    /// Calls that may still get an answer keep running until `closing`.
    fn retire(self: Arc<Self>, closing: CancellationToken) -> impl Future<Output = ()> + Send;
}

/// Why a connection could not be opened.
#[derive(Clone, Debug)]
pub(crate) struct NotOpened {
    /// Completes the sentence "the MCP server `x` ...".
    pub(crate) reason: String,
    /// Whether a retry may succeed without a change by the operator.
    pub(crate) may_pass: bool,
}
