//! Compensation (row 3.49): calls that took effect are undone in reverse order before a run ends as failed or cancelled,
//! once each, and nothing changes for other runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use toolgate_core::chat::Message;
use toolgate_core::id::CallId;
use toolgate_core::run::{CallState, Ending, Event, Input, Limits, Run, RunRules, Spec, Started, Status, UndoState};
use toolgate_core::tool::{Arguments, Origin, ToolCall};

use crate::choices::{Tape, strictly, tapes};
use crate::fixtures::{any_start, call, noon, spec};
use crate::manual_driver::Hand;
use crate::world::{World, states};

/// A journal with unsolicited events, of a run that compensates or does not.
fn journal(mut tape: Tape, compensate: bool) -> Vec<Event> {
    let started = any_start(&mut tape);
    let mut spec = started.spec.clone();
    spec.rules.compensate = compensate;
    World::new(Arc::new(Started { spec, ..(*started).clone() }), tape, 4).into_ended()
}

/// The calls with an undo that settled without an error before the ending was decided, in order, without those that the
/// model undid itself.
fn effects(journal: &[Event]) -> Vec<CallId> {
    let mut effects: Vec<(CallId, Origin, Arguments)> = Vec::new();
    for (event, before) in journal[1..].iter().zip(states(journal)) {
        let Event::CallCompleted { call: id, outcome, .. } = event else { continue };
        let call = before.call(id).expect("the call is open");
        let Some(tool) = call.tool.as_ref().filter(|_| !before.is_compensating() && !outcome.is_error()) else {
            continue;
        };
        let undoes = |(_, by, with): &(CallId, Origin, Arguments)| *by == tool.origin && with == call.arguments();
        if let Some(undone) = effects.iter().rposition(undoes) {
            effects.remove(undone);
        }
        if let (Some(undo), Some(server)) = (&tool.undo, tool.server()) {
            let by = Origin::Mcp { server: server.clone(), tool: undo.tool.clone() };
            effects.push((id.clone(), by, undo.arguments_for(call.arguments(), outcome)));
        }
    }
    effects.into_iter().map(|(id, ..)| id).collect()
}

/// The position of `compensation.started`.
fn decided_at(journal: &[Event]) -> Option<usize> {
    journal.iter().position(|event| matches!(event, Event::CompensationStarted { .. }))
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn calls_that_took_effect_are_undone_once_in_reverse_before_the_decided_ending(tape in tapes()) {
        let journal = journal(tape, true);
        let over = Run::replay(&journal).unwrap().unwrap();
        let mut effects = effects(&journal);
        effects.reverse();
        let Some(at) = decided_at(&journal) else {
            let is_undone = matches!(over.status(), Status::Failed | Status::Cancelled);
            prop_assert!(!is_undone || effects.is_empty(), "{:?} took effect", effects);
            return Ok(());
        };
        let Event::CompensationStarted { ending, undo } = &journal[at] else { unreachable!() };
        prop_assert_eq!(undo.iter().map(|undo| undo.undoes.clone()).collect::<Vec<_>>(), effects);
        prop_assert_eq!(over.ending(), Some(ending));
        prop_assert!(matches!(ending.status(), Status::Failed | Status::Cancelled));
        prop_assert_eq!(journal.iter().filter(|event| matches!(event, Event::CompensationStarted { .. })).count(), 1);
        let results = over.compensation().unwrap().undone;
        prop_assert!(results.iter().all(|result| result.state != UndoState::Open));
    }

    #[test]
    fn undo_calls_run_one_after_the_other_and_nothing_else_does(tape in tapes()) {
        let journal = journal(tape, true);
        let Some(at) = decided_at(&journal) else { return Ok(()) };
        let Event::CompensationStarted { undo, .. } = &journal[at] else { unreachable!() };
        let order: Vec<&CallId> = undo.iter().map(|undo| &undo.call.id).collect();
        for (event, before) in journal[1..].iter().zip(states(&journal)).skip(at) {
            let is_of_model = matches!(
                event,
                Event::ModelCalled { .. } | Event::ModelReplied { .. } | Event::ToolsListed { .. }
                    | Event::CompactionStarted { .. } | Event::TierSelected { .. } | Event::OutputValidated { .. }
            );
            prop_assert!(!is_of_model, "{:?} follows the decided ending", event);
            let Event::CallsStarted { calls } = event else { continue };
            prop_assert_eq!(calls.len(), 1);
            let position = order.iter().position(|id| **id == calls[0]).expect("an undo call");
            for earlier in &order[..position] {
                let state = &before.call(earlier).unwrap().state;
                prop_assert!(matches!(state, CallState::Settled(_)), "{} starts before {} settled", calls[0], earlier);
            }
        }
    }

    #[test]
    fn an_undo_call_in_doubt_is_not_repeated(tape in tapes()) {
        let journal = journal(tape, true);
        let Some(at) = decided_at(&journal) else { return Ok(()) };
        let mut starts: BTreeMap<&CallId, i32> = BTreeMap::new();
        for (event, before) in journal[1..].iter().zip(states(&journal)).skip(at) {
            // A person's consent, an answer to the server, and a tool that is safe to repeat lead to a second start.
            if let Event::ApprovalDecided { call, .. } | Event::InputGiven { call, .. } = event {
                starts.remove(call);
            }
            let Event::CallsStarted { calls } = event else { continue };
            for call in calls.iter().filter(|id| !before.call(id).unwrap().tool.as_ref().unwrap().is_repeatable()) {
                let count = starts.entry(call).or_default();
                *count += 1;
                prop_assert_eq!(*count, 1, "{} was started again", call);
            }
        }
    }

    #[test]
    fn undo_calls_change_no_message(tape in tapes()) {
        let journal = journal(tape, true);
        let Some(at) = decided_at(&journal) else { return Ok(()) };
        if journal[at..].iter().any(|event| matches!(event, Event::MessageAdded { .. })) {
            return Ok(());
        }
        let states = states(&journal);
        for state in &states[at..] {
            prop_assert_eq!(state.transcript(), states[at].transcript());
            prop_assert_eq!(state.messages(), states[at].messages());
        }
    }

    #[test]
    fn a_run_that_does_not_compensate_undoes_nothing(tape in tapes()) {
        let journal = journal(tape, false);
        prop_assert_eq!(decided_at(&journal), None);
        for state in states(&journal) {
            let cancelled = Ending::Cancelled { reason: None, partial_reply: None };
            prop_assert_eq!(state.ending_event(cancelled.clone()), Event::Ended { ending: cancelled });
            prop_assert_eq!(state.compensation(), None);
        }
    }
}

