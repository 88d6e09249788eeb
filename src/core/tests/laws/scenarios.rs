//! Source 002's behaviours, row by row, on the fold.

use std::sync::Arc;

use serde_json::json;
use toolgate_core::chat::{Message, Reply, Role};
use toolgate_core::id::CallId;
use toolgate_core::run::{
    Answer, Authorization, CallVerdict, Decision, DecisionKind, ElicitationAnswer, Ending, Event, Input, Limit, Limits,
    Resume, ResumeError, RunRules, Scope, Spec, Status, Step, ToolAccess,
};
use toolgate_core::tool::{
    Arguments, ElicitationRequest, ElicitationResponse, Outcome, Problem, Question, TaskHandle, TierMode, ToolCall,
};

use crate::answers::decision;
use crate::events::{asked_by_default, granted};
use crate::fixtures::{call, noon, problem, smaller_toolset, spec};
use crate::manual_driver::{Hand, lines};

const DEFERRED: &str = "deferred: calls of higher priority ran first; call again if still needed";
const EXHAUSTED: &str =
    "[toolgate] The tool budget of this run is used up: no more tools will be run. Answer now with what you have.";

fn plain() -> Spec {
    spec(Limits::default())
}

fn bounded(max_tool_interactions: u32, max_iterations: u32) -> Spec {
    spec(Limits { max_tool_interactions, max_iterations, ..Limits::default() })
}

fn validated(limits: Limits) -> Spec {
    Spec { rules: RunRules { validate_output: true, ..RunRules::default() }, ..spec(limits) }
}

#[test]
fn a_grant_does_not_outlive_its_toolset() {
    let mut hand = Hand::with(plain());
    let tool = hand.run.tools().unwrap().get("mcp_files_ask_write").unwrap().clone();
    let name = tool.name.clone();
    hand.record(Event::ApprovalsResolved { granted: vec![granted(name)].into() });
    let (arguments, judged) = (Arguments::from_value(json!({})), asked_by_default(&tool));
    assert!(hand.run.granted(&tool, &arguments, noon(), &judged).is_some());
    hand.record(Event::ToolsListed { toolset: smaller_toolset() });
    assert!(hand.run.granted(&tool, &arguments, noon(), &judged).is_none());
}

#[test]
fn a_second_approval_with_other_content_is_refused() {
    let approval = |decision: Decision| Input::Resume(Resume::default().with("a", decision).partial());
    let yes = || decision(DecisionKind::Approve);
    let hand = Hand::with(plain()).model_calls([call("a", "ext_ask_order"), call("b", "ext_order")]);
    assert_eq!(hand.pending().len(), 2);
    let hand = hand.given(approval(yes()));
    let edited = Arguments::from_value(json!({"amount": 1}));
    for other in [
        Decision { edited_arguments: Some(edited), ..yes() },
        Decision { scope: Scope::Session, ..yes() },
        decision(DecisionKind::Deny),
    ] {
        // The call waits for its result: a decision is of the wrong kind, or late, and either way refused.
        assert!(hand.run.accept(&approval(other)).is_err());
    }
}

#[test]
fn an_id_that_would_disturb_a_terminal_or_log_is_replaced() {
    let long = "x".repeat(300);
    let longest = "y".repeat(256);
    let ids = ["a\u{1b}[2J", long.as_str(), longest.as_str(), "call-\u{e9}"];
    let reply = Reply::calling(ids.map(|id| call(id, "ext_order")));
    // The id occurs twice: a usable id that is taken gets a suffix, however long it is.
    let hand = Hand::with(plain()).model_says(reply.clone());
    let given: Vec<String> = hand.pending().into_iter().collect();
    assert_eq!(given.len(), 4, "{given:?}");
    let ids = |reply: &Reply| reply.calls().map(|call| call.id.to_string()).collect::<Vec<_>>();
    assert_eq!(
        ids(&Hand::with(plain()).run.with_unique_ids(reply.clone())),
        ["call_1_0", "call_1_1", &longest, "call-\u{e9}"]
    );
    let again = ids(&hand.run.with_unique_ids(reply));
    assert_eq!(again.len(), 4);
    assert!(again[2].starts_with(&longest) && again[2] != longest, "{again:?}");
}

