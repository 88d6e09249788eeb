//! Law 3: wherever a journal stops, it can be driven on to an ending.

use proptest::prelude::*;
use toolgate::core::run::{Run, Step};

use crate::tape::{Tape, strictly, tapes};
use crate::world::{World, states, wild_journey};

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn law_3_every_prefix_is_driven_to_an_ending_by_a_calm_world(tape in tapes()) {
        let journal = wild_journey(tape);
        for end in 1..=journal.len() {
            let whole = World::take_up(&journal[..end], Tape::blank()).to_the_end();
            prop_assert!(Run::replay(&whole).unwrap().unwrap().ending().is_some());
        }
    }

    #[test]
    fn law_3_every_prefix_is_driven_to_an_ending_by_a_rough_world(tape in tapes(), rough in tapes()) {
        let journal = wild_journey(tape);
        for end in (1..=journal.len()).step_by(3) {
            World::take_up(&journal[..end], rough.clone()).to_the_end();
        }
    }

    #[test]
    fn law_3_what_the_next_step_wants_recorded_is_admitted_in_that_order(tape in tapes()) {
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
