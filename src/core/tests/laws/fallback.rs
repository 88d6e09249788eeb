//! Laws of model fallback: which model is called, and which is not.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use toolgate_core::chat::{Reply, Usage};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::id::ModelName;
use toolgate_core::run::{Candidate, Ending, Event, Limits, Run, Spec, Status, Step};

use crate::choices::{Tape, strictly, tapes};
use crate::fixtures::{any_start, call, noon, spec};
use crate::manual_driver::Hand;
use crate::world::{World, from_json, states, to_json, wild_journey};

/// A journal with the times at which its events were recorded.
fn timed_journey(tape: Tape) -> World {
    let mut world = World::begin(tape, 0);
    world.run_to_its_end();
    world
}

/// Attempts at a model in one turn.
fn attempts(spec: &Spec, model: &ModelName) -> u32 {
    let candidate = spec.fallback.iter().find(|candidate| candidate.model == *model);
    candidate.and_then(|candidate| candidate.attempts).unwrap_or(spec.limits.max_attempts).max(1)
}

/// One turn according to the journal, computed in the simplest way.
#[derive(Default)]
struct Turn {
    made: BTreeMap<ModelName, u32>,
    last: Option<ModelName>,
    /// The failure of the last attempt; `None` if its outcome is unknown.
    failure: Option<Failure>,
    left: BTreeSet<ModelName>,
}

impl Turn {
    /// Models that may still be called, except that one.
    fn others<'a>(&'a self, spec: &'a Spec, model: &'a ModelName) -> impl Iterator<Item = &'a ModelName> {
        let spent = |name: &ModelName| self.made.get(name).copied().unwrap_or(0) >= attempts(spec, name);
        spec.models().filter(move |name| *name != model && !spent(name) && !self.left.contains(*name))
    }
}

/// Visits every attempt of a journal: the turn before it, the models in cooldown, the model, and the time.
fn each_attempt(world: &World, mut look: impl FnMut(&Turn, &BTreeMap<ModelName, Timestamp>, &ModelName, Timestamp)) {
    let (mut turn, mut cooling) = (Turn::default(), BTreeMap::new());
    for (event, at) in world.journal.iter().zip(&world.times) {
        match event {
            Event::ModelCalled { model, attempt, .. } => {
                if *attempt == 1 {
                    turn = Turn::default();
                }
                look(&turn, &cooling, model, *at);
                *turn.made.entry(model.clone()).or_default() += 1;
                (turn.last, turn.failure) = (Some(model.clone()), None);
            }
            Event::ModelFailed { error, cooldown_until, .. } => {
                let model = turn.last.clone().unwrap();
                if let Some(until) = cooldown_until {
                    turn.left.insert(model.clone());
                    cooling.insert(model, *until);
                }
                turn.failure = Some(error.clone());
            }
            Event::ModelReplied { .. } => drop(cooling.remove(turn.last.as_ref().unwrap())),
            _ => {}
        }
    }
}