#[test]
fn a_result_nested_too_deep_to_be_read_back_is_refused() {
    let hand = Hand::with(plain()).model_calls([call("b", "ext_order")]);
    let result = |levels: usize| {
        let value = (0..levels).fold(json!(1), |inner, _| json!([inner]));
        hand.run.accept(&Input::Resume(Resume::default().with("b", Answer::output(value))))
    };
    assert!(result(100).is_ok());
    assert!(matches!(result(101).unwrap_err().as_slice(), [ResumeError::Invalid { .. }]));
}

fn malformed(id: &str, name: &str) -> ToolCall {
    ToolCall { id: CallId::from(id), name: name.into(), arguments: Arguments::Malformed("{\"half\":".into()) }
}

fn offered(hand: &Hand) -> ToolAccess {
    let Step::CallModel { tool_access, .. } = hand.run.next() else {
        panic!("the model is not called: {:?}", hand.run.next())
    };
    tool_access
}

#[test]
fn row_2_23_only_the_calls_of_the_highest_priority_run() {
    let hand = Hand::with(plain()).model_calls([
        call("low", "mcp_files_low_sync"),
        call("first", "mcp_files_first_read"),
        call("plain", "mcp_files_read"),
        call("also_first", "mcp_web_first_post"),
    ]);
    assert_eq!(hand.started_calls(), ["first", "also_first"]);
    let expected = [
        format!("error low: {DEFERRED}"),
        "result first: result of mcp_files_first_read".into(),
        format!("error plain: {DEFERRED}"),
        "result also_first: result of mcp_web_first_post".into(),
    ];
    assert_eq!(hand.last_lines(), expected);
}

#[test]
fn row_2_23_sequential_tiers_run_before_the_next_model_call() {
    let spec = Spec { rules: RunRules { tiers: TierMode::Sequential, ..RunRules::default() }, ..plain() };
    let hand = Hand::with(spec).model_calls([
        call("low", "mcp_files_low_sync"),
        call("first", "mcp_files_first_read"),
        call("plain", "mcp_files_read"),
    ]);
    assert_eq!(hand.started_calls(), ["first", "plain", "low"]);
    assert_eq!(hand.run.budget().tool_interactions, 1);
    assert_eq!(offered(&hand), ToolAccess::Enabled);
}

#[test]
fn row_2_28_mcp_calls_finish_before_external_ones_are_pending() {
    let hand = Hand::with(plain()).model_calls([call("ours", "ext_order"), call("theirs", "mcp_files_read")]);
    assert_eq!(hand.status(), Status::Pending);
    assert_eq!(hand.pending(), ["external_result ours"]);
    let shown = hand.run.messages();
    assert_eq!(lines(shown.last().unwrap()), ["result theirs: result of mcp_files_read"]);
    let hand = hand.resumed_with("ours", "shipped");
    assert_eq!(hand.last_lines(), ["result ours: shipped", "result theirs: result of mcp_files_read"]);
}

#[test]
fn rows_2_29_and_2_30_an_invalid_external_call_never_becomes_pending() {
    let hand = Hand::with(plain()).model_calls([malformed("wrong", "ext_order"), call("right", "ext_order")]);
    assert_eq!(hand.pending(), ["external_result right"]);
    let hand = hand.resumed_with("right", "shipped");
    assert!(hand.last_lines()[0].starts_with("error wrong: Invalid arguments:"), "{:?}", hand.last_lines());
    assert_eq!(offered(&hand), ToolAccess::Enabled);
}

#[test]
fn rows_2_31_and_2_34_a_rejected_answer_yields_structured_feedback() {
    let hand = Hand::with(validated(Limits::default())).model_says(Reply::text("bad")).finds_the_answer(&[problem()]);
    let last = hand.run.transcript().last().unwrap();
    assert_eq!(last.role, Role::User);
    let text = last.text();
    let (_, feedback) = text.split_once('\n').unwrap();
    let feedback: serde_json::Value = serde_json::from_str(feedback).unwrap();
    let expected = json!({"path": "/n", "rule": "type", "message": "not a number", "received": null});
    assert_eq!(feedback, json!({"problems": [expected]}));
    let hand = hand.model_says(Reply::text("good")).finds_the_answer(&[]);
    assert_eq!(hand.status(), Status::Completed);
}

