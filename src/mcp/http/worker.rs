//! HTTP transport: the worker of the SDK, in a form that can be closed while its server sends, and with what the SDK
//! does not do.

use futures::StreamExt as _;
use futures::stream::SelectAll;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use tokio::sync::mpsc;

use super::authorized_client::{AuthorizedClient, Confirmation};
use super::client::{Events, Failure};
use super::post::is_confirmation;

type Worker = StreamableHttpClientTransport<AuthorizedClient>;

/// A worker for one endpoint.
pub(crate) struct HttpWorker {
    worker: Worker,
    confirmation: Confirmation,
    new_rests: Option<mpsc::Receiver<Events>>,
    /// The rests of streams that the SDK is done with.
    rests: SelectAll<Events>,
}

impl HttpWorker {
    /// A transport over this client. Connects later.
    pub(super) fn new(client: AuthorizedClient, config: StreamableHttpClientTransportConfig) -> Self {
        let (confirmation, new_rests) = (client.confirmation(), client.rests());
        let worker = Worker::with_client(client, config);
        Self { worker, confirmation, new_rests, rests: SelectAll::new() }
    }
}

impl Transport<RoleClient> for HttpWorker {
    type Error = Failure;

    /// The worker (rmcp 3.9) ends at a refused `notifications/initialized`, and the refusal is lost. So it is kept
    /// aside and returned here.
    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let confirmation = is_confirmation(&message).then(|| self.confirmation.clone());
        let sending = self.worker.send(message);
        async move {
            let sent = sending.await;
            confirmation.and_then(|confirmation| confirmation.take_refusal()).map_or(sent, Err)
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            tokio::select! {
                message = self.worker.receive() => return message,
                Some(rest) = next_rest(&mut self.new_rests) => self.rests.push(rest),
                Some(event) = self.rests.next(), if !self.rests.is_empty() => {
                    let data = event.ok().and_then(|event| event.data);
                    if let Some(message) = data.and_then(|data| serde_json::from_str(&data).ok()) {
                        return Some(message);
                    }
                }
            }
        }
    }

    /// Ends the session and waits for that. The worker (rmcp 3.9) passes messages through a channel of 16 and does not
    /// notice its cancellation while the channel is full: it would wait forever for a receiver that waits for the
    /// worker's end.
    async fn close(&mut self) -> Result<(), Self::Error> {
        self.worker.cancel_token().cancel();
        while self.worker.receive().await.is_some() {}
        self.worker.close().await
    }
}

async fn next_rest(rests: &mut Option<mpsc::Receiver<Events>>) -> Option<Events> {
    match rests {
        Some(rests) => rests.recv().await,
        None => None,
    }
}
