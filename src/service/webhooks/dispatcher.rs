//! Webhook dispatcher: finds runs with events that were not announced, creates deliveries for them, and opens a queue
//! for each endpoint with due deliveries.
//!
//! Polling guarantees delivery; notifications only reduce latency. Several processes may do this on one store: message
//! ids are derived from their content, and a process that claims a delivery holds it for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::{RunId, Tenant};
use toolgate_ports::{
    Announcement, DueEndpoint, EndpointFilter, EndpointRuns, StoreError, UnannouncedRun, WebhookDelivery,
    WebhookEndpoint,
};
use toolgate_runner::RunnerError;

use super::client::WebhookClient;
use super::endpoint_queue::EndpointQueue;
use super::notifications::RunNotifications;
use super::webhook_config::WebhookConfig;
use crate::service::Service;

/// How many runs are read at a time.
const TOGETHER: usize = 128;
const AT_ONCE: usize = 8;
/// How many endpoints are sent to at a time.
const QUEUES: usize = 256;
/// How many of them may belong to one tenant.
const QUEUES_PER_TENANT: usize = 32;
/// How many of them may have the same host: this bounds the load on a host for all tenants together.
const QUEUES_PER_HOST: usize = 4;
/// How many of them may belong to one tenant, which may have any number of runs with webhooks.
const QUEUES_PER_HOST_AND_TENANT: usize = QUEUES_PER_HOST - 1;
/// How long deliveries are kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const SWEEP: Duration = Duration::from_secs(60 * 60);

/// Sends webhooks about runs. Each process that serves runs one.
pub struct Dispatcher {
    service: Service,
    config: Arc<WebhookConfig>,
    client: Arc<WebhookClient>,
}

/// The open queues.
#[derive(Default)]
struct EndpointQueues {
    tasks: JoinSet<()>,
    open: HashMap<Id, OpenEndpoint>,
}

/// An endpoint with an open queue.
struct OpenEndpoint {
    due: DueEndpoint,
    host: Option<String>,
}

impl Service {
    /// The webhook dispatcher, a task to run beside the server; `None` without webhooks.
    ///
    /// # Errors
    /// A text that says why no webhooks can be sent.
    pub fn dispatcher(&self) -> Result<Option<Dispatcher>, String> {
        self.webhook_config().map(|config| Dispatcher::new(self.clone(), config)).transpose()
    }
}

impl Dispatcher {
    fn new(service: Service, config: Arc<WebhookConfig>) -> Result<Self, String> {
        let client = Arc::new(WebhookClient::new(config.egress, config.timeout)?);
        Ok(Self { service, config, client })
    }

    /// Creates and sends deliveries until `stop` is cancelled; then waits for attempts in progress.
    pub async fn run(self, stop: CancellationToken) {
        let mut queues = EndpointQueues::default();
        let mut swept: Option<Timestamp> = None;
        while !stop.is_cancelled() {
            let now = self.config.clock.now();
            if swept.is_none_or(|swept| now.duration_since(swept).unsigned_abs() >= SWEEP) {
                swept = Some(now);
                self.forget(now).await;
            }
            let has_more = self.announce_batch().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to read unannounced runs; retrying");
                false
            });
            if let Err(error) = self.open_queues(&mut queues, &stop).await {
                tracing::warn!(%error, "failed to read due webhooks; retrying");
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                // A delivery may have become due while the queue was closing.
                () = queues.close_one(), if !queues.open.is_empty() => {}
                () = std::future::ready(()), if has_more => {}
                () = self.config.wake.notified() => {}
                () = self.config.clock.sleep(self.config.look_every) => {}
            }
        }
        while !queues.open.is_empty() {
            queues.close_one().await;
        }
    }

    /// Announces a few runs; returns whether there are more.
    async fn announce_batch(&self) -> Result<bool, StoreError> {
        let unannounced = self.config.store.unannounced(TOGETHER).await?;
        if unannounced.is_empty() {
            return Ok(false);
        }
        let of_tenants = EndpointFilter { runs: EndpointRuns::OfTenant, ..EndpointFilter::default() };
        let endpoints = self.config.store.endpoints(&of_tenants).await?;
        let (found, endpoints) = (unannounced.len(), &endpoints);
        let results = stream::iter(unannounced).map(|run| self.announce(run, endpoints)).buffer_unordered(AT_ONCE);
        let results: Vec<Result<bool, StoreError>> = results.collect().await;
        let moved = results.into_iter().collect::<Result<Vec<bool>, _>>()?;
        // A run that changed meanwhile is announced when it is pending or ended again.
        Ok(found == TOGETHER && moved.contains(&true))
    }

    /// Announces one run; returns whether there was anything to announce.
    async fn announce(&self, unannounced: UnannouncedRun, endpoints: &[WebhookEndpoint]) -> Result<bool, StoreError> {
        let UnannouncedRun { row, announced } = unannounced;
        let run = row.id.clone();
        let news = match self.service.runner().journal(&run).await {
            Ok(journal) => RunNotifications::from_journal(&run, &journal, announced).map_err(|error| error.to_string()),
            Err(error) if error.code() == ErrorCode::StoreUnavailable => {
                return Err(StoreError::Unavailable(error.to_string()));
            }
            // The run was deleted since it was found.
            Err(RunnerError::Purged { .. }) => Ok(RunNotifications { items: Vec::new(), up_to: row.version }),
            Err(error) => Err(error.to_string()),
        };
        let news = news.unwrap_or_else(|error| {
            tracing::error!(%run, error, "failed to announce run: its journal cannot be read");
            RunNotifications { items: Vec::new(), up_to: row.version }
        });
        if news.up_to <= announced {
            return Ok(false);
        }
        let own = EndpointFilter { runs: EndpointRuns::Only(run.clone()), ..EndpointFilter::default() };
        let own = self.config.store.endpoints(&own).await?;
        let deliveries = self.deliveries(&row.tenant, &news, &run, endpoints.iter().chain(&own));
        self.config.store.announce(Announcement { run, up_to: news.up_to, deliveries }).await?;
        Ok(true)
    }

    fn deliveries<'a>(
        &self,
        tenant: &Tenant,
        news: &RunNotifications,
        run: &RunId,
        endpoints: impl Iterator<Item = &'a WebhookEndpoint>,
    ) -> Vec<WebhookDelivery> {
        let now = self.config.clock.now();
        let listening = endpoints.filter(|endpoint| endpoint.tenant == *tenant);
        listening.flat_map(|endpoint| news.items.iter().filter_map(move |item| item.to(endpoint, run, now))).collect()
    }

    async fn open_queues(&self, queues: &mut EndpointQueues, stop: &CancellationToken) -> Result<(), StoreError> {
        let due = self.config.store.due(self.config.clock.now()).await?;
        for due in due {
            let host = host(&due.url);
            if queues.have_room_for(&due, host.as_deref()) {
                let (config, client, stop) = (self.config.clone(), self.client.clone(), stop.clone());
                let queue = EndpointQueue { config, client, endpoint: due.id.clone(), stop };
                let task = queues.tasks.spawn(queue.run());
                queues.open.insert(task.id(), OpenEndpoint { due, host });
            }
        }
        Ok(())
    }

    async fn forget(&self, now: Timestamp) {
        let before = now.saturating_sub(KEPT).unwrap_or(now);
        if let Err(error) = self.config.store.forget(before).await {
            tracing::warn!(%error, "failed to delete old webhook deliveries");
        }
    }
}

