//! Sessions and the segments of their conversations.

use std::sync::Arc;

use futures::future::join_all;
use toolgate::core::id::{RunId, SessionId, Tenant};
use toolgate::core::run::{Segment, Status};
use toolgate::ports::{
    Append, AppendError, ChainLink, Purged, RunFilter, RunStore, SessionFilter, SessionHead, SessionLimits, SessionRow,
    SessionSaved, SessionSettings, StoreError,
};

use super::Store;
use crate::stores::journals::{Appending, append, claiming, fact, run, segment, usage};

/// The session "chat" of the default tenant.
async fn chat(store: &dyn RunStore) -> Option<SessionRow> {
    store.session(&Tenant::default(), &"chat".into()).await.unwrap()
}

async fn exists(store: &dyn RunStore, run: RunId) -> bool {
    let filter = RunFilter { run: Some(run), purged: true, ..RunFilter::default() };
    !store.list(&filter).await.unwrap().is_empty()
}

/// The runs and segments of the conversation that ends with a run of the default tenant.
async fn conversation(store: &dyn RunStore, last: RunId) -> Vec<(RunId, Option<Segment>)> {
    conversation_of(store, "default", last).await
}

async fn conversation_of(store: &dyn RunStore, tenant: &str, last: RunId) -> Vec<(RunId, Option<Segment>)> {
    let links = store.conversation(&tenant.into(), &last).await.unwrap();
    links.into_iter().map(|ChainLink { run, segment }| (run, segment)).collect()
}

/// The row that a claim wants to write.
fn claimed(append: &Append) -> SessionRow {
    append.session.as_ref().unwrap().row.clone()
}

fn changed(current: Option<SessionRow>) -> Result<(), AppendError> {
    Err(AppendError::SessionChanged { current: current.map(Box::new) })
}

/// Appends the first event of a run that claims "chat" and ends at once.
async fn claim_and_end(store: &dyn RunStore, number: usize, expected: u64) -> SessionRow {
    let append = claiming(run(number), "chat", expected).leaving(Status::Completed);
    let row = claimed(&append);
    store.append(append).await.unwrap();
    row
}

pub(crate) async fn a_claim_creates_the_session_of_a_run<S: Store>(store: Arc<S>) {
    assert_eq!(chat(&*store).await, None);
    let first = claiming(run(1), "chat", 0);
    store.append(first.clone()).await.unwrap();

    assert_eq!(chat(&*store).await, Some(claimed(&first)));
    assert_eq!(store.load(&run(1), 0).await.unwrap(), first.events);
    let filter = RunFilter { run: Some(run(1)), ..RunFilter::default() };
    assert_eq!(store.list(&filter).await.unwrap(), [first.row]);
}

pub(crate) async fn a_session_has_the_status_of_its_head<S: Store>(store: Arc<S>) {
    let first = claiming(run(1), "chat", 0);
    let row = claimed(&first);
    store.append(first.clone()).await.unwrap();
    for (at, status) in (1..).zip([Status::Pending, Status::Running, Status::Failed]) {
        let mut next = append(run(1), at, 1).leaving(status);
        next.row.session = "chat".into();
        store.append(next).await.unwrap();
        let (version, usage, updated_at) = (at + 1, usage(at + 1), fact(at + 1).at);
        let iterations = at + 1;
        let head = Some(SessionHead { run: run(1), status, version, usage, iterations, updated_at });
        assert_eq!(chat(&*store).await, Some(SessionRow { head, ..row.clone() }), "the row itself stays");
    }
}

pub(crate) async fn a_refused_claim_creates_no_run<S: Store>(store: Arc<S>) {
    let row = claim_and_end(&*store, 1, 0).await;
    let late = claiming(run(2), "chat", 0).after(run(1)).with_segment(segment("Hello"));
    // In one batch of the store with an append that succeeds.
    let (refused, other) = tokio::join!(store.append(late), store.append(append(run(3), 0, 1)));

    assert_eq!((refused, other), (changed(Some(row.clone())), Ok(())));
    assert!(!exists(&*store, run(2)).await);
    assert_eq!(store.load(&run(2), 0).await.unwrap(), []);
    assert_eq!(chat(&*store).await, Some(row));
    assert_eq!(conversation(&*store, run(1)).await, [(run(1), None)], "the segment is not stored either");
}

