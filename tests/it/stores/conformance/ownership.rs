//! Ownership of runs. A lease here lasts a minute if it must hold and a moment if it must expire; a test that waits for
//! the latter repeats its request until the answer changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate::core::id::RunId;
use toolgate::core::run::Status;
use toolgate::ports::{AppendError, Claim, RunFilter};

use super::Store;
use crate::stores::journals::{Appending, LONG, any, append, facts, named, node, run};

const MOMENT: Duration = Duration::from_millis(30);

pub(crate) async fn an_owner_keeps_others_from_appending<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 1).by("node_a")).await.unwrap();
    let other = store.append(append(run(1), 1, 1).by("node_b")).await;
    assert_eq!(other, Err(AppendError::Owned(node("node_a"))));
    let ending = store.append(append(run(1), 1, 1).by("node_b").leaving(Status::Cancelled)).await;
    assert_eq!(ending, Err(AppendError::Owned(node("node_a"))));
    store.append(append(run(1), 1, 1).by("node_a")).await.unwrap();
    assert_eq!(store.load(&run(1), 0).await.unwrap(), facts(0, 2));
}

pub(crate) async fn an_outsider_may_append_and_the_owner_stays<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 1).by("node_a")).await.unwrap();
    store.append(append(run(1), 1, 1)).await.unwrap();
    assert_eq!(store.claim(&any("node_b")).await.unwrap(), []);
    let other = store.append(append(run(1), 2, 1).by("node_b")).await;
    assert_eq!(other, Err(AppendError::Owned(node("node_a"))));
    store.append(append(run(1), 2, 1).by("node_a")).await.unwrap();
}

pub(crate) async fn the_position_is_checked_before_the_owner<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 3).by("node_a")).await.unwrap();
    let behind = store.append(append(run(1), 1, 1).by("node_b")).await;
    assert_eq!(behind, Err(AppendError::Conflict { length: 3 }));
}

pub(crate) async fn a_run_that_is_not_running_has_no_owner<S: Store>(store: Arc<S>) {
    for (number, status) in Status::ALL.into_iter().enumerate().skip(1) {
        store.append(append(run(number), 0, 1).by("node_a")).await.unwrap();
        store.append(append(run(number), 1, 1).by("node_a").leaving(status)).await.unwrap();
        assert_eq!(store.claim(&named("node_a", run(number))).await.unwrap(), [], "{status:?}");
        // The run becomes unowned: any node may claim it.
        store.append(append(run(number), 2, 1)).await.unwrap();
        assert_eq!(store.claim(&any("node_b")).await.unwrap(), [run(number)], "{status:?}");
    }
    // Created as pending by an owner, then continued by another.
    store.append(append(run(9), 0, 1).by("node_a").leaving(Status::Pending)).await.unwrap();
    store.append(append(run(9), 1, 1).by("node_b")).await.unwrap();
    let late = store.append(append(run(9), 2, 1).by("node_a")).await;
    assert_eq!(late, Err(AppendError::Owned(node("node_b"))));
}

pub(crate) async fn only_running_runs_without_an_owner_are_claimed_oldest_first<S: Store>(store: Arc<S>) {
    for number in [5, 3, 1, 4, 2, 0] {
        let new = append(run(number), 0, 1);
        let new = match number {
            2 => new.by("node_a"),
            4 => new.leaving(Status::Pending),
            0 => new.leaving(Status::Completed),
            _ => new,
        };
        store.append(new).await.unwrap();
    }
    assert_eq!(store.claim(&named("node_b", run(2))).await.unwrap(), []);
    assert_eq!(store.claim(&named("node_b", run(4))).await.unwrap(), []);
    assert_eq!(store.claim(&named("node_b", run(99))).await.unwrap(), []);
    assert_eq!(store.claim(&any("node_b")).await.unwrap(), [run(1), run(3), run(5)]);
    assert_eq!(store.claim(&any("node_c")).await.unwrap(), []);
    let other = store.append(append(run(3), 1, 1).by("node_c")).await;
    assert_eq!(other, Err(AppendError::Owned(node("node_b"))));
}

pub(crate) async fn a_claim_by_name_gives_the_owner_its_run_again<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 1).by("node_a")).await.unwrap();
    assert_eq!(store.claim(&any("node_a")).await.unwrap(), []);
    assert_eq!(store.claim(&named("node_a", run(1))).await.unwrap(), [run(1)]);
    assert_eq!(store.claim(&named("node_b", run(1))).await.unwrap(), []);
}

pub(crate) async fn orphaned_runs_are_listed_unchanged<S: Store>(store: Arc<S>) {
    for number in 0..3 {
        store.append(append(run(number), 0, 1)).await.unwrap();
    }
    let claimed = store.claim(&Claim { limit: 1, ..any("node_a") }).await.unwrap();
    assert_eq!(claimed, [run(0)]);
    for _ in 0..2 {
        assert_eq!(store.orphaned(10).await.unwrap(), [run(1), run(2)], "the first one has an owner");
        assert_eq!(store.orphaned(1).await.unwrap(), [run(1)]);
    }
    assert_eq!(store.claim(&any("node_b")).await.unwrap(), [run(1), run(2)]);
    assert_eq!(store.orphaned(10).await.unwrap(), []);
    store.claim(&Claim { lease: Duration::ZERO, ..named("node_b", run(1)) }).await.unwrap();
    assert_eq!(store.orphaned(10).await.unwrap(), [run(1)], "its lease has run out");
}

