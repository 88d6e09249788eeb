use std::time::Duration;

use serde_json::{Map, json};

use super::*;
use crate::core::run::InputGiven;
use crate::core::tool::InputNeeded;

fn question(message: &str) -> Question {
    Question::Form { message: message.into(), schema: json!({"type": "object"}) }
}

fn answered(needed: InputNeeded, answer: &str) -> Answered {
    let reaction = Reaction::accept(Map::from_iter([("is".to_owned(), json!(answer))]));
    let reactions = needed.questions.keys().map(|key| (key.clone(), reaction.clone())).collect();
    Answered {
        needed: needed.into(),
        given: InputGiven { reactions, by: "test".into(), via: Default::default(), repeat: false }.into(),
    }
}

/// A call's answer from an earlier suspension: this question, answered so.
fn brings(message: &str, answer: &str) -> Answered {
    let questions = [(digest(&question(message)), question(message))].into();
    answered(Dialogue::of(None).put_aside(questions), answer)
}

async fn is_waiting<T>(future: impl Future<Output = T> + Unpin) -> bool {
    tokio::time::timeout(Duration::from_millis(20), future).await.is_err()
}

fn is_stuck(dialogue: &Arc<Dialogue>) -> bool {
    futures::FutureExt::now_or_never(dialogue.stuck()).is_some()
}

/// Calls with these numbers at the desk, the first time.
fn under_way<const N: usize>(desk: &Desk, ids: [i64; N]) -> [(Arc<Dialogue>, Present); N] {
    ids.map(|id| {
        let dialogue = Dialogue::of(None);
        let present = desk.enter(RequestId::Number(id), dialogue.clone());
        (dialogue, present)
    })
}

#[tokio::test]
async fn answers_of_all_rounds_are_known_in_whatever_order_they_are_asked_for() {
    let (desk, id) = (Desk::default(), RequestId::Number(1));
    let mut brought: Option<Answered> = None;
    for round in ["first", "second"] {
        let dialogue = Dialogue::of(brought.as_ref());
        let mut present = desk.enter(id.clone(), dialogue.clone());
        let take_back = async {
            dialogue.stuck().await;
            present.settle();
            drop(present);
            dialogue.taken_back()
        };
        let (reaction, needed) = tokio::join!(desk.ask(Some(&id), question(round)), take_back);
        assert_eq!(reaction, Reaction::cancel());
        let needed = needed.expect("a question");
        assert!(needed.restarts && needed.questions.values().eq([&question(round)]), "{needed:?}");
        brought = Some(answered(needed, round));
    }
    let dialogue = Dialogue::of(brought.as_ref());
    let _present = desk.enter(id.clone(), dialogue.clone());
    for round in ["second", "first"] {
        let content = desk.ask(Some(&id), question(round)).await.content.expect("an answer");
        assert_eq!(content["is"], round);
    }
    assert_eq!(dialogue.taken_back(), None);
}

#[tokio::test]
async fn a_question_waits_until_it_is_clear_whose_it_is() {
    let desk = Desk::default();
    let [(one, _one), (other, mut present)] = under_way(&desk, [1, 2]);
    let mut asking = Box::pin(desk.ask(None, question("whose?")));
    assert!(is_waiting(&mut asking).await);
    assert!(!is_stuck(&one) && !is_stuck(&other));
    present.settle();
    drop(present);
    assert!(is_waiting(&mut asking).await);
    assert!(is_stuck(&one) && !is_stuck(&other));
    drop(_one);
    assert_eq!(asking.await, Reaction::cancel());
    assert!(one.taken_back().is_some());
}

#[tokio::test]
async fn the_question_of_a_cancelled_call_goes_to_no_other_call() {
    let desk = Desk::default();
    let [(_, asks), (slow, _slow)] = under_way(&desk, [1, 2]);
    let mut asking = Box::pin(desk.ask(None, question("whose?")));
    assert!(is_waiting(&mut asking).await);
    drop(asks);
    assert_eq!(asking.await, Reaction::cancel(), "at once");
    assert!(!is_stuck(&slow), "it is not stuck");
}

