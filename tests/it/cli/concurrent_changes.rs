//! Changes between question and answer: an edited policy file, another active process, and calls that are approved,
//! denied or changed.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::desk::Desk;
use super::suspended_calls::fault_server;

const NOTE: &str = "
turns:
  - { calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }] }
  - { say: '{{last_result}}' }
";
const ASKED: &str = "name: mine\ndefault: allow\nrules:\n  - { id: notes, match: { tool_name: add_note }, verdict: ask, reason: A customer reads it. }\n";

/// A desk with its policy in a separate file.
fn ruled_by(policy: &str, turns: &str) -> Desk {
    let desk = Desk::playing(turns);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let config = config.replace("policy: accept-edits", "policy: mine");
    desk.write("toolgate.yaml", &format!("policies: {{ mine: mine.yaml }}\n{config}"));
    desk.write("mine.yaml", policy);
    desk
}

fn facts(desk: &Desk, kind: &str) -> Vec<Value> {
    desk.journal("last").into_iter().filter(|fact| fact["type"] == kind).collect()
}

#[test]
fn an_edited_policy_is_evaluated_again_before_an_approved_call() {
    let edits = [
        ("a remark", format!("# reviewed\n{ASKED}"), 0, "noted; Ada Lindqvist"),
        ("allowed", ASKED.replace("verdict: ask", "verdict: allow"), 0, "noted; Ada Lindqvist"),
        ("denied", ASKED.replace("verdict: ask", "verdict: deny"), 0, "A customer reads it."),
        ("another reason", ASKED.replace("A customer reads it", "The shop is closed"), 8, ""),
    ];
    for (edit, edited, code, told) in edits {
        let desk = ruled_by(ASKED, NOTE);
        desk.toolgate(&["run", "Sort it out"]).expect(10);
        desk.write("mine.yaml", &edited);

        let ended = desk.toolgate(&["approvals", "approve", "last", "note"]).expect(code);

        assert!(ended.out.contains(told), "{edit}: {}", ended.out);
        let has_run = !facts(&desk, "tool.started").is_empty();
        assert_eq!(has_run, told.starts_with("noted"), "{edit}: {}", ended.err);
        if code == 8 {
            assert!(ended.err.contains("changed since it was cleared: policy"), "{edit}: {}", ended.err);
            let again = desk.toolgate(&["approvals", "list"]).expect(0).out;
            assert!(again.contains("because: The shop is closed"), "{edit}: {again}");
            desk.toolgate(&["approvals", "approve", "last", "note"]).expect(0);
        }
    }
}

#[test]
fn an_edit_approved_again_is_suggested_with_the_edited_arguments() {
    let desk = ruled_by(ASKED, NOTE);
    desk.toolgate(&["run", "Sort it out"]).expect(10);
    desk.write("mine.yaml", &ASKED.replace("A customer reads it", "The shop is closed"));
    let edit = r#"{"customer_id": "C-1001", "text": "lost"}"#;
    desk.toolgate(&["approvals", "approve", "last", "note", "--edit", edit]).expect(8);
    desk.toolgate(&["approvals", "approve", "last", "note"]).expect(0);

    let suggested = desk.toolgate(&["approvals", "suggest", "--at-least", "1", "--json"]).expect(0).json_lines();
    let when = suggested[0]["rule"]["when"].as_str().unwrap();
    assert!(when.contains("lost") && !when.contains("late"), "{when}");
}

#[test]
fn a_broken_policy_file_rejects_the_answer_and_keeps_the_run() {
    let desk = ruled_by(ASKED, NOTE);
    desk.toolgate(&["run", "Sort it out"]).expect(10);
    let before = desk.journal("last").len();
    let approve = ["approvals", "approve", "last", "note"];

    desk.write("mine.yaml", &ASKED.replace("verdict: ask", "verdict: perhaps"));
    let broken = desk.toolgate(&approve).expect(2);
    assert!(broken.err.contains("mine.yaml:4:") && broken.err.contains("perhaps"), "{}", broken.err);
    std::fs::remove_file(desk.path().join("mine.yaml")).unwrap();
    let gone = desk.toolgate(&approve).expect(2);
    assert!(gone.err.contains("mine.yaml"), "{}", gone.err);

    desk.write("mine.yaml", ASKED);
    assert_eq!(desk.journal("last").len(), before);
    desk.toolgate(&approve).expect(0);
}

