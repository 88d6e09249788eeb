//! Delivery queue of one endpoint. Each endpoint has its own, so that a slow one delays only its own messages. Only
//! messages in progress are held in memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::CancellationToken;
use toolgate_core::id::EndpointId;
use toolgate_ports::{EndpointFilter, StoreError, WebhookDelivery, WebhookEndpoint};

use super::client::WebhookClient;
use super::schedule;
use super::webhook_config::WebhookConfig;

/// How many messages are in progress per endpoint.
const AT_ONCE: usize = 8;

/// After so many messages a queue closes, so that the endpoint that has waited longest is next.
const TURN: usize = 64;

/// How much longer than an attempt may take a claim on a message lasts.
const MARGIN: Duration = Duration::from_secs(45);

/// Sends the due messages of one endpoint, until there are none left or its quota is used up.
pub(super) struct EndpointQueue {
    pub(super) config: Arc<WebhookConfig>,
    pub(super) client: Arc<WebhookClient>,
    pub(super) endpoint: EndpointId,
    pub(super) stop: CancellationToken,
}

impl EndpointQueue {
    pub(super) async fn run(self) {
        let mut sending = FuturesUnordered::new();
        let mut left = TURN;
        loop {
            let is_stopped = self.stop.is_cancelled();
            let room = if is_stopped { 0 } else { AT_ONCE.saturating_sub(sending.len()).min(left) };
            let taken = self.take(room).await;
            let has_failed = taken.is_err();
            match taken {
                Ok(taken) => {
                    left = left.saturating_sub(taken.len());
                    sending.extend(taken.into_iter().map(|(endpoint, delivery)| self.send(endpoint, delivery)));
                }
                Err(error) => {
                    tracing::warn!(endpoint = %self.endpoint, %error, "failed to claim due webhooks");
                }
            }
            if sending.is_empty() && !has_failed {
                return;
            }
            let may_take = !is_stopped && left > 0 && sending.len() < AT_ONCE;
            tokio::select! {
                Some(()) = sending.next() => {}
                // A delivery may have become due that need not wait for the responses to others.
                () = self.config.clock.sleep(self.config.look_every), if may_take => {}
                () = self.stop.cancelled(), if !is_stopped => {}
            }
        }
    }

    /// The due deliveries, with the endpoint as it is now.
    async fn take(&self, room: usize) -> Result<Vec<(Arc<WebhookEndpoint>, WebhookDelivery)>, StoreError> {
        if room == 0 {
            return Ok(Vec::new());
        }
        let WebhookConfig { store, clock, .. } = &*self.config;
        let now = clock.now();
        let until = now.saturating_add(self.config.timeout.saturating_add(MARGIN)).unwrap_or(now);
        let taken = store.take(&self.endpoint, now, until, room).await?;
        if taken.is_empty() {
            return Ok(Vec::new());
        }
        let filter = EndpointFilter { id: Some(self.endpoint.clone()), ..EndpointFilter::default() };
        let Some(endpoint) = store.endpoints(&filter).await?.pop().map(Arc::new) else { return Ok(Vec::new()) };
        Ok(taken.into_iter().map(|delivery| (endpoint.clone(), delivery)).collect())
    }

    async fn send(&self, endpoint: Arc<WebhookEndpoint>, delivery: WebhookDelivery) {
        let WebhookConfig { store, clock, .. } = &*self.config;
        let (began, watch, message) = (clock.now(), Instant::now(), delivery.id.clone());
        let answered = self.client.send(&endpoint, &delivery, began).await;
        let settled = schedule::settled(&endpoint, delivery, began, watch.elapsed(), answered);
        if let Some(error) = settled.delivery.attempts.last().and_then(|attempt| attempt.error.as_ref()) {
            tracing::info!(endpoint = %endpoint.id, %message, error, "webhook delivery failed");
        }
        // The delivery becomes due again when the claim expires, so that it may arrive twice but is never lost.
        if let Err(error) = store.settle(&settled).await {
            tracing::warn!(endpoint = %endpoint.id, %message, %error, "failed to record outcome of webhook delivery");
        }
    }
}
