//! Law 3: a journal that stops at any position can be driven to an ending.

use proptest::prelude::*;
use toolgate_core::chat::{Message, Reply, Stop};
use toolgate_core::run::{Input, Limits, Run, RunRules, Spec, Step};
use toolgate_core::tool::{Arguments, TierMode, ToolCall};

use crate::answers::answer_all;
use crate::choices::{Tape, strictly, tapes};
use crate::fixtures::{call, problem, spec};
use crate::manual_driver::Hand;
use crate::world::{World, states, wild_journey};

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn law_3_every_prefix_is_driven_to_an_ending_by_a_calm_world(tape in tapes()) {
        let journal = wild_journey(tape);
        for end in 1..=journal.len() {
            let whole = World::resume_run(&journal[..end], Tape::blank()).into_ended();
            prop_assert!(Run::replay(&whole).unwrap().unwrap().ending().is_some());
        }
    }

    #[test]
    fn law_3_every_prefix_is_driven_to_an_ending_by_a_rough_world(tape in tapes(), rough in tapes()) {
        let journal = wild_journey(tape);
        for end in (1..=journal.len()).step_by(3) {
            World::resume_run(&journal[..end], rough.clone()).into_ended();
        }
    }

    #[test]
    fn law_3_events_of_the_next_step_are_admitted_in_order(tape in tapes()) {
        for state in states(&wild_journey(tape)) {
            let Step::Record(events) = state.next() else { continue };
            prop_assert!(!events.is_empty());
            let mut after = state.clone();
            for event in &events {
                prop_assert_eq!(after.apply(event), Ok(()), "{:?}", event);
            }
        }
    }
}

/// The replies of a stubborn model, whatever feedback it gets.
fn stubborn_replies() -> Vec<Reply> {
    let pause = |reply| Reply { stop: Stop::Pause, ..reply };
    let malformed = ToolCall { arguments: Arguments::Malformed("{".into()), ..call("x", "mcp_files_read") };
    vec![
        Reply::calling([call("x", "mcp_files_read")]),
        Reply::calling([call("x", "mcp_files_write"), call("", "no_such_tool")]),
        Reply::calling([call("x", "ext_order"), call("x", "mcp_files_first_read")]),
        Reply::calling([call("x", "mcp_files_deny_wipe")]),
        Reply::calling([call("x", "no_such_tool")]),
        Reply::calling([malformed]),
        pause(Reply::text("one moment")),
        pause(Reply::empty()),
        Reply::text("never valid"),
        Reply::empty(),
    ]
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn law_3_a_run_with_a_stubborn_model_ends(
        which in 0..10usize,
        interactions in 0..6u32,
        iterations in 0..8u32,
        corrections in prop_oneof![0..4u32, Just(u32::MAX)],
        tiers in prop_oneof![Just(TierMode::Defer), Just(TierMode::Drop), Just(TierMode::Sequential)],
        talkative in any::<bool>(),
    ) {
        let reply = stubborn_replies().swap_remove(which);
        let limits = Limits {
            max_tool_interactions: interactions,
            max_iterations: iterations,
            max_corrections: corrections,
            ..Limits::default()
        };
        let spec = Spec { rules: RunRules { tiers, validate_output: true, ..RunRules::default() }, ..spec(limits) };
        let mut hand = Hand::with(spec);
        let mut turns = 0;
        while !hand.status().is_ended() {
            turns += 1;
            prop_assert!(turns <= 3 * (iterations + 1), "called {} times with max_iterations {}", turns, iterations);
            hand = match hand.run.next() {
                Step::CallModel { .. } => hand.model_says(reply.clone()),
                Step::ValidateOutput(_) => hand.finds_the_answer(&[problem()]),
                Step::Wait(items) => hand.given(Input::Resume(answer_all(&items))),
                other => panic!("neither pending nor over: {other:?}"),
            };
            if talkative && !hand.status().is_ended() {
                hand = hand.given(Input::Message(Message::user("hello?")));
            }
        }
        prop_assert!(hand.run.budget().iterations <= iterations + 1, "one more turn is granted, not two");
    }
}
