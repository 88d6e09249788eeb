//! Feedback on runs.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate::core::id::RunId;
use toolgate::core::run::Status;
use toolgate::core::trace::SpanId;
use toolgate::ports::{
    Annotator, AnnotatorKind, Feedback, IdempotencyStore, IdempotentRequest, MAX_FEEDBACK, RequestState, StoredResponse,
};

use super::Store;
use crate::stores::journals::{Appending as _, append, fact, run};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn feedback(number: usize, second: i64) -> Feedback {
    Feedback {
        id: format!("feedback_{number:03}").into(),
        name: "quality".to_owned(),
        score: Some(0.1 + 0.2),
        label: Some("good".to_owned()),
        comment: Some("short é🦀\n".to_owned()),
        annotator: Annotator { kind: AnnotatorKind::Llm, id: Some("judge".to_owned()) },
        span: SpanId::parse("00f067aa0ba902b7"),
        created_at: at(second),
        updated_at: at(second + 1),
        created_by: Some("key:ci".to_owned()),
    }
}

async fn ended(store: &impl Store, number: usize) -> RunId {
    store.append(append(run(number), 0, 2).leaving(Status::Completed)).await.unwrap();
    run(number)
}

pub(crate) async fn feedback_is_listed_by_its_run_oldest_first<S: Store>(store: Arc<S>) {
    let (one, other) = (ended(&*store, 1).await, ended(&*store, 2).await);
    let bare =
        Feedback { score: Some(-1.0), label: None, comment: None, span: None, created_by: None, ..feedback(1, 200) };
    for (run, given) in
        [(&one, &bare), (&one, &feedback(3, 100)), (&one, &feedback(2, 100)), (&other, &feedback(1, 50))]
    {
        assert!(store.put_feedback(run, given).await.unwrap());
    }
    assert_eq!(store.feedback(&one).await.unwrap(), [feedback(2, 100), feedback(3, 100), bare]);
    assert_eq!(store.feedback(&other).await.unwrap(), [feedback(1, 50)]);
    assert_eq!(store.feedback(&run(3)).await.unwrap(), []);
}

pub(crate) async fn feedback_replaces_that_with_its_id<S: Store>(store: Arc<S>) {
    let run = ended(&*store, 1).await;
    let later = Feedback { score: Some(0.5), updated_at: at(300), ..feedback(1, 100) };
    for given in [feedback(1, 100), later.clone()] {
        assert!(store.put_feedback(&run, &given).await.unwrap());
    }
    assert_eq!(store.feedback(&run).await.unwrap(), [later]);
}

pub(crate) async fn a_run_has_a_bounded_number_of_feedback<S: Store>(store: Arc<S>) {
    let (run, other) = (ended(&*store, 1).await, ended(&*store, 2).await);
    for number in 0..MAX_FEEDBACK {
        assert!(store.put_feedback(&run, &feedback(number, 100)).await.unwrap());
    }
    assert!(!store.put_feedback(&run, &feedback(MAX_FEEDBACK, 100)).await.unwrap());
    assert!(store.put_feedback(&run, &feedback(0, 101)).await.unwrap(), "it replaces one");
    assert!(store.put_feedback(&other, &feedback(0, 100)).await.unwrap(), "on another run");
    assert!(store.delete_feedback(&run, &"feedback_000".into()).await.unwrap());
    assert!(store.put_feedback(&run, &feedback(MAX_FEEDBACK, 100)).await.unwrap());
    assert_eq!(store.feedback(&run).await.unwrap().len(), MAX_FEEDBACK);
}

pub(crate) async fn feedback_is_deleted_with_its_run<S: Store>(store: Arc<S>) {
    let (purged, other) = (ended(&*store, 1).await, ended(&*store, 2).await);
    for run in [&purged, &other] {
        store.put_feedback(run, &feedback(1, 100)).await.unwrap();
    }
    store.purge(&purged, 2, fact(7).at).await.unwrap();
    assert_eq!(store.feedback(&purged).await.unwrap(), []);
    assert_eq!(store.feedback(&other).await.unwrap(), [feedback(1, 100)]);
    for run in [purged, run(3)] {
        assert!(!store.put_feedback(&run, &feedback(1, 100)).await.unwrap(), "{run}");
        assert_eq!(store.feedback(&run).await.unwrap(), []);
    }
}

pub(crate) async fn deleted_feedback_leaves_no_answer_that_quotes_it<S: Store>(store: Arc<S>) {
    let (run, other) = (ended(&*store, 1).await, ended(&*store, 2).await);
    for number in [1, 2] {
        store.put_feedback(&run, &feedback(number, 100)).await.unwrap();
    }
    let answer = |run: &RunId, body: &str| {
        RequestState::Answered(StoredResponse {
            status: 201,
            run: Some(run.clone()),
            session: None,
            file: None,
            headers: vec![],
            body: body.as_bytes().to_vec(),
        })
    };
    let asked = |key: &str| IdempotentRequest {
        tenant: "acme".into(),
        caller: "key:ci".to_owned(),
        key: key.to_owned(),
        fingerprint: "f".to_owned(),
        run: None,
        held_until: at(100),
        expires_at: at(10_000),
    };
    let answers = [
        ("a", answer(&run, r#"{"id":"feedback_001"}"#)),
        ("b", answer(&run, r#"{"id":"feedback_002"}"#)),
        ("c", answer(&other, r#"{"id":"feedback_001"}"#)),
    ];
    for (key, state) in &answers {
        store.begin(&asked(key), at(50)).await.unwrap();
        IdempotencyStore::settle(&*store, &asked(key), state).await.unwrap();
    }
    assert!(!store.delete_feedback(&other, &"feedback_002".into()).await.unwrap());
    assert!(store.delete_feedback(&run, &"feedback_001".into()).await.unwrap());
    assert!(!store.delete_feedback(&run, &"feedback_001".into()).await.unwrap());
    assert_eq!(store.feedback(&run).await.unwrap(), [feedback(2, 100)]);
    let mut states = Vec::new();
    for (key, _) in &answers {
        states.push(store.begin(&asked(key), at(60)).await.unwrap().unwrap().state);
    }
    let [_, (_, second), (_, third)] = answers;
    assert_eq!(states, [RequestState::NotStored, second, third]);
}
