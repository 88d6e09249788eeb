use std::time::Duration;

use serde_json::{Map, json};
use toolgate_core::run::ElicitationAnswer;
use toolgate_core::tool::ElicitationRequest;

use super::*;

fn question(message: &str) -> Question {
    Question::Form { message: message.into(), schema: json!({"type": "object"}) }
}

fn answered(needed: ElicitationRequest, answer: &str) -> AnsweredElicitation {
    let reaction = ElicitationResponse::accept(Map::from_iter([("is".to_owned(), json!(answer))]));
    let reactions = needed.questions.keys().map(|key| (key.clone(), reaction.clone())).collect();
    AnsweredElicitation {
        needed: needed.into(),
        given: ElicitationAnswer { reactions, by: "test".into(), via: Default::default(), repeat: false }.into(),
    }
}

/// A call's answer from an earlier suspension: this question, answered so.
fn brings(message: &str, answer: &str) -> AnsweredElicitation {
    let questions = [(digest(&question(message)), question(message))].into();
    answered(ElicitationExchange::new(None).suspend(questions), answer)
}

async fn is_waiting<T>(future: impl Future<Output = T> + Unpin) -> bool {
    tokio::time::timeout(Duration::from_millis(20), future).await.is_err()
}

fn is_stuck(elicitations: &Arc<ElicitationExchange>) -> bool {
    futures::FutureExt::now_or_never(elicitations.stuck()).is_some()
}

/// Calls with these numbers at the desk, the first time.
fn under_way<const N: usize>(
    router: &ElicitationRouter,
    ids: [i64; N],
) -> [(Arc<ElicitationExchange>, InFlightCall); N] {
    ids.map(|id| {
        let elicitations = ElicitationExchange::new(None);
        let present = router.enter(RequestId::Number(id), elicitations.clone());
        (elicitations, present)
    })
}

#[tokio::test]
async fn answers_of_all_rounds_are_known_in_whatever_order_they_are_asked_for() {
    let (router, id) = (ElicitationRouter::default(), RequestId::Number(1));
    let mut brought: Option<AnsweredElicitation> = None;
    for round in ["first", "second"] {
        let elicitations = ElicitationExchange::new(brought.as_ref());
        let mut present = router.enter(id.clone(), elicitations.clone());
        let take_back = async {
            elicitations.stuck().await;
            present.settle();
            drop(present);
            elicitations.withdrawn_questions()
        };
        let (reaction, needed) = tokio::join!(router.ask(Some(&id), question(round)), take_back);
        assert_eq!(reaction, ElicitationResponse::cancel());
        let needed = needed.expect("a question");
        assert!(needed.restarts && needed.questions.values().eq([&question(round)]), "{needed:?}");
        brought = Some(answered(needed, round));
    }
    let elicitations = ElicitationExchange::new(brought.as_ref());
    let _present = router.enter(id.clone(), elicitations.clone());
    for round in ["second", "first"] {
        let content = router.ask(Some(&id), question(round)).await.content.expect("an answer");
        assert_eq!(content["is"], round);
    }
    assert_eq!(elicitations.withdrawn_questions(), None);
}

#[tokio::test]
async fn a_question_waits_until_it_is_clear_whose_it_is() {
    let router = ElicitationRouter::default();
    let [(one, _one), (other, mut present)] = under_way(&router, [1, 2]);
    let mut asking = Box::pin(router.ask(None, question("whose?")));
    assert!(is_waiting(&mut asking).await);
    assert!(!is_stuck(&one) && !is_stuck(&other));
    present.settle();
    drop(present);
    assert!(is_waiting(&mut asking).await);
    assert!(is_stuck(&one) && !is_stuck(&other));
    drop(_one);
    assert_eq!(asking.await, ElicitationResponse::cancel());
    assert!(one.withdrawn_questions().is_some());
}

#[tokio::test]
async fn the_question_of_a_cancelled_call_goes_to_no_other_call() {
    let router = ElicitationRouter::default();
    let [(_, asks), (slow, _slow)] = under_way(&router, [1, 2]);
    let mut asking = Box::pin(router.ask(None, question("whose?")));
    assert!(is_waiting(&mut asking).await);
    drop(asks);
    assert_eq!(asking.await, ElicitationResponse::cancel(), "at once");
    assert!(!is_stuck(&slow), "it is not stuck");
}

#[tokio::test]
async fn a_call_that_came_after_a_question_has_not_asked_it() {
    let router = ElicitationRouter::default();
    let [(first, _first), (second, _second)] = under_way(&router, [1, 2]);
    let mut asking = Box::pin(router.ask(None, question("a")));
    assert!(is_waiting(&mut asking).await);
    let [(late, _late)] = under_way(&router, [3]);
    let mut both = Box::pin(async { tokio::join!(asking, router.ask(Some(&RequestId::Number(3)), question("b"))).0 });
    assert!(is_waiting(&mut both).await);
    assert!(!is_stuck(&first) && !is_stuck(&second) && is_stuck(&late), "the stream identified `b` only");
}

