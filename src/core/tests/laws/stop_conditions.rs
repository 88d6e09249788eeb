//! Stop conditions (row 4.10): `finish_with` and `stop_when`.

use std::sync::Arc;

use toolgate_core::chat::Reply;
use toolgate_core::error::ErrorCode;
use toolgate_core::policy::StopCondition;
use toolgate_core::run::{Ending, Event, Input, Limits, Resume, RunRules, Spec, Status, Step, ToolAccess};
use toolgate_core::tool::{Outcome, ToolOutput};

use crate::fixtures::{call, problem, spec, stop_when};
use crate::manual_driver::Hand;

const STOPPED: &str =
    "[toolgate] The stop condition of this run holds: no more tools will be run. Answer now with what you have.";

fn finishing() -> Spec {
    Spec {
        rules: RunRules { finish_with: vec!["mcp_files_re*".into(), "ext_order".into()], ..RunRules::default() },
        ..spec(Limits::default())
    }
}

fn stopping(condition: &str) -> Hand {
    Hand::with(Spec {
        rules: RunRules { stop_when: Some(stop_when(condition)), ..RunRules::default() },
        ..spec(Limits::default())
    })
}

fn answer(hand: &Hand) -> &str {
    match hand.run.ending() {
        Some(Ending::Completed { output }) => &output.text,
        other => panic!("{other:?}"),
    }
}

fn access(hand: &Hand) -> ToolAccess {
    match hand.run.next() {
        Step::CallModel { tool_access, .. } => tool_access,
        other => panic!("{other:?}"),
    }
}

#[test]
fn row_4_10_the_result_of_a_finishing_tool_is_the_answer() {
    let hand = Hand::with(finishing()).model_calls([call("a", "mcp_files_write")]);
    assert_eq!(hand.status(), Status::Running, "another tool");
    let hand = hand.model_calls([call("b", "mcp_files_write"), call("c", "mcp_files_read")]);
    assert_eq!(answer(&hand), "result of mcp_files_read");
    let hand = Hand::with(finishing()).model_calls([call("a", "ext_order")]).resumed_with("a", "order 7");
    assert_eq!(answer(&hand), "order 7");
}

#[test]
fn row_4_10_an_error_of_a_finishing_tool_continues_the_run() {
    let failed = Outcome::Returned(ToolOutput::error("no such order"));
    let hand = Hand::with(finishing()).model_calls([call("a", "ext_order")]);
    let hand = hand.given(Input::Resume(Resume::default().with("a", failed)));
    assert_eq!(access(&hand), ToolAccess::Enabled);
    let hand = Hand::with(finishing()).model_calls([call("a", "ext_order")]).resumed_with("a", " ");
    assert_eq!(access(&hand), ToolAccess::Enabled, "a blank result is no answer");
}

#[test]
fn row_4_10_an_invalid_result_of_a_finishing_tool_is_corrected() {
    let hand = Hand::with(Spec { rules: RunRules { validate_output: true, ..finishing().rules }, ..finishing() })
        .model_calls([call("a", "mcp_files_read")]);
    let hand = hand.finds_the_answer(&[problem()]);
    assert_eq!((hand.status(), hand.run.budget().corrections), (Status::Running, 1));
    let hand = hand.model_calls([call("b", "mcp_files_read")]).finds_the_answer(&[]);
    assert_eq!(answer(&hand), "result of mcp_files_read");
}

#[test]
fn row_4_10_a_message_that_was_added_meanwhile_continues_the_run() {
    let hand = Hand::with(finishing()).model_calls([call("a", "ext_order")]);
    let hand = hand.given(Input::Message(toolgate_core::chat::Message::user("and this"))).resumed_with("a", "order 7");
    assert_eq!(access(&hand), ToolAccess::Enabled);
}

#[test]
fn row_4_10_the_model_answers_without_tools_once_the_condition_holds() {
    for condition in [
        "run.turns >= 2",
        "run.tool_interactions == 2 && run.mcp_calls == 2",
        "run.calls.exists(c, c.tool == 'mcp_files_write' && !c.is_error && c.text.contains('result'))",
        "size(run.calls) == 1 && run.calls[0].arguments.of == 'b' && run.turns > 1",
    ] {
        let hand = stopping(condition).model_calls([call("a", "mcp_files_read")]);
        assert_eq!(access(&hand), ToolAccess::Enabled, "{condition}");
        let hand = hand.model_calls([call("b", "mcp_files_write")]);
        assert_eq!(access(&hand), ToolAccess::Stopped, "{condition}");
        assert_eq!(hand.last_lines().last().map(String::as_str), Some(STOPPED));
        assert_eq!(answer(&hand.model_says(Reply::text("Done."))), "Done.");
    }
}

#[test]
fn row_4_10_a_condition_without_a_value_fails_the_run() {
    let hand = stopping("run.calls[0].structured.done").model_calls([call("a", "mcp_files_read")]);
    let Some(Ending::Failed { error }) = hand.run.ending() else { panic!("{:?}", hand.run.ending()) };
    assert_eq!(error.code, ErrorCode::Validation);
    let expected = "`stop_when` of agent `tester` cannot be evaluated: there is no `structured`; `has(…)` asks for what may be \
                    missing";
    assert_eq!(error.message, expected);
}

#[test]
fn a_stop_condition_reads_the_run_alone_and_is_journaled_as_text() {
    for (wrong, expected) in
        [("args.amount > 1", "there is no `args`; there is `run`"), ("run.turns", ""), ("run.turns >", "column 12: ")]
    {
        match StopCondition::parse(wrong) {
            Ok(_) => assert_eq!(expected, "", "{wrong}"),
            Err(error) => assert!(error.to_string().starts_with(expected), "{error}"),
        }
    }
    assert!(StopCondition::parse("run").unwrap_err().to_string().starts_with("it gives a mapping"));
    let started = crate::fixtures::started(Spec {
        rules: RunRules { stop_when: Some(stop_when("run.turns > 1")), ..finishing().rules },
        ..finishing()
    });
    let text = serde_json::to_value(Event::Started(Arc::clone(&started))).unwrap();
    assert_eq!(text["spec"]["stop_when"], "run.turns > 1");
    assert_eq!(serde_json::from_value::<Event>(text).unwrap(), Event::Started(started));
}
