//! Webhooks in memory: endpoints, deliveries, and the announced journal position of each run.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use jiff::Timestamp;
use toolgate_core::id::{EndpointId, RunId, Tenant};
use toolgate_ports::{
    Announcement, DeliveryFilter, DeliveryResult, DeliveryState, DueEndpoint, EndpointFilter, EndpointHealth,
    EndpointRuns, EndpointSaved, StoreError, UnannouncedRun, WebhookDeliveries, WebhookDelivery, WebhookEndpoint,
    WebhookEndpoints, WebhookOutbox,
};

use super::contents::{Contents, Run, WebhookContents};
use super::{MemoryStore, page};

#[async_trait]
impl WebhookEndpoints for MemoryStore {
    async fn save(&self, endpoint: &WebhookEndpoint) -> Result<EndpointSaved, StoreError> {
        let mut contents = self.contents();
        let known = contents.webhooks.endpoints.get(&endpoint.id);
        let revision = known.map_or(0, |known| known.revision);
        if revision != endpoint.revision {
            return Ok(EndpointSaved::Stale);
        }
        let (tenant, runs) = (Some(endpoint.tenant.clone()), EndpointRuns::OfTenant);
        let filter = EndpointFilter { tenant, runs, ..EndpointFilter::default() };
        let of_tenant = || contents.webhooks.endpoints.values().filter(|other| filter.admits(other));
        let is_of_tenant = endpoint.run.is_none();
        if is_of_tenant
            && known.is_none_or(|known| known.url != endpoint.url)
            && let Some(other) = of_tenant().find(|other| other.url == endpoint.url)
        {
            return Ok(EndpointSaved::UrlTaken(other.clone().into()));
        }
        if is_of_tenant && known.is_none() && of_tenant().count() >= WebhookEndpoint::MOST {
            return Ok(EndpointSaved::LimitReached);
        }
        let stays_on_or_off = known.filter(|known| known.disabled.is_none() || endpoint.disabled.is_some());
        let failing_since = stays_on_or_off.and_then(|known| known.failing_since);
        let saved = WebhookEndpoint { revision: revision + 1, failing_since, ..endpoint.clone() };
        contents.webhooks.endpoints.insert(endpoint.id.clone(), saved);
        Ok(EndpointSaved::Saved)
    }

    async fn endpoints(&self, filter: &EndpointFilter) -> Result<Vec<WebhookEndpoint>, StoreError> {
        let endpoints = &self.contents().webhooks.endpoints;
        let after = filter.after.as_ref().map(|after| endpoints.get(after));
        let admitted = endpoints.values().filter(|endpoint| filter.admits(endpoint));
        Ok(page(admitted, after, filter.limit, |endpoint| (endpoint.created_at, &endpoint.id)))
    }

    async fn remove(&self, endpoint: &EndpointId) -> Result<bool, StoreError> {
        Ok(self.contents().webhooks.remove(endpoint))
    }

    async fn configure(&self, endpoints: &[WebhookEndpoint]) -> Result<(), StoreError> {
        let webhooks = &mut self.contents().webhooks;
        let named: BTreeSet<&EndpointId> = endpoints.iter().map(|endpoint| &endpoint.id).collect();
        let configured = webhooks.endpoints.values().filter(|known| known.configured && !named.contains(&known.id));
        for gone in configured.map(|known| known.id.clone()).collect::<Vec<_>>() {
            webhooks.remove(&gone);
        }
        for endpoint in endpoints {
            let known = webhooks.endpoints.get(&endpoint.id);
            let created_at = known.map_or(endpoint.created_at, |known| known.created_at);
            let revision = known.map_or(0, |known| known.revision) + 1;
            let saved = WebhookEndpoint { created_at, revision, ..endpoint.clone() };
            webhooks.endpoints.insert(endpoint.id.clone(), saved);
        }
        Ok(())
    }
}

#[async_trait]
impl WebhookOutbox for MemoryStore {
    async fn unannounced(&self, limit: usize) -> Result<Vec<UnannouncedRun>, StoreError> {
        let mut contents = self.contents();
        let Contents { runs, webhooks, .. } = &mut *contents;
        let endpoints = || webhooks.endpoints.values();
        let listening: BTreeSet<&Tenant> =
            endpoints().filter(|endpoint| endpoint.run.is_none()).map(|endpoint| &endpoint.tenant).collect();
        let of_runs: BTreeSet<&RunId> = endpoints().filter_map(|endpoint| endpoint.run.as_ref()).collect();
        let (mut unannounced, mut settled) = (Vec::new(), Vec::new());
        for row in webhooks.changed.iter().filter_map(|run| runs.get(run)).map(|run| &run.row) {
            let announced = webhooks.announced.entry(row.id.clone()).or_default();
            let has_endpoint = listening.contains(&row.tenant) || of_runs.contains(&row.id);
            if row.purged_at.is_some() || !has_endpoint {
                *announced = row.version;
            }
            if *announced >= row.version {
                settled.push(row.id.clone());
            } else if unannounced.len() < limit {
                unannounced.push(UnannouncedRun { row: row.clone(), announced: *announced });
            }
        }
        for run in settled {
            webhooks.changed.remove(&run);
        }
        Ok(unannounced)
    }

    async fn announce(&self, announcement: Announcement) -> Result<(), StoreError> {
        let webhooks = &mut self.contents().webhooks;
        for delivery in announcement.deliveries {
            if webhooks.endpoints.contains_key(&delivery.endpoint) {
                webhooks.deliveries.entry(delivery.id.clone()).or_insert(delivery);
            }
        }
        let mark = webhooks.announced.entry(announcement.run).or_default();
        *mark = announcement.up_to.max(*mark);
        Ok(())
    }

