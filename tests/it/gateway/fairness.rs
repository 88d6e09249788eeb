//! Fairness between tenants: the readers of one do not delay another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::http::request::Parts;
use jiff::Timestamp;
use reqwest::Method;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use toolgate::core::id::{NodeId, RunId};
use toolgate::core::run::JournalEntry;
use toolgate::gateway::{Authenticator, Gateway, GatewaySettings, Limits, Problem};
use toolgate::ports::{Append, AppendError, Claim, Purged, RunFilter, RunPosition, RunRow, RunStore, StoreError};
use toolgate::runner::{AgentRunner, Answer, Request, Resume};
use toolgate::service::{Caller, Scopes};
use toolgate::stores::MemoryStore;

use super::queueing::agent;
use super::served::HttpAnswer;
use super::streamed::Stream;
use super::test_site::until;
use crate::fakes::delegate_sessions;

/// A store whose lists of the tenant `acme` block until they are released.
struct Slow {
    inner: MemoryStore,
    gate: Semaphore,
    /// The reads of that tenant in progress, and their maximum.
    reading: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait]
impl RunStore for Slow {
    async fn append(&self, append: Append) -> Result<(), AppendError> {
        self.inner.append(append).await
    }

    async fn load(&self, run: &RunId, from: u64) -> Result<Vec<JournalEntry>, StoreError> {
        self.inner.load(run, from).await
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        if filter.tenant.as_ref().is_some_and(|tenant| tenant.as_str() == "acme") {
            let reading = self.reading.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(reading, Ordering::SeqCst);
            let _pass = self.gate.acquire().await.unwrap();
            self.reading.fetch_sub(1, Ordering::SeqCst);
        }
        self.inner.list(filter).await
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<RunId>, StoreError> {
        self.inner.claim(claim).await
    }

    async fn orphaned(&self, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.inner.orphaned(limit).await
    }

    async fn renew(&self, owner: &NodeId, runs: &[RunId], lease: Duration) -> Result<(), StoreError> {
        self.inner.renew(owner, runs, lease).await
    }

    async fn purge(&self, run: &RunId, at: u64, now: Timestamp) -> Result<Purged, StoreError> {
        self.inner.purge(run, at, now).await
    }
}

delegate_sessions!(Slow, inner);

/// Takes the tenant from the header `x-tenant`.
struct Named;

#[async_trait]
impl Authenticator for Named {
    async fn authenticate(&self, request: &Parts) -> Result<Option<Caller>, Problem> {
        let tenant = request.headers["x-tenant"].to_str().unwrap();
        Ok(Some(Caller { tenant: tenant.into(), name: "reader".into(), principal: None, scopes: Scopes::all() }))
    }
}

struct Shop {
    store: Arc<Slow>,
    address: std::net::SocketAddr,
    client: reqwest::Client,
    _serving: JoinSet<()>,
}

impl Shop {
    async fn open(limits: Limits) -> Self {
        let [reading, most] = [0, 0].map(AtomicUsize::new);
        let store = Arc::new(Slow { inner: MemoryStore::new(), gate: Semaphore::new(0), reading, most });
        let runner = AgentRunner::builder().store(store.clone()).agent(agent(&serde_json::json!([]))).build().unwrap();
        let settings = GatewaySettings { limits, ..GatewaySettings::default() };
        let gateway = Gateway::builder(runner).settings(settings).authenticator(Arc::new(Named)).build();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, router) = (listener.local_addr().unwrap(), gateway.router());
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { store, address, client: reqwest::Client::new(), _serving: serving }
    }

    async fn get(&self, tenant: &str, path: &str) -> HttpAnswer {
        let request = self.client.request(Method::GET, format!("http://{}{path}", self.address));
        HttpAnswer::of(request.header("x-tenant", tenant).send().await.unwrap()).await
    }
}

#[tokio::test]
async fn readers_of_one_tenant_leave_the_store_to_others() {
    let shop = Arc::new(Shop::open(Limits::default()).await);
    let mut readers = JoinSet::new();
    for path in ["/v1/runs?status=pending", "/v1/approvals", "/v1/runs/run_a", "/v1/runs/run_a/messages"].repeat(16) {
        let shop = shop.clone();
        readers.spawn(async move { shop.get("acme", path).await });
    }
    until(async || shop.store.reading.load(Ordering::SeqCst) > 0).await;

    let list = tokio::time::timeout(Duration::from_secs(5), shop.get("brim", "/v1/runs?status=pending")).await;
    let run = tokio::time::timeout(Duration::from_secs(5), shop.get("brim", "/v1/runs/run_a")).await;

    assert_eq!(list.expect("it is answered meanwhile").status, 200);
    assert_eq!(run.expect("it is answered meanwhile").status, 404);
    shop.store.gate.add_permits(1);
    for answer in readers.join_all().await {
        assert!([200, 404].contains(&answer.status.as_u16()), "{answer:?}");
    }
    let cores = std::thread::available_parallelism().unwrap().get().max(2);
    assert_eq!(shop.store.most.load(Ordering::SeqCst), cores / 2, "the others waited");
}

