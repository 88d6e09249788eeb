//! Prompts at the terminal that another process answers: the prompt closes, and the run resumes.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};

use super::desk::Desk;
use super::shell::Shell;
use super::suspended_calls::fault_server;

const DECIDE: &str = "[q] later: ";
const RESULT: &str = "empty leaves it pending): ";
const READY: &str = "[0] ready> ";

/// A desk whose model calls these tools of the bundled shop and of the application, and then repeats the last result.
fn calling(calls: &[&str]) -> Desk {
    Desk::playing(&format!("turns: [{{ calls: [{}] }}, {{ say: '{{{{last_result}}}}' }}]", calls.join(", ")))
}

const NOTE: &str = "{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }";
const OTHER: &str = "{ id: other, name: mcp_shop_add_note, arguments: { customer_id: C-1002, text: soon } }";
const REFUND: &str = "{ id: refund, name: ext_issue_refund, arguments: { order_id: O-1 } }";

/// A shell in which a run waits at this prompt.
fn asked(desk: &Desk, prompt: &str) -> Shell {
    let mut shell = Shell::at(desk);
    shell.runs("toolgate run Go");
    shell.sees(prompt);
    shell
}

fn facts(desk: &Desk, kind: &str) -> Vec<Value> {
    desk.journal("last").into_iter().filter(|fact| fact["type"] == kind).collect()
}

#[test]
fn an_approval_from_elsewhere_closes_the_prompt_and_resumes() {
    for (decision, told) in [("approve", "mcp_shop_add_note approved"), ("deny", "mcp_shop_add_note denied")] {
        let desk = calling(&[NOTE]);
        let mut shell = asked(&desk, DECIDE);

        desk.toolgate(&["approvals", decision, "last", "note", "--by", "ann"]).expect(0);

        shell.sees(told);
        shell.sees("by ann");
        shell.sees("completed");
        shell.sees(READY);
        shell.has_executed_everything();
        assert_eq!(facts(&desk, "approval.decided").len(), 1);
    }
}

#[test]
fn a_result_from_elsewhere_closes_its_prompt() {
    let desk = calling(&[REFUND]);
    let mut shell = asked(&desk, RESULT);

    desk.toolgate(&["resume", "last", "--result", r#"refund={"status":"refunded"}"#]).expect(0);

    shell.sees("ext_issue_refund");
    shell.sees("completed");
    shell.sees(READY);
}

#[test]
fn a_cancellation_from_elsewhere_closes_the_prompt() {
    let desk = calling(&[NOTE]);
    let mut shell = asked(&desk, DECIDE);

    desk.toolgate(&["runs", "cancel", "last"]).expect(0);

    shell.sees("cancelled");
    shell.sees("ready> ");
}

#[test]
fn earlier_answers_at_the_terminal_are_kept() {
    let desk = calling(&[NOTE, OTHER, REFUND]);
    let mut shell = asked(&desk, DECIDE);
    shell.types("a\r");
    shell.sees(DECIDE);

    desk.toolgate(&["resume", "last", "--deny", "other=too soon", "--partial"]).expect(10);

    shell.sees("denied");
    shell.sees(RESULT);
    shell.types("{\"status\": \"refunded\"}\r");
    shell.sees("completed");
    shell.sees(READY);
    let answers: Vec<(Value, Value)> = facts(&desk, "approval.decided")
        .into_iter()
        .map(|fact| (fact["call"].clone(), fact["decision"]["answer"].clone()))
        .collect();
    assert_eq!(answers, [(json!("other"), json!("deny")), (json!("note"), json!("approve"))], "the approval was held");
}

#[test]
fn an_item_that_was_answered_elsewhere_meanwhile_is_not_asked_about() {
    let desk = calling(&[NOTE, OTHER, REFUND]);
    let mut shell = asked(&desk, DECIDE);

    let denied = ["resume", "last", "--deny", "note=too soon", "--deny", "other=too soon", "--partial"];
    desk.toolgate(&denied).expect(10);

    let shown = shell.sees(RESULT);
    assert!(!shown.contains(DECIDE), "{shown}");
    shell.types("\x03");
}

#[test]
fn an_answer_from_elsewhere_reaches_the_open_call() {
    let echo = "turns: [{ calls: [{ id: echo, name: mcp_odd_echo, arguments: { text: charged } }] }, { say: '{{last_result}}' }]";
    let desk = Desk::playing(echo);
    let words = ["--stdio", "--fault", "elicits-late", "--log", "wire.jsonl"];
    let config = json!({
        "models": {"played": {"scripted": {"file": "conversation.yaml"}}},
        "servers": {"odd": {"stdio": {"command": fault_server(), "args": words}}},
        "agents": {"desk": {"servers": ["odd"], "policy": "bypass"}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    let mut shell = asked(&desk, DECIDE);

    let answer = ["approvals", "answer", "last", "echo", r#"{"name": "Ada"}"#, "--by", "ann"];
    desk.toolgate(&answer);

    shell.sees("mcp_odd_echo answered by ann");
    shell.sees("hello, Ada");
    shell.sees(READY);
    let wire = std::fs::read_to_string(desk.path().join("wire.jsonl")).unwrap();
    let calls = wire.lines().filter(|line| line.contains("\"received\"") && line.contains("\"tools/call\"")).count();
    assert_eq!(calls, 1, "{wire}");
}
