//! Laws of consent: every call that is sent has an authorization of its own that holds now and was not used before.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use proptest::prelude::*;
use toolgate_core::id::CallId;
use toolgate_core::policy::{OnTimeout, PolicyMark};
use toolgate_core::run::{
    Authorization, Binding, CallState, CallVerdict, DecisionKind, Event, Limits, OnUnknownOutcome, Run, RunRules, Spec,
    Step,
};
use toolgate_core::tool::Origin;

use crate::answers::decision;
use crate::choices::{strictly, tapes};
use crate::events::asked;
use crate::fixtures::{call, spec};
use crate::manual_driver::Hand;
use crate::pauses::is_about_pause;
use crate::world::{journey, states, wild_journey};

/// Checks that every sent call has an authorization, as a reader of the journal without the fold would find it.
fn every_start_rests_on_a_right(journal: &[Event]) -> Result<(), TestCaseError> {
    let mut rights: BTreeMap<CallId, &str> = BTreeMap::new();
    let mut sent: BTreeSet<CallId> = BTreeSet::new();
    for (event, before) in journal[1..].iter().zip(states(journal)) {
        match event {
            Event::CallChecked { call, verdict, .. } => {
                let yes = rights.remove(call) == Some("a person");
                match verdict {
                    CallVerdict::Run { by: Authorization::Policy { .. } } => {
                        rights.insert(call.clone(), "the policy");
                    }
                    CallVerdict::Run { by: Authorization::Grant { .. } } => {
                        rights.insert(call.clone(), "a grant");
                    }
                    CallVerdict::Run { by: Authorization::HumanApproval } => {
                        prop_assert!(yes, "{} is handed over without an approval", call);
                        rights.insert(call.clone(), "a person");
                    }
                    CallVerdict::Ask { .. } | CallVerdict::Rejected { .. } => {}
                }
            }
            Event::ApprovalDecided { call, decision } => {
                rights.remove(call);
                if decision.answer == DecisionKind::Approve {
                    rights.insert(call.clone(), "a person");
                }
            }
            Event::InputGiven { call, .. } => drop(rights.insert(call.clone(), "answers to its server")),
            Event::CallDrifted { call, .. } | Event::Expired { call } => drop(rights.remove(call)),
            Event::CallsStarted { calls } => {
                for id in calls {
                    let call = before.call(id).unwrap();
                    let is_repeated = sent.contains(id) && call.tool.as_ref().unwrap().is_repeatable();
                    prop_assert!(
                        rights.remove(id).is_some() || is_repeated,
                        "{} was sent without an authorization",
                        id
                    );
                    sent.insert(id.clone());
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn binding(parts: &[u8]) -> Binding {
    let part = |index: usize| parts.get(index).copied().unwrap_or(0).to_string();
    Binding {
        origin: Origin::Mcp { server: part(0).as_str().into(), tool: part(1) },
        definition: part(2),
        arguments: part(3),
        policy: Some(PolicyMark { name: part(4), version: part(5) }),
        event: parts[8].into(),
    }
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn no_call_is_sent_without_an_unused_authorization(tape in tapes()) {
        every_start_rests_on_a_right(&journey(tape))?;
    }

    #[test]
    fn no_admitted_event_sends_a_call_without_authorization(tape in tapes()) {
        every_start_rests_on_a_right(&wild_journey(tape))?;
    }

    #[test]
    fn the_digest_identifies_the_content_of_a_decision(
        one in proptest::collection::vec(0_u8..3, 9),
        other in proptest::collection::vec(0_u8..3, 9),
    ) {
        let digest = |parts: &[u8]| {
            binding(parts).digest(&parts[6].to_string().into(), &parts[7].to_string().into())
        };
        prop_assert_eq!(one == other, digest(&one) == digest(&other));
    }

    #[test]
    fn no_pending_item_expires_before_its_deadline(
        tape in tapes(), within in 1_u64..1000, passed in 0_i64..2000,
        on_timeout in proptest::sample::select(vec![OnTimeout::Approve, OnTimeout::Deny, OnTimeout::Expire]),
    ) {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for state in states(&journey(tape)) {
            let mut run = state;
            let Step::CheckCalls(calls) = run.next() else { continue };
            let call = calls[0].clone();
            let verdict = CallVerdict::Ask { rule: None, reason: "?".into(), policy: None, answer_timeout_s: Some(within), on_timeout };
            let asked = Event::CallChecked { call: call.clone(), verdict, advisory: Vec::new() };
            if run.apply_at(&asked, start).is_err() {
                continue;
            }
            let now = start + std::time::Duration::from_secs(passed as u64);
            let overdue = run.overdue(now);
            let late = overdue.iter().find(|event| event.calls().any(|late| *late == call));
            let is_late = late.is_some();
            // While another step comes first, the pending items have not been shown to a person.
            let is_waited_for = matches!(run.next(), Step::Wait(_));
            prop_assert_eq!(is_late, is_waited_for && passed as u64 >= within);
            let Some(late) = late else { continue };
            prop_assert!(late.is_expiry());
            let decided = if let Event::ApprovalDecided { decision, .. } = late { Some(decision.answer) } else { None };
            prop_assert_eq!(decided.is_some(), on_timeout != OnTimeout::Expire);
            prop_assert_eq!(decided == Some(DecisionKind::Approve), on_timeout == OnTimeout::Approve);
            prop_assert_eq!(run.apply_at(late, now), Ok(()));
        }
    }
}

#[test]
fn a_call_in_doubt_twice_asks_two_questions() {
    let spec = Spec {
        rules: RunRules { on_unknown_outcome: OnUnknownOutcome::Ask, ..RunRules::default() },
        ..spec(Limits::default())
    };
    let mut hand = Hand::with(spec).model_calls([call("a", "mcp_files_ask_write")]);
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(hand.run.binding(&"a".into(), None).unwrap().digest(&"run".into(), &"a".into()));
        hand.record(Event::ApprovalDecided { call: "a".into(), decision: decision(DecisionKind::Approve) });
        hand.record(Event::CallsStarted { calls: vec!["a".into()] });
        // The process dies, and the next driver asks.
        assert_eq!(hand.run.next(), Step::CheckCalls(vec!["a".into()]));
        hand.record(Event::CallChecked { call: "a".into(), verdict: asked("it may have run"), advisory: Vec::new() });
    }
    let different: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(different.len(), seen.len(), "{seen:?}");
}

/// The calls that would run as soon as a driver resumes the run, because of a person's consent, as a reader of the
/// journal without the fold would find them.
fn open_consents(journal: &[Event]) -> BTreeSet<CallId> {
    let mut consented = BTreeSet::new();
    let mut run = Run::replay(&journal[..1]).unwrap().unwrap();
    for event in journal {
        if !matches!(event, Event::Started(_)) {
            run.apply(event).unwrap();
        }
        match event {
            Event::ApprovalDecided { call, decision } if decision.answer == DecisionKind::Approve => {
                consented.insert(call.clone());
            }
            // An answer on the open call is used at once, and one that only declines may settle the call.
            Event::InputGiven { call, .. } if run.call(call).is_none_or(|call| call.state != CallState::Authorized) => {
            }
            Event::InputGiven { call, .. } => drop(consented.insert(call.clone())),
            Event::CallsStarted { calls } => consented.retain(|call| !calls.contains(call)),
            // Records that the consent still holds.
            Event::CallChecked { verdict: CallVerdict::Run { by: Authorization::HumanApproval }, .. } => {}
            Event::CallChecked { call, .. }
            | Event::CallDrifted { call, .. }
            | Event::Expired { call }
            | Event::QuestionAnswered { call, .. }
            | Event::CallCompleted { call, .. } => drop(consented.remove(call)),
            // The calls of the turn are over: only undo calls run then.
            Event::CompensationStarted { .. } | Event::Ended { .. } => consented.clear(),
            _ => {}
        }
    }
    consented
}

/// The call about which an event asks a person.
fn question(event: &Event) -> Option<&CallId> {
    if let Event::CallChecked { call, verdict: CallVerdict::Ask { .. }, .. } = event { Some(call) } else { None }
}

fn is_asked(run: &Run, call: &CallId) -> bool {
    run.call(call).is_some_and(|call| matches!(call.state, CallState::Asked { .. }))
}

/// The events that record actions, as opposed to questions and answers.
fn deeds(journal: &[Event]) -> Vec<&Event> {
    let is_said = |event: &&Event| {
        let still_holds =
            matches!(event, Event::CallChecked { verdict: CallVerdict::Run { by: Authorization::HumanApproval }, .. });
        still_holds
            || question(event).is_some()
            || matches!(event, Event::ApprovalDecided { .. } | Event::InputGiven { .. } | Event::Extended { .. })
            || is_about_pause(event)
    };
    journal.iter().filter(|event| !is_said(event)).collect()
}

/// Every fork of a journal: the copy has no consent that the source has used or could still use, and a used consent is
/// used in the copy, too. It has no unanswered question either, because its own policy judges these calls.
fn no_fork_uses_a_consent_of_its_source(journal: &[Event]) -> Result<(), TestCaseError> {
    for at in 1..=journal.len() {
        let source = &journal[..at];
        let copy = Run::forked(source.to_vec()).unwrap();
        let paused = source.iter().filter(|event| is_about_pause(event)).count();
        let still_paused = copy.iter().filter(|event| is_about_pause(event)).count();
        prop_assert_eq!(open_consents(&copy), BTreeSet::new(), "in a copy of {} events", at);
        prop_assert_eq!(deeds(&copy), deeds(source));
        let (run, forked) = (Run::replay(source).unwrap().unwrap(), Run::replay(&copy).unwrap().unwrap());
        let open: BTreeSet<CallId> =
            source.iter().filter_map(question).filter(|call| is_asked(&run, call)).cloned().collect();
        let open = &open | &open_consents(source);
        let lost = source.len() + still_paused - copy.len() - paused;
        prop_assert!(open.len() <= lost, "open questions and consents are not copied");
        prop_assert_eq!(lost == 0, open.is_empty(), "and nothing else is omitted");
        prop_assert!(copy.iter().filter_map(question).all(|call| !is_asked(&forked, call)));
        let answered =
            |journal: &[Event]| journal.iter().filter_map(question).filter(|call| !open.contains(call)).count();
        prop_assert_eq!(answered(&copy), answered(source), "answered questions are copied");
        let is_over = matches!(source.last(), Some(Event::Ended { .. }));
        prop_assert!(is_over || forked.pause().is_none(), "a fork is not paused");
        prop_assert_eq!(forked.transcript(), run.transcript());
    }
    Ok(())
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn no_fork_has_a_consent_of_its_source(tape in tapes()) {
        no_fork_uses_a_consent_of_its_source(&journey(tape))?;
    }

    #[test]
    fn no_fork_of_an_admitted_journal_has_a_consent_of_its_source(tape in tapes()) {
        no_fork_uses_a_consent_of_its_source(&wild_journey(tape))?;
    }
}
