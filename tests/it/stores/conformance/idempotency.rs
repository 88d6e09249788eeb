//! Idempotency records.

use std::sync::Arc;

use futures::future::join_all;
use jiff::Timestamp;
use toolgate::core::run::Status;
use toolgate::ports::{
    IdempotencyRecord, IdempotencyStore, IdempotentRequest, RequestState, SessionRow, SessionSaved, StoredResponse,
};

use super::Store;
use crate::stores::journals::{Appending, append, claiming, run};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn asked(caller: &str, key: &str) -> IdempotentRequest {
    IdempotentRequest {
        tenant: "acme".into(),
        caller: caller.to_owned(),
        key: key.to_owned(),
        fingerprint: "a hash".to_owned(),
        run: Some("run_1".into()),
        held_until: at(115),
        expires_at: at(1000),
    }
}

fn begun(state: RequestState) -> Option<IdempotencyRecord> {
    Some(IdempotencyRecord { fingerprint: "a hash".to_owned(), run: Some("run_1".into()), state })
}

fn reply() -> StoredResponse {
    let headers = vec![("location".to_owned(), "/v1/runs/1".to_owned())];
    StoredResponse {
        status: 201,
        run: Some("run_1".into()),
        session: None,
        file: None,
        headers,
        body: vec![0, 255, b'"'],
    }
}

pub(crate) async fn a_request_is_recorded_once_with_its_response<S: Store>(store: Arc<S>) {
    let first = asked("ann", "k");
    assert_eq!(store.begin(&first, at(100)).await.unwrap(), None);
    let again = IdempotentRequest { run: Some("run_2".into()), fingerprint: "another".to_owned(), ..first.clone() };
    assert_eq!(store.begin(&again, at(101)).await.unwrap(), begun(RequestState::UnderWay { held_until: at(115) }));
    for state in
        [RequestState::Answered(reply()), RequestState::NotStored, RequestState::UnderWay { held_until: at(0) }]
    {
        IdempotencyStore::settle(&*store, &first, &state).await.unwrap();
        assert_eq!(store.begin(&again, at(102)).await.unwrap(), begun(state));
    }
}

pub(crate) async fn of_concurrent_begins_of_one_request_one_wins<S: Store>(store: Arc<S>) {
    let request = asked("ann", "k");
    let all = join_all((0..20).map(|_| store.begin(&request, at(100)))).await;
    assert_eq!(all.into_iter().filter(|begun| begun.as_ref().unwrap().is_none()).count(), 1);
}

pub(crate) async fn a_request_belongs_to_its_caller<S: Store>(store: Arc<S>) {
    let other_tenant = IdempotentRequest { tenant: "bolt".into(), ..asked("ann", "k") };
    for request in [asked("ann", "k"), asked("bob", "k"), asked("ann", "l"), other_tenant] {
        assert_eq!(store.begin(&request, at(100)).await.unwrap(), None, "{request:?}");
    }
}

pub(crate) async fn a_forgotten_or_expired_request_starts_again<S: Store>(store: Arc<S>) {
    let request = asked("ann", "k");
    store.begin(&request, at(100)).await.unwrap();
    IdempotencyStore::forget(&*store, &request).await.unwrap();
    assert_eq!(store.begin(&request, at(101)).await.unwrap(), None);
    IdempotencyStore::settle(&*store, &request, &RequestState::Answered(reply())).await.unwrap();
    assert!(store.begin(&request, at(999)).await.unwrap().is_some());
    let later =
        IdempotentRequest { fingerprint: "later".to_owned(), held_until: at(1015), expires_at: at(2000), ..request };
    assert_eq!(store.begin(&later, at(1000)).await.unwrap(), None);
    let known = store.begin(&later, at(1001)).await.unwrap().unwrap();
    assert_eq!((known.fingerprint.as_str(), known.state), ("later", RequestState::UnderWay { held_until: at(1015) }));
    // More records than one sweep deletes: requested ones count as expired all the same.
    for number in 0..200 {
        store
            .begin(&IdempotentRequest { expires_at: at(1010), ..asked("ann", &number.to_string()) }, at(1002))
            .await
            .unwrap();
    }
    for number in (0..200).rev() {
        let request = IdempotentRequest { expires_at: at(3000), ..asked("ann", &number.to_string()) };
        assert_eq!(store.begin(&request, at(1010)).await.unwrap(), None, "{number}");
    }
}