#[test]
fn row_2_32_a_rejected_answer_costs_budget() {
    let hand = Hand::with(validated(Limits::default())).model_says(Reply::text("bad")).finds_the_answer(&[problem()]);
    assert_eq!(hand.run.budget().tool_interactions, 1);
}

#[test]
fn row_2_33_a_turn_with_three_calls_costs_one() {
    let calls = [call("a", "mcp_files_read"), call("b", "mcp_files_read"), call("c", "mcp_files_write")];
    let hand = Hand::with(plain()).model_calls(calls);
    assert_eq!((hand.run.budget().tool_interactions, hand.run.budget().mcp_calls), (1, 3));
}

#[test]
fn row_2_35_an_unknown_tool_is_answered_and_the_run_continues() {
    let hand = Hand::with(plain()).model_calls([call("a", "no_such_tool"), call("b", "mcp_files_read")]);
    let lines = hand.last_lines();
    assert!(lines[0].starts_with("error a: Tool does not exist: `no_such_tool`"), "{lines:?}");
    assert_eq!(lines[1], "result b: result of mcp_files_read");
    assert_eq!(offered(&hand), ToolAccess::Enabled);
}

#[test]
fn row_2_39_the_hard_limit_ends_the_run_with_one_last_answer() {
    let hand = Hand::with(bounded(30, 1)).model_calls([call("a", "mcp_files_read")]);
    assert_eq!(offered(&hand), ToolAccess::FinalAnswer);
    let hand = hand.model_says(Reply::text("so far"));
    let Some(Ending::Incomplete { limit: Limit::Iterations, output: Some(output) }) = hand.run.ending() else {
        panic!("{:?}", hand.run.ending())
    };
    assert_eq!(output.text, "so far");
    assert!(hand.run.transcript().iter().flat_map(|m| lines(m)).any(|line| line.starts_with("result a")));
}

#[test]
fn row_2_39_a_model_that_calls_tools_at_the_limit_is_not_retried() {
    let hand = Hand::with(bounded(30, 0)).model_calls([call("a", "mcp_files_read"), call("b", "no_such_tool")]);
    assert_eq!(hand.run.ending(), Some(&Ending::Incomplete { limit: Limit::Iterations, output: None }));
    assert_eq!(hand.started_calls(), Vec::<String>::new());
}

#[test]
fn row_2_40_the_number_of_tool_interactions_is_configurable() {
    for max in 1..4 {
        let mut hand = Hand::with(bounded(max, 50));
        for turn in 0..max {
            assert_eq!(offered(&hand), ToolAccess::Enabled, "turn {turn} of {max}");
            hand = hand.model_calls([call("again", "mcp_files_read")]);
        }
        assert_eq!(offered(&hand), ToolAccess::BudgetExhausted);
        assert_eq!(hand.started_calls().len(), max as usize);
    }
}

#[test]
fn the_budget_has_limits_and_usage() {
    let hand = Hand::with(bounded(2, 50)).model_calls([call("a", "mcp_files_read")]);
    let budget = hand.run.budget();
    assert_eq!((budget.limits.max_tool_interactions, budget.tool_interactions, budget.iterations), (2, 1, 1));
    assert!(!budget.is_exhausted());
}

#[test]
fn row_2_43_an_exhausted_budget_requests_a_final_answer() {
    let hand = Hand::with(bounded(1, 50)).model_calls([call("a", "mcp_files_read")]);
    assert_eq!(offered(&hand), ToolAccess::BudgetExhausted);
    let hand = hand.model_says(Reply::text("with what I have"));
    assert_eq!(hand.status(), Status::Completed);
}

