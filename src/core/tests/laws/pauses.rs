//! Laws of pauses (row 4.23): a pause stops a run between two steps, and changes nothing else.

use proptest::prelude::*;
use toolgate_core::chat::{Message, Reply};
use toolgate_core::run::{
    AnswerForm, Authorization, CallVerdict, Channel, DecisionKind, Ending, Event, Input, Limits, Resume, ResumeError,
    Run, Spec, Status, Step,
};
use toolgate_core::tool::{Outcome, ToolOutput};

use crate::answers::decision;
use crate::choices::{strictly, tapes};
use crate::fixtures::{call, noon, spec, trace};
use crate::manual_driver::Hand;
use crate::world::{World, journey, pause, states, wild_journey};

pub(crate) fn is_about_pause(event: &Event) -> bool {
    matches!(event, Event::Paused { .. } | Event::Unpaused { .. })
}

/// The journal without its pauses. An expiry is left out too: a paused run can expire where another one cannot.
fn without_pauses(journal: &[Event]) -> Vec<Event> {
    let is_kept = |event: &&Event| !is_about_pause(event) && !matches!(event, Event::Ended { ending: Ending::Expired });
    journal.iter().filter(is_kept).cloned().collect()
}

fn resume() -> Input {
    Input::Resume(Resume::default().and_continue("ada", Channel::Library))
}

fn plain() -> Spec {
    spec(Limits::default())
}

/// Whether the step needs the outside world.
fn leaves(step: &Step) -> bool {
    match step {
        Step::Record(_) | Step::Wait(_) | Step::Done(_) => false,
        Step::ListTools
        | Step::ResolveApprovals(_)
        | Step::CallModel { .. }
        | Step::Compact { .. }
        | Step::ValidateOutput(_)
        | Step::CheckCalls(_)
        | Step::RunTier(_) => true,
    }
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn a_pause_changes_nothing_that_a_model_reads(tape in tapes()) {
        let mut journal = wild_journey(tape);
        // Raised limits are no part of the pause, and change what the model reads.
        let raised = journal.iter().position(|event| matches!(event, Event::Unpaused { limits: Some(_), .. }));
        journal.truncate(raised.unwrap_or(journal.len()));
        let bare = without_pauses(&journal);
        let (paused, bare) = (states(&journal), states(&bare));
        let read = |states: &[Run]| {
            let read = states.iter().map(|run| format!("{:?}{:?}{:?}", run.transcript(), run.messages(), run.budget()));
            let mut read: Vec<String> = read.collect();
            read.dedup();
            read
        };
        let (paused, bare) = (read(&paused), read(&bare));
        // The ending that is left out may close an open turn.
        prop_assert_eq!(&paused[..bare.len().min(paused.len())], &bare[..bare.len().min(paused.len())]);
        prop_assert!(bare.len() <= paused.len() && paused.len() <= bare.len() + 1);
    }

    #[test]
    fn a_paused_run_takes_no_step_that_needs_the_outside_world(tape in tapes()) {
        let journal = wild_journey(tape);
        for (index, run) in states(&journal).iter().enumerate().filter(|(_, run)| run.pause().is_some()) {
            prop_assert!(!leaves(&run.next()), "{:?}", run.next());
            let next = journal.get(index + 1);
            prop_assert!(!matches!(next, Some(Event::ModelCalled { .. } | Event::CallsStarted { .. })), "{:?}", next);
        }
    }

    #[test]
    fn a_paused_run_is_pending_with_the_pause_or_has_a_step_in_flight(tape in tapes()) {
        for run in states(&journey(tape)).iter().filter(|run| run.pause().is_some() && run.ending().is_none()) {
            let is_shown = run.open_items().iter().any(|item| matches!(item.form(), AnswerForm::Continue { .. }));
            match (run.status(), run.next()) {
                // A failure that follows from the journal ends the run in spite of the pause.
                (Status::Running, Step::Record(events)) => prop_assert!(matches!(events[..], [Event::Ended { .. }]), "{:?}", events),
                (Status::Pending | Status::Running, Step::Wait(_)) => prop_assert!(is_shown),
                (status, step) => prop_assert!(false, "{:?}: {:?}", status, step),
            }
        }
    }

    #[test]
    fn every_prefix_can_be_paused_and_continued(tape in tapes(), later in tapes(), at in any::<prop::sample::Index>()) {
        let journal = journey(tape);
        for run in states(&journal) {
            if run.ending().is_some() {
                prop_assert!(matches!(run.accept(&pause()).unwrap_err()[..], [ResumeError::RunEnded { .. }]), "over");
                continue;
            }
            let mut paused = run.clone();
            for event in run.accept(&pause()).unwrap() {
                paused.apply(&event).unwrap();
            }
            prop_assert_eq!(paused.accept(&pause()), Ok(vec![]), "pausing a paused run changes nothing");
            let mut continued = paused.clone();
            for event in paused.accept(&resume()).unwrap() {
                continued.apply(&event).unwrap();
            }
            prop_assert_eq!(continued.accept(&resume()), Ok(vec![]), "a repeated resume changes nothing");
            if run.pause().is_none() {
                prop_assert_eq!(continued.next(), run.next());
            }
        }
        let mut prefix = journal[..=at.index(journal.len())].to_vec();
        let run = Run::replay(&prefix).unwrap().unwrap();
        if run.ending().is_none() {
            prefix.extend(run.accept(&pause()).unwrap());
        }
        World::resume_run(&prefix, later).run_to_its_end();
    }
}

