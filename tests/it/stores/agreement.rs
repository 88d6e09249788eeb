//! Law: memory and SQLite give the same answers to any sequence of requests.

use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;
use toolgate::core::id::{NodeId, RunId};
use toolgate::core::run::Status;
use toolgate::ports::{Append, Claim, RunFilter, RunRow, RunStore};
use toolgate::stores::{Durability, MemoryStore, SqliteStore};

use super::journals::{LONG, append, node, run};

#[derive(Clone, Debug)]
enum Request {
    Append(Box<Append>),
    Load(RunId, u64),
    List(RunFilter),
    Claim(Claim),
    Renew(NodeId, Vec<RunId>, Duration),
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn memory_and_sqlite_give_the_same_answers(requests in prop::collection::vec(requests(), 1..60)) {
        agree(requests)?;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn agree(requests: Vec<Request>) -> Result<(), TestCaseError> {
    let directory = TempDir::new().unwrap();
    let memory = MemoryStore::new();
    let sqlite = SqliteStore::open(&directory.path().join("runs.db"), Durability::ProcessCrash).await.unwrap();
    for request in requests {
        let request = request.in_place(&memory).await;
        let wanted = answer(&memory, request.clone()).await;
        prop_assert_eq!(answer(&sqlite, request.clone()).await, wanted, "{:?}", request);
    }
    sqlite.close().await;
    Ok(())
}

impl Request {
    /// Moves an append to the end of its journal: its position so far is relative to a journal of one event.
    async fn in_place(self, store: &MemoryStore) -> Self {
        let Self::Append(meant) = self else { return self };
        let length = store.load(&meant.run, 0).await.unwrap().len() as u64;
        let at = (length + meant.at).saturating_sub(1);
        let placed = append(meant.run, at, meant.events.len() as u64);
        let row = RunRow { status: meant.row.status, ..placed.row };
        Self::Append(Box::new(Append { row, owner: meant.owner, lease: meant.lease, ..placed }))
    }
}

async fn answer(store: &dyn RunStore, request: Request) -> String {
    match request {
        Request::Append(append) => format!("{:?}", store.append(*append).await),
        Request::Load(run, from) => format!("{:?}", store.load(&run, from).await),
        Request::List(filter) => format!("{:?}", store.list(&filter).await),
        Request::Claim(claim) => format!("{:?}", store.claim(&claim).await),
        Request::Renew(owner, runs, lease) => format!("{:?}", store.renew(&owner, &runs, lease).await),
    }
}

/// Few runs, owners and positions, so that requests collide.
fn requests() -> impl Strategy<Value = Request> {
    prop_oneof![
        6 => appends().prop_map(|append| Request::Append(Box::new(append))),
        1 => (runs(), 0..6u64).prop_map(|(run, from)| Request::Load(run, from)),
        1 => filters().prop_map(Request::List),
        2 => claims().prop_map(Request::Claim),
        1 => (owners(), prop::collection::vec(runs(), 0..3), leases())
            .prop_map(|(owner, runs, lease)| Request::Renew(owner, runs, lease)),
    ]
}

fn appends() -> impl Strategy<Value = Append> {
    let status = prop_oneof![3 => Just(Status::Running), 1 => Just(Status::Pending), 1 => Just(Status::Completed)];
    let at = prop_oneof![8 => Just(1u64), 1 => Just(0), 1 => Just(2)];
    (runs(), at, 0..3u64, prop::option::of(owners()), leases(), status).prop_map(
        |(run, at, count, owner, lease, status)| {
            let mut append = append(run, at, count);
            append.row.status = status;
            Append { owner, lease, ..append }
        },
    )
}

fn claims() -> impl Strategy<Value = Claim> {
    (owners(), prop::option::of(runs()), leases(), 0..3usize).prop_map(|(owner, run, lease, limit)| Claim {
        owner,
        run,
        lease,
        limit,
    })
}

fn filters() -> impl Strategy<Value = RunFilter> {
    let status = prop::option::of(prop::sample::select(vec![Status::Running, Status::Pending]));
    (status, prop::option::of(runs()), 0..3usize).prop_map(|(status, before, limit)| RunFilter {
        status,
        before,
        limit,
        ..RunFilter::default()
    })
}

fn runs() -> impl Strategy<Value = RunId> {
    (0..3usize).prop_map(run)
}

fn owners() -> impl Strategy<Value = NodeId> {
    prop::sample::select(vec!["node_a", "node_b"]).prop_map(node)
}

/// Either expired at once, or valid for the whole test.
fn leases() -> impl Strategy<Value = Duration> {
    prop::sample::select(vec![Duration::ZERO, LONG])
}