#[test]
fn the_model_reads_in_every_later_turn_that_its_budget_is_exhausted() {
    let mut hand = Hand::with(bounded(1, 50)).model_calls([call("a", "mcp_files_read")]);
    assert_eq!(hand.last_lines(), ["result a: result of mcp_files_read", EXHAUSTED]);
    hand = hand.model_calls([call("b", "mcp_files_read")]);
    let lines = hand.last_lines();
    assert!(lines[0].starts_with("error b: Not run: the tool budget"), "{lines:?}");
    assert_eq!(lines[1], EXHAUSTED);
    assert_eq!(hand.started_calls(), ["a"]);
}

#[test]
fn row_2_45_a_returned_transcript_does_not_change() {
    let hand = Hand::with(validated(Limits::default()));
    let kept: Vec<Arc<Message>> = hand.run.transcript().to_vec();
    let copy: Vec<Message> = kept.iter().map(|message| Message::clone(message)).collect();
    let hand = hand.given(toolgate_core::run::Input::Message(Message::user("and this")));
    assert_eq!(hand.last_lines(), ["do it", "and this"]);
    assert_eq!(kept.iter().map(|message| Message::clone(message)).collect::<Vec<_>>(), copy);
}

#[test]
fn rows_2_46_and_2_47_results_follow_their_calls_in_call_order() {
    let hand = Hand::with(plain()).model_calls([call("a", "mcp_files_read"), call("b", "mcp_files_write")]);
    let [.., asked, answered] = hand.run.transcript() else { panic!("too short") };
    assert_eq!((asked.role, answered.role), (Role::Assistant, Role::User));
    assert_eq!(lines(asked), ["call a mcp_files_read", "call b mcp_files_write"]);
    let expected = ["result a: result of mcp_files_read", "result b: result of mcp_files_write"];
    assert_eq!(lines(answered), expected);
}

#[test]
fn row_2_48_dropped_tiers_are_not_in_history() {
    let spec = Spec { rules: RunRules { tiers: TierMode::Drop, ..RunRules::default() }, ..plain() };
    let hand = Hand::with(spec).model_calls([call("plain", "mcp_files_read"), call("first", "mcp_files_first_read")]);
    let [.., asked, answered] = hand.run.transcript() else { panic!("too short") };
    assert_eq!(lines(asked), ["call first mcp_files_first_read"]);
    assert_eq!(lines(answered), ["result first: result of mcp_files_first_read"]);
}

#[test]
fn repeated_or_missing_ids_are_made_unique() {
    let hand =
        Hand::with(plain()).model_calls([call("", "mcp_files_read"), call("x", "mcp_files_read")]).model_calls([
            call("x", "mcp_files_read"),
            call("", "mcp_files_read"),
            call("", "mcp_files_read"),
            call("x_2_0", "mcp_files_read"),
        ]);
    assert_eq!(hand.started_calls(), ["call_1_0", "x", "x_2_0", "call_2_1", "call_2_2", "x_2_0_2_3"]);
}

#[test]
fn unusable_calls_end_the_run_after_all_corrections() {
    let limits = Limits { max_corrections: 1, ..Limits::default() };
    let hand =
        Hand::with(spec(limits)).model_calls([call("a", "nope")]).model_calls([malformed("b", "mcp_files_read")]);
    assert_eq!(hand.run.ending().and_then(Ending::failure).unwrap().code.as_str(), "tool_failed");
    let limits = Limits { max_corrections: 0, ..Limits::default() };
    let hand =
        Hand::with(validated(limits)).model_says(Reply::text("bad")).finds_the_answer(&[Problem::whole("x", "y")]);
    assert_eq!(hand.run.ending().and_then(Ending::failure).unwrap().code.as_str(), "validation");
}