/// A run whose model was called and has not replied.
fn asking() -> Hand {
    let mut hand = Hand::with(plain());
    let Step::CallModel { attempt, tool_access, .. } = hand.run.next() else { panic!("{:?}", hand.run.next()) };
    let model = hand.run.candidate(noon()).clone();
    hand.record(Event::ModelCalled { model, attempt, tool_access });
    hand
}

fn resumed() -> Event {
    Event::Resumed { trace: trace(7), limits: None }
}

#[test]
fn row_4_23_a_pause_during_a_model_call_keeps_the_reply() {
    let mut hand = asking().given(pause());
    assert_eq!((hand.status(), hand.pending()), (Status::Running, vec![]));
    hand.record(Event::ModelReplied { reply: Reply::text("done").into() });
    assert_eq!((hand.status(), hand.pending()), (Status::Pending, vec!["pause".to_owned()]));
    assert_eq!(hand.given(resume()).status(), Status::Completed);
}

#[test]
fn row_4_23_a_pause_ends_before_the_step_in_flight() {
    let mut hand = asking().given(pause()).given(resume());
    assert_eq!(hand.status(), Status::Running);
    hand.record(Event::ModelReplied { reply: Reply::text("done").into() });
    assert_eq!(hand.settled().status(), Status::Completed);
}

#[test]
fn row_4_23_a_step_whose_process_died_does_not_delay_the_pause() {
    let mut hand = asking().given(pause());
    hand.record(resumed());
    assert_eq!((hand.status(), hand.pending()), (Status::Pending, vec!["pause".to_owned()]));
    let hand = hand.given(resume());
    assert!(matches!(hand.run.next(), Step::CallModel { attempt: 2, .. }));
}

#[test]
fn row_4_23_a_pause_during_tool_calls_waits_for_all_of_them() {
    let mut hand = asking();
    let calls = [call("a", "mcp_files_read"), call("b", "mcp_files_write")];
    hand.record(Event::ModelReplied { reply: Reply::calling(calls).into() });
    loop {
        match hand.run.next() {
            Step::Record(events) => events.into_iter().for_each(|event| hand.record(event)),
            Step::CheckCalls(ids) => {
                let run = |call| Event::CallChecked {
                    call,
                    verdict: CallVerdict::Run { by: Authorization::Policy { rule: None, policy: None } },
                    advisory: Vec::new(),
                };
                ids.into_iter().for_each(|id| hand.record(run(id)));
            }
            Step::RunTier(calls) => break hand.record(Event::CallsStarted { calls }),
            other => panic!("{other:?}"),
        }
    }
    let mut hand = hand.given(pause());
    let result = |text: &str| Outcome::Returned(ToolOutput::text(text)).into();
    for (id, status) in [("a", Status::Running), ("b", Status::Pending)] {
        assert_eq!(hand.status(), Status::Running);
        let completed = Event::CallCompleted { call: id.into(), outcome: result(id), stderr: Vec::new(), wire: None };
        hand.record(completed);
        assert_eq!(hand.status(), status);
    }
    assert!(matches!(hand.given(resume()).run.next(), Step::CallModel { attempt: 1, .. }));
}

#[test]
fn row_4_23_other_items_stand_beside_the_pause_and_keep_their_answers() {
    let hand = Hand::with(plain()).model_calls([call("a", "ext_ask_order"), call("b", "ext_order")]).given(pause());
    assert_eq!(hand.pending(), ["pause", "approval a", "external_result b"]);
    let yes = Resume::default().with("a", decision(DecisionKind::Approve)).partial();
    let hand = hand.given(Input::Resume(yes));
    assert_eq!(hand.pending(), ["pause", "external_result b"]);
    let hand = hand.given(resume());
    assert_eq!(hand.pending(), ["external_result a", "external_result b"]);
}

#[test]
fn row_4_23_a_message_to_a_paused_run_is_read_before_it_ends() {
    let mut hand = asking().given(pause());
    hand.record(Event::ModelReplied { reply: Reply::text("done").into() });
    let hand = hand.given(Input::Message(Message::user("one more thing"))).given(resume());
    assert!(matches!(hand.run.next(), Step::CallModel { attempt: 1, .. }));
    assert!(hand.run.transcript().last().unwrap().text().contains("one more thing"));
}

#[test]
fn row_4_23_a_paused_run_can_be_cancelled_and_can_expire() {
    let cancel = Input::Cancel { reason: None, partial_reply: None, expected_version: None };
    assert_eq!(Hand::with(plain()).given(pause()).given(cancel).status(), Status::Cancelled);
    let mut hand = Hand::with(plain()).given(pause());
    hand.record(Event::Ended { ending: Ending::Expired });
    assert_eq!(hand.status(), Status::Expired);
    let mut running = Hand::with(plain());
    assert!(running.run.apply(&Event::Ended { ending: Ending::Expired }).is_err());
}

#[test]
fn row_4_23_a_fork_of_a_paused_run_is_not_paused() {
    let hand = Hand::with(plain()).given(pause());
    let copy = Run::forked(hand.journal.clone()).unwrap();
    assert!(!copy.iter().any(is_about_pause));
    assert!(matches!(Run::replay(&copy).unwrap().unwrap().next(), Step::CallModel { .. }));
}

#[test]
fn row_4_23_a_run_without_a_pause_is_not_continued() {
    let refusals = Hand::with(plain()).run.accept(&resume()).unwrap_err();
    assert_eq!(refusals, [ResumeError::NotPaused]);
    let stale = Input::Pause { reason: None, by: "ada".into(), via: Channel::Library, expected_version: Some(1) };
    let refusals = Hand::with(plain()).run.accept(&stale).unwrap_err();
    assert!(matches!(refusals[..], [ResumeError::VersionConflict { expected: 1, .. }]));
}