#[tokio::test]
async fn a_call_that_came_after_a_question_has_not_asked_it() {
    let desk = Desk::default();
    let [(first, _first), (second, _second)] = under_way(&desk, [1, 2]);
    let mut asking = Box::pin(desk.ask(None, question("a")));
    assert!(is_waiting(&mut asking).await);
    let [(late, _late)] = under_way(&desk, [3]);
    let mut both = Box::pin(async { tokio::join!(asking, desk.ask(Some(&RequestId::Number(3)), question("b"))).0 });
    assert!(is_waiting(&mut both).await);
    assert!(!is_stuck(&first) && !is_stuck(&second) && is_stuck(&late), "the stream identified `b` only");
}

#[tokio::test]
async fn calls_that_all_wait_for_answers_are_all_suspended() {
    let desk = Desk::default();
    let calls = under_way(&desk, [1, 2]);
    let mut asking = Box::pin(async { tokio::join!(desk.ask(None, question("a")), desk.ask(None, question("b"))).0 });
    assert!(is_waiting(&mut asking).await);
    for (dialogue, mut present) in calls {
        assert_eq!(dialogue.taken_back().expect("questions").questions.len(), 2);
        present.settle();
    }
    assert_eq!(asking.await, Reaction::cancel());
}

#[tokio::test]
async fn an_answer_is_not_used_while_another_call_can_have_asked() {
    let desk = Desk::default();
    let (accepted, other) = (Dialogue::of(Some(&brings("sure?", "yes"))), Dialogue::of(None));
    let accepted = desk.enter(RequestId::Number(1), accepted);
    let _other = desk.enter(RequestId::Number(2), other);
    let mut asking = Box::pin(desk.ask(None, question("sure?")));
    assert!(is_waiting(&mut asking).await);
    let mut twice = Box::pin(async { tokio::join!(asking, desk.ask(None, question("sure?"))) });
    assert!(is_waiting(&mut twice).await, "although both are known to ask it now");
    drop((accepted, _other));
    assert_eq!(twice.await, (Reaction::cancel(), Reaction::cancel()));
}

#[tokio::test]
async fn a_call_that_brings_answers_has_a_shared_stream_to_itself() {
    let desk = Desk::default();
    let answered = brings("sure?", "yes");
    let first = desk.turn(None, Origin::Untold).await;
    let _second = desk.turn(None, Origin::Untold).await;
    let mut alone = Box::pin(desk.turn(Some(&answered), Origin::Untold));
    assert!(is_waiting(&mut alone).await);
    drop((first, _second));
    let alone = alone.await;
    let mut next = Box::pin(desk.turn(None, Origin::Untold));
    assert!(is_waiting(&mut next).await);
    drop(alone);
    next.await;
}

#[tokio::test]
async fn calls_run_concurrently_until_a_question_names_no_call() {
    let desk = Desk::default();
    let answered = brings("sure?", "yes");
    let beside = desk.turn(None, Origin::Told).await;
    assert!(matches!(desk.turn(Some(&answered), Origin::Told).await, Turn::Beside { .. }));
    assert_eq!(desk.ask(None, question("at large")).await, Reaction::cancel());
    assert!(is_waiting(Box::pin(desk.turn(Some(&answered), Origin::Told))).await);
    drop(beside);
}

#[tokio::test]
async fn a_call_is_suspended_with_a_limited_number_of_questions() {
    let (desk, id) = (Desk::default(), RequestId::Number(1));
    let dialogue = Dialogue::of(None);
    let _present = desk.enter(id.clone(), dialogue.clone());
    let texts: Vec<String> = (0..40).map(|number| format!("{number}?")).collect();
    let asking = texts.iter().map(|text| desk.ask(Some(&id), question(text)));
    assert!(is_waiting(futures::future::join_all(asking)).await);
    let asked = dialogue.taken_back().expect("questions").questions.len();
    assert_eq!(asked, crate::mcp::elicitation::MAX_QUESTIONS);
    assert_eq!(desk.ask(Some(&RequestId::Number(9)), question("without a call")).await, Reaction::cancel());
}

#[tokio::test]
async fn a_question_outside_of_any_call_is_cancelled() {
    let desk = Desk::default();
    assert_eq!(desk.ask(None, question("who?")).await, Reaction::cancel());
    assert_eq!(desk.ask(Some(&RequestId::Number(7)), question("who?")).await, Reaction::cancel());
}