pub(crate) async fn a_held_request_reports_its_deadline<S: Store>(store: Arc<S>) {
    let request = asked("ann", "k");
    store.begin(&request, at(100)).await.unwrap();
    for (until, known) in [(130, 130), (120, 130)] {
        store.prolong(&request, at(until)).await.unwrap();
        let begun = store.begin(&request, at(101)).await.unwrap().unwrap();
        assert_eq!(begun.state, RequestState::UnderWay { held_until: at(known) });
    }
    IdempotencyStore::settle(&*store, &request, &RequestState::Answered(reply())).await.unwrap();
    store.prolong(&request, at(500)).await.unwrap();
    assert_eq!(store.begin(&request, at(102)).await.unwrap().unwrap().state, RequestState::Answered(reply()));
}

pub(crate) async fn an_abandoned_request_is_taken_over_by_one<S: Store>(store: Arc<S>) {
    let first = asked("ann", "k");
    let repeat = IdempotentRequest { held_until: at(130), ..first.clone() };
    assert!(!store.take_over(&repeat, at(200)).await.unwrap(), "it was never noted");
    store.begin(&first, at(100)).await.unwrap();
    assert!(!store.take_over(&repeat, at(114)).await.unwrap(), "it is held");

    let all = join_all((0..20).map(|_| store.take_over(&repeat, at(115)))).await;

    assert_eq!(all.into_iter().filter(|taken| *taken.as_ref().unwrap()).count(), 1);
    assert_eq!(store.begin(&first, at(116)).await.unwrap(), begun(RequestState::UnderWay { held_until: at(130) }));
    for state in [RequestState::Answered(reply()), RequestState::NotStored] {
        IdempotencyStore::settle(&*store, &first, &state).await.unwrap();
        assert!(!store.take_over(&repeat, at(500)).await.unwrap(), "it is settled");
        assert_eq!(store.begin(&first, at(501)).await.unwrap(), begun(state));
    }
}

pub(crate) async fn an_answer_that_quotes_a_purged_run_is_forgotten<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 2).leaving(Status::Completed)).await.unwrap();
    let quoting = |run| RequestState::Answered(StoredResponse { run, ..reply() });
    let noted = [(asked("ann", "a"), Some(run(1))), (asked("bob", "b"), Some(run(2))), (asked("bob", "c"), None)];
    for (request, quoted) in &noted {
        store.begin(request, at(100)).await.unwrap();
        IdempotencyStore::settle(&*store, request, &quoting(quoted.clone())).await.unwrap();
    }

    store.purge(&run(1), 2, at(101)).await.unwrap();

    for (request, quoted) in noted {
        let left = if quoted == Some(run(1)) { RequestState::NotStored } else { quoting(quoted) };
        assert_eq!(store.begin(&request, at(102)).await.unwrap(), begun(left), "{}", request.key);
    }
}

pub(crate) async fn an_answer_that_quotes_a_deleted_session_is_forgotten<S: Store>(store: Arc<S>) {
    let quoting =
        |session: &str| RequestState::Answered(StoredResponse { run: None, session: Some(session.into()), ..reply() });
    let row = claiming(run(1), "chat", 0).session.unwrap().row;
    let row = SessionRow { head: None, tenant: asked("ann", "a").tenant, ..row };
    assert_eq!(store.save_session(0, &row).await, Ok(SessionSaved::Saved));
    let foreign = IdempotentRequest { tenant: "bolt".into(), ..asked("ann", "a") };
    for (request, session) in [(asked("ann", "a"), "chat"), (asked("bob", "b"), "other"), (foreign.clone(), "chat")] {
        store.begin(&request, at(100)).await.unwrap();
        IdempotencyStore::settle(&*store, &request, &quoting(session)).await.unwrap();
    }

    let deleted = SessionRow { deleted_at: Some(at(101)), ..row };
    assert_eq!(store.save_session(1, &deleted).await, Ok(SessionSaved::Saved));

    let state = async |request: &IdempotentRequest| store.begin(request, at(102)).await.unwrap().unwrap().state;
    assert_eq!(state(&asked("ann", "a")).await, RequestState::NotStored);
    assert_eq!(state(&asked("bob", "b")).await, quoting("other"));
    assert_eq!(state(&foreign).await, quoting("chat"));
}
