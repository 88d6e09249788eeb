//! HTTP transport: the worker of the SDK, in a form that can be closed while its server sends.

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, Transport};

use super::authorized_client::AuthorizedClient;
use super::client::Failure;

type Worker = StreamableHttpClientTransport<AuthorizedClient>;

/// A worker for one endpoint.
pub(crate) struct HttpWorker(Worker);

impl HttpWorker {
    /// A transport over this client. Connects later.
    pub(super) fn new(client: AuthorizedClient, config: StreamableHttpClientTransportConfig) -> Self {
        Self(Worker::with_client(client, config))
    }
}

impl Transport<RoleClient> for HttpWorker {
    type Error = Failure;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.0.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.0.receive().await
    }

    /// Ends the session and waits for that. The worker (rmcp 3.9) passes messages through a channel of 16 and does not
    /// notice its cancellation while the channel is full: it would wait forever for a receiver that waits for the
    /// worker's end.
    async fn close(&mut self) -> Result<(), Self::Error> {
        self.0.cancel_token().cancel();
        while self.0.receive().await.is_some() {}
        self.0.close().await
    }
}