pub(crate) async fn a_refused_run_moves_no_head<S: Store>(store: Arc<S>) {
    let row = claim_and_end(&*store, 1, 0).await;
    store.append(append(run(2), 0, 2)).await.unwrap();
    let taken = claiming(run(2), "chat", 1).after(run(1)).with_segment(segment("Hello"));

    assert_eq!(store.append(taken).await, Err(AppendError::Conflict { length: 2 }));
    assert_eq!(chat(&*store).await, Some(row));
    assert_eq!(conversation(&*store, run(1)).await, [(run(1), None)]);
}

pub(crate) async fn a_claim_that_contradicts_its_run_is_rejected<S: Store>(store: Arc<S>) {
    let sound = || claiming(run(1), "chat", 0);
    let edited = |edit: fn(&mut SessionRow)| {
        let mut append = sound();
        edit(&mut append.session.as_mut().unwrap().row);
        append
    };
    let late = Append { session: sound().session, ..append(run(1), 1, 1) };
    for (what, broken) in [
        ("another session", edited(|row| row.id = "other".into())),
        ("another tenant", edited(|row| row.tenant = "acme".into())),
        ("no head", edited(|row| row.head = None)),
        ("another head", edited(|row| row.head.as_mut().unwrap().run = run(2))),
        ("the same version", edited(|row| row.version = 0)),
        ("a later version", edited(|row| row.version = 2)),
        ("a segment of no run", sound().with_segment(segment("Hello"))),
        ("an existing run", late),
    ] {
        let refused = store.append(broken).await;
        assert!(matches!(refused, Err(AppendError::Store(StoreError::Corrupt(_)))), "{what}: {refused:?}");
    }
    assert!(!exists(&*store, run(1)).await);
    assert_eq!(store.sessions(&SessionFilter::default()).await.unwrap(), []);
}

pub(crate) async fn of_twenty_concurrent_claims_one_wins<S: Store>(store: Arc<S>) {
    for (round, expected) in (0..3).map(|round| (round, round as u64)) {
        let numbers = (0..20).map(|number| 1 + 20 * round + number);
        let claims = numbers.map(|number| {
            let append = claiming(run(number), "chat", expected).leaving(Status::Completed);
            let store = store.clone();
            tokio::spawn(async move { (claimed(&append), store.append(append).await) })
        });
        let outcomes: Vec<_> = join_all(claims).await.into_iter().map(Result::unwrap).collect();

        let (won, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(_, outcome)| outcome.is_ok());
        let [(winner, _)] = &*won else { panic!("{} claims succeeded", won.len()) };
        assert_eq!(chat(&*store).await.as_ref(), Some(winner));
        for (loser, outcome) in lost {
            assert_eq!(outcome, changed(Some(winner.clone())));
            assert!(!exists(&*store, loser.head.unwrap().run).await);
        }
    }
}

pub(crate) async fn a_claim_at_another_version_is_refused_with_the_current_row<S: Store>(store: Arc<S>) {
    assert_eq!(store.append(claiming(run(1), "chat", 1)).await, changed(None));
    claim_and_end(&*store, 2, 0).await;
    let row = claim_and_end(&*store, 3, 1).await;
    for expected in [0, 1, 3, 9] {
        assert_eq!(store.append(claiming(run(4), "chat", expected)).await, changed(Some(row.clone())), "{expected}");
    }
    assert!(!exists(&*store, run(4)).await);
    claim_and_end(&*store, 4, 2).await;
}

pub(crate) async fn a_session_with_a_live_head_is_not_claimed<S: Store>(store: Arc<S>) {
    for (number, status) in Status::ALL.into_iter().enumerate() {
        let session = format!("chat_{number}");
        let head = claiming(run(10 + number), &session, 0).leaving(status);
        let current = claimed(&head);
        store.append(head).await.unwrap();
        let next = store.append(claiming(run(20 + number), &session, 1)).await;
        assert_eq!(next, if status.is_ended() { Ok(()) } else { changed(Some(current)) }, "{status:?}");
    }
}

