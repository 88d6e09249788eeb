//! `toolgate runs feedback`, `runs dataset`, and feedback in `runs show` and at a collector.

use serde_json::{Value, json};

use super::desk::{Desk, Ended, person, steady};
use super::span_marks::{environment, list, spans_received};
use crate::telemetry::receiver::Receiver;

const TURNS: &str = "
turns:
  - usage: { input_tokens: 100, output_tokens: 20 }
    calls:
      - { id: orders, name: mcp_shop_list_orders, arguments: { customer_id: C-1001 } }
      - { id: fly, name: mcp_shop_fly, arguments: { password: hunter2hunter2 } }
  - { say: The password hunter2hunter2 is wrong. }
  - { say: Again. }
";

fn ended() -> Desk {
    let desk = Desk::playing(TURNS);
    desk.toolgate(&["run", "Sort it out"]).expect(0);
    desk
}

#[test]
fn show_lists_the_feedback_on_a_run() {
    let desk = ended();
    let give = ["runs", "feedback", "last", "--name", "quality"];
    let first = desk.toolgate(&[&give[..], &["--score", "-0.5", "--label", "fair"]].concat()).expect(0);
    assert_eq!(steady(&first.out), "feedback on RUN\n  quality  -0.5, fair  by PERSON (a person)\n");
    desk.toolgate(&[&give[..], &["--score", "0.8", "--comment", "Right order\nToo long"]].concat()).expect(0);
    let span = &desk.toolgate(&["runs", "trace", "last", "--json"]).json_lines()[0]["id"];
    let span = span.as_str().unwrap();
    desk.toolgate(&["runs", "feedback", "last", "--name", "fast", "--label", "yes", "--span", span]).expect(0);

    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0);
    let (_, feedback) = shown.out.split_once("\nfeedback\n").unwrap();
    let lines = [
        "  quality  0.8  by PERSON (a person)".to_owned(),
        "    | Right order".to_owned(),
        "    | Too long".to_owned(),
        format!("  fast  yes  by PERSON (a person), on span {span}"),
    ];
    assert_eq!(feedback.replace(&person(), "PERSON").lines().collect::<Vec<_>>(), lines);
    let report: Value = serde_json::from_str(&desk.toolgate(&["runs", "show", "last", "--json"]).out).unwrap();
    assert_eq!((&report["feedback"][0]["score"], &report["feedback"][1]["span_id"]), (&json!(0.8), &json!(span)));
}

#[test]
fn invalid_feedback_is_refused() {
    let desk = ended();
    for (flags, message) in [
        (vec!["--name", "quality"], "give a score, a label or a comment"),
        (vec!["--name", "two words", "--score", "1"], "letters, digits"),
        (vec!["--name", "quality", "--score", "nan"], "a finite number"),
        (vec!["--name", "quality", "--score", "1", "--span", "0123456789abcdef"], "has no span `0123456789abcdef`"),
        (vec!["--name", "quality", "--score", "1", "--span", "xyz"], "16 lower-case hex digits"),
    ] {
        let refused = desk.toolgate(&[&["runs", "feedback", "last"], &flags[..]].concat());
        assert!(refused.code != 0 && refused.err.contains(message), "{flags:?}: {}", refused.err);
    }
}

