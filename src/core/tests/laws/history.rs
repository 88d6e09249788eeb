//! The history of a run agrees with the fold of the same journal.

use jiff::ToSpan;
use proptest::prelude::*;
use toolgate_core::chat::Usage;
use toolgate_core::run::{AttemptEnd, CallState, Event, History, JournalEntry, Rejection, Settlement};

use crate::choices::{strictly, tapes};
use crate::fixtures::noon;
use crate::world::{journey, states, wild_journey};

/// The events, one a second.
fn recorded(journal: &[Event]) -> Vec<JournalEntry> {
    let entry = |(seq, event): (u64, &Event)| JournalEntry {
        seq,
        at: noon() + i64::try_from(seq).unwrap().seconds(),
        event: event.clone(),
    };
    (0..).zip(journal).map(entry).collect()
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn the_history_of_an_open_call_agrees_with_its_state(tape in tapes()) {
        let journal = wild_journey(tape);
        let entries = recorded(&journal);
        for (index, state) in states(&journal).iter().enumerate() {
            let history = History::from_journal(&entries[..=index]).unwrap();
            for call in history.calls() {
                let Some(now) = state.call(&call.requested.id) else { continue };
                prop_assert_eq!((&now.requested, now.tool.as_ref()), (&call.requested, call.tool()));
                prop_assert_eq!((now.arguments(), now.sent), (call.arguments(), call.sent_at().is_some()));
                prop_assert_eq!(now.edited.is_some(), call.edit().is_some());
                prop_assert!(call.decision().is_none_or(|decision| state.decision(&call.requested.id) == Some(decision)));
                let is_deferred = matches!(
                    now.state,
                    CallState::Settled(Settlement::Rejected { reason: Rejection::Deferred, .. })
                );
                prop_assert!(!is_deferred || call.is_deferred());
                if let Some((at, outcome)) = call.outcome() {
                    prop_assert!(at <= entries[index].at);
                    prop_assert_eq!(&now.state, &CallState::Settled(Settlement::Completed(outcome)));
                }
            }
        }
    }

    #[test]
    fn each_event_about_calls_is_in_their_histories(tape in tapes()) {
        let entries = recorded(&wild_journey(tape));
        let history = History::from_journal(&entries).unwrap();
        let about: usize = entries.iter().map(|entry| entry.event.calls().count()).sum();
        prop_assert_eq!(history.calls().map(|call| call.entries.len()).sum::<usize>(), about);
        for call in history.calls() {
            prop_assert!(call.entries.iter().is_sorted_by_key(|entry| entry.seq));
            prop_assert_eq!(history.call(&call.requested.id).map(|found| &found.requested), Some(&call.requested));
        }
    }

    #[test]
    fn the_turns_of_a_history_are_those_of_the_budget(tape in tapes()) {
        let journal = journey(tape);
        let (entries, run) = (recorded(&journal), states(&journal).pop().unwrap());
        let history = History::from_journal(&entries).unwrap();
        let replied = history.turns.iter().filter(|turn| turn.reply().is_some()).count();
        let mut used = Usage::default();
        let ends = history.turns.iter().flat_map(|turn| &turn.attempts).filter_map(|attempt| attempt.end);
        ends.for_each(|(_, end): (_, AttemptEnd<'_>)| used.add(end.usage()));
        for event in &journal {
            if let Event::CompactionCompleted { usage, .. } | Event::CompactionFailed { usage, .. } = event {
                used.add(usage);
            }
        }
        prop_assert_eq!(replied, run.budget().iterations as usize);
        prop_assert_eq!(used, run.budget().usage);
    }
}

#[test]
fn a_journal_that_does_not_begin_a_run_has_no_history() {
    assert!(History::from_journal(&[]).is_none());
    let entry = JournalEntry { seq: 0, at: noon(), event: Event::CallsStarted { calls: Vec::new() } };
    assert!(History::from_journal(&[entry]).is_none());
}