pub(crate) async fn a_claim_takes_no_more_than_it_asks_for<S: Store>(store: Arc<S>) {
    for number in 0..5 {
        store.append(append(run(number), 0, 1)).await.unwrap();
    }
    let claim = |limit| Claim { limit, ..any("node_a") };
    assert_eq!(store.claim(&claim(0)).await.unwrap(), []);
    assert_eq!(store.claim(&Claim { limit: 0, ..named("node_a", run(0)) }).await.unwrap(), []);
    assert_eq!(store.claim(&claim(2)).await.unwrap(), [run(0), run(1)]);
    assert_eq!(store.claim(&claim(usize::MAX)).await.unwrap(), [run(2), run(3), run(4)]);
}

pub(crate) async fn an_expired_lease_can_be_claimed_by_any_node<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 1).by("node_a").leased(MOMENT)).await.unwrap();
    assert_eq!(claimed_in_time(&*store, &any("node_b")).await, [run(1)]);
    let late = store.append(append(run(1), 1, 1).by("node_a")).await;
    assert_eq!(late, Err(AppendError::Owned(node("node_b"))));

    // An append by another owner also takes over the run, and so does a claim by the late owner.
    store.append(append(run(2), 0, 1).by("node_a").leased(Duration::ZERO)).await.unwrap();
    store.append(append(run(2), 1, 1).by("node_b").leased(Duration::ZERO)).await.unwrap();
    assert_eq!(store.claim(&any("node_b")).await.unwrap(), [run(2)]);
}

pub(crate) async fn a_renewed_lease_holds<S: Store>(store: Arc<S>) {
    for number in 1..=3 {
        let owner = ["node_a", "node_b"][number / 3];
        store.append(append(run(number), 0, 1).by(owner).leased(Duration::ZERO)).await.unwrap();
    }
    let all = [run(1), run(2), run(3)];
    store.renew(&node("node_a"), &all, LONG).await.unwrap();
    store.renew(&node("node_unknown"), &all, LONG).await.unwrap();
    assert_eq!(store.claim(&any("node_c")).await.unwrap(), [run(3)]);
    let other = store.append(append(run(2), 1, 1).by("node_c")).await;
    assert_eq!(other, Err(AppendError::Owned(node("node_a"))));

    // The maximum duration must not overflow.
    store.renew(&node("node_a"), &all, Duration::MAX).await.unwrap();
    assert_eq!(store.claim(&Claim { lease: Duration::MAX, ..named("node_a", run(1)) }).await.unwrap(), [run(1)]);
    assert_eq!(store.claim(&any("node_c")).await.unwrap(), []);
}

pub(crate) async fn a_run_that_its_owner_does_not_name_is_not_renewed<S: Store>(store: Arc<S>) {
    for number in [1, 2] {
        store.append(append(run(number), 0, 1).by("node_a").leased(Duration::ZERO)).await.unwrap();
    }
    store.renew(&node("node_a"), &[run(2), run(7)], LONG).await.unwrap();
    store.renew(&node("node_a"), &[], LONG).await.unwrap();
    assert_eq!(store.claim(&any("node_b")).await.unwrap(), [run(1)]);
}

pub(crate) async fn a_run_with_a_zero_lease_can_be_claimed_at_once<S: Store>(store: Arc<S>) {
    for number in [1, 2] {
        store.append(append(run(number), 0, 1).by("node_a")).await.unwrap();
    }
    // A node cannot release the lease of another node.
    store.renew(&node("node_b"), &[run(2)], Duration::ZERO).await.unwrap();
    store.renew(&node("node_a"), &[run(1)], Duration::ZERO).await.unwrap();
    assert_eq!(store.claim(&any("node_b")).await.unwrap(), [run(1)]);
    let late = store.append(append(run(1), 1, 1).by("node_a")).await;
    assert_eq!(late, Err(AppendError::Owned(node("node_b"))));
}

pub(crate) async fn two_workers_claim_no_run_twice<S: Store>(store: Arc<S>) {
    const RUNS: usize = 1000;
    let creators: Vec<_> = (0..RUNS)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { store.append(append(run(number), 0, 1)).await.unwrap() })
        })
        .collect();
    for creator in creators {
        creator.await.unwrap();
    }
    let workers = ["node_a", "node_b"].map(|name| tokio::spawn(work(store.clone(), name)));
    let mut claimed = Vec::new();
    for worker in workers {
        let own = worker.await.unwrap();
        assert!(!own.is_empty(), "one worker took everything");
        claimed.extend(own);
    }
    assert_eq!(claimed.len(), RUNS);
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), (0..RUNS).map(run).collect());
    let ended = RunFilter { statuses: vec![Status::Completed], limit: 2 * RUNS, ..RunFilter::default() };
    assert_eq!(store.list(&ended).await.unwrap().len(), RUNS);
}

/// Claims and finishes runs until no run is left.
async fn work<S: Store>(store: Arc<S>, name: &str) -> Vec<RunId> {
    let mut mine = Vec::new();
    loop {
        let claimed = store.claim(&Claim { limit: 7, ..any(name) }).await.unwrap();
        if claimed.is_empty() {
            return mine;
        }
        for run in claimed {
            store.append(append(run.clone(), 1, 1).by(name).leaving(Status::Completed)).await.unwrap();
            mine.push(run);
        }
    }
}

async fn claimed_in_time<S: Store>(store: &S, claim: &Claim) -> Vec<RunId> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let claimed = store.claim(claim).await.unwrap();
        if !claimed.is_empty() || Instant::now() > deadline {
            return claimed;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