fn compensating() -> Spec {
    Spec { rules: RunRules { compensate: true, ..RunRules::default() }, ..spec(Limits::default()) }
}

fn cancel() -> Input {
    Input::Cancel { reason: Some("enough".into()), partial_reply: None, expected_version: None }
}

fn n(id: &str, tool: &str) -> ToolCall {
    ToolCall::new(id, tool, json!({"n": 1}))
}

#[test]
fn row_3_49_an_undo_that_cannot_be_made_is_refused_and_the_next_one_goes_on() {
    let hand = Hand::with(compensating())
        .model_calls([n("a", "mcp_files_write")])
        .model_calls([call("b", "mcp_web_fetch")])
        .model_calls([call("c", "ext_order")])
        .given(cancel());
    assert_eq!(hand.started_calls(), ["a", "b", "undo_a"]);
    let result = &hand.run.compensation().unwrap().undone[0];
    assert_eq!(result.state, UndoState::Refused);
    assert_eq!(
        result.reason.as_deref(),
        Some("Not undone: `/result/price` leads nowhere: `/result` is a string, with nothing in it.")
    );
    assert_eq!(hand.status(), Status::Cancelled);
}

#[test]
fn row_3_49_a_run_that_compensates_has_no_call_limit_and_no_deadline_and_keeps_messages() {
    let limits = Limits { max_mcp_calls: Some(1), deadline_s: Some(1), ..Limits::default() };
    let mut hand = Hand::with(Spec { rules: RunRules { compensate: true, ..RunRules::default() }, ..spec(limits) })
        .model_calls([n("a", "mcp_files_write")])
        .model_calls([call("b", "ext_order")]);
    assert!(hand.run.ends_by(noon()).is_some());
    for event in hand.run.accept(&cancel()).unwrap() {
        hand.record(event);
    }
    assert_eq!(hand.run.ends_by(noon()), None);
    let hand = hand.given(Input::Message(Message::user("a pity")));
    assert_eq!((hand.started_calls(), hand.status()), (vec!["a".to_owned(), "undo_a".to_owned()], Status::Cancelled));
    assert!(hand.last_lines().contains(&"a pity".to_owned()), "{:?}", hand.last_lines());
}
