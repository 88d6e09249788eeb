//! Law: memory and SQLite give the same answers to any sequence of requests.

use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;
use toolgate::core::id::{NodeId, RunId, Tenant};
use toolgate::core::run::Status;
use toolgate::ports::{
    Append, Claim, RunFilter, RunRow, RunStore, SessionFilter, SessionHead, SessionRow, SessionStore as _,
};
use toolgate::stores::{Durability, MemoryStore, SqliteStore};

use super::journals::{Appending, LONG, append, claiming, fact, node, run, segment};

#[derive(Clone, Debug)]
enum Request {
    Append(Box<Append>),
    Load(RunId, u64),
    List(Box<RunFilter>),
    Claim(Claim),
    Renew(NodeId, Vec<RunId>, Duration),
    /// The first append of a run that claims its session.
    Start(Box<Append>),
    Save(u64, Box<SessionRow>),
    Sessions(SessionFilter),
    Conversation(Tenant, RunId),
    Purge(RunId, u64),
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
    let sqlite =
        SqliteStore::open_with_durability(&directory.path().join("runs.db"), Durability::ProcessCrash).await.unwrap();
    for request in requests {
        let request = request.in_place(&memory).await;
        let before = sessions(&memory).await;
        let wanted = answer(&memory, request.clone()).await;
        prop_assert_eq!(answer(&sqlite, request.clone()).await, wanted.clone(), "{:?}", request);
        let after = sessions(&memory).await;
        prop_assert_eq!(&sessions(&sqlite).await, &after, "{:?}", request);
        check_versions(&before, &after, &wanted)?;
    }
    sqlite.close().await;
    Ok(())
}

/// All sessions.
async fn sessions(store: &dyn RunStore) -> Vec<SessionRow> {
    let mut all = Vec::new();
    for tenant in TENANTS {
        all.extend(store.sessions(&SessionFilter { tenant: tenant.into(), ..SessionFilter::default() }).await.unwrap());
    }
    all
}

/// Law: the version of a session grows by one with each change of the row, and a refusal changes no session.
fn check_versions(before: &[SessionRow], after: &[SessionRow], answer: &str) -> Result<(), TestCaseError> {
    prop_assert!(after.len() >= before.len());
    for row in after {
        let previous = before.iter().find(|previous| (&previous.tenant, &previous.id) == (&row.tenant, &row.id));
        // What the run itself changes is not part of the stored row.
        let of_the_run = |head: &SessionHead| head.run.clone();
        let stored = |row: &SessionRow| (SessionRow { head: None, ..row.clone() }, row.head.as_ref().map(of_the_run));
        if previous.map(stored) == Some(stored(row)) {
            continue;
        }
        prop_assert_eq!(row.version, previous.map_or(0, |previous| previous.version) + 1);
        prop_assert!(!answer.contains("Err") && !answer.contains("Changed"), "{}", answer);
    }
    Ok(())
}

impl Request {
    /// Moves an append to the end of its journal, and a claim or a save to the version of its session: so far they are
    /// relative to a length and a version of one.
    async fn in_place(self, store: &MemoryStore) -> Self {
        match self {
            Self::Append(meant) => {
                let filter = RunFilter { run: Some(meant.run.clone()), purged: true, ..RunFilter::default() };
                let known = store.list(&filter).await.unwrap().pop();
                let length = store.load(&meant.run, 0).await.unwrap().len() as u64;
                let at = (length + meant.at).saturating_sub(1);
                let placed = append(meant.run, at, meant.events.len() as u64);
                let row =
                    RunRow { status: meant.row.status, version: placed.row.version, ..known.unwrap_or(placed.row) };
                Self::Append(Box::new(Append { row, owner: meant.owner, lease: meant.lease, ..placed }))
            }
            Self::Start(mut meant) => {
                if let Some(claim) = &mut meant.session {
                    claim.expected = placed(store, &claim.row, claim.expected).await;
                    claim.row.version = claim.expected + 1;
                }
                Self::Start(meant)
            }
            Self::Save(expected, mut row) => {
                // A caller creates a session with a head only for a run of it.
                let (run, tenant, session) = (row.head.as_ref().map(|head| head.run.clone()), &row.tenant, &row.id);
                let (tenant, session) = (Some(tenant.clone()), Some(session.clone()));
                let filter = RunFilter { run, tenant, session, ..RunFilter::default() };
                if store.list(&filter).await.unwrap().is_empty() {
                    row.head = None;
                }
                Self::Save(placed(store, &row, expected).await, row)
            }
            Self::Load(..) | Self::List(_) | Self::Claim(_) | Self::Renew(..) => self,
            Self::Sessions(_) | Self::Conversation(..) | Self::Purge(..) => self,
        }
    }
}

