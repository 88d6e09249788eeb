//! Closable transport: the server cannot delay its end.
//!
//! The SDK shuts a connection down in order. It first waits until every reply to the server is sent, and reads nothing
//! meanwhile. A server that keeps asking makes the SDK wait until its own limit. This transport therefore drops a
//! reply that is not sent when the connection ends.

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

/// A transport that ends with its connection.
#[derive(Debug)]
pub(super) struct Closable<T> {
    transport: T,
    ending: CancellationToken,
}

impl<T> Closable<T> {
    /// Wraps a transport whose connection ends with this token. The token is also cancelled when the server ends the
    /// connection.
    pub(super) fn new(transport: T, ending: CancellationToken) -> Self {
        Self { transport, ending }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Closable<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_reply = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let (sending, ending) = (self.transport.send(message), self.ending.clone());
        async move {
            tokio::select! {
                biased;
                sent = sending => sent,
                () = ending.cancelled(), if is_reply => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let message = self.transport.receive().await;
        if message.is_none() {
            self.ending.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}