pub(crate) async fn a_claim_needs_an_ended_predecessor<S: Store>(store: Arc<S>) {
    for (number, status) in Status::ALL.into_iter().enumerate() {
        // A run without a session row: the first claim continues it.
        store.append(append(run(10 + number), 0, 1).leaving(status)).await.unwrap();
        let created = claiming(run(20 + number), &format!("new_{number}"), 0).after(run(10 + number));
        let outcome = store.append(created.with_segment(segment("Hello"))).await;
        assert_eq!(outcome, if status.is_ended() { Ok(()) } else { changed(None) }, "{status:?}");
        assert_eq!(exists(&*store, run(20 + number)).await, status.is_ended(), "{status:?}");

        let known = claiming(run(30 + number), &format!("known_{number}"), 0).leaving(Status::Completed);
        store.append(known.clone()).await.unwrap();
        let next = claiming(run(40 + number), &format!("known_{number}"), 1).after(run(10 + number));
        let outcome = store.append(next).await;
        assert_eq!(outcome, if status.is_ended() { Ok(()) } else { changed(Some(claimed(&known))) }, "{status:?}");
        let said = status.is_ended().then(|| segment("Hello"));
        assert_eq!(conversation(&*store, run(10 + number)).await, [(run(10 + number), said)], "{status:?}");
    }
}

pub(crate) async fn an_id_of_another_tenant_is_another_session<S: Store>(store: Arc<S>) {
    let here = claiming(run(1), "chat", 0);
    let there = claiming(run(2), "chat", 0).of_tenant("acme");
    for append in [&here, &there] {
        store.append(append.clone()).await.unwrap();
    }
    let of = async |tenant: &str| store.session(&tenant.into(), &"chat".into()).await.unwrap();
    assert_eq!(of("default").await, Some(claimed(&here)));
    assert_eq!(of("acme").await, Some(claimed(&there)));
    assert_eq!(of("dune").await, None);
    let changed = SessionRow { title: "Ours".to_owned(), ..claimed(&there) };
    assert_eq!(store.save_session(1, &changed).await, Ok(SessionSaved::Saved));
    assert_eq!(of("default").await, Some(claimed(&here)));
    for (tenant, row) in [("default", claimed(&here)), ("acme", SessionRow { version: 2, ..changed })] {
        let filter = SessionFilter { tenant: tenant.into(), ..SessionFilter::default() };
        assert_eq!(store.sessions(&filter).await.unwrap(), [row]);
    }
}

pub(crate) async fn a_session_is_saved_only_at_its_version<S: Store>(store: Arc<S>) {
    let row = |title: &str| SessionRow {
        head: None,
        runs: 0,
        title: title.to_owned(),
        ..claimed(&claiming(run(1), "chat", 0))
    };
    let missing = store.save_session(1, &row("Early")).await;
    assert_eq!(missing, Ok(SessionSaved::Changed(None)));

    assert_eq!(store.save_session(0, &row("First")).await, Ok(SessionSaved::Saved));
    let first = row("First");
    assert_eq!(chat(&*store).await, Some(first.clone()));
    assert!(!first.is_live());
    for expected in [0, 2] {
        let refused = store.save_session(expected, &row("Late")).await;
        assert_eq!(refused, Ok(SessionSaved::Changed(Some(first.clone().into()))), "{expected}");
    }
    assert_eq!(chat(&*store).await, Some(first));

    claim_and_end(&*store, 1, 1).await;
    assert_eq!(store.save_session(2, &row("Second")).await, Ok(SessionSaved::Saved));
    let claimed_meanwhile = store.append(claiming(run(2), "chat", 2)).await;
    assert_eq!(claimed_meanwhile, changed(chat(&*store).await), "a save counts as a change");
}

