use std::sync::Mutex;
use std::thread::sleep;

use toolgate_core::run::Channel;
use toolgate_core::tool::{Origin, ToolName};
use toolgate_ports::ApprovedCall;

use super::*;

/// Records every lookup, and panics at an empty one.
#[derive(Default)]
struct Ledger {
    /// If set, answers wait for a permit.
    slow: Option<tokio::sync::Semaphore>,
    grants: Mutex<Vec<Grant>>,
    questions: Mutex<Vec<Vec<GuardedTool>>>,
    broken: Mutex<bool>,
}

impl Ledger {
    fn take_back(&self, tool: &str) {
        let mut grants = self.grants.lock().unwrap();
        let before = grants.len();
        grants.retain(|grant| grant.definition != tool);
        assert_eq!(grants.len(), before - 1, "{tool} was never granted");
    }

    fn questions(&self) -> Vec<Vec<GuardedTool>> {
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
    async fn granted(
        &self,
        context: &GrantContext,
        tools: &[GuardedTool],
        now: Timestamp,
    ) -> Result<Vec<ToolGrant>, StoreError> {
        self.check()?;
        assert!(!tools.is_empty(), "an empty lookup");
        self.questions.lock().unwrap().push(tools.to_vec());
        let answer = {
            let grants = self.grants.lock().unwrap();
            let covering = |tool: &GuardedTool| {
                let of_it = grants.iter().filter(|grant| grant.definition == tool.definition);
                of_it
                    .filter(|grant| grant.holds(now) && grant.is_of(context))
                    .map(|grant| grant.granted(&tool.tool))
                    .collect()
            };
            tools.iter().flat_map(|tool| -> Vec<ToolGrant> { covering(tool) }).collect()
        };
        if let Some(slow) = &self.slow {
            slow.acquire().await.unwrap().forget();
        }
        Ok(answer)
    }

    async fn hold(&self, grants: &[GrantId], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        self.check()?;
        let known = self.grants.lock().unwrap();
        Ok(grants.iter().map(|id| known.iter().any(|grant| grant.id == *id && grant.holds(now))).collect())
    }

    async fn grant(&self, grant: &Grant) -> Result<(), StoreError> {
        self.check()?;
        self.grants.lock().unwrap().push(grant.clone());
        Ok(())
    }

    async fn grants(&self, _: &GrantFilter, _: Timestamp) -> Result<Vec<Grant>, StoreError> {
        Ok(self.grants.lock().unwrap().clone())
    }

    async fn revoke(&self, id: &GrantId, revoked: &Revoked) -> Result<Option<Grant>, StoreError> {
        let mut grants = self.grants.lock().unwrap();
        let found = grants.iter_mut().find(|grant| grant.id == *id);
        Ok(found.map(|grant| {
            grant.revoked = Some(revoked.clone());
            grant.clone()
        }))
    }
}

const HOUR: Duration = Duration::from_secs(3600);

fn context() -> GrantContext {
    GrantContext {
        tenant: toolgate_core::id::Tenant::default(),
        session: "s".into(),
        agent: "desk".into(),
        principal: None,
    }
}

fn tools(names: &[&str]) -> Vec<GuardedTool> {
    let guarded = |name: &&str| GuardedTool { tool: ToolName::parse(name).unwrap(), definition: (*name).to_owned() };
    names.iter().map(guarded).collect()
}

fn grant(tool: &str) -> Grant {
    Grant {
        id: tool.into(),
        session: None,
        tenant: toolgate_core::id::Tenant::default(),
        agent: "desk".into(),
        principal: None,
        tool: ToolName::parse(tool).unwrap(),
        origin: Origin::External { tool: tool.to_owned() },
        definition: tool.to_owned(),
        arguments: None,
        when: None,
        asked_by: None,
        summary: String::new(),
        by: "ada".to_owned(),
        via: Channel::Library,
        reason: None,
        given_with: Some(ApprovedCall { run: "run_a".into(), call: "call_1".into() }),
        created_at: now(),
        expires_at: None,
        revoked: None,
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_000).unwrap()
}

async fn found(cache: &CachedApprovals, names: &[&str]) -> Vec<String> {
    let mut found = cache.granted(&context(), &tools(names), now()).await.unwrap();
    found.sort_by_key(|granted| granted.grant.clone());
    found.into_iter().map(|granted| granted.grant.to_string()).collect()
}

/// A ledger with grants for these tools, and an empty cache.
async fn cached(granted: &[&str], lifetimes: (Duration, Duration)) -> (Arc<Ledger>, CachedApprovals) {
    let ledger = Arc::new(Ledger::default());
    for tool in granted {
        ledger.grant(&grant(tool)).await.unwrap();
    }
    (ledger.clone(), CachedApprovals::new(ledger, lifetimes.0, lifetimes.1))
}

#[tokio::test]
async fn the_misses_of_a_turn_are_looked_up_in_one_batch() {
    let (ledger, cache) = cached(&["b", "d"], (HOUR, HOUR)).await;
    assert_eq!(found(&cache, &["a", "b", "c", "d"]).await, ["b", "d"]);
    assert_eq!(ledger.questions(), [tools(&["a", "b", "c", "d"])]);
    assert_eq!(found(&cache, &["d", "c", "b", "e", "f"]).await, ["b", "d"]);
    assert_eq!(ledger.questions(), [tools(&["e", "f"])]);
}

#[tokio::test]
async fn an_entry_of_one_asker_is_not_used_for_another() {
    let (ledger, cache) = cached(&["a"], (HOUR, HOUR)).await;
    assert_eq!(found(&cache, &["a"]).await, ["a"]);
    let others = [
        GrantContext { agent: "another".into(), ..context() },
        GrantContext { principal: Some("ann".into()), ..context() },
    ];
    for other in others {
        assert!(cache.granted(&other, &tools(&["a"]), now()).await.unwrap().is_empty(), "{other:?}");
    }
    assert_eq!(ledger.questions().len(), 3);
}

#[tokio::test]
async fn a_grant_stored_here_is_valid_at_once_after_a_miss() {
    let (ledger, cache) = cached(&[], (HOUR, HOUR)).await;
    assert_eq!(found(&cache, &["a"]).await, [""; 0]);
    cache.grant(&grant("a")).await.unwrap();
    assert_eq!(found(&cache, &["a"]).await, ["a"]);
    assert_eq!(ledger.grants(&GrantFilter::default(), now()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_grant_revoked_here_is_gone_at_once() {
    let (_, cache) = cached(&["a"], (HOUR, HOUR)).await;
    assert_eq!(found(&cache, &["a"]).await, ["a"]);
    cache.revoke(&"a".into(), &Revoked { at: now(), by: "ada".into() }).await.unwrap();
    assert_eq!(found(&cache, &["a"]).await, [""; 0]);
}

#[tokio::test]
async fn a_lookup_in_flight_during_a_grant_is_not_cached() {
    let ledger = Arc::new(Ledger { slow: Some(tokio::sync::Semaphore::new(0)), ..Ledger::default() });
    let cache = Arc::new(CachedApprovals::new(ledger.clone(), HOUR, HOUR));
    let early = tokio::spawn({
        let cache = cache.clone();
        async move { found(&cache, &["a"]).await }
    });
    while ledger.questions().is_empty() {
        tokio::task::yield_now().await;
    }
    cache.grant(&grant("a")).await.unwrap();
    ledger.slow.as_ref().unwrap().add_permits(2);

    assert_eq!(early.await.unwrap(), [""; 0]);
    assert_eq!(found(&cache, &["a"]).await, ["a"]);
}

#[tokio::test]
async fn a_cached_grant_that_expires_is_not_found() {
    let (ledger, cache) = cached(&[], (HOUR, HOUR)).await;
    let until = now() + Duration::from_secs(60);
    ledger.grant(&Grant { expires_at: Some(until), ..grant("a") }).await.unwrap();
    assert_eq!(found(&cache, &["a"]).await, ["a"]);
    assert!(cache.granted(&context(), &tools(&["a"]), until).await.unwrap().is_empty());
    assert_eq!(ledger.questions().len(), 1);
}

#[tokio::test]
async fn a_grant_that_failed_to_be_stored_is_not_valid() {
    let (ledger, cache) = cached(&[], (HOUR, HOUR)).await;
    ledger.breaks(true);
    cache.grant(&grant("a")).await.unwrap_err();
    ledger.breaks(false);
    assert_eq!(found(&cache, &["a"]).await, [""; 0]);
}

#[tokio::test]
async fn an_unavailable_store_is_an_error_unless_all_is_cached() {
    let (ledger, cache) = cached(&["a"], (HOUR, HOUR)).await;
    assert_eq!(found(&cache, &["a"]).await, ["a"]);
    ledger.breaks(true);
    assert_eq!(found(&cache, &["a"]).await, ["a"]);
    cache.granted(&context(), &tools(&["a", "b"]), now()).await.unwrap_err();
}

#[tokio::test]
async fn whether_a_grant_still_holds_is_never_cached() {
    let (ledger, cache) = cached(&["a"], (HOUR, HOUR)).await;
    assert_eq!(cache.hold(&["a".into()], now()).await.unwrap(), [true]);
    ledger.take_back("a");
    assert_eq!(cache.hold(&["a".into()], now()).await.unwrap(), [false]);
}

#[tokio::test]
async fn a_change_elsewhere_is_seen_within_the_time_to_live() {
    let (ledger, cache) = cached(&["a"], (Duration::from_millis(20), Duration::from_millis(20))).await;
    assert_eq!(found(&cache, &["a", "b"]).await, ["a"]);
    ledger.take_back("a");
    ledger.grant(&grant("b")).await.unwrap();
    // The cache uses its own clock, so this test waits.
    sleep(Duration::from_millis(21));
    assert_eq!(found(&cache, &["a", "b"]).await, ["b"]);
}

#[tokio::test]
async fn without_a_time_to_live_nothing_is_cached() {
    let (ledger, cache) = cached(&["a"], (Duration::ZERO, HOUR)).await;
    for _ in 0..2 {
        assert_eq!(found(&cache, &["a", "b"]).await, ["a"]);
        assert_eq!(ledger.questions(), [tools(&["a", "b"])]);
    }
}