    async fn forget(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut contents = self.contents();
        let Contents { runs, webhooks, .. } = &mut *contents;
        let WebhookContents { endpoints, deliveries, announced, .. } = webhooks;
        let there = deliveries.len();
        deliveries.retain(|_, delivery| delivery.created_at >= before);
        endpoints.retain(|id, endpoint| {
            let Some(run) = endpoint.run.as_ref().filter(|_| endpoint.created_at < before) else { return true };
            let told = announced.get(run).copied().unwrap_or_default();
            let is_live = |run: &Run| !run.row.status.is_ended() || told < run.row.version;
            runs.get(run).is_some_and(is_live) || deliveries.values().any(|delivery| delivery.endpoint == *id)
        });
        Ok(there.saturating_sub(deliveries.len()) as u64)
    }
}

#[async_trait]
impl WebhookDeliveries for MemoryStore {
    async fn enqueue(&self, delivery: &WebhookDelivery) -> Result<bool, StoreError> {
        let webhooks = &mut self.contents().webhooks;
        if !webhooks.endpoints.contains_key(&delivery.endpoint) {
            return Ok(false);
        }
        webhooks.deliveries.insert(delivery.id.clone(), delivery.clone());
        Ok(true)
    }

    async fn due(&self, now: Timestamp) -> Result<Vec<DueEndpoint>, StoreError> {
        let webhooks = &self.contents().webhooks;
        let mut longest: BTreeMap<&EndpointId, Timestamp> = BTreeMap::new();
        for delivery in webhooks.deliveries.values() {
            if let Some(due_at) = delivery.due_at().filter(|due_at| *due_at <= now) {
                let longest = longest.entry(&delivery.endpoint).or_insert(due_at);
                *longest = due_at.min(*longest);
            }
        }
        let mut longest: Vec<_> = longest.into_iter().collect();
        longest.sort_by_key(|(id, due_at)| (*due_at, *id));
        let known = longest.into_iter().filter_map(|(id, _)| webhooks.endpoints.get(id));
        let enabled = known.filter(|known| known.disabled.is_none());
        let due = |known: &WebhookEndpoint| DueEndpoint {
            id: known.id.clone(),
            tenant: known.tenant.clone(),
            url: known.url.clone(),
        };
        Ok(enabled.map(due).collect())
    }

    async fn take(
        &self,
        endpoint: &EndpointId,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<WebhookDelivery>, StoreError> {
        let webhooks = &mut self.contents().webhooks;
        if webhooks.endpoints.get(endpoint).is_none_or(|known| known.disabled.is_some()) {
            return Ok(Vec::new());
        }
        let of_it = webhooks.deliveries.values_mut().filter(|delivery| delivery.endpoint == *endpoint);
        let mut due: Vec<_> = of_it.filter(|delivery| delivery.due_at().is_some_and(|due| due <= now)).collect();
        due.sort_by_key(|delivery| delivery.due_at());
        let taken = due.into_iter().take(limit).map(|delivery| {
            delivery.state = DeliveryState::Waiting { due_at: until };
            delivery.clone()
        });
        Ok(taken.collect())
    }

    async fn settle(&self, settled: &DeliveryResult) -> Result<(), StoreError> {
        let webhooks = &mut self.contents().webhooks;
        let DeliveryResult { delivery, taken_until, health } = settled;
        match webhooks.deliveries.get_mut(&delivery.id) {
            Some(known) if known.due_at() == Some(*taken_until) => *known = delivery.clone(),
            Some(_) | None => return Ok(()),
        }
        if let Some(endpoint) = webhooks.endpoints.get_mut(&delivery.endpoint) {
            match health {
                EndpointHealth::Well => endpoint.failing_since = None,
                EndpointHealth::Failing(at) => drop(endpoint.failing_since.get_or_insert(*at)),
                EndpointHealth::Disabled(disabled) => {
                    endpoint.disabled.get_or_insert_with(|| disabled.clone());
                    endpoint.revision += 1;
                }
                EndpointHealth::GivenUp { since, disabled } if endpoint.failing_since == Some(*since) => {
                    endpoint.disabled.get_or_insert_with(|| disabled.clone());
                    endpoint.revision += 1;
                }
                EndpointHealth::GivenUp { disabled, .. } => drop(endpoint.failing_since.get_or_insert(disabled.at)),
            }
        }
        Ok(())
    }

    async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<WebhookDelivery>, StoreError> {
        let webhooks = &self.contents().webhooks;
        let place = |delivery: &WebhookDelivery| (delivery.created_at, delivery.id.clone());
        let after = match &filter.after {
            None => None,
            Some(after) => match webhooks.deliveries.get(after).filter(|after| after.endpoint == filter.endpoint) {
                Some(after) => Some(place(after)),
                None => return Ok(Vec::new()),
            },
        };
        let admitted = webhooks.deliveries.values().filter(|delivery| {
            delivery.endpoint == filter.endpoint
                && filter.id.as_ref().is_none_or(|id| *id == delivery.id)
                && after.as_ref().is_none_or(|after| place(delivery) < *after)
        });
        let mut found: Vec<_> = admitted.cloned().collect();
        found.sort_by_key(|delivery| std::cmp::Reverse(place(delivery)));
        found.truncate(filter.limit);
        Ok(found)
    }
}