#[test]
fn a_task_being_answered_in_a_crash_is_polled_and_not_in_doubt() {
    let task = TaskHandle { id: "t1".into(), message: None, poll_ms: None, ttl_ms: None };
    let question = Question::Url { message: "sign here".into(), url: "https://sign.example/1".into() };
    let needed = ElicitationRequest {
        questions: [("a".to_owned(), question)].into(),
        state: None,
        task: Some(task.clone()),
        restarts: false,
        interrupted: false,
    };
    // Both a call that may be repeated and one that may not.
    for tool in ["mcp_files_write", "mcp_files_read"] {
        let mut hand = Hand::with(plain());
        let model = hand.run.candidate(noon()).clone();
        hand.record(Event::ModelCalled { model, attempt: 1, tool_access: ToolAccess::Enabled });
        hand.record(Event::ModelReplied { reply: Reply::calling([call("a", tool)]).into() });
        let Step::Record(events) = hand.run.next() else { panic!("{:?}", hand.run.next()) };
        events.into_iter().for_each(|event| hand.record(event));
        let by = Authorization::Policy { rule: None, policy: None };
        hand.record(Event::CallChecked { call: "a".into(), verdict: CallVerdict::Run { by }, advisory: Vec::new() });
        hand.record(Event::CallsStarted { calls: vec!["a".into()] });
        hand.record(Event::InputRequired { call: "a".into(), needed: needed.clone().into(), wire: None });
        let given = ElicitationAnswer {
            reactions: [("a".to_owned(), ElicitationResponse::done())].into(),
            by: "ada".into(),
            via: Default::default(),
            repeat: false,
        };
        hand.record(Event::InputGiven { call: "a".into(), given });
        hand.record(Event::CallsStarted { calls: vec!["a".into()] });

        // The process dies here.
        assert_eq!(
            hand.run.next(),
            Step::Record(vec![Event::TaskStarted { call: "a".into(), task: task.clone().into(), wire: None }]),
            "{tool}"
        );
        assert_eq!(hand.settled().pending(), ["task a"]);
    }
}

/// A call of this tool that was sent, and whose server asks on the open call.
fn held(tool: &str) -> Hand {
    let question = Question::Url { message: "sign here".into(), url: "https://sign.example/1".into() };
    let needed = ElicitationRequest {
        questions: [("a".to_owned(), question)].into(),
        state: None,
        task: None,
        restarts: true,
        interrupted: false,
    };
    let mut hand = Hand::with(plain());
    let model = hand.run.candidate(noon()).clone();
    hand.record(Event::ModelCalled { model, attempt: 1, tool_access: ToolAccess::Enabled });
    hand.record(Event::ModelReplied { reply: Reply::calling([call("a", tool)]).into() });
    let Step::Record(events) = hand.run.next() else { panic!("{:?}", hand.run.next()) };
    events.into_iter().for_each(|event| hand.record(event));
    let by = Authorization::Policy { rule: None, policy: None };
    hand.record(Event::CallChecked { call: "a".into(), verdict: CallVerdict::Run { by }, advisory: Vec::new() });
    hand.record(Event::CallsStarted { calls: vec!["a".into()] });
    hand.record(Event::InputRequested { call: "a".into(), needed: needed.into(), until: None });
    hand
}

fn signed(repeat: bool) -> ElicitationAnswer {
    ElicitationAnswer {
        reactions: [("a".to_owned(), ElicitationResponse::done())].into(),
        by: "ada".into(),
        via: Default::default(),
        repeat,
    }
}

#[test]
fn a_held_call_is_in_doubt_after_a_crash() {
    for is_answered in [false, true] {
        let mut hand = held("mcp_files_write");
        assert_eq!(hand.run.status().as_str(), "running", "a held call is running");
        if is_answered {
            hand.record(Event::InputGiven { call: "a".into(), given: signed(false) });
        }
        // The process dies here.
        let Step::Record(events) = hand.run.next() else { panic!("{:?}", hand.run.next()) };
        let [Event::CallCompleted { outcome, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(**outcome, Outcome::Unknown);
    }
}

#[test]
fn a_started_call_is_not_sent_again_without_consent() {
    let hand = held("mcp_files_write");
    let needed = hand.run.call(&"a".into()).unwrap().elicitation().unwrap().clone();
    let mut hand = hand;
    let interrupted = ElicitationRequest { interrupted: true, ..(*needed).clone() };
    hand.record(Event::InputRequired { call: "a".into(), needed: interrupted.into(), wire: None });
    assert!(hand.run.admit(&Event::InputGiven { call: "a".into(), given: signed(false) }).is_err());
    hand.record(Event::InputGiven { call: "a".into(), given: signed(true) });
    assert_eq!(hand.run.next(), Step::RunTier(vec!["a".into()]));
}
