//! Laws of compactions: models read the summary, people read every message, and no call is separated from its result.

use std::sync::Arc;

use proptest::prelude::*;
use toolgate_core::chat::{Message, Reply, Stop, Usage};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::run::{
    Candidate, Compaction, Ending, Event, Limits, Run, RunRules, Segment, Spec, Started, Status, Step, Trigger,
};

use crate::choices::{Tape, strictly, tapes};
use crate::fixtures::{call, noon, predecessor, spec, started};
use crate::manual_driver::{Hand, lines};
use crate::provider::{Open, refusal};
use crate::world::{states, to_json, wild_journey};

/// A journal whose run compacts, if it has anything to compact.
fn compacting(tape: Tape) -> Vec<Event> {
    wild_journey(tape)
}

/// The journal with the first event resolved to this conversation.
fn after(journal: &[Event], conversation: &Segment) -> Vec<Event> {
    let mut journal = journal.to_vec();
    let Some(Event::Started(first)) = journal.first_mut() else { panic!("a journal begins with its start") };
    let first: &mut Started = Arc::make_mut(first);
    (first.history, first.predecessor) = (Vec::new(), Some(predecessor(0)));
    journal[0] = journal[0].with_conversation(Some(Arc::new(conversation.clone())));
    let mut run = Run::replay(&journal[..1]).unwrap().unwrap();
    let admitted = journal[1..].iter().take_while(|event| run.apply(event).is_ok()).count();
    journal[..=admitted].to_vec()
}

/// The transcript of a run without a new message that continues this conversation.
fn continued(conversation: Segment) -> Vec<Arc<Message>> {
    let mut first = Arc::unwrap_or_clone(started(spec(Limits::default())));
    (first.predecessor, first.input) = (Some(predecessor(0)), Message::user(""));
    let first = Event::Started(first.into()).with_conversation(Some(conversation.into()));
    Run::replay([&first]).unwrap().unwrap().transcript().to_vec()
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn every_provider_accepts_the_transcript_after_a_compaction(tape in tapes()) {
        let journal = compacting(tape);
        for (event, state) in journal.iter().zip(states(&journal)) {
            if matches!(event, Event::CompactionCompleted { .. }) {
                prop_assert_eq!(refusal(state.transcript(), Open::Never), None, "{}", to_json(&journal).join("\n"));
            }
            prop_assert_eq!(refusal(state.conversation(), Open::Never), None);
        }
    }

    #[test]
    fn a_compaction_changes_no_message_that_people_read(tape in tapes()) {
        let journal = compacting(tape);
        let states = states(&journal);
        for (event, pair) in journal[1..].iter().zip(states.windows(2)) {
            if matches!(event, Event::CompactionCompleted { .. }) {
                let (before, after) = (pair[0].conversation(), pair[1].conversation());
                // Messages that were added meanwhile follow.
                let same = before.len().saturating_sub(1);
                prop_assert_eq!(before.get(..same), after.get(..same));
                prop_assert!(after.len() >= before.len());
            }
        }
    }

    #[test]
    fn the_users_latest_message_is_kept(tape in tapes()) {
        let journal = compacting(tape);
        let mut latest = String::new();
        for (event, state) in journal.iter().zip(states(&journal)) {
            match event {
                Event::Started(started) => latest = started.input.text(),
                Event::MessageAdded { message } => latest = message.text(),
                _ => {}
            }
            let is_open = !state.is_between_turns();
            let shown = state.transcript().iter().any(|message| message.text().contains(&latest));
            prop_assert!(is_open || shown, "{latest:?} is missing:\n{}", to_json(&journal).join("\n"));
        }
    }

    #[test]
    fn usage_of_compactions_counts_in_the_budget(tape in tapes()) {
        let journal = compacting(tape);
        let mut expected = Usage::default();
        for event in &journal {
            match event {
                Event::ModelReplied { reply } => expected.add(&reply.usage),
                Event::ModelFailed { usage, .. }
                | Event::CompactionCompleted { usage, .. }
                | Event::CompactionFailed { usage, .. } => expected.add(usage),
                _ => {}
            }
        }
        prop_assert_eq!(Run::replay(&journal).unwrap().unwrap().budget().usage, expected);
    }

    #[test]
    fn a_turn_has_one_compaction_and_two_attempts(tape in tapes()) {
        let (mut attempts, mut ended) = (0, 0);
        for event in wild_journey(tape) {
            match event {
                Event::CompactionStarted { .. } => attempts += 1,
                Event::CompactionCompleted { .. } | Event::CompactionFailed { .. } => ended += 1,
                Event::ModelReplied { .. } | Event::Resumed { limits: Some(_), .. } => (attempts, ended) = (0, 0),
                _ => {}
            }
            prop_assert!(attempts <= 2 || ended == 0);
            prop_assert!(ended <= 1, "a turn had {ended} compactions");
        }
    }

    #[test]
    fn a_later_run_reads_what_the_run_itself_read(first in tapes(), second in tapes()) {
        let prior = Segment::join([Segment::from_journal(&wild_journey(first)).unwrap().unwrap()]);
        let journal = after(&wild_journey(second), &prior);
        for length in 1..=journal.len() {
            let segment = Segment::from_journal(&journal[..length]).unwrap().unwrap();
            let is_compacted = segment.compacted.is_some();
            let conversation = Segment::join([prior.clone(), segment]);
            let run = Run::replay(&journal[..length]).unwrap().unwrap();
            if is_compacted {
                let read = conversation.read_by_models();
                prop_assert_eq!(refusal(read, Open::Never), None);
                // Notes about budgets and words without an answer are left out.
                let assistants = |messages: &[Arc<Message>]| {
                    let said = messages.iter().filter(|message| message.content.iter().any(|part| part.tool_use().is_some()));
                    said.cloned().collect::<Vec<_>>()
                };
                prop_assert_eq!(assistants(read), assistants(run.transcript()), "{}", to_json(&journal[..length]).join("\n"));
                prop_assert_eq!(&read[0].content[0], &run.transcript()[0].content[0]);
            }
            let continued = continued(conversation.clone());
            prop_assert_eq!(continued.as_slice(), conversation.read_by_models());
        }
    }
}

