//! Webhooks: endpoints, unannounced events, and deliveries.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate::core::run::Status;
use toolgate::ports::{
    Announcement, DeliveryFilter, DeliveryResult, DeliveryState, Disabled, DueEndpoint, EndpointFilter, EndpointHealth,
    EndpointRuns, EndpointSaved, EndpointSecrets, WebhookDeliveries, WebhookDelivery, WebhookEndpoint, WebhookKind,
    WebhookOutbox, WebhookSecret,
};

use super::Store;
use crate::stores::journals::{Appending, append, run};

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn endpoint(id: &str, tenant: &str) -> WebhookEndpoint {
    WebhookEndpoint {
        id: id.into(),
        tenant: tenant.into(),
        url: format!("https://example.com/{id}"),
        events: [WebhookKind::Pending].into(),
        description: Some("the ledger".into()),
        run: None,
        secrets: EndpointSecrets {
            current: WebhookSecret::new("whsec_current"),
            previous: vec![(WebhookSecret::new("whsec_previous"), second(5))],
        },
        created_at: second(0),
        configured: false,
        revision: 0,
        failing_since: None,
        disabled: None,
    }
}

fn delivery(id: &str, endpoint: &str, made: i64) -> WebhookDelivery {
    WebhookDelivery {
        id: id.into(),
        endpoint: endpoint.into(),
        kind: WebhookKind::Pending,
        run: Some(run(1)),
        body: r#"{"type":"execution.pending"}"#.into(),
        created_at: second(made),
        state: DeliveryState::Waiting { due_at: second(made) },
        tries: 0,
        attempts: Vec::new(),
    }
}

async fn all<S: Store>(store: &Arc<S>) -> Vec<WebhookEndpoint> {
    store.endpoints(&EndpointFilter::default()).await.unwrap()
}

async fn listed<S: Store>(store: &Arc<S>, endpoint: &str) -> Vec<WebhookDelivery> {
    let filter = DeliveryFilter { endpoint: endpoint.into(), id: None, after: None, limit: 100 };
    store.deliveries(&filter).await.unwrap()
}

async fn due<S: Store>(store: &Arc<S>, now: i64) -> Vec<String> {
    store.due(second(now)).await.unwrap().into_iter().map(|due| due.id.to_string()).collect()
}

fn ids(deliveries: &[WebhookDelivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| delivery.id.as_str()).collect()
}

pub(crate) async fn an_endpoint_changes_only_at_its_current_revision<S: Store>(store: Arc<S>) {
    let new = endpoint("we_a", "acme");
    assert_eq!(store.save(&new).await.unwrap(), EndpointSaved::Saved);
    assert_eq!(store.save(&new).await.unwrap(), EndpointSaved::Stale, "there is one of that id");
    let saved = all(&store).await.remove(0);
    assert_eq!(saved, WebhookEndpoint { revision: 1, ..new.clone() });

    let disabled = Some(Disabled { at: second(1), reason: "it is gone".into() });
    let changed = WebhookEndpoint { url: "https://example.com/new".into(), disabled, ..saved.clone() };
    assert_eq!(store.save(&changed).await.unwrap(), EndpointSaved::Saved);
    assert_eq!(store.save(&saved).await.unwrap(), EndpointSaved::Stale, "it was changed since");
    assert_eq!(all(&store).await, [WebhookEndpoint { revision: 2, ..changed.clone() }]);
    assert!(store.remove(&"we_a".into()).await.unwrap());
    assert!(!store.remove(&"we_a".into()).await.unwrap());
    assert_eq!(
        store.save(&WebhookEndpoint { revision: 2, ..changed }).await.unwrap(),
        EndpointSaved::Stale,
        "what was removed stays away"
    );
    assert_eq!(all(&store).await, []);
}

