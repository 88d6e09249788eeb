//! Laws 1, 2, 6, 7, 9 and 10: the events that a journal may hold, and the journal as the only source of state.

use std::collections::BTreeSet;

use proptest::prelude::*;
use toolgate_core::chat::{Message, Usage, Usd};
use toolgate_core::run::{Event, Input, Run, Status, Step};

use crate::choices::{strictly, tapes};
use crate::events::wild_event;
use crate::fixtures::noon;
use crate::world::{difference, from_json, journey, states, to_json, wild_journey};

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn law_1_refused_events_change_nothing_and_admitted_ones_apply(tape in tapes(), mut choices in tapes()) {
        let journal = journey(tape);
        for (index, state) in states(&journal).into_iter().enumerate() {
            for _ in 0..3 {
                let event = wild_event(&mut choices, &state, &journal[..=index], noon());
                let mut touched = state.clone();
                let admitted = touched.admit(&event);
                prop_assert_eq!(difference(&touched, &state), None, "a query changed the state");
                match (admitted, touched.apply(&event)) {
                    (Ok(()), Ok(())) => prop_assert_eq!(touched.length(), state.length() + 1),
                    (Err(reason), Err(same)) => {
                        prop_assert_eq!(reason, same);
                        prop_assert_eq!(difference(&touched, &state), None, "a refused event left a trace: {:?}", event);
                        prop_assert_eq!(touched.next(), state.next());
                        prop_assert_eq!(touched.transcript(), state.transcript());
                    }
                    (asked, done) => prop_assert!(false, "admit said {asked:?} and apply {done:?} of {event:?}"),
                }
            }
        }
    }

    #[test]
    fn law_1_every_prefix_replays_to_its_original_state(tape in tapes()) {
        let journal = wild_journey(tape);
        for (index, state) in states(&journal).iter().enumerate() {
            let replayed = Run::replay(&journal[..=index]).unwrap().unwrap();
            prop_assert_eq!(difference(&replayed, state), None);
        }
    }

    #[test]
    fn law_2_no_answer_is_admitted_before_its_intent(tape in tapes()) {
        let journal = wild_journey(tape);
        let mut asking = false;
        let mut started = BTreeSet::new();
        for (event, before) in journal[1..].iter().zip(states(&journal)) {
            match event {
                Event::ModelCalled { .. } => asking = true,
                Event::ModelReplied { .. } | Event::ModelFailed { .. } => {
                    prop_assert!(asking, "an answer without a question");
                    asking = false;
                }
                Event::CallsStarted { calls } => started.extend(calls.iter().cloned()),
                Event::CallCompleted { call, .. } => {
                    let external = before.call(call).unwrap().is_external();
                    prop_assert!(external || started.contains(call), "a result of a call that was not sent");
                }
                _ => {}
            }
        }
    }

    #[test]
    fn law_6_a_replay_needs_only_the_text_of_the_journal(tape in tapes()) {
        let journal = journey(tape);
        let text = to_json(&journal);
        let replayed = Run::replay(&from_json(&text)).unwrap().unwrap();
        let lived = states(&journal).pop().unwrap();
        prop_assert_eq!(difference(&replayed, &lived), None);
    }

    #[test]
    fn law_7_nothing_follows_the_ending(tape in tapes(), mut choices in tapes()) {
        let journal = wild_journey(tape);
        let over = Run::replay(&journal).unwrap().unwrap();
        prop_assert!(over.status().is_ended());
        prop_assert_eq!(over.next(), Step::Done(over.ending().unwrap().clone()));
        prop_assert!(over.pending().is_empty());
        for event in &journal {
            prop_assert!(over.admit(event).is_err(), "{:?} follows the ending", event);
        }
        for _ in 0..20 {
            let event = wild_event(&mut choices, &over, &journal, noon());
            prop_assert!(over.admit(&event).is_err(), "{:?} follows the ending", event);
        }
        prop_assert!(over.accept(&Input::Message(Message::user("too late"))).is_err());
    }

    #[test]
    fn law_7_only_a_pending_run_has_pending_items(tape in tapes()) {
        for state in states(&wild_journey(tape)) {
            prop_assert_eq!(state.status() == Status::Pending, !state.pending().is_empty());
            if let Step::Wait(items) = state.next() {
                prop_assert!(!items.is_empty());
            }
        }
    }

    #[test]
    fn law_10_a_journal_round_trips_through_json_byte_for_byte(tape in tapes()) {
        let journal = wild_journey(tape);
        let text = to_json(&journal);
        let back = from_json(&text);
        prop_assert_eq!(to_json(&back), text);
        prop_assert_eq!(back, journal);
    }

    #[test]
    fn law_10_equal_journals_have_equal_transcripts_and_steps(tape in tapes()) {
        let journal = wild_journey(tape);
        let text = to_json(&journal);
        for end in 1..=journal.len() {
            let one = Run::replay(&journal[..end]).unwrap().unwrap();
            let other = Run::replay(&from_json(&text[..end])).unwrap().unwrap();
            prop_assert_eq!(one.transcript(), other.transcript());
            prop_assert_eq!(one.next(), other.next());
            prop_assert_eq!(one.status(), other.status());
        }
    }

    #[test]
    fn law_10_floats_in_arguments_and_costs_survive_json(cost in 0..1_000_000_000_000_000_i64, number in any::<f64>()) {
        prop_assume!(number.is_finite());
        let text = serde_json::to_string(&number).unwrap();
        let back: f64 = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(back.to_bits(), number.to_bits(), "{}", text);
        let usage = Usage { cost_usd: Some(Usd::from_picodollars(cost)), ..Usage::default() };
        let text = serde_json::to_string(&usage).unwrap();
        prop_assert_eq!(serde_json::from_str::<Usage>(&text).unwrap(), usage, "{}", text);
    }
}

#[test]
fn law_9_deltas_and_progress_are_not_events() {
    for name in ["llm.text.delta", "llm.reasoning.delta", "tool.mcp.progress", "execution.pending"] {
        let line = format!("{{\"type\":\"{name}\",\"text\":\"x\"}}");
        assert!(serde_json::from_str::<Event>(&line).is_err(), "{name} was parsed as an event");
    }
}