#[tokio::test]
async fn calls_that_all_wait_for_answers_are_all_suspended() {
    let router = ElicitationRouter::default();
    let calls = under_way(&router, [1, 2]);
    let mut asking =
        Box::pin(async { tokio::join!(router.ask(None, question("a")), router.ask(None, question("b"))).0 });
    assert!(is_waiting(&mut asking).await);
    for (elicitations, mut present) in calls {
        assert_eq!(elicitations.withdrawn_questions().expect("questions").questions.len(), 2);
        present.settle();
    }
    assert_eq!(asking.await, ElicitationResponse::cancel());
}

#[tokio::test]
async fn an_answer_is_not_used_while_another_call_can_have_asked() {
    let router = ElicitationRouter::default();
    let (accepted, other) = (ElicitationExchange::new(Some(&brings("sure?", "yes"))), ElicitationExchange::new(None));
    let accepted = router.enter(RequestId::Number(1), accepted);
    let _other = router.enter(RequestId::Number(2), other);
    let mut asking = Box::pin(router.ask(None, question("sure?")));
    assert!(is_waiting(&mut asking).await);
    let mut twice = Box::pin(async { tokio::join!(asking, router.ask(None, question("sure?"))) });
    assert!(is_waiting(&mut twice).await, "although both are known to ask it now");
    drop((accepted, _other));
    assert_eq!(twice.await, (ElicitationResponse::cancel(), ElicitationResponse::cancel()));
}

#[tokio::test]
async fn a_call_that_brings_answers_has_a_shared_stream_to_itself() {
    let router = ElicitationRouter::default();
    let answered = brings("sure?", "yes");
    let first = router.turn(None, Origin::Unidentified).await;
    let _second = router.turn(None, Origin::Unidentified).await;
    let mut alone = Box::pin(router.turn(Some(&answered), Origin::Unidentified));
    assert!(is_waiting(&mut alone).await);
    drop((first, _second));
    let alone = alone.await;
    let mut next = Box::pin(router.turn(None, Origin::Unidentified));
    assert!(is_waiting(&mut next).await);
    drop(alone);
    next.await;
}

#[tokio::test]
async fn calls_run_concurrently_until_a_question_names_no_call() {
    let router = ElicitationRouter::default();
    let answered = brings("sure?", "yes");
    let beside = router.turn(None, Origin::Identified).await;
    assert!(matches!(router.turn(Some(&answered), Origin::Identified).await, NextElicitation::Beside { .. }));
    assert_eq!(router.ask(None, question("at large")).await, ElicitationResponse::cancel());
    assert!(is_waiting(Box::pin(router.turn(Some(&answered), Origin::Identified))).await);
    drop(beside);
}

#[tokio::test]
async fn a_call_is_suspended_with_a_limited_number_of_questions() {
    let (router, id) = (ElicitationRouter::default(), RequestId::Number(1));
    let elicitations = ElicitationExchange::new(None);
    let _present = router.enter(id.clone(), elicitations.clone());
    let texts: Vec<String> = (0..40).map(|number| format!("{number}?")).collect();
    let asking = texts.iter().map(|text| router.ask(Some(&id), question(text)));
    let mut asking = Box::pin(futures::future::join_all(asking));
    assert!(futures::poll!(asking.as_mut()).is_pending());
    let asked = elicitations.withdrawn_questions().expect("questions").questions.len();
    assert_eq!(asked, crate::elicitation::MAX_QUESTIONS);
    assert_eq!(
        router.ask(Some(&RequestId::Number(9)), question("without a call")).await,
        ElicitationResponse::cancel()
    );
}

#[tokio::test]
async fn a_withdrawn_question_is_no_longer_open_unless_its_call_is_being_suspended() {
    for is_suspending in [false, true] {
        let (router, id) = (ElicitationRouter::default(), RequestId::Number(1));
        let elicitations = ElicitationExchange::new(None);
        let _present = router.enter(id.clone(), elicitations.clone());
        let mut asking = Box::pin(router.ask(Some(&id), question("sure?")));
        assert!(futures::poll!(asking.as_mut()).is_pending());
        assert!(elicitations.is_stuck());
        if is_suspending {
            elicitations.suspending();
        }
        drop(asking);
        assert_eq!(elicitations.is_stuck(), is_suspending);
        assert_eq!(elicitations.withdrawn_questions().is_some(), is_suspending);
    }
}

#[tokio::test]
async fn a_question_outside_of_any_call_is_cancelled() {
    let router = ElicitationRouter::default();
    assert_eq!(router.ask(None, question("who?")).await, ElicitationResponse::cancel());
    assert_eq!(router.ask(Some(&RequestId::Number(7)), question("who?")).await, ElicitationResponse::cancel());
}
