//! In-process MCP server: a handler of the SDK that a host application provides, without a process or a socket. Its
//! supervisor, deadlines and results are those of any other server.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use rmcp::{ServerHandler, ServiceExt};
use tokio::io::DuplexStream;

/// The buffer size in each direction.
const PIPE_BYTES: usize = 64 * 1024;

/// A factory that makes a server for each connection.
#[derive(Clone)]
pub struct InProcess(Arc<dyn Fn(DuplexStream) -> BoxFuture<'static, ()> + Send + Sync>);

impl InProcess {
    /// A server whose handler `make` creates. After a lost connection it creates another one, as a process is started
    /// again.
    pub fn new<H: ServerHandler>(make: impl Fn() -> H + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |pipe| {
            let handler = make();
            Box::pin(async move {
                // A client that leaves before the end of the handshake is not an error.
                if let Ok(running) = handler.serve(pipe).await {
                    let _ = running.waiting().await;
                }
            })
        }))
    }

    /// Our end of a connection to a new handler, and the future that drives the handler. The future ends when our end
    /// is dropped.
    pub(super) fn open(&self) -> (DuplexStream, BoxFuture<'static, ()>) {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        (ours, (self.0)(theirs))
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}
