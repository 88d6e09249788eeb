//! Laws of envelopes.

use std::sync::OnceLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate::core::run::{AnswerForm, Channel, HumanAnswer, PendingItem, Status};
use toolgate::core::tool::{AskHuman, Choice};
use toolgate::runner::envelope::{Envelope, EnvelopeKeys};
use toolgate::runner::{Answer, Report, Resume, RunnerError};

use super::super::world::{decisions, no, said, say, yes};
use super::nodes::{PRIVATE, World, a_clerk, ed25519, keys};

/// Runs a scenario with its own paused time.
fn in_no_time<T>(scenario: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(scenario)
}

fn a_deletion() -> World {
    let deletion = json!({"calls": [{"name": "mcp_files_delete", "arguments": {"path": "a"}}]});
    World::of(a_clerk().whose_model_says(json!([deletion, say("Done.")])))
}

fn both_kinds_of_key() -> [fn() -> EnvelopeKeys; 2] {
    [|| keys(&["k1"]), || EnvelopeKeys::new("ed", [("ed".to_owned(), ed25519(PRIVATE))]).unwrap()]
}

/// An envelope of each kind of key, as text.
fn envelopes() -> &'static [String] {
    static ENVELOPES: OnceLock<Vec<String>> = OnceLock::new();
    let handed_out = |keys: fn() -> EnvelopeKeys| {
        in_no_time(async {
            let world = a_deletion();
            serde_json::to_string(&world.handed_out(&world.node(keys())).await).unwrap()
        })
    };
    ENVELOPES.get_or_init(|| both_kinds_of_key().map(handed_out).to_vec())
}

#[test]
fn the_envelopes_of_these_laws_are_taken_as_they_are() {
    for (text, keys) in envelopes().iter().zip(both_kinds_of_key()) {
        let report = in_no_time(async {
            let world = a_deletion();
            let envelope = Envelope::from_json(text.as_bytes()).unwrap();
            world.node(keys()).resume(&envelope, decisions([("call_1_1", yes())])).await
        });
        assert_eq!(report.status, Status::Completed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Whichever byte is changed, the envelope is rejected and nothing is written.
    #[test]
    fn no_byte_of_an_envelope_can_be_changed(kind in 0..2usize, at in any::<prop::sample::Index>(), change in 1..=255u8) {
        let text = &envelopes()[kind];
        let mut bytes = text.clone().into_bytes();
        *at.get_mut(&mut bytes) ^= change;
        let Ok(changed) = Envelope::from_json(&bytes) else { return Ok(()) };
        // Another spelling of the same JSON is not a change.
        prop_assume!(serde_json::to_string(&changed).unwrap() != *text);
        in_no_time(async {
            let world = a_deletion();
            let node = world.node(both_kinds_of_key()[kind]());
            let taken = node.runner.resume_from(&changed, decisions([("call_1_1", yes())])).await;
            prop_assert!(matches!(taken, Err(RunnerError::Envelope(_))), "{:?}", taken);
            prop_assert!(node.has_never_seen(&changed).await);
            prop_assert!(world.servers.calls().is_empty());
            Ok(())
        })?;
    }

    /// A run that moves between nodes without a common store ends like one that stays.
    #[test]
    fn carrying_a_run_does_not_change_how_it_ends(
        turns in prop::collection::vec(prop::collection::vec(0..4usize, 1..4), 1..4),
        answers in prop::collection::vec(any::<bool>(), 12),
    ) {
        let (stayed, carried) = in_no_time(async {
            let (one, other) = (world_of(&turns), world_of(&turns));
            (stays(&one, &answers).await, is_carried(&other, &answers).await)
        });
        prop_assert_eq!(stayed.status, Status::Completed);
        prop_assert_eq!((carried.status, said(&carried)), (stayed.status, said(&stayed)));
        prop_assert_eq!((carried.version, carried.output), (stayed.version, stayed.output));
    }
}

fn world_of(turns: &[Vec<usize>]) -> World {
    let call = |kind: &usize| match kind {
        0 => json!({"name": "ext_order", "arguments": {"item": "tea"}}),
        1 => json!({"name": "mcp_files_delete", "arguments": {"path": "a"}}),
        2 => json!({"name": "mcp_files_read", "arguments": {"path": "a"}}),
        _ => json!({"name": "ask_human", "arguments": {"question": "Which?"}}),
    };
    let turn = |kinds: &Vec<usize>| json!({"calls": kinds.iter().map(call).collect::<Vec<Value>>()});
    let script: Vec<Value> = turns.iter().map(turn).chain([say("Done.")]).collect();
    World::of(a_clerk().that(|agent| agent.rules.ask_human = Some(AskHuman::default())).whose_model_says(script.into()))
}

async fn stays(world: &World, answers: &[bool]) -> Report {
    let node = world.node(keys(&["k1"]));
    let mut report = node.runner.execute(world.request()).await.unwrap();
    while report.status == Status::Pending {
        report = node.runner.resume(&report.run_id, answered(&report.pending, answers)).await.unwrap();
    }
    report
}

async fn is_carried(world: &World, answers: &[bool]) -> Report {
    let mut node = world.node(keys(&["k1"]));
    let mut report = node.runner.execute(world.request()).await.unwrap();
    while report.status == Status::Pending {
        let envelope = super::nodes::sent(&node.runner.export(&report.run_id).await.unwrap());
        node = world.node(keys(&["k1"]));
        report = node.resume(&envelope, answered(&envelope.pending, answers)).await;
    }
    report
}

/// Answers to all pending items, which depend on the call alone.
fn answered(pending: &[PendingItem], answers: &[bool]) -> Resume {
    let mut resume = Resume::default();
    for item in pending {
        let call = item.call_id().unwrap();
        let says_yes = answers[call.as_str().bytes().map(usize::from).sum::<usize>() % answers.len()];
        match item.form() {
            AnswerForm::Result { .. } if says_yes => resume.answers.push((call.clone(), Answer::output(json!(1)))),
            AnswerForm::Result { .. } => resume.answers.push((call.clone(), Answer::error("out of tea"))),
            AnswerForm::Decision(_) if says_yes => resume.answers.push((call.clone(), yes().into())),
            AnswerForm::Decision(_) => resume.answers.push((call.clone(), no("not today").into())),
            AnswerForm::Choice(_) => {
                let choice = Choice::text(if says_yes { "this" } else { "that" });
                resume.answers.push((call.clone(), HumanAnswer { choice, by: "ann".into(), via: Channel::Api }.into()));
            }
            AnswerForm::Elicitation { .. } | AnswerForm::Background(_) | AnswerForm::Continue { .. } => {
                panic!("unexpected item: {item:?}")
            }
        }
    }
    resume
}