fn at(at_tokens: Option<u64>, keep_tokens: u64) -> Spec {
    Spec {
        rules: RunRules { compaction: Some(Compaction { at_tokens, keep_tokens, model: None }), ..RunRules::default() },
        ..spec(Limits::default())
    }
}

fn replied(text: &str, tokens: u64) -> Reply {
    let usage = Usage { input_tokens: Some(tokens), output_tokens: Some(1), ..Usage::default() };
    Reply { usage, ..Reply::text(text) }
}

fn calling(id: &str, tokens: u64) -> Reply {
    let usage = Usage { input_tokens: Some(tokens), output_tokens: Some(1), ..Usage::default() };
    Reply { usage, ..Reply::calling([call(id, "mcp_files_read")]) }
}

/// The step of a run that has to be a compaction, recorded as started.
fn start(hand: &mut Hand) {
    let Step::Compact { attempt, replaces, keeps } = hand.run.next() else { panic!("not now: {:?}", hand.run.next()) };
    hand.record(Event::CompactionStarted { model: "first".into(), attempt, replaces, keeps });
}

fn complete(hand: &mut Hand, summary: &str) {
    start(hand);
    let usage = Usage { input_tokens: Some(9), ..Usage::default() };
    hand.record(Event::CompactionCompleted { summary: summary.into(), usage, model: "first".into() });
}

fn all_lines(messages: &[Arc<Message>]) -> Vec<Vec<String>> {
    messages.iter().map(|message| lines(message)).collect()
}