fn is_about_content(error: &Failure) -> bool {
    matches!(error.code, ErrorCode::ContentFilter | ErrorCode::ModelRefused)
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn no_model_exceeds_its_attempts_while_another_is_available(tape in tapes()) {
        let world = timed_journey(tape);
        let spec = world.run.started().spec.clone();
        each_attempt(&world, |turn, _, model, _| {
            let made = turn.made.get(model).copied().unwrap_or(0);
            if made < attempts(&spec, model) {
                return;
            }
            assert!(turn.failure.is_none(), "`{model}` failed {made} times and is called again");
            assert_eq!(turn.others(&spec, model).next(), None, "after {made} attempts at `{model}`");
        });
    }

    #[test]
    fn an_exhausted_model_is_not_called_again_in_that_turn(tape in tapes()) {
        let world = timed_journey(tape);
        each_attempt(&world, |turn, _, model, _| assert!(!turn.left.contains(model), "`{model}` was left"));
    }

    #[test]
    fn a_model_in_cooldown_is_not_called_while_another_is_free(tape in tapes()) {
        let world = timed_journey(tape);
        let spec = world.run.started().spec.clone();
        each_attempt(&world, |turn, cooling, model, now| {
            let is_cooling = |model: &ModelName| cooling.get(model).is_some_and(|until| now < *until);
            if is_cooling(model) && turn.last.as_ref() != Some(model) {
                let free = turn.others(&spec, model).find(|other| !is_cooling(other));
                assert_eq!(free, None, "`{model}` is in cooldown and is called");
            }
        });
    }

    #[test]
    fn a_decision_about_content_triggers_no_fallback(tape in tapes()) {
        let journal = wild_journey(tape);
        let mut last = None;
        for (event, after) in journal.iter().zip(states(&journal)) {
            match event {
                Event::ModelCalled { attempt, tool_access, .. } => last = Some((*attempt, *tool_access)),
                Event::ModelFailed { error, cooldown_until, .. } if is_about_content(error) => {
                    prop_assert_eq!(*cooldown_until, None);
                    let (attempt, tool_access) = last.unwrap();
                    for model in after.started().spec.models().filter(|model| Some(*model) != after.model_asked()) {
                        let asked = Event::ModelCalled { model: model.clone(), attempt: attempt + 1, tool_access };
                        prop_assert!(after.admit(&asked).is_err(), "`{}` is called after {}", model, error.code);
                    }
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_run_fails_only_after_every_model_was_called(tape in tapes()) {
        let journal = timed_journey(tape).journal;
        let [.., Event::ModelFailed { error, .. }, Event::Ended { ending: Ending::Failed { error: reported } }] = &journal[..]
        else {
            return Ok(());
        };
        if is_about_content(error) || error.code != reported.code {
            return Ok(());
        }
        let Event::Started(started) = &journal[0] else { panic!() };
        let mut asked = BTreeSet::new();
        for event in &journal {
            if let Event::ModelCalled { model, attempt, .. } = event {
                if *attempt == 1 {
                    asked.clear();
                }
                asked.insert(model);
            }
        }
        prop_assert_eq!(asked, started.spec.models().collect());
    }

    #[test]
    fn only_retries_of_the_same_model_are_delayed(tape in tapes(), later in 0..200i64) {
        for state in states(&wild_journey(tape)) {
            if let Step::CallModel { after: Some(_), .. } = state.next() {
                let then = noon() + SignedDuration::from_secs(later);
                prop_assert_eq!(Some(state.candidate(then)), state.model_asked());
            }
        }
    }

    #[test]
    fn a_replayed_journal_chooses_the_same_model_at_any_time(tape in tapes(), seconds in 0..2000i64) {
        let journal = wild_journey(tape);
        let text = to_json(&journal);
        let now = noon() + SignedDuration::from_secs(seconds);
        for (end, lived) in states(&journal).iter().enumerate() {
            let replayed = Run::replay(&from_json(&text[..=end])).unwrap().unwrap();
            prop_assert_eq!(replayed.candidate(now), lived.candidate(now));
        }
    }

    #[test]
    fn the_candidate_may_always_be_called(tape in tapes(), seconds in 0..2000i64) {
        let now = noon() + SignedDuration::from_secs(seconds);
        for state in states(&wild_journey(tape)) {
            if let Step::CallModel { attempt, tool_access, .. } = state.next() {
                let asked = Event::ModelCalled { model: state.candidate(now).clone(), attempt, tool_access };
                prop_assert_eq!(state.admit(&asked), Ok(()));
            }
        }
    }

    #[test]
    fn a_run_without_a_fallback_has_one_model_and_no_cooldown(mut tape in tapes()) {
        let mut started = (*any_start(&mut tape)).clone();
        started.spec.fallback.clear();
        for event in World::new(started.into(), tape, 0).into_ended() {
            match event {
                Event::ModelCalled { model, .. } => prop_assert_eq!(model.as_str(), "first"),
                Event::ModelFailed { cooldown_until, .. } => prop_assert_eq!(cooldown_until, None),
                _ => {}
            }
        }
    }
}

fn chain(attempts: u32) -> Spec {
    let second = Candidate { model: "second".into(), attempts: None };
    Spec { fallback: vec![second], ..spec(Limits { max_attempts: attempts, ..Limits::default() }) }
}

fn down() -> Failure {
    Failure::new(ErrorCode::ProviderUnavailable, "down")
}

impl Hand {
    /// The name of the model that is called at that second after noon.
    fn asks(&mut self, second: i64) -> String {
        let Step::CallModel { attempt, tool_access, .. } = self.run.next() else {
            panic!("not now: {:?}", self.run.next())
        };
        let model = self.run.candidate(noon() + SignedDuration::from_secs(second)).clone();
        self.record(Event::ModelCalled { model: model.clone(), attempt, tool_access });
        model.to_string()
    }

    fn fails(&mut self, failure: Failure, second: i64) {
        let failed = self.run.model_failed(failure, Usage::default(), noon() + SignedDuration::from_secs(second));
        self.record(failed);
    }

    fn replies(&mut self, reply: Reply) {
        let reply = self.run.with_unique_ids(reply);
        self.record(Event::ModelReplied { reply: reply.into() });
    }

    /// A turn with a tool, answered by the model that is called at that second.
    fn turn(mut self, second: i64) -> (Self, String) {
        let model = self.asks(second);
        self.replies(Reply::calling([call("a", "mcp_files_read")]));
        (self.settled(), model)
    }
}

#[test]
fn an_exhausted_model_is_skipped_until_its_cooldown_ends() {
    let mut hand = Hand::with(chain(1));
    assert_eq!(hand.asks(0), "first");
    hand.fails(down(), 0);
    let (hand, model) = hand.turn(0);
    assert_eq!(model, "second");
    let (hand, model) = hand.turn(59);
    assert_eq!(model, "second");
    assert_eq!(hand.turn(60).1, "first");
}

#[test]
fn a_longer_retry_after_extends_the_cooldown() {
    let mut hand = Hand::with(chain(1));
    hand.asks(0);
    hand.fails(down().after_ms(Some(100_000)), 0);
    let (hand, _) = hand.turn(0);
    let (hand, model) = hand.turn(99);
    assert_eq!(model, "second");
    assert_eq!(hand.turn(100).1, "first");
}

#[test]
fn the_last_model_is_called_in_cooldown_and_its_answer_ends_it() {
    let mut hand = Hand::with(chain(1));
    hand.asks(0);
    hand.fails(down(), 0);
    let (mut hand, _) = hand.turn(1);
    assert_eq!(hand.asks(2), "second");
    hand.fails(down(), 2);
    let (hand, model) = hand.turn(2);
    assert_eq!(model, "first", "it is in cooldown, and no other model is left");
    assert_eq!(hand.turn(3).1, "first", "it answered");
}

#[test]
fn a_transient_failure_is_retried_before_a_fallback() {
    let mut hand = Hand::with(chain(2));
    hand.asks(0);
    hand.fails(down(), 0);
    assert!(matches!(hand.run.next(), Step::CallModel { after: Some(_), .. }));
    assert_eq!(hand.asks(1), "first");
    hand.fails(down(), 1);
    assert!(matches!(hand.run.next(), Step::CallModel { after: None, .. }), "the fallback is immediate");
    assert_eq!(hand.asks(1), "second");
}

#[test]
fn attempts_without_an_outcome_lead_to_fallback_then_failure() {
    let mut hand = Hand::with(chain(2));
    let asked: Vec<String> = (0..20).map(|_| hand.asks(0)).collect();
    assert_eq!(asked[..4], ["first", "first", "second", "second"]);
    assert!(asked[4..].iter().all(|model| model == "second"), "{asked:?}");
    let hand = hand.settled();
    assert_eq!(hand.status(), Status::Failed);
    let failure = hand.run.ending().and_then(Ending::failure).unwrap();
    assert_eq!(failure.code, ErrorCode::Internal);
    assert!(failure.message.contains("20 times in a row"), "{failure}");
}

#[test]
fn an_attempt_with_an_outcome_resets_the_count() {
    let mut hand = Hand::with(spec(Limits { max_attempts: 100, ..Limits::default() }));
    for _ in 0..3 {
        (0..19).for_each(|_| drop(hand.asks(0)));
        hand.fails(down(), 0);
    }
    assert!(matches!(hand.run.next(), Step::CallModel { attempt: 58, .. }), "{:?}", hand.run.next());
}

#[test]
fn only_failures_of_a_model_or_provider_trigger_a_fallback() {
    for code in ErrorCode::ALL {
        let mut hand = Hand::with(chain(1));
        hand.asks(0);
        hand.fails(Failure::new(*code, "no"), 0);
        let Step::CallModel { tool_access, .. } = Hand::with(chain(1)).run.next() else { panic!() };
        let asked = Event::ModelCalled { model: "second".into(), attempt: 2, tool_access };
        let may = hand.run.admit(&asked).is_ok();
        let goes_on = matches!(hand.run.next(), Step::CallModel { .. });
        let of_a_provider = code.as_str().starts_with("provider_");
        let expected = of_a_provider || ["context_window", "configuration", "internal"].contains(&code.as_str());
        assert_eq!((may, goes_on), (expected, expected), "{code}");
    }
}