async fn placed(store: &MemoryStore, row: &SessionRow, expected: u64) -> u64 {
    let current = store.session(&row.tenant, &row.id).await.unwrap();
    (current.map_or(0, |current| current.version) + expected).saturating_sub(1)
}

async fn answer(store: &dyn RunStore, request: Request) -> String {
    match request {
        Request::Append(append) => format!("{:?}", store.append(*append).await),
        Request::Load(run, from) => format!("{:?}", store.load(&run, from).await),
        Request::List(filter) => format!("{:?}", store.list(&filter).await),
        Request::Claim(claim) => format!("{:?}", store.claim(&claim).await),
        Request::Renew(owner, runs, lease) => format!("{:?}", store.renew(&owner, &runs, lease).await),
        Request::Start(append) => format!("{:?}", store.append(*append).await),
        Request::Save(expected, row) => format!("{:?}", store.save_session(expected, &row).await),
        Request::Sessions(filter) => format!("{:?}", store.sessions(&filter).await),
        Request::Conversation(tenant, run) => format!("{:?}", store.conversation(&tenant, &run).await),
        Request::Purge(run, at) => format!("{:?}", store.purge(&run, at, fact(7).at).await),
    }
}

/// Few runs, owners and positions, so that requests collide.
fn requests() -> impl Strategy<Value = Request> {
    prop_oneof![
        6 => appends().prop_map(|append| Request::Append(Box::new(append))),
        1 => (runs(), 0..6u64).prop_map(|(run, from)| Request::Load(run, from)),
        1 => filters().prop_map(|filter| Request::List(filter.into())),
        2 => claims().prop_map(Request::Claim),
        1 => (owners(), prop::collection::vec(runs(), 0..3), leases())
            .prop_map(|(owner, runs, lease)| Request::Renew(owner, runs, lease)),
        6 => starts().prop_map(|append| Request::Start(append.into())),
        1 => starts().prop_map(|append| {
            let claim = *append.session.unwrap();
            Request::Save(claim.expected, claim.row.into())
        }),
        1 => (prop::sample::select(&TENANTS), prop::option::of(Just("clerk".into())), 0..3usize).prop_map(
            |(tenant, agent, limit)| {
                Request::Sessions(SessionFilter { tenant: tenant.into(), agent, limit, ..SessionFilter::default() })
            }
        ),
        2 => (prop::sample::select(&TENANTS), conversing())
            .prop_map(|(tenant, run)| Request::Conversation(tenant.into(), run)),
        1 => (conversing(), 1..3u64).prop_map(|(run, at)| Request::Purge(run, at)),
    ]
}

const TENANTS: [&str; 2] = ["default", "acme"];

fn starts() -> impl Strategy<Value = Append> {
    let status = prop_oneof![2 => Just(Status::Completed), 1 => Just(Status::Running), 1 => Just(Status::Pending)];
    let expected = prop_oneof![8 => Just(1u64), 1 => Just(0), 1 => Just(2)];
    let predecessor = prop::option::weighted(0.8, (conversing(), any::<bool>()));
    let session = prop::sample::select(vec!["chat", "other"]);
    let tenant = prop::sample::select(vec!["default", "default", "acme"]);
    (conversing(), session, tenant, expected, status, predecessor).prop_map(
        |(run, session, tenant, expected, status, predecessor)| {
            let text = format!("before {run}");
            let append = claiming(run, session, expected).of_tenant(tenant).leaving(status);
            match predecessor {
                None => append,
                Some((predecessor, false)) => append.after(predecessor),
                Some((predecessor, true)) => append.after(predecessor).with_segment(segment(&text)),
            }
        },
    )
}

/// More runs, because each is started once.
fn conversing() -> impl Strategy<Value = RunId> {
    (0..10usize).prop_map(run)
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
    let statuses = prop::sample::subsequence(vec![Status::Running, Status::Pending], 0..=2);
    (statuses, prop::option::of(runs()), 0..3usize).prop_map(|(statuses, before, limit)| RunFilter {
        statuses,
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