#[test]
fn a_long_loop_of_calls_keeps_its_task_and_its_last_calls() {
    let mut hand = Hand::with(at(Some(100), 12)).model_says(calling("a", 90)).model_says(calling("b", 120));
    assert_eq!(hand.run.replaced(2).len(), 3);
    complete(&mut hand, "read a");
    let [first, assistant, results] = &all_lines(hand.run.transcript())[..] else {
        panic!("{:?}", hand.run.transcript())
    };
    let frame = "[toolgate] Summary of the earlier conversation, written by a model:\nread a";
    assert_eq!(first, &[frame, "[toolgate] The user's latest message, which the summary covers:", "do it"]);
    assert_eq!(assistant, &["call b mcp_files_read"]);
    assert_eq!(results, &["result b: result of mcp_files_read"]);
    assert_eq!(hand.run.conversation().len(), 5);
    assert!(matches!(hand.settled().run.next(), Step::CallModel { attempt: 1, .. }));
}

#[test]
fn without_usage_the_size_is_the_text() {
    let spec = at(Some(20), 0);
    let quiet = Hand::with(spec.clone()).model_calls([call("a", "mcp_files_read")]);
    assert!(matches!(quiet.run.next(), Step::CallModel { .. }), "{:?}", quiet.run.next());
    let long = Hand::with(spec).model_says(Reply {
        content: [Reply::text("a".repeat(80)).content, Reply::calling([call("a", "mcp_files_read")]).content].concat(),
        ..Reply::empty()
    });
    assert!(matches!(long.run.next(), Step::Compact { attempt: 1, replaces: 3, keeps: 0 }), "{:?}", long.run.next());
}

#[test]
fn a_failed_compaction_is_not_tried_again_in_its_turn() {
    let mut hand = Hand::with(at(Some(50), 0)).model_says(calling("a", 90));
    start(&mut hand);
    let error = Failure::new(ErrorCode::ProviderUnavailable, "down");
    hand.record(Event::CompactionFailed { error, usage: Usage::default() });
    let hand = hand.settled().model_says(calling("b", 95));
    assert!(matches!(hand.run.next(), Step::Compact { .. }), "{:?}", hand.run.next());
}

#[test]
fn a_compaction_whose_process_stops_twice_is_given_up() {
    let mut hand = Hand::with(at(Some(50), 0)).model_says(calling("a", 90));
    start(&mut hand);
    let hand_again = Run::replay(&hand.journal).unwrap().unwrap();
    assert!(matches!(hand_again.next(), Step::Compact { attempt: 2, replaces: 3, keeps: 0 }));
    start(&mut hand);
    let hand = hand.settled();
    let [.., Event::CompactionFailed { error, .. }, Event::ApprovalsResolved { .. }] = &hand.journal[..] else {
        panic!("{:?}", hand.journal.last())
    };
    assert!(error.message.contains("2 times"), "{error}");
    assert!(matches!(hand.run.next(), Step::CallModel { attempt: 1, .. }));
}

#[test]
fn a_context_window_error_compacts_once_and_asks_again() {
    for fallback in [Vec::new(), vec![Candidate { model: "second".into(), attempts: None }]] {
        let mut hand = Hand::with(Spec { fallback, ..at(None, 0) }).model_says(calling("a", 90));
        for times in 0..2 {
            let model = hand.run.candidate(noon()).clone();
            let Step::CallModel { attempt, tool_access, .. } = hand.run.next() else { panic!("{:?}", hand.run.next()) };
            assert_eq!((model.as_str(), attempt), ("first", 1));
            hand.record(Event::ModelCalled { model, attempt, tool_access });
            let error = Failure::new(ErrorCode::ContextWindow, "too long");
            hand.record(hand.run.model_failed(error, Usage::default(), noon()));
            if times == 0 {
                complete(&mut hand, "read a");
            }
        }
        match hand.run.started().spec.fallback.is_empty() {
            true => assert_eq!(hand.settled().status(), Status::Failed),
            false => assert_eq!(hand.run.candidate(noon()).as_str(), "second"),
        }
    }
}