impl EndpointQueues {
    /// Whether another queue may open: one per endpoint, and bounded numbers per tenant and per host.
    fn have_room_for(&self, due: &DueEndpoint, host: Option<&str>) -> bool {
        let of_tenant = self.open.values().filter(|open| open.due.tenant == due.tenant).count();
        let to_host = || self.open.values().filter(|open| host.is_some() && open.host.as_deref() == host);
        self.open.len() < QUEUES
            && of_tenant < QUEUES_PER_TENANT
            && to_host().count() < QUEUES_PER_HOST
            && to_host().filter(|open| open.due.tenant == due.tenant).count() < QUEUES_PER_HOST_AND_TENANT
            && self.open.values().all(|open| open.due.id != due.id)
    }

    async fn close_one(&mut self) {
        let closed = match self.tasks.join_next_with_id().await {
            Some(Ok((task, ()))) => task,
            Some(Err(error)) => {
                tracing::error!(%error, "webhook queue failed");
                error.id()
            }
            None => return self.open.clear(),
        };
        self.open.remove(&closed);
    }
}

/// The host of a URL, for counting.
fn host(url: &str) -> Option<String> {
    Some(reqwest::Url::parse(url).ok()?.host_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(tenant: &str, number: usize) -> DueEndpoint {
        DueEndpoint { id: format!("we_{tenant}_{number}").into(), tenant: tenant.into(), url: String::new() }
    }

    fn open(queues: &mut EndpointQueues, due: DueEndpoint, host: Option<&str>) {
        let open = OpenEndpoint { due, host: host.map(str::to_owned) };
        queues.open.insert(queues.tasks.spawn(std::future::pending()).id(), open);
    }

    #[tokio::test]
    async fn no_tenant_has_all_queues_and_no_endpoint_has_two() {
        let mut queues = EndpointQueues::default();
        let mut opened = 0;
        for number in (0..QUEUES).chain(0..QUEUES) {
            let due = due("acme", number);
            if queues.have_room_for(&due, None) {
                opened += 1;
                open(&mut queues, due, None);
            }
        }
        assert_eq!(opened, QUEUES_PER_TENANT);
        assert!(queues.have_room_for(&due("brim", 1), None));
        assert!(!queues.have_room_for(&due("acme", QUEUES), None));
    }

    #[tokio::test]
    async fn no_host_is_sent_to_over_more_than_a_few_queues() {
        let mut queues = EndpointQueues::default();
        let due = |number: usize| due(&format!("t{number}"), number);
        let example = host("https://EXAMPLE.com:8443/a");
        assert_eq!(example, host("https://example.com/b"));
        for number in 0..QUEUES_PER_HOST {
            assert!(queues.have_room_for(&due(number), example.as_deref()));
            open(&mut queues, due(number), example.as_deref());
        }
        assert!(!queues.have_room_for(&due(QUEUES), example.as_deref()));
        assert!(queues.have_room_for(&due(QUEUES), Some("other.example")));
    }

    #[tokio::test]
    async fn one_tenant_does_not_take_all_queues_of_a_host() {
        let mut queues = EndpointQueues::default();
        let mut number = 0;
        while queues.have_room_for(&due("acme", number), Some("example.com")) {
            open(&mut queues, due("acme", number), Some("example.com"));
            number += 1;
        }
        assert_eq!(number, QUEUES_PER_HOST_AND_TENANT);
        assert!(queues.have_room_for(&due("brim", 0), Some("example.com")));
    }
}
