//! Access keys.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate::ports::{AccessKey, AccessKeys, KeyFilter, KeyHash, Revoked};

use super::Store;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn key(id: &str, tenant: &str, created: i64) -> AccessKey {
    AccessKey {
        id: id.into(),
        name: "ci".to_owned(),
        tenant: tenant.into(),
        principal: Some("shop".into()),
        scopes: vec!["runs:read".to_owned(), "of tomorrow".to_owned()],
        created_at: at(created),
        created_by: "ann".to_owned(),
        expires_at: Some(at(900)),
        overlaps_until: None,
        used_at: None,
        revoked: None,
    }
}

async fn put(store: &dyn AccessKeys, key: &AccessKey) -> KeyHash {
    let hash = KeyHash::for_secret(&format!("secret of {}", key.id));
    store.put_key(&hash, key).await.unwrap();
    hash
}

pub(crate) async fn a_key_is_found_by_the_hash_of_its_secret_alone<S: Store>(store: Arc<S>) {
    let made = key("key_a", "default", 100);
    let hash = put(&*store, &made).await;
    assert_eq!(store.by_hash(&hash).await.unwrap(), Some(made.clone()));
    assert_eq!(store.by_hash(&KeyHash::for_secret("key_a")).await.unwrap(), None);
    assert_eq!((made.holds(at(899)), made.holds(at(900))), (true, false));
}

pub(crate) async fn a_key_is_revoked_once_and_stays_listed<S: Store>(store: Arc<S>) {
    let hash = put(&*store, &key("key_a", "default", 100)).await;
    let first = Revoked { at: at(160), by: "bob".to_owned() };
    let later = Revoked { at: at(170), by: "eve".to_owned() };
    let revoked = store.revoke_key(&"key_a".into(), &first).await.unwrap().unwrap();
    assert_eq!(store.revoke_key(&"key_a".into(), &later).await.unwrap(), Some(revoked.clone()));
    assert_eq!(store.revoke_key(&"key_b".into(), &first).await.unwrap(), None);
    assert_eq!((revoked.revoked.as_ref(), revoked.holds(at(161))), (Some(&first), false));
    assert_eq!(store.by_hash(&hash).await.unwrap(), Some(revoked.clone()));
    assert_eq!(store.keys(&KeyFilter::default()).await.unwrap(), [revoked]);
}

pub(crate) async fn a_key_expires_earlier_and_never_later<S: Store>(store: Arc<S>) {
    let hash = put(&*store, &key("key_a", "default", 100)).await;
    for (asked, until) in [(1_000_000, 900), (200, 200), (300, 200)] {
        let expired = store.overlap_key(&"key_a".into(), at(asked)).await.unwrap().unwrap();
        assert_eq!((expired.valid_until(), expired.expires_at), (Some(at(until)), Some(at(900))));
        assert_eq!(store.by_hash(&hash).await.unwrap(), Some(expired));
    }
    assert_eq!(store.overlap_key(&"key_b".into(), at(200)).await.unwrap(), None);
}

pub(crate) async fn the_last_use_of_a_key_never_goes_back<S: Store>(store: Arc<S>) {
    let hash = put(&*store, &key("key_a", "default", 100)).await;
    for (used, known) in [(150, 150), (140, 150), (1_000_000_000, 1_000_000_000)] {
        store.touch(&"key_a".into(), at(used)).await.unwrap();
        assert_eq!(store.by_hash(&hash).await.unwrap().unwrap().used_at, Some(at(known)));
    }
    store.touch(&"key_of_unknown".into(), at(1)).await.unwrap();
    assert_eq!(store.keys(&KeyFilter::default()).await.unwrap().len(), 1);
}

pub(crate) async fn keys_are_listed_newest_first_and_by_tenant<S: Store>(store: Arc<S>) {
    for (id, tenant, created) in [("old", "acme", 1), ("new", "acme", 300), ("other", "bolt", 20)] {
        put(&*store, &key(id, tenant, created)).await;
    }
    let ids = |keys: Vec<AccessKey>| keys.into_iter().map(|key| key.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids(store.keys(&KeyFilter::default()).await.unwrap()), ["new", "other", "old"]);
    let of = |tenant: &str| KeyFilter { tenant: Some(tenant.into()), ..KeyFilter::default() };
    assert_eq!(ids(store.keys(&of("acme")).await.unwrap()), ["new", "old"]);
    assert_eq!(ids(store.keys(&of("unknown")).await.unwrap()), [""; 0]);
}

pub(crate) async fn pages_of_keys_have_each_key_once<S: Store>(store: Arc<S>) {
    // Several keys were created in the same second.
    for number in 0..20 {
        let tenant = if number % 3 == 0 { "bolt" } else { "acme" };
        put(&*store, &key(&format!("key_{number:02}"), tenant, number % 4)).await;
    }
    for tenant in [None, Some("acme")] {
        let filter = KeyFilter { tenant: tenant.map(Into::into), ..KeyFilter::default() };
        let whole = store.keys(&filter).await.unwrap();
        for limit in [1, 3, 7, 100] {
            let mut paged: Vec<AccessKey> = Vec::new();
            loop {
                let after = paged.last().map(|key| key.id.clone());
                let page = store.keys(&KeyFilter { after, limit: Some(limit), ..filter.clone() }).await.unwrap();
                assert!(page.len() <= limit);
                if page.is_empty() {
                    break;
                }
                paged.extend(page);
            }
            assert_eq!(paged, whole, "{tenant:?} in pages of {limit}");
        }
    }
    let unknown = KeyFilter { after: Some("key_of_unknown".into()), ..KeyFilter::default() };
    assert_eq!(store.keys(&unknown).await.unwrap(), []);
}