pub(crate) async fn a_save_changes_only_what_a_caller_may_change<S: Store>(store: Arc<S>) {
    let first = claiming(run(1), "chat", 0);
    store.append(first.clone()).await.unwrap();
    let metadata = serde_json::json!({"a": [1.5, "\u{0}\"é", null], "ticket": {}}).as_object().unwrap().clone();
    let settings = SessionSettings {
        metadata,
        limits: SessionLimits { max_iterations: Some(9), ..SessionLimits::default() },
        expire_after_s: None,
        mode: Some("dont-ask".to_owned()),
    };
    let saved = SessionRow {
        title: "New".to_owned(),
        settings: settings.clone(),
        iterations: 77,
        runtime: None,
        updated_at: fact(9).at,
        agent: "other".into(),
        principal: None,
        head: None,
        version: 77,
        runs: 77,
        created_by: None,
        authors: ["mallory".to_owned()].into(),
        created_at: fact(8).at,
        ..claimed(&first)
    };
    assert_eq!(store.save_session(1, &saved).await, Ok(SessionSaved::Saved));
    let title = "New".to_owned();
    let wanted = SessionRow { version: 2, title, settings, updated_at: fact(9).at, ..claimed(&first) };
    assert_eq!(chat(&*store).await, Some(wanted.clone()), "also while its head is live");

    let cleared = SessionRow { settings: SessionSettings::default(), ..wanted.clone() };
    assert_eq!(store.save_session(2, &cleared).await, Ok(SessionSaved::Saved));
    assert_eq!(chat(&*store).await, Some(SessionRow { version: 3, ..cleared }));
}

pub(crate) async fn a_deleted_session_is_neither_claimed_nor_changed_nor_listed<S: Store>(store: Arc<S>) {
    let live = claiming(run(1), "chat", 0);
    store.append(live.clone()).await.unwrap();
    let deleted = SessionRow { title: String::new(), deleted_at: Some(fact(9).at), ..claimed(&live) };
    let refused = store.save_session(1, &deleted).await;
    assert_eq!(refused, Ok(SessionSaved::Changed(chat(&*store).await.map(Box::new))), "its head is live");
    let mut ended = append(run(1), 1, 1).leaving(Status::Completed);
    ended.row.session = "chat".into();
    store.append(ended).await.unwrap();

    assert_eq!(store.save_session(1, &deleted).await, Ok(SessionSaved::Saved));

    let kept = chat(&*store).await;
    assert_eq!(kept.as_ref().map(|row| (row.version, row.deleted_at)), Some((2, deleted.deleted_at)));
    assert_eq!(store.append(claiming(run(2), "chat", 2)).await, changed(kept.clone()));
    for expected in [0, 2] {
        let refused = store.save_session(expected, &claimed(&live)).await;
        assert_eq!(refused, Ok(SessionSaved::Changed(kept.clone().map(Box::new))), "{expected}");
    }
    assert_eq!(store.sessions(&SessionFilter::default()).await, Ok(Vec::new()));
}

pub(crate) async fn no_run_begins_beside_a_deleted_session<S: Store>(store: Arc<S>) {
    let row = claim_and_end(&*store, 1, 0).await;
    let beside = |number: usize| {
        let mut beside = append(run(number), 0, 1);
        beside.row.session = "chat".into();
        beside
    };
    store.append(beside(2)).await.unwrap();
    let deleted = SessionRow { deleted_at: Some(fact(9).at), ..row.clone() };
    let refused = store.save_session(1, &deleted).await;
    assert_eq!(refused, Ok(SessionSaved::Changed(Some(row.into()))), "a run beside the conversation is live");
    let mut ended = append(run(2), 1, 1).leaving(Status::Completed);
    ended.row.session = "chat".into();
    store.append(ended).await.unwrap();
    assert_eq!(store.save_session(1, &deleted).await, Ok(SessionSaved::Saved));

    assert_eq!(store.append(beside(3)).await, changed(chat(&*store).await));

    assert!(!exists(&*store, run(3)).await);
    store.append(beside(4).of_tenant("acme")).await.unwrap();
}

pub(crate) async fn a_conversation_is_read_back_oldest_first<S: Store>(store: Arc<S>) {
    // The ids descend: the order is that of the predecessors.
    claim_and_end(&*store, 9, 0).await;
    for (number, expected) in [(8, 1), (7, 2), (6, 3)] {
        let next = claiming(run(number), "chat", expected).after(run(number + 1)).leaving(Status::Completed);
        store.append(next.with_segment(segment(&format!("said in {}", number + 1)))).await.unwrap();
    }
    let said = |number: usize| (run(number), Some(segment(&format!("said in {number}"))));
    assert_eq!(conversation(&*store, run(6)).await, [said(9), said(8), said(7), (run(6), None)]);
    assert_eq!(conversation(&*store, run(8)).await, [said(9), said(8)], "a fork continues from the middle");
    assert_eq!(conversation(&*store, run(9)).await, [said(9)]);
    assert_eq!(conversation(&*store, run(5)).await, [(run(5), None)], "an unknown run has said nothing");
}

