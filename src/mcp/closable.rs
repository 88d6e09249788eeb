//! Closable transport: its end is never delayed by the server.
//!
//! The SDK ends a connection in good order. It first waits until every reply to the server is sent, and reads nothing
//! meanwhile. A server that asks without end keeps it waiting for as long as the SDK lets it. So a reply that is not sent when
//! the connection ends is given up.

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

/// A transport, and the end of its connection.
#[derive(Debug)]
pub(super) struct Closable<T> {
    transport: T,
    ending: CancellationToken,
}

impl<T> Closable<T> {
    /// Of a connection that ends with this token. The token is cancelled when the server ends the connection.
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