#[tokio::test]
async fn a_caller_with_too_many_reads_is_refused() {
    let shop = Arc::new(Shop::open(Limits { concurrent_reads: Some(3), ..Limits::default() }).await);
    let mut readers = JoinSet::new();
    for _ in 0..8 {
        let shop = shop.clone();
        readers.spawn(async move { shop.get("acme", "/v1/runs").await });
    }
    for _ in 0..5 {
        let refused = readers.join_next().await.unwrap().unwrap();
        assert_eq!((refused.problem(), refused.header("retry-after")), ("rate_limited", "1"));
    }
    assert_eq!(shop.get("brim", "/v1/runs").await.status, 200, "another caller is not refused");
    shop.store.gate.add_permits(1);
    for answer in readers.join_all().await {
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

/// A store that counts its reads.
#[derive(Default)]
struct Counting {
    inner: MemoryStore,
    reads: AtomicUsize,
    looks: AtomicUsize,
}

#[async_trait]
impl RunStore for Counting {
    async fn append(&self, append: Append) -> Result<(), AppendError> {
        self.inner.append(append).await
    }

    async fn load(&self, run: &RunId, from: u64) -> Result<Vec<JournalEntry>, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.load(run, from).await
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.list(filter).await
    }

    async fn positions(&self, runs: &[RunId]) -> Result<Vec<RunPosition>, StoreError> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.inner.positions(runs).await
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<RunId>, StoreError> {
        self.inner.claim(claim).await
    }

    async fn orphaned(&self, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.inner.orphaned(limit).await
    }

    async fn renew(&self, owner: &NodeId, runs: &[RunId], lease: Duration) -> Result<(), StoreError> {
        self.inner.renew(owner, runs, lease).await
    }

    async fn purge(&self, run: &RunId, at: u64, now: Timestamp) -> Result<Purged, StoreError> {
        self.inner.purge(run, at, now).await
    }
}

delegate_sessions!(Counting, inner);

#[tokio::test]
async fn idle_streams_poll_the_store_together() {
    const RUNS: usize = 10;
    let store = Arc::new(Counting::default());
    let turns = serde_json::json!([{"calls": [{"name": "ext_wait"}]}, {"say": "Done."}]);
    let build = || AgentRunner::builder().store(store.clone()).agent(agent(&turns)).build().unwrap();
    let (here, elsewhere) = (build(), build());
    let limits = Limits { concurrent_reads: Some(1), ..Limits::default() };
    let settings = GatewaySettings { poll: Duration::from_millis(20), limits, ..GatewaySettings::default() };
    let gateway = Gateway::builder(here).settings(settings).anonymous(Caller::local()).build();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, router) = (listener.local_addr().unwrap(), gateway.router());
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
    let client = reqwest::Client::new();
    let (mut pending, mut streams) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let wait = serde_json::from_value(serde_json::json!({"name": "wait"})).unwrap();
        let report = elsewhere.execute(Request::new("clerk", "Hello").external_tool(wait)).await.unwrap();
        let url = format!("http://{address}/v1/runs/{}/events", report.run_id);
        // All at once: a stream does not count as one of the reads that a caller may have.
        for mut stream in futures::future::join_all((0..5).map(|_| Stream::of(client.get(&url)))).await {
            while stream.next().await.unwrap().event != "execution.pending" {}
            streams.push(stream);
        }
        pending.push(report);
    }
    let looks = || store.looks.load(Ordering::SeqCst);
    let reads = || store.reads.load(Ordering::SeqCst);
    // The first poll wakes each stream, because its run may have changed before. Then ten polls pass without a read by
    // any stream.
    until(async || {
        let (read, looked) = (reads(), looks());
        until(async || looks() >= looked + 10).await;
        reads() == read
    })
    .await;

    let report = &pending[0];
    elsewhere
        .resume(
            &report.run_id,
            Resume::default().with(report.pending[0].call_id().unwrap().clone(), Answer::output("seen")),
        )
        .await
        .unwrap();
    for stream in streams.iter_mut().take(5) {
        while stream.next().await.expect("the ending").event != "execution.completed" {}
    }
}