pub(crate) async fn a_segment_is_stored_once<S: Store>(store: Arc<S>) {
    claim_and_end(&*store, 1, 0).await;
    for (number, text) in [(2, "first"), (3, "second")] {
        let next = claiming(run(number), "chat", number as u64 - 1).after(run(1)).leaving(Status::Failed);
        store.append(next.with_segment(segment(text))).await.unwrap();
    }
    let other = claiming(run(4), "other", 0).after(run(1));
    store.append(other).await.unwrap();
    for number in [2, 3, 4] {
        let read = conversation(&*store, run(number)).await;
        assert_eq!(read, [(run(1), Some(segment("first"))), (run(number), None)]);
    }
}

pub(crate) async fn a_deleted_run_is_no_longer_read<S: Store>(store: Arc<S>) {
    claim_and_end(&*store, 1, 0).await;
    for number in [2, 3] {
        let next = claiming(run(number), "chat", number as u64 - 1).after(run(number - 1));
        let next = next.with_segment(segment(&format!("said in {}", number - 1)));
        store.append(next.leaving(Status::Completed)).await.unwrap();
    }
    let before = chat(&*store).await;
    let now = fact(7).at;
    assert_eq!(store.purge(&run(2), 9, now).await, Ok(Purged::No));
    let said = |number: usize| (run(number), Some(segment(&format!("said in {number}"))));
    assert_eq!(conversation(&*store, run(3)).await, [said(1), said(2), (run(3), None)]);

    assert_eq!(store.purge(&run(2), 1, now).await, Ok(Purged::Since(now)));
    assert_eq!(conversation(&*store, run(3)).await, [said(1), (run(2), None), (run(3), None)]);

    // A successor of the head that was composed before the deletion is refused. Another one brings no deleted words.
    assert_eq!(store.purge(&run(3), 1, now).await, Ok(Purged::Since(now)));
    let after = chat(&*store).await.map(|row| SessionRow { version: row.version - 1, ..row });
    assert_eq!(after, before, "the session itself stays");
    let claim = |expected| claiming(run(4), "chat", expected).after(run(3)).with_segment(segment("said in 3"));
    assert!(matches!(store.append(claim(3)).await, Err(AppendError::SessionChanged { .. })));
    store.append(claim(4)).await.unwrap();
    let read = conversation(&*store, run(4)).await;
    assert_eq!(read, [said(1), (run(2), None), (run(3), None), (run(4), None)]);
}

pub(crate) async fn a_conversation_may_begin_in_another_store<S: Store>(store: Arc<S>) {
    let imported = claiming(run(2), "chat", 0).after(run(1)).with_segment(segment("elsewhere"));
    store.append(imported.leaving(Status::Completed)).await.unwrap();
    let wanted = [(run(1), Some(segment("elsewhere"))), (run(2), None)];
    assert_eq!(conversation(&*store, run(2)).await, wanted);
    assert_eq!(conversation(&*store, run(1)).await, wanted[..1]);
}

pub(crate) async fn a_conversation_of_another_tenant_is_not_read<S: Store>(store: Arc<S>) {
    claim_and_end(&*store, 1, 0).await;
    let next = claiming(run(2), "chat", 1).after(run(1)).with_segment(segment("secret"));
    store.append(next.leaving(Status::Completed)).await.unwrap();

    // A tenant names runs of another one, which it may know from an envelope.
    let foreign = claiming(run(3), "chat", 0).after(run(2)).of_tenant("acme").with_segment(segment("forged"));
    store.append(foreign).await.unwrap();
    let pending = append(run(4), 0, 1).leaving(Status::Pending);
    store.append(pending).await.unwrap();
    let of_a_live_run = claiming(run(5), "other", 0).after(run(4)).of_tenant("acme");
    store.append(of_a_live_run).await.expect("a run of another tenant counts as unknown");

    let read = conversation_of(&*store, "acme", run(3)).await;
    assert_eq!(read, [(run(2), Some(segment("forged"))), (run(3), None)]);
    assert_eq!(conversation_of(&*store, "acme", run(1)).await, [(run(1), None)]);
    let wanted = [(run(1), Some(segment("secret"))), (run(2), None)];
    assert_eq!(conversation(&*store, run(2)).await, wanted, "nothing of it changed");
    store.purge(&run(2), 1, fact(7).at).await.unwrap();
    let read = conversation_of(&*store, "acme", run(3)).await;
    assert_eq!(read, [(run(2), Some(segment("forged"))), (run(3), None)], "a deletion is the tenant's own as well");
}