#[test]
fn the_active_process_uses_a_decision_from_another_one() {
    let desk = Desk::playing(
        "
turns:
  - calls:
      - { id: slow, name: mcp_odd_slow, arguments: { ms: 4000 } }
      - { id: echo, name: mcp_odd_echo, arguments: { text: hi } }
  - { say: '{{last_result}}' }
",
    );
    let may_wait = json!({"id": "slow", "match": {"server": "odd", "tool_name": "slow"}, "verdict": "allow", "reason": "It waits."});
    let server = json!({"command": fault_server(), "args": ["--stdio"]});
    let config = json!({
        "models": {"played": {"scripted": {"file": "conversation.yaml"}}},
        "servers": {"odd": {"stdio": server}},
        "agents": {"desk": {"servers": ["odd"], "policy": {"default": "ask", "rules": [may_wait]}}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    let driver = desk.command(&["run", "Go"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(30);
    while facts(&desk, "tool.started").is_empty() {
        assert!(Instant::now() < patience, "the slow call did not begin");
    }

    desk.toolgate(&["approvals", "approve", "last", "echo", "--by", "ann"]).expect(0);

    let driven = driver.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&driven.stdout), "hi\n");
    let kinds: Vec<Value> = desk.journal("last").into_iter().map(|fact| fact["type"].clone()).collect();
    let place = |kind: &str, nth: usize| kinds.iter().enumerate().filter(|(_, k)| *k == kind).nth(nth).unwrap().0;
    assert!(place("approval.decided", 0) < place("tool.completed", 0), "it was given during the slow call: {kinds:?}");
    assert!(place("tool.started", 1) < place("tool.completed", 0), "it began during the slow call: {kinds:?}");
    assert!(!kinds.contains(&json!("execution.pending")), "nothing was handed from one to the other: {kinds:?}");
}

#[test]
fn backtest_separates_approved_denied_changed_and_unanswered() {
    let note =
        |id: &str| format!("{{ id: {id}, name: mcp_shop_add_note, arguments: {{ customer_id: C-1001, text: {id} }} }}");
    let turns = format!(
        "turns:\n  - {{ calls: [{}] }}\n  - {{ calls: [{}] }}\n  - {{ say: done }}\n",
        note("first"),
        note("second")
    );
    let desk = ruled_by(ASKED, &turns);
    // Approved: the second call of a session whose first call was approved for the session.
    desk.toolgate(&["run", "--session", "s", "Go"]).expect(10);
    desk.toolgate(&["approvals", "approve", "last", "first", "--scope", "session", "--match", "tool"]).expect(0);
    // Denied: the first call of another session. The second is pending.
    desk.toolgate(&["run", "Go"]).expect(10);
    desk.toolgate(&["approvals", "deny", "last", "first"]).expect(10);
    // Changed: approved, and pending again because the policy requires approval for another reason.
    desk.toolgate(&["run", "Go"]).expect(10);
    desk.write("mine.yaml", &ASKED.replace("A customer reads it", "The shop is closed"));
    desk.toolgate(&["approvals", "approve", "last", "first"]).expect(8);

    desk.write("strict.yaml", &ASKED.replace("verdict: ask", "verdict: deny"));
    let told = desk.toolgate(&["policy", "backtest", "strict.yaml", "--json"]).expect(0);

    let told: Value = serde_json::from_str(&told.out).unwrap();
    let mut became: Vec<(String, String)> = told["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| (call["call_id"].as_str().unwrap().to_owned(), call["then"]["became"].as_str().unwrap().to_owned()))
        .collect();
    became.sort();
    let expected = [
        ("first", "approved"),
        ("first", "refused"),
        ("first", "unanswered"),
        ("second", "granted"),
        ("second", "unanswered"),
    ];
    assert_eq!(became, expected.map(|(call, became)| (call.to_owned(), became.to_owned())));
    assert_eq!((&told["judged"], &told["changed"]), (&json!(5), &json!(5)));
}