#[test]
fn a_reply_that_was_cut_off_for_lack_of_context_leads_to_a_compaction() {
    let cut = Reply { stop: Stop::ContextWindow, ..Reply::text("and so") };
    let mut hand = Hand::with(at(None, 0)).model_says(calling("a", 90));
    hand.record(Event::ModelCalled {
        model: "first".into(),
        attempt: 1,
        tool_access: toolgate_core::run::ToolAccess::Enabled,
    });
    assert!(hand.run.out_of_room(&cut).is_some());
}

#[test]
fn a_message_during_a_compaction_is_read_after_the_summary() {
    let mut hand = Hand::with(at(Some(50), 0)).model_says(calling("a", 90));
    start(&mut hand);
    hand.record(Event::MessageAdded { message: Message::user("hurry") });
    let usage = Usage::default();
    hand.record(Event::CompactionCompleted { summary: "read a".into(), usage, model: "first".into() });
    assert_eq!(hand.last_lines().last().map(String::as_str), Some("hurry"));
    assert_eq!(hand.run.conversation().last().map(|message| lines(message)).unwrap().last().unwrap(), "hurry");
}

/// A run for a compaction alone, after a conversation with one call.
fn alone(keep_tokens: u64) -> Hand {
    let mut first = Arc::unwrap_or_clone(started(at(None, keep_tokens)));
    (first.trigger, first.input) = (Trigger::Compaction, Message::user(""));
    first.predecessor = Some(predecessor(4));
    let run = Run::begin(first.clone().into());
    Hand { run, journal: vec![Event::Started(first.into())] }.settled()
}

#[test]
fn a_run_for_a_compaction_ends_with_the_summary() {
    let mut hand = alone(0);
    complete(&mut hand, "they asked, and it was done");
    let hand = hand.settled();
    let Some(Ending::Completed { output }) = hand.run.ending() else { panic!("{:?}", hand.run.ending()) };
    assert_eq!(output.text, "they asked, and it was done");
    let segment = Segment::from_journal(&hand.journal).unwrap().unwrap();
    assert_eq!(segment.messages, []);
    assert_eq!(all_lines(&segment.compacted.unwrap().messages).len(), 1);
}

#[test]
fn a_run_for_a_compaction_with_nothing_to_replace_ends_without_a_summary() {
    let hand = alone(1000);
    assert_eq!(hand.run.ending(), Some(&Ending::Completed { output: Default::default() }));
}

#[test]
fn a_run_for_a_compaction_that_fails_fails() {
    let mut hand = alone(0);
    start(&mut hand);
    let error = Failure::new(ErrorCode::ProviderUnavailable, "down");
    hand.record(Event::CompactionFailed { error: error.clone(), usage: Usage::default() });
    assert_eq!(hand.settled().run.ending(), Some(&Ending::Failed { error }));
}

#[test]
fn messages_from_before_the_run_that_are_kept_are_read_by_later_runs() {
    let prior = Segment::join([Segment {
        messages: predecessor(4).conversation.unwrap().messages.clone(),
        ..Segment::default()
    }]);
    let mut hand = alone(3);
    complete(&mut hand, "they asked");
    let segment = Segment::from_journal(&hand.settled().journal).unwrap().unwrap();
    assert_eq!(segment.compacted.as_ref().unwrap().keeps, 1);
    let conversation = Segment::join([prior.clone(), segment]);
    assert_eq!(conversation.messages, prior.messages);
    let frame = "[toolgate] Summary of the earlier conversation, written by a model:\nthey asked";
    assert_eq!(all_lines(conversation.read_by_models()), [vec![frame.to_owned()], vec!["done before".to_owned()]]);
    assert_eq!(continued(conversation.clone()), conversation.read_by_models());
}

#[test]
fn a_plain_conversation_is_measured_by_its_last_reply() {
    let hand = Hand::with(at(Some(1000), 0)).model_says(replied("done", 7));
    assert_eq!(Segment::from_journal(&hand.journal).unwrap().unwrap().tokens, Some(8));
}