pub(crate) async fn a_circle_of_predecessors_is_read_once<S: Store>(store: Arc<S>) {
    for (number, predecessor) in [(1, 3), (2, 1), (3, 2)] {
        let append = claiming(run(number), &format!("chat_{number}"), 0).after(run(predecessor));
        store.append(append.leaving(Status::Completed).with_segment(segment("round"))).await.unwrap();
    }
    let read = conversation(&*store, run(3)).await;
    assert_eq!(read.into_iter().map(|(run, _)| run).collect::<Vec<_>>(), [run(1), run(2), run(3)]);
}

pub(crate) async fn pages_of_sessions_have_each_session_once<S: Store>(store: Arc<S>) {
    let mut rows = Vec::new();
    for number in 0..60 {
        let mut new = claiming(run(number), &format!("chat_{:02}", (number * 7) % 60), 0);
        let row = &mut new.session.as_mut().unwrap().row;
        // Three sessions of one instant each, and a second tenant.
        row.created_at = fact(number as u64 / 3).at;
        row.agent = if number % 2 == 0 { "clerk" } else { "cook" }.into();
        row.principal = (number % 5 > 0).then(|| format!("user_{}", number % 3).as_str().into());
        let new = if number % 4 == 0 { new.of_tenant("acme") } else { new };
        rows.push(claimed(&new));
        store.append(new).await.unwrap();
    }
    rows.sort_by_key(|row| std::cmp::Reverse((row.created_at, row.id.clone())));
    for tenant in ["default", "acme", "dune"] {
        for (agent, principal) in
            [(None, None), (Some("cook"), None), (None, Some("user_1")), (Some("clerk"), Some("user_2"))]
        {
            let all = SessionFilter {
                tenant: tenant.into(),
                agent: agent.map(Into::into),
                principal: principal.map(Into::into),
                ..SessionFilter::default()
            };
            let wanted: Vec<&SessionRow> = rows
                .iter()
                .filter(|row| row.tenant.as_str() == tenant)
                .filter(|row| agent.is_none_or(|agent| row.agent.as_str() == agent))
                .filter(|row| principal.is_none_or(|name| row.principal.as_ref().is_some_and(|of| of.as_str() == name)))
                .collect();
            let found = store.sessions(&all).await.unwrap();
            assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "{all:?}");

            let mut paged: Vec<SessionRow> = Vec::new();
            loop {
                let before = paged.last().map(|last| (last.created_at, last.id.clone()));
                let page = store.sessions(&SessionFilter { before, limit: 7, ..all.clone() }).await.unwrap();
                assert!(page.len() <= 7);
                if page.is_empty() {
                    break;
                }
                paged.extend(page);
            }
            assert_eq!(paged, found, "{all:?}");
        }
    }
    for number in 60..110 {
        store.append(claiming(run(number), &format!("late_{number}"), 0).of_tenant("brim")).await.unwrap();
        store.append(claiming(run(number + 50), &format!("later_{number}"), 0).of_tenant("brim")).await.unwrap();
    }
    store.append(claiming(run(200), "last", 0).of_tenant("brim")).await.unwrap();
    let unlimited = SessionFilter { tenant: "brim".into(), ..SessionFilter::default() };
    assert_eq!(store.sessions(&unlimited).await.unwrap().len(), 100);
    let oldest: SessionId = store.sessions(&unlimited).await.unwrap().pop().unwrap().id;
    let before = Some((fact(0).at, oldest));
    assert_eq!(store.sessions(&SessionFilter { before, ..unlimited }).await.unwrap().len(), 1);
}