pub(crate) async fn endpoints_are_found_by_id_and_by_tenant_oldest_first<S: Store>(store: Arc<S>) {
    for (id, tenant, made) in [("we_a", "acme", 3), ("we_b", "brim", 2), ("we_c", "acme", 1)] {
        let new = WebhookEndpoint { created_at: second(made), ..endpoint(id, tenant) };
        assert_eq!(store.save(&new).await.unwrap(), EndpointSaved::Saved);
    }
    let found = async |id: Option<&str>, tenant: Option<&str>| {
        let filter =
            EndpointFilter { id: id.map(Into::into), tenant: tenant.map(Into::into), ..EndpointFilter::default() };
        let found = store.endpoints(&filter).await.unwrap();
        found.iter().map(|endpoint| endpoint.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found(None, None).await, ["we_c", "we_b", "we_a"]);
    assert_eq!(found(None, Some("acme")).await, ["we_c", "we_a"]);
    assert_eq!(found(Some("we_b"), None).await, ["we_b"]);
    assert_eq!(found(Some("we_b"), Some("acme")).await, [""; 0]);
}

pub(crate) async fn configured_endpoints_replace_the_previous_ones<S: Store>(store: Arc<S>) {
    let configured = |id| WebhookEndpoint { configured: true, ..endpoint(id, "acme") };
    assert_eq!(store.save(&endpoint("we_own", "acme")).await.unwrap(), EndpointSaved::Saved);
    store.configure(&[configured("we_a"), configured("we_b")]).await.unwrap();
    store.enqueue(&delivery("msg_a", "we_a", 1)).await.unwrap();
    store.enqueue(&delivery("msg_b", "we_b", 1)).await.unwrap();

    let later = WebhookEndpoint { created_at: second(9), url: "https://example.com/b".into(), ..configured("we_b") };
    store.configure(&[later]).await.unwrap();

    let kept = all(&store).await;
    let shown: Vec<_> = kept.iter().map(|kept| (kept.id.as_str(), kept.url.as_str(), kept.created_at)).collect();
    assert_eq!(
        shown,
        [("we_b", "https://example.com/b", second(0)), ("we_own", "https://example.com/we_own", second(0)),]
    );
    assert_eq!((listed(&store, "we_a").await.len(), listed(&store, "we_b").await.len()), (0, 1));
}

pub(crate) async fn an_idle_run_is_unannounced_until_it_is_announced<S: Store>(store: Arc<S>) {
    store.save(&endpoint("we_a", "default")).await.unwrap();
    store.append(append(run(1), 0, 3)).await.unwrap();
    assert_eq!(store.unannounced(10).await.unwrap(), [], "it is under way");
    store.append(append(run(1), 3, 1).leaving(Status::Pending)).await.unwrap();
    store.append(append(run(2), 0, 1).leaving(Status::Completed)).await.unwrap();
    let unannounced = async || {
        let unannounced = store.unannounced(10).await.unwrap();
        unannounced
            .iter()
            .map(|unannounced| (unannounced.row.id.clone(), unannounced.row.version, unannounced.announced))
            .collect::<Vec<_>>()
    };
    assert_eq!(unannounced().await, [(run(1), 4, 0), (run(2), 1, 0)]);
    assert_eq!(store.unannounced(1).await.unwrap().len(), 1);

    store.announce(Announcement { run: run(1), up_to: 4, deliveries: Vec::new() }).await.unwrap();
    assert_eq!(unannounced().await, [(run(2), 1, 0)]);
    store.append(append(run(1), 4, 1).leaving(Status::Failed)).await.unwrap();
    store.announce(Announcement { run: run(1), up_to: 2, deliveries: Vec::new() }).await.unwrap();
    assert_eq!(unannounced().await, [(run(1), 5, 4), (run(2), 1, 0)], "the mark never moves back");
}

pub(crate) async fn events_without_an_endpoint_count_as_announced<S: Store>(store: Arc<S>) {
    store.save(&endpoint("we_a", "acme")).await.unwrap();
    let of = |number, tenant: &str| {
        let mut new = append(run(number), 0, 1).leaving(Status::Pending);
        new.row.tenant = tenant.into();
        new
    };
    store.append(of(1, "acme")).await.unwrap();
    store.append(of(2, "brim")).await.unwrap();
    let unannounced = async || {
        store.unannounced(10).await.unwrap().into_iter().map(|unannounced| unannounced.row.id).collect::<Vec<_>>()
    };
    assert_eq!(unannounced().await, [run(1)]);
    store.save(&endpoint("we_b", "brim")).await.unwrap();
    assert_eq!(unannounced().await, [run(1)]);
    store.append(of(3, "brim")).await.unwrap();
    assert_eq!(unannounced().await, [run(1), run(3)]);
}

pub(crate) async fn an_unannounced_deleted_run_hides_no_other_run<S: Store>(store: Arc<S>) {
    store.save(&endpoint("we_a", "default")).await.unwrap();
    for number in 1..=4 {
        store.append(append(run(number), 0, 1).leaving(Status::Completed)).await.unwrap();
    }
    for number in 1..=3 {
        store.purge(&run(number), 1, second(9)).await.unwrap();
    }
    let unannounced = store.unannounced(2).await.unwrap();
    assert_eq!(unannounced.into_iter().map(|unannounced| unannounced.row.id).collect::<Vec<_>>(), [run(4)]);
}

pub(crate) async fn announcing_twice_creates_one_delivery<S: Store>(store: Arc<S>) {
    store.save(&endpoint("we_a", "default")).await.unwrap();
    store.append(append(run(1), 0, 1).leaving(Status::Pending)).await.unwrap();
    let tell = |made| Announcement {
        run: run(1),
        up_to: 1,
        deliveries: vec![delivery("msg_1", "we_a", made), delivery("msg_2", "we_unknown", made)],
    };
    store.announce(tell(1)).await.unwrap();
    store.announce(tell(2)).await.unwrap();
    assert_eq!(listed(&store, "we_a").await, [delivery("msg_1", "we_a", 1)]);
    assert_eq!(listed(&store, "we_unknown").await, [], "it has no endpoint");
}

pub(crate) async fn the_endpoint_that_is_longest_due_comes_first<S: Store>(store: Arc<S>) {
    for (id, tenant) in [("we_a", "acme"), ("we_b", "brim"), ("we_c", "acme")] {
        store.save(&endpoint(id, tenant)).await.unwrap();
    }
    for (id, endpoint, made) in [("msg_1", "we_a", 3), ("msg_2", "we_b", 1), ("msg_3", "we_b", 5), ("msg_4", "we_c", 2)]
    {
        store.enqueue(&delivery(id, endpoint, made)).await.unwrap();
    }
    assert_eq!(due(&store, 9).await, ["we_b", "we_c", "we_a"]);
    let first = store.due(second(9)).await.unwrap().remove(0);
    assert_eq!(first, DueEndpoint { id: "we_b".into(), tenant: "brim".into(), url: "https://example.com/we_b".into() });
    store.take(&"we_b".into(), second(9), second(60), 1).await.unwrap();
    assert_eq!(due(&store, 9).await, ["we_c", "we_a", "we_b"], "what is taken is due later");
}

pub(crate) async fn a_claimed_delivery_is_exclusive_until_it_is_due_again<S: Store>(store: Arc<S>) {
    store.save(&endpoint("we_a", "default")).await.unwrap();
    store.save(&endpoint("we_b", "default")).await.unwrap();
    for (id, endpoint, made) in [("msg_2", "we_a", 2), ("msg_1", "we_a", 1), ("msg_3", "we_b", 1), ("msg_4", "we_a", 9)]
    {
        store.enqueue(&delivery(id, endpoint, made)).await.unwrap();
    }
    assert_eq!(due(&store, 0).await, [""; 0]);
    assert_eq!(due(&store, 2).await, ["we_a", "we_b"]);
    let take = async |now, limit| {
        let taken = store.take(&"we_a".into(), second(now), second(60), limit).await.unwrap();
        assert!(taken.iter().all(|taken| taken.due_at() == Some(second(60))), "{taken:?}");
        taken.iter().map(|taken| taken.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(take(2, 1).await, ["msg_1"], "the longest due first");
    assert_eq!(take(2, 10).await, ["msg_2"]);
    assert_eq!(take(2, 10).await, [""; 0]);
    assert_eq!(due(&store, 2).await, ["we_b"]);
    let again = take(60, 10).await;
    assert_eq!(again.len(), 3, "their worker never settled them: {again:?}");
}

pub(crate) async fn a_delivery_claimed_by_another_worker_is_not_settled<S: Store>(store: Arc<S>) {
    store.save(&endpoint("we_a", "default")).await.unwrap();
    store.enqueue(&delivery("msg_1", "we_a", 1)).await.unwrap();
    let first = store.take(&"we_a".into(), second(1), second(60), 1).await.unwrap().remove(0);
    store.take(&"we_a".into(), second(60), second(120), 1).await.unwrap();
    let arrived = WebhookDelivery { state: DeliveryState::Delivered, tries: 1, ..first };
    let settled =
        |until| DeliveryResult { delivery: arrived.clone(), taken_until: second(until), health: EndpointHealth::Well };
    WebhookDeliveries::settle(&*store, &settled(60)).await.unwrap();
    assert_eq!(listed(&store, "we_a").await.remove(0).due_at(), Some(second(120)));
    WebhookDeliveries::settle(&*store, &settled(120)).await.unwrap();
    assert_eq!(listed(&store, "we_a").await, [arrived]);
    assert_eq!(due(&store, 1_000).await, [""; 0]);
}

pub(crate) async fn a_disabled_endpoint_receives_nothing<S: Store>(store: Arc<S>) {
    one_endpoint_with_messages(&store).await;
    let settle = async |health| after(&store, health).await;
    assert_eq!(settle(EndpointHealth::Failing(second(3))).await.failing_since, Some(second(3)));
    assert_eq!(
        settle(EndpointHealth::Failing(second(4))).await.failing_since,
        Some(second(3)),
        "the first failure counts"
    );
    assert_eq!(settle(EndpointHealth::Well).await.failing_since, None);
    let disabled = Disabled { at: second(5), reason: "it says it is gone".into() };
    assert_eq!(settle(EndpointHealth::Disabled(disabled.clone())).await.disabled, Some(disabled));
    assert_eq!(due(&store, 1_000).await, [""; 0]);
    assert_eq!(store.take(&"we_a".into(), second(1_000), second(2_000), 9).await.unwrap(), []);
    let off = all(&store).await.remove(0);
    assert_eq!(store.save(&WebhookEndpoint { disabled: None, ..off }).await.unwrap(), EndpointSaved::Saved);
    assert_eq!(store.take(&"we_a".into(), second(1_000), second(2_000), 9).await.unwrap().len(), 4);
}

/// Claims the next message of the only endpoint, settles it like this, and returns the endpoint.
async fn after<S: Store>(store: &Arc<S>, health: EndpointHealth) -> WebhookEndpoint {
    let taken = store.take(&"we_a".into(), second(1), second(60), 1).await.unwrap().remove(0);
    let settled = DeliveryResult { delivery: taken, taken_until: second(60), health };
    WebhookDeliveries::settle(&**store, &settled).await.unwrap();
    all(store).await.remove(0)
}

async fn one_endpoint_with_messages<S: Store>(store: &Arc<S>) {
    store.save(&endpoint("we_a", "default")).await.unwrap();
    for id in ["msg_1", "msg_2", "msg_3", "msg_4"] {
        store.enqueue(&delivery(id, "we_a", 1)).await.unwrap();
    }
}

pub(crate) async fn a_stale_attempt_does_not_disable_a_recovered_endpoint<S: Store>(store: Arc<S>) {
    one_endpoint_with_messages(&store).await;
    let disabled = Disabled { at: second(9), reason: "nothing has arrived there for days".into() };
    let given_up = EndpointHealth::GivenUp { since: second(3), disabled: disabled.clone() };
    after(&store, EndpointHealth::Failing(second(3))).await;
    after(&store, EndpointHealth::Well).await;
    let recovered = after(&store, given_up.clone()).await;
    assert_eq!((recovered.disabled, recovered.failing_since), (None, Some(second(9))), "it starts to fail again");

    let given_up = EndpointHealth::GivenUp { since: second(9), disabled: disabled.clone() };
    assert_eq!(after(&store, given_up).await.disabled, Some(disabled));
}

pub(crate) async fn a_change_of_an_endpoint_keeps_its_failure_state<S: Store>(store: Arc<S>) {
    one_endpoint_with_messages(&store).await;
    let read = all(&store).await.remove(0);
    after(&store, EndpointHealth::Failing(second(3))).await;
    assert_eq!(store.save(&WebhookEndpoint { description: None, ..read }).await.unwrap(), EndpointSaved::Saved);
    let changed = all(&store).await.remove(0);
    assert_eq!((changed.description.clone(), changed.failing_since), (None, Some(second(3))));

    after(&store, EndpointHealth::Well).await;
    let disabled = Some(Disabled { at: second(4), reason: "kim switched it off".into() });
    assert_eq!(store.save(&WebhookEndpoint { disabled, ..changed }).await.unwrap(), EndpointSaved::Saved);
    assert_eq!(all(&store).await.remove(0).failing_since, None, "it had recovered");
}

pub(crate) async fn a_reenabled_endpoint_has_no_failures<S: Store>(store: Arc<S>) {
    one_endpoint_with_messages(&store).await;
    let failing = after(&store, EndpointHealth::Failing(second(3))).await;
    let disabled = Some(Disabled { at: second(4), reason: "kim switched it off".into() });
    assert_eq!(store.save(&WebhookEndpoint { disabled, ..failing }).await.unwrap(), EndpointSaved::Saved);
    let off = all(&store).await.remove(0);
    assert_eq!(off.failing_since, Some(second(3)));
    assert_eq!(store.save(&WebhookEndpoint { disabled: None, ..off }).await.unwrap(), EndpointSaved::Saved);
    assert_eq!(all(&store).await.remove(0).failing_since, None);
}

pub(crate) async fn no_delivery_is_created_for_an_unknown_endpoint<S: Store>(store: Arc<S>) {
    store.save(&endpoint("we_a", "default")).await.unwrap();
    assert!(store.enqueue(&delivery("msg_1", "we_a", 1)).await.unwrap());
    assert!(store.enqueue(&delivery("msg_1", "we_a", 2)).await.unwrap(), "once more");
    assert!(!store.enqueue(&delivery("msg_2", "we_b", 1)).await.unwrap());
    store.remove(&"we_a".into()).await.unwrap();
    assert!(!store.enqueue(&delivery("msg_1", "we_a", 3)).await.unwrap());
    assert_eq!((listed(&store, "we_a").await, listed(&store, "we_b").await), (Vec::new(), Vec::new()));
}

pub(crate) async fn deliveries_are_listed_newest_first_in_pages<S: Store>(store: Arc<S>) {
    for id in ["we_a", "we_b"] {
        store.save(&endpoint(id, "default")).await.unwrap();
    }
    for (id, made) in [("msg_b", 1), ("msg_a", 1), ("msg_d", 3), ("msg_c", 2)] {
        store.enqueue(&delivery(id, "we_a", made)).await.unwrap();
    }
    store.enqueue(&delivery("msg_e", "we_b", 2)).await.unwrap();
    assert_eq!(ids(&listed(&store, "we_a").await), ["msg_d", "msg_c", "msg_b", "msg_a"]);
    let page = async |id: Option<&str>, after: Option<&str>, limit| {
        let filter =
            DeliveryFilter { endpoint: "we_a".into(), id: id.map(Into::into), after: after.map(Into::into), limit };
        store.deliveries(&filter).await.unwrap()
    };
    assert_eq!(ids(&page(None, None, 2).await), ["msg_d", "msg_c"]);
    assert_eq!(ids(&page(None, Some("msg_c"), 2).await), ["msg_b", "msg_a"]);
    assert_eq!(ids(&page(Some("msg_b"), None, 2).await), ["msg_b"]);
    assert_eq!(ids(&page(Some("msg_e"), None, 2).await), [""; 0]);
    assert_eq!(ids(&page(None, Some("msg_unknown"), 2).await), [""; 0]);
    assert_eq!(ids(&page(None, Some("msg_e"), 2).await), [""; 0], "that of another endpoint is no place");
}

pub(crate) async fn old_deliveries_and_those_of_removed_endpoints_are_deleted<S: Store>(store: Arc<S>) {
    for id in ["we_a", "we_b"] {
        store.save(&endpoint(id, "default")).await.unwrap();
    }
    for (id, endpoint, made) in [("msg_1", "we_a", 1), ("msg_2", "we_a", 2), ("msg_3", "we_b", 2)] {
        store.enqueue(&delivery(id, endpoint, made)).await.unwrap();
    }
    assert_eq!(WebhookOutbox::forget(&*store, second(2)).await.unwrap(), 1);
    assert_eq!(ids(&listed(&store, "we_a").await), ["msg_2"]);
    store.remove(&"we_a".into()).await.unwrap();
    assert_eq!(ids(&listed(&store, "we_a").await), [""; 0]);
    assert_eq!(ids(&listed(&store, "we_b").await), ["msg_3"]);
}

/// The endpoint of a run.
fn endpoint_of(number: usize) -> WebhookEndpoint {
    WebhookEndpoint {
        run: Some(run(number)),
        url: "https://example.com/same".into(),
        ..endpoint(&format!("we_run_{number}"), "acme")
    }
}

pub(crate) async fn endpoints_of_runs_are_listed_alone_and_share_urls<S: Store>(store: Arc<S>) {
    store.save(&endpoint("we_a", "acme")).await.unwrap();
    for number in [1, 2] {
        assert_eq!(store.save(&endpoint_of(number)).await.unwrap(), EndpointSaved::Saved);
    }
    assert_eq!(store.save(&endpoint_of(1)).await.unwrap(), EndpointSaved::Stale, "a run has one");
    let found = async |runs| {
        let filter = EndpointFilter { runs, tenant: Some("acme".into()), limit: Some(9), ..EndpointFilter::default() };
        let found = store.endpoints(&filter).await.unwrap();
        found.iter().map(|endpoint| endpoint.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found(EndpointRuns::OfTenant).await, ["we_a"]);
    assert_eq!(found(EndpointRuns::Only(run(2))).await, ["we_run_2"]);
    assert_eq!(found(EndpointRuns::Only(run(3))).await, [""; 0]);
    assert_eq!(found(EndpointRuns::Any).await, ["we_a", "we_run_1", "we_run_2"]);
    let same = WebhookEndpoint { url: "https://example.com/same".into(), ..endpoint("we_b", "acme") };
    assert_eq!(store.save(&same).await.unwrap(), EndpointSaved::Saved, "the URLs of runs are not taken");
}

pub(crate) async fn a_run_with_an_endpoint_is_unannounced_and_others_are_not<S: Store>(store: Arc<S>) {
    store.save(&WebhookEndpoint { tenant: Default::default(), ..endpoint_of(1) }).await.unwrap();
    for number in [1, 2] {
        store.append(append(run(number), 0, 1).leaving(Status::Pending)).await.unwrap();
    }
    let found = store.unannounced(10).await.unwrap();
    assert_eq!(found.iter().map(|found| found.row.id.clone()).collect::<Vec<_>>(), [run(1)]);
}

pub(crate) async fn due_endpoints_of_runs_and_of_tenants_are_ordered_together<S: Store>(store: Arc<S>) {
    store.save(&endpoint("we_a", "acme")).await.unwrap();
    for number in [1, 2] {
        store.save(&endpoint_of(number)).await.unwrap();
    }
    for (id, endpoint, made) in [("msg_1", "we_a", 2), ("msg_2", "we_run_1", 3), ("msg_3", "we_run_2", 1)] {
        store.enqueue(&delivery(id, endpoint, made)).await.unwrap();
    }
    assert_eq!(due(&store, 2).await, ["we_run_2", "we_a"]);
    assert_eq!(due(&store, 9).await, ["we_run_2", "we_a", "we_run_1"]);
    assert_eq!(store.due(second(9)).await.unwrap()[0].url, "https://example.com/same");
    let taken = store.take(&"we_run_2".into(), second(9), second(60), 1).await.unwrap().remove(0);
    let disabled = Disabled { at: second(9), reason: "it is gone".into() };
    let health = EndpointHealth::Disabled(disabled);
    let gone = DeliveryResult { delivery: taken, taken_until: second(60), health };
    WebhookDeliveries::settle(&*store, &gone).await.unwrap();
    assert_eq!(due(&store, 99).await, ["we_a", "we_run_1"]);
}

pub(crate) async fn the_endpoint_of_a_run_is_deleted_with_it_or_when_it_is_done<S: Store>(store: Arc<S>) {
    for number in 1..=5 {
        let tenant = Default::default();
        store.save(&WebhookEndpoint { tenant, ..endpoint_of(number) }).await.unwrap();
    }
    for (number, status) in
        [(1, Status::Completed), (2, Status::Completed), (3, Status::Pending), (4, Status::Completed)]
    {
        store.append(append(run(number), 0, 1).leaving(status)).await.unwrap();
        let deliveries = if number == 4 {
            Vec::new()
        } else {
            vec![delivery(&format!("msg_{number}"), &format!("we_run_{number}"), 1)]
        };
        store
            .announce(Announcement { run: run(number), up_to: if number == 4 { 0 } else { 1 }, deliveries })
            .await
            .unwrap();
    }
    store.purge(&run(1), 1, second(9)).await.unwrap();
    let left = async || all(&store).await.iter().map(|endpoint| endpoint.id.to_string()).collect::<Vec<_>>();
    assert_eq!(left().await, ["we_run_2", "we_run_3", "we_run_4", "we_run_5"]);
    assert_eq!(ids(&listed(&store, "we_run_1").await), [""; 0]);
    WebhookOutbox::forget(&*store, second(1)).await.unwrap();
    assert_eq!(left().await, ["we_run_2", "we_run_3", "we_run_4"], "the fifth has no run");
    WebhookOutbox::forget(&*store, second(2)).await.unwrap();
    assert_eq!(left().await, ["we_run_3", "we_run_4"], "the third is pending, the fourth is not announced");
}

pub(crate) async fn pages_of_endpoints_have_each_endpoint_once<S: Store>(store: Arc<S>) {
    for number in 0..20 {
        let tenant = if number % 3 == 0 { "brim" } else { "acme" };
        let new = WebhookEndpoint { created_at: second(number % 4), ..endpoint(&format!("we_{number:02}"), tenant) };
        assert_eq!(store.save(&new).await.unwrap(), EndpointSaved::Saved);
    }
    for tenant in [None, Some("acme")] {
        let filter = EndpointFilter { tenant: tenant.map(Into::into), ..EndpointFilter::default() };
        let whole = store.endpoints(&filter).await.unwrap();
        for limit in [1, 3, 7, 100] {
            let mut paged: Vec<WebhookEndpoint> = Vec::new();
            loop {
                let after = paged.last().map(|endpoint| endpoint.id.clone());
                let page = EndpointFilter { after, limit: Some(limit), ..filter.clone() };
                let page = store.endpoints(&page).await.unwrap();
                assert!(page.len() <= limit);
                if page.is_empty() {
                    break;
                }
                paged.extend(page);
            }
            assert_eq!(paged, whole, "{tenant:?} in pages of {limit}");
        }
    }
}

pub(crate) async fn endpoints_are_unique_by_url_and_limited_per_tenant<S: Store>(store: Arc<S>) {
    let first = endpoint("we_a", "acme");
    let of_its_url = |id, tenant| WebhookEndpoint { url: first.url.clone(), ..endpoint(id, tenant) };
    assert_eq!(store.save(&first).await.unwrap(), EndpointSaved::Saved);
    let taken = EndpointSaved::UrlTaken(Box::new(WebhookEndpoint { revision: 1, ..first.clone() }));
    assert_eq!(store.save(&of_its_url("we_b", "acme")).await.unwrap(), taken);
    assert_eq!(store.save(&of_its_url("we_b", "brim")).await.unwrap(), EndpointSaved::Saved, "of another tenant");
    assert_eq!(store.save(&endpoint("we_c", "acme")).await.unwrap(), EndpointSaved::Saved);
    let moved = WebhookEndpoint { revision: 1, ..of_its_url("we_c", "acme") };
    assert_eq!(store.save(&moved).await.unwrap(), taken, "a change of the URL");

    for number in 2..WebhookEndpoint::MOST {
        assert_eq!(store.save(&endpoint(&format!("we_{number}"), "acme")).await.unwrap(), EndpointSaved::Saved);
    }
    assert_eq!(store.save(&endpoint("we_more", "acme")).await.unwrap(), EndpointSaved::LimitReached);
    let changed = WebhookEndpoint { revision: 1, description: None, ..endpoint("we_c", "acme") };
    assert_eq!(store.save(&changed).await.unwrap(), EndpointSaved::Saved, "there are no more than before");
    assert_eq!(store.save(&endpoint("we_more", "brim")).await.unwrap(), EndpointSaved::Saved);
}
