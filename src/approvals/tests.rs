use std::collections::HashSet;
use std::sync::Mutex;
use std::thread::sleep;

use super::*;
use crate::core::tool::ToolName;

/// Writes down every question, and refuses the ones that need not be asked.
#[derive(Default)]
struct Ledger {
    grants: Mutex<HashSet<ApprovalKey>>,
    questions: Mutex<Vec<Vec<ApprovalKey>>>,
    broken: Mutex<bool>,
}

impl Ledger {
    fn take_back(&self, key: &ApprovalKey) {
        assert!(self.grants.lock().unwrap().remove(key), "{key:?} was never granted");
    }

    fn questions(&self) -> Vec<Vec<ApprovalKey>> {
        std::mem::take(&mut self.questions.lock().unwrap())
    }

    fn breaks(&self, broken: bool) {
        *self.broken.lock().unwrap() = broken;
    }

    fn check(&self) -> Result<(), StoreError> {
        let broken = *self.broken.lock().unwrap();
        if broken { Err(StoreError::Unavailable("out to lunch".to_owned())) } else { Ok(()) }
    }
}

#[async_trait]
impl ApprovalCache for Ledger {
    async fn granted(&self, keys: &[ApprovalKey]) -> Result<Vec<bool>, StoreError> {
        self.check()?;
        assert!(!keys.is_empty(), "a question about nothing");
        self.questions.lock().unwrap().push(keys.to_vec());
        let grants = self.grants.lock().unwrap();
        Ok(keys.iter().map(|key| grants.contains(key)).collect())
    }

    async fn grant(&self, grant: &Grant) -> Result<(), StoreError> {
        self.check()?;
        self.grants.lock().unwrap().insert(grant.key.clone());
        Ok(())
    }
}

const HOUR: Duration = Duration::from_secs(3600);

fn key(tool: &str) -> ApprovalKey {
    ApprovalKey { session: "s".into(), tool: ToolName::parse(tool).unwrap(), hash: "h".to_owned() }
}

fn keys(tools: &[&str]) -> Vec<ApprovalKey> {
    tools.iter().map(|tool| key(tool)).collect()
}

fn grant(tool: &str) -> Grant {
    Grant { key: key(tool), by: "ada".to_owned() }
}

/// A ledger that grants these tools, and a cache that knows nothing yet.
async fn cached(granted: &[&str], time_to_live: Duration) -> (Arc<Ledger>, CachedApprovals) {
    let ledger = Arc::new(Ledger::default());
    for tool in granted {
        ledger.grant(&grant(tool)).await.unwrap();
    }
    (ledger.clone(), CachedApprovals::new(ledger, time_to_live))
}

#[tokio::test]
async fn the_misses_of_a_turn_are_asked_in_one_batch_and_answered_in_order() {
    let (ledger, cache) = cached(&["b", "d"], HOUR).await;
    assert_eq!(cache.granted(&keys(&["a", "b", "c", "d"])).await.unwrap(), [false, true, false, true]);
    assert_eq!(ledger.questions(), [keys(&["a", "b", "c", "d"])]);
    assert_eq!(cache.granted(&keys(&["d", "c", "b", "e"])).await.unwrap(), [true, false, true, false]);
    assert_eq!(ledger.questions(), [keys(&["c", "e"])]);
}

#[tokio::test]
async fn what_is_remembered_is_not_asked_again() {
    let (ledger, cache) = cached(&["a", "b"], HOUR).await;
    cache.granted(&keys(&["a", "b"])).await.unwrap();
    ledger.questions();
    assert_eq!(cache.granted(&keys(&["b", "a"])).await.unwrap(), [true, true]);
    assert!(cache.granted(&[]).await.unwrap().is_empty());
    assert_eq!(ledger.questions(), Vec::<Vec<_>>::new());
}

#[tokio::test]
async fn a_no_is_not_remembered() {
    let (ledger, cache) = cached(&[], HOUR).await;
    assert_eq!(cache.granted(&keys(&["a"])).await.unwrap(), [false]);
    ledger.grant(&grant("a")).await.unwrap();
    assert_eq!(cache.granted(&keys(&["a"])).await.unwrap(), [true]);
}

#[tokio::test]
async fn a_grant_is_written_through_and_remembered() {
    let (ledger, cache) = cached(&[], HOUR).await;
    cache.grant(&grant("a")).await.unwrap();
    assert_eq!(cache.granted(&keys(&["a"])).await.unwrap(), [true]);
    assert_eq!(ledger.questions(), Vec::<Vec<_>>::new());
    assert_eq!(ledger.granted(&keys(&["a"])).await.unwrap(), [true]);
}

#[tokio::test]
async fn a_grant_that_could_not_be_written_does_not_count() {
    let (ledger, cache) = cached(&[], HOUR).await;
    ledger.breaks(true);
    cache.grant(&grant("a")).await.unwrap_err();
    ledger.breaks(false);
    assert_eq!(cache.granted(&keys(&["a"])).await.unwrap(), [false]);
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_an_error_unless_everything_is_remembered() {
    let (ledger, cache) = cached(&["a"], HOUR).await;
    cache.granted(&keys(&["a"])).await.unwrap();
    ledger.breaks(true);
    assert_eq!(cache.granted(&keys(&["a"])).await.unwrap(), [true]);
    cache.granted(&keys(&["a", "b"])).await.unwrap_err();
}

#[tokio::test]
async fn a_grant_that_was_taken_back_counts_no_longer_than_the_time_to_live() {
    let (ledger, cache) = cached(&["a"], Duration::from_millis(20)).await;
    cache.granted(&keys(&["a"])).await.unwrap();
    ledger.take_back(&key("a"));
    // The cache has a clock of its own, so this test waits.
    sleep(Duration::from_millis(21));
    assert_eq!(cache.granted(&keys(&["a"])).await.unwrap(), [false]);
}

#[tokio::test]
async fn without_time_to_live_nothing_is_remembered() {
    let (ledger, cache) = cached(&["a"], Duration::ZERO).await;
    cache.grant(&grant("b")).await.unwrap();
    for _ in 0..2 {
        assert_eq!(cache.granted(&keys(&["a", "b"])).await.unwrap(), [true, true]);
        assert_eq!(ledger.questions(), [keys(&["a", "b"])]);
    }
}

#[tokio::test]
async fn a_very_long_time_to_live_is_a_day() {
    let (_, cache) = cached(&["a"], Duration::MAX).await;
    assert_eq!(cache.granted.policy().time_to_live(), Some(LONGEST));
    assert_eq!(cache.granted(&keys(&["a"])).await.unwrap(), [true]);
}
