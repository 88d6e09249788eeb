//! Law 8: pending items are derived, and concurrent resumes merge or lose, but never settle an item twice.

use proptest::prelude::*;
use toolgate_core::chat::Message;
use toolgate_core::id::CallId;
use toolgate_core::run::{
    Answer, Channel, Decision, DecisionKind, Event, HumanAnswer, Input, PendingItem, Resume, ResumeError, Run,
};
use toolgate_core::tool::{Arguments, Choice, ElicitationResponse, Outcome, ToolOutput};

use crate::answers::{Expected, answer_all, any_resume, decision, expected, reactions};
use crate::choices::{strictly, tapes};
use crate::events::ids;
use crate::world::{difference, journey, states};

fn apply(run: &Run, events: &[Event]) -> Run {
    let mut run = run.clone();
    for event in events {
        run.apply(event).unwrap();
    }
    run
}

/// The states of a journal with pending items, each with its items.
fn waiting(journal: &[Event]) -> Vec<(Run, Vec<PendingItem>)> {
    let pending_kind = states(journal).into_iter().map(|run| (run.pending(), run));
    pending_kind.filter(|(items, _)| !items.is_empty()).map(|(items, run)| (run, items)).collect()
}

fn pay(item: &PendingItem, partial: bool) -> Input {
    Input::Resume(Resume { partial, ..answer_all(std::slice::from_ref(item)) })
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn law_8_queries_change_nothing(tape in tapes()) {
        for state in states(&journey(tape)) {
            let before = state.clone();
            let (one, other) = (state.next(), state.next());
            prop_assert_eq!(one, other);
            let _ = (state.pending(), state.status(), state.messages());
            let _ = state.accept(&Input::Message(Message::user("hello")));
            prop_assert_eq!(difference(&state, &before), None);
        }
    }

    #[test]
    fn law_8_whatever_is_accepted_is_admitted(tape in tapes(), mut choices in tapes()) {
        for (run, items) in waiting(&journey(tape)) {
            let input = Input::Resume(any_resume(&mut choices, &items));
            if let Ok(events) = run.accept(&input) {
                apply(&run, &events);
            }
        }
    }

    #[test]
    fn law_8_answers_to_different_items_merge_in_any_order(tape in tapes()) {
        for (run, items) in waiting(&journey(tape)) {
            let [one, other, ..] = &items[..] else { continue };
            let (one, other) = (pay(one, true), pay(other, true));
            let after_one = apply(&run, &run.accept(&one).unwrap());
            let after_other = apply(&run, &run.accept(&other).unwrap());
            let both = apply(&after_one, &after_one.accept(&other).unwrap());
            let both_reversed = apply(&after_other, &after_other.accept(&one).unwrap());
            prop_assert_eq!(difference(&both, &both_reversed), None);
        }
    }

    #[test]
    fn law_8_a_pending_item_settles_once(tape in tapes()) {
        for (run, items) in waiting(&journey(tape)) {
            for item in &items {
                let (first, second) = match expected(item) {
                    Expected::Result(id) => {
                        let result = |text: &str| Outcome::Returned(ToolOutput::text(text));
                        let resume = |text| Resume::default().with(id.clone(), result(text)).partial();
                        (resume("one"), resume("two"))
                    }
                    Expected::Decision(id) => {
                        let resume = |answer| Resume::default().with(id.clone(), decision(answer)).partial();
                        (resume(DecisionKind::Deny), resume(DecisionKind::Approve))
                    }
                    Expected::Answer(id, _) => {
                        let said = |text: &str| HumanAnswer {
                            choice: Choice::text(text),
                            by: "ada".into(),
                            via: Channel::Library,
                        };
                        let resume =
                            |text| Resume::default().with(id.clone(), said(text)).partial();
                        (resume("blue"), resume("red"))
                    }
                    Expected::Input(id, keys) => {
                        let resume = |reaction: ElicitationResponse| {
                            let each = keys.iter().map(|key| (key.clone(), reaction.clone()));
                            Resume::default().with(id.clone(), reactions(each)).partial()
                        };
                        (resume(ElicitationResponse::decline()), resume(ElicitationResponse::cancel()))
                    }
                    Expected::News | Expected::Continue => continue,
                };
                let settling = run.accept(&Input::Resume(first.clone())).unwrap();
                if settling.is_empty() {
                    // It repeats the answer that led to the current question, so it settles nothing.
                    prop_assert!(matches!(expected(item), Expected::Input(..)), "{item:?} is settled by no event");
                    continue;
                }
                let after = apply(&run, &settling);
                prop_assert_eq!(after.accept(&Input::Resume(first)), Ok(vec![]), "the repeated resume");
                let late = after.accept(&Input::Resume(second));
                prop_assert!(late.is_err(), "a second answer to {item:?} was accepted: {late:?}");
            }
        }
    }

    #[test]
    fn law_8_a_repeated_resume_is_accepted_without_events(tape in tapes(), mut choices in tapes()) {
        for (run, items) in waiting(&journey(tape)) {
            let resume = any_resume(&mut choices, &items);
            let input = Input::Resume(Resume { expected_version: Some(run.length()), ..resume });
            let Ok(events) = run.accept(&input) else { continue };
            let after = apply(&run, &events);
            prop_assert_eq!(after.accept(&input), Ok(vec![]));
        }
    }

    #[test]
    fn law_8_a_full_resume_leaves_no_answered_item_pending(tape in tapes()) {
        for (run, items) in waiting(&journey(tape)) {
            // With an expected version, a resume never repeats an earlier decision by chance.
            let seen = Resume { expected_version: Some(run.length()), ..answer_all(&items) };
            let after = apply(&run, &run.accept(&Input::Resume(seen)).unwrap());
            let still: Vec<(Option<CallId>, &str)> =
                after.pending().iter().map(|item| (item.call_id().cloned(), item.kind())).collect();
            for item in items.iter().filter(|item| item.wants_answer()) {
                let same = (item.call_id().cloned(), item.kind());
                prop_assert!(!still.contains(&same), "{:?} was answered and is pending", same);
            }
        }
    }

    #[test]
    fn law_8_wrong_kind_unknown_settled_incomplete_and_stale_are_refused(tape in tapes()) {
        let journal = journey(tape);
        for (run, items) in waiting(&journal) {
            // Continuing a run requires no answers to its calls, and the other way round.
            let wanting: Vec<&PendingItem> =
                items.iter().filter(|item| item.wants_answer() && item.call_id().is_some()).collect();
            let all = answer_all(&items);
            let result = |id: &CallId| (id.clone(), Answer::Result(Outcome::Returned(ToolOutput::text("forged"))));
            for item in &items {
                let mut wrong = Resume::default().partial();
                match expected(item) {
                    Expected::Result(id) => wrong.answers.push((id, decision(DecisionKind::Deny).into())),
                    Expected::Decision(id) | Expected::Answer(id, _) | Expected::Input(id, _) => wrong.answers.push(result(&id)),
                    Expected::News => wrong.answers.push(result(item.call_id().unwrap())),
                    Expected::Continue => continue,
                }
                let refusals = run.accept(&Input::Resume(wrong)).unwrap_err();
                prop_assert!(matches!(refusals[..], [ResumeError::WrongKind { .. }]), "{:?}", refusals);
            }

            let mut unknown = all.clone();
            unknown.answers.push(result(&"unknown".into()));
            let refusals = run.accept(&Input::Resume(unknown)).unwrap_err();
            prop_assert!(matches!(refusals[..], [ResumeError::UnknownCall { .. }]), "{:?}", refusals);

            if wanting.is_empty() {
                continue;
            }
            let stale = Resume { expected_version: Some(run.length() + 1), ..all.clone() };
            let refusals = run.accept(&Input::Resume(stale)).unwrap_err();
            prop_assert!(matches!(refusals[..], [ResumeError::VersionConflict { .. }]), "{:?}", refusals);

            if let [first, _, ..] = wanting[..] {
                let Input::Resume(one) = pay(first, false) else { unreachable!() };
                // Without a version it could repeat an earlier decision about the same call, which is not an error.
                let one = Resume { expected_version: Some(run.length()), ..one };
                let refusals = run.accept(&Input::Resume(one)).unwrap_err();
                prop_assert!(matches!(refusals[..], [ResumeError::Incomplete { .. }]), "{:?}", refusals);
            }

            let mut twice = all.clone();
            twice.answers.extend(all.answers.clone());
            prop_assert!(run.accept(&Input::Resume(twice)).is_err());

            for id in ids(&journal) {
                let waits = items.iter().any(|item| item.call_id() == Some(&id));
                let forged = Resume { answers: vec![result(&id)], partial: true, ..Resume::default() };
                prop_assert!(waits || run.accept(&Input::Resume(forged)).is_err(), "{} accepted a forged result", id);
            }
        }
    }

    #[test]
    fn law_8_unusable_edited_arguments_are_refused(tape in tapes()) {
        for (run, items) in waiting(&journey(tape)) {
            for item in &items {
                let Expected::Decision(id) = expected(item) else { continue };
                for (answer, edited) in [
                    (DecisionKind::Deny, Arguments::Object(Default::default())),
                    (DecisionKind::Approve, Arguments::Malformed("{".into())),
                ] {
                    let decision = Decision { edited_arguments: Some(edited), ..decision(answer) };
                    let resume = Resume::default().with(id.clone(), decision).partial();
                    let refusals = run.accept(&Input::Resume(resume)).unwrap_err();
                    prop_assert!(matches!(refusals[..], [ResumeError::Invalid { .. }]), "{:?}", refusals);
                }
            }
        }
    }
}