#[test]
fn a_dataset_has_a_line_for_each_selected_run() {
    let desk = ended();
    desk.toolgate(&["runs", "feedback", "last", "--name", "quality", "--score", "0.8"]).expect(0);
    let session = desk.toolgate(&["runs", "list", "--json"]).json_lines()[0]["session_id"].as_str().unwrap().to_owned();
    desk.toolgate(&["run", "--session", &session, "And now?"]).expect(0);

    let rows = desk.toolgate(&["runs", "dataset"]).expect(0).json_lines();
    let [second, first] = rows.as_slice() else { panic!("{rows:?}") };

    let text = |text: &str| json!([{"type": "text", "text": text}]);
    assert_eq!(first["input"], json!([{"role": "user", "content": text("Sort it out")}]));
    assert_eq!((&first["agent"], &first["status"]), (&json!("desk"), &json!("completed")));
    let tools = list(first, "tools");
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"mcp_shop_list_orders") && names.contains(&"ext_issue_refund"), "{names:?}");
    assert_eq!(first["tools"][0]["input_schema"]["type"], "object");
    let calls = &first["tool_calls"];
    assert_eq!((&calls[0]["id"], &calls[0]["is_error"]), (&json!("orders"), &json!(false)));
    assert!(calls[0]["result"][0]["text"].as_str().unwrap().contains("A-1041"), "{calls}");
    assert_eq!((&calls[1]["name"], &calls[1]["is_error"]), (&json!("mcp_shop_fly"), &json!(true)));
    assert_eq!(calls[1]["arguments"], json!({"password": "__REDACTED__"}));
    assert_eq!(first["output"]["text"], "The password __REDACTED__ is wrong.");
    assert_eq!((&first["feedback"][0]["name"], &first["feedback"][0]["score"]), (&json!("quality"), &json!(0.8)));
    assert_eq!(first["usage"]["input_tokens"], 100);

    assert_eq!(list(second, "input").len(), 5, "with the conversation of the run before: {second}");
    assert_eq!((&second["tool_calls"], &second["feedback"]), (&json!([]), &json!([])));
    let some = desk.toolgate(&["runs", "dataset", "--limit", "1"]).expect(0).json_lines();
    assert_eq!(some, std::slice::from_ref(second));
    assert_eq!(desk.toolgate(&["runs", "dataset", "--status", "failed"]).expect(0).out, "");
}

#[test]
fn feedback_reaches_the_collector_below_the_root_and_once() {
    let (receiver, desk) = (Receiver::start(), Desk::playing(TURNS));
    let ran = |arguments: &[&str]| {
        Ended::from(desk.command(arguments).envs(environment(&receiver.url())).output().unwrap()).expect(0)
    };
    let evaluators = || {
        let received = spans_received(&receiver);
        received.into_iter().filter(|span| span["name"] == "feedback quality").collect::<Vec<_>>()
    };
    ran(&["run", "Sort it out"]);
    let before = spans_received(&receiver).len();
    let give = ["runs", "feedback", "last", "--name", "quality", "--score", "1"];
    (0..2).for_each(|_| drop(ran(&give)));
    let sent = evaluators();
    let [span] = sent.as_slice() else { panic!("{sent:?}") };
    let received = spans_received(&receiver);
    let root = received.iter().find(|span| span["name"] == "invoke_agent desk").unwrap();
    assert_eq!((&span["traceId"], &span["parentSpanId"]), (&root["traceId"], &root["spanId"]));
    assert_eq!(span["endTimeUnixNano"], root["endTimeUnixNano"]);
    assert_eq!(received.len(), before + 1, "feedback sends nothing else again");

    ran(&["runs", "trace", "last", "--send", "--all"]);
    let ids: Vec<Value> = evaluators().iter().map(|span| span["spanId"].clone()).collect();
    assert_eq!(ids, [span["spanId"].clone(), span["spanId"].clone()]);
}

#[test]
fn feedback_on_a_run_that_is_not_sampled_is_not_exported() {
    let (receiver, desk) = (Receiver::start(), Desk::playing(TURNS));
    let ran = |arguments: &[&str]| {
        let mut command = desk.command(arguments);
        command.envs(environment(&receiver.url())).env("OTEL_TRACES_SAMPLER", "always_off");
        Ended::from(command.output().unwrap()).expect(0)
    };
    ran(&["run", "Sort it out"]);
    ran(&["runs", "feedback", "last", "--name", "quality", "--score", "1"]);
    assert_eq!(spans_received(&receiver), [Value::Null; 0]);
}
