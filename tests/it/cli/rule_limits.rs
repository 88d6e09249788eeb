//! Limits of rules: calls run without approval until the sum of the window would exceed the maximum, in every process.

use serde_json::json;

use super::command_grants::SERVER;
use super::desk::Desk;

/// A desk whose model makes calls with these amounts, one in each turn. The rule allows 100 a day.
fn spending(amounts: &[u64], limit: &serde_json::Value) -> Desk {
    let call = |(index, amount): (usize, &u64)| {
        let arguments = json!({"command": "pay", "timeout": amount});
        json!({"calls": [{"id": format!("c{index}"), "name": "mcp_work_run_command", "arguments": arguments}]})
    };
    let turns: Vec<_> = amounts.iter().enumerate().map(call).chain([json!({"say": "done"})]).collect();
    let desk = Desk::playing(&json!({"turns": turns}).to_string());
    desk.write("server.py", SERVER);
    let rule = json!({
        "id": "small", "match": {"server": "work"}, "limit": limit, "verdict": "allow", "reason": "Small amounts run.",
    });
    let config = json!({
        "lease_s": 1,
        "models": {"played": {"scripted": {"file": "conversation.yaml"}}},
        "servers": {"work": {"stdio": {"command": "python3", "args": ["-B", "server.py"]}}},
        "agents": {"desk": {"servers": ["work"], "policy": {"default": "ask", "rules": [rule]}}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    desk
}

fn started(desk: &Desk) -> usize {
    desk.journal("last").iter().filter(|fact| fact["type"] == "tool.started").count()
}

#[test]
fn a_call_beyond_the_limit_requires_approval_and_says_why() {
    let desk = spending(&[60, 40, 1], &json!({"per": "month", "sum": "args.timeout", "max": 100}));
    let pending = desk.toolgate(&["run", "Pay"]).expect(10);
    let why = "rule `small` allows 100 of args.timeout a month, and has allowed 100, and this call would add 1";
    assert!(pending.err.contains(why), "{}", pending.err);
    assert_eq!(started(&desk), 2);
    desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(0);
    assert_eq!(started(&desk), 3);
}

#[test]
fn the_limit_holds_across_processes_and_what_a_person_approves_does_not_count() {
    let desk = spending(&[40], &json!({"per": "month", "sum": "args.timeout", "max": 100}));
    desk.toolgate(&["run", "Pay"]).expect(0);
    desk.toolgate(&["run", "Pay"]).expect(0);
    desk.toolgate(&["run", "Pay"]).expect(10);
    desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(0);
    desk.write(
        "conversation.yaml",
        &std::fs::read_to_string(desk.path().join("conversation.yaml")).unwrap().replace("40", "20"),
    );
    desk.toolgate(&["run", "Pay"]).expect(0);
    desk.toolgate(&["run", "Pay"]).expect(10);
}

#[test]
fn a_grant_covers_a_call_beyond_the_limit() {
    let desk = spending(&[1, 1, 1], &json!({"per": "month", "max": 1}));
    desk.toolgate(&["run", "Pay"]).expect(10);
    let scope = ["approvals", "approve", "last", "--all", "--scope", "session", "--match", "tool"];
    desk.toolgate(&scope).expect(0);
    assert_eq!(started(&desk), 3);
}

#[test]
fn faults_of_a_limit_are_shown_at_their_place() {
    for (limit, verdict, fault) in [
        (json!({"per": "day", "max": 1}), "deny", "a rule that says `deny` has no `limit`"),
        (json!({"per": "day", "max": 1.5}), "allow", "a number of calls is a whole number"),
        (json!({"per": "day", "max": -1}), "allow", "`max` is negative"),
        (json!({"per": "day", "max": 1, "sum": "amount"}), "allow", "`sum` does not name an argument"),
        (json!({"per": "week", "max": 1}), "allow", "week"),
    ] {
        let desk = Desk::empty();
        let rule = json!({
            "id": "x", "match": {"server": "work"}, "limit": limit, "verdict": verdict, "reason": "So.",
        });
        desk.write("p.yaml", &json!({"name": "p", "default": "ask", "rules": [rule]}).to_string());
        let checked = desk.toolgate(&["policy", "check", "p.yaml"]).expect(2);
        assert!(checked.err.contains(fault), "{fault}: {}", checked.err);
    }
}
