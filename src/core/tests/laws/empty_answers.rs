//! Empty answers: the model is asked once more, and the run then completes with a warning.

use proptest::prelude::*;
use toolgate_core::chat::{Media, Part, Reply, Stop};
use toolgate_core::run::{Ending, Event, Limits, OutputVerdict, Run, RunRules, RunWarning, Spec, Status, Trigger};

use crate::choices::{strictly, tapes};
use crate::fixtures::{call, spec};
use crate::manual_driver::Hand;
use crate::world::wild_journey;

const CONTINUE: &str = "[toolgate] Your last reply was empty. Continue: call the tools that you still need, or answer \
                        the user in text.";

fn within(max_corrections: u32) -> Hand {
    Hand::with(spec(Limits { max_corrections, ..Limits::default() }))
}

#[test]
fn an_empty_answer_is_corrected_once() {
    let hand = within(3).model_calls([call("a", "mcp_files_read")]).model_says(Reply::empty());
    assert_eq!(hand.last_lines().last().map(String::as_str), Some(CONTINUE));
    assert_eq!((hand.run.budget().corrections, hand.status()), (1, Status::Running));
    let hand = hand.model_says(Reply::text("Done."));
    assert_eq!((hand.status(), hand.run.warnings()), (Status::Completed, vec![]));
}

#[test]
fn a_second_empty_answer_completes_the_run_with_a_warning() {
    let hand = within(3).model_says(Reply::empty()).model_says(Reply::text(" \n"));
    assert_eq!((hand.status(), hand.run.warnings()), (Status::Completed, vec![RunWarning::EmptyAnswer]));
    assert_eq!(serde_json::to_value(hand.run.warnings()).unwrap(), serde_json::json!([{"code": "empty_answer"}]));
}

#[test]
fn an_empty_answer_after_further_calls_is_corrected_again() {
    let hand = within(3).model_says(Reply::empty()).model_calls([call("a", "mcp_files_read")]);
    let hand = hand.model_says(Reply::empty());
    assert_eq!((hand.status(), hand.run.budget().corrections), (Status::Running, 1));
}

#[test]
fn without_corrections_an_empty_answer_completes_the_run_with_a_warning() {
    let hand = within(0).model_says(Reply::empty());
    assert_eq!((hand.status(), hand.run.warnings()), (Status::Completed, vec![RunWarning::EmptyAnswer]));
}

#[test]
fn reasoning_alone_is_an_empty_answer_and_media_alone_are_not() {
    let reasoning = Reply { content: vec![Part::Reasoning { text: "hm".into() }], ..Reply::empty() };
    assert_eq!(within(3).model_says(reasoning).status(), Status::Running);
    let picture = Part::Image(Media::at("image/png", "media://sha256-00".to_owned()));
    let hand = within(3).model_says(Reply { content: vec![picture], ..Reply::empty() });
    assert_eq!((hand.status(), hand.run.warnings()), (Status::Completed, vec![]));
}

#[test]
fn a_withheld_or_cut_answer_is_no_empty_answer() {
    for stop in [Stop::Refusal, Stop::ContentFilter, Stop::MaxTokens] {
        let hand = within(3).model_says(Reply { stop, ..Reply::empty() });
        assert_eq!((hand.status(), hand.run.warnings()), (Status::Failed, vec![]), "{stop:?}");
    }
}

#[test]
fn a_validated_run_corrects_an_empty_answer_as_every_other() {
    let hand = Hand::with(Spec {
        rules: RunRules { validate_output: true, ..RunRules::default() },
        ..spec(Limits::default())
    })
    .model_says(Reply::empty());
    let hand = hand.finds_the_answer(&[crate::fixtures::problem()]).model_says(Reply::empty());
    let hand = hand.finds_the_answer(&[crate::fixtures::problem()]);
    assert_eq!((hand.status(), hand.run.budget().corrections), (Status::Running, 2));
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn no_run_completes_with_an_empty_answer_unless_the_model_was_asked_once_more(tape in tapes()) {
        let journal = wild_journey(tape);
        let run = Run::replay(&journal).unwrap().unwrap();
        let Some(Ending::Completed { output }) = run.ending() else { return Ok(()) };
        let is_compaction = run.started().trigger == Trigger::Compaction;
        if is_compaction || run.started().spec.rules.validate_output || !output.is_blank() {
            return Ok(());
        }
        prop_assert_eq!(run.warnings(), vec![RunWarning::EmptyAnswer]);
        let last = journal.iter().rev().find_map(|event| match event {
            Event::OutputValidated { verdict: OutputVerdict::Invalid { .. } } => Some(true),
            Event::CallsStarted { .. } | Event::TierSelected { .. } => Some(false),
            _ => None,
        });
        let is_used_up = run.budget().corrections >= run.budget().limits.max_corrections;
        prop_assert!(last == Some(true) || is_used_up, "completed without another question");
    }
}
