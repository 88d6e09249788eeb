//! Grants by the words of a command, given at a real terminal.
#![cfg(target_os = "linux")]

use serde_json::json;

use super::at_a_terminal::at_a_terminal;
use super::desk::Desk;

const DECIDE: &str = "[q] later: ";

/// A server with one tool, which returns the command and runs nothing.
pub(super) const SERVER: &str = r#"
import json, sys
TOOL = {"name": "run_command", "inputSchema": {"type": "object", "required": ["command"], "properties": {
    "command": {"type": "string"}, "timeout": {"type": "integer"}}}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, asked = message["method"], message.get("params", {})
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "work", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "ran " + asked["arguments"]["command"]}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// A desk whose model runs these commands, one in each turn.
fn running(commands: &[&str]) -> Desk {
    let call = |(index, command): (usize, &&str)| {
        let arguments = json!({"command": command, "timeout": index});
        json!({"calls": [{"id": format!("c{index}"), "name": "mcp_work_run_command", "arguments": arguments}]})
    };
    let turns: Vec<_> = commands.iter().enumerate().map(call).chain([json!({"say": "done"})]).collect();
    let desk = Desk::playing(&json!({"turns": turns}).to_string());
    desk.write("server.py", SERVER);
    let config = json!({
        "lease_s": 1,
        "models": {"played": {"scripted": {"file": "conversation.yaml"}}},
        "servers": {"work": {"stdio": {"command": "python3", "args": ["-B", "server.py"]}}},
        "agents": {"desk": {"servers": ["work"], "policy": {"default": "ask", "rules": []}}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    desk
}

/// The calls that a person decided about, with the decision.
fn decided(desk: &Desk) -> Vec<String> {
    let decided = desk.journal("last").into_iter().filter(|fact| fact["type"] == "approval.decided");
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    decided.map(|fact| format!("{} {}", text(&fact["call"]), text(&fact["decision"]["answer"]))).collect()
}

#[test]
fn a_command_approved_by_its_first_words_runs_later_with_others() {
    let desk = running(&["git diff HEAD", "git diff --stat", "git diff; rm -rf /", "git push"]);
    let typed = [
        (DECIDE, "l"),
        ("counted: 0 other calls of this tool in the newest 1 run of this agent", ""),
        ("2. a command `git diff …`", ""),
        ("(its number, several with commas, or a condition; empty: none): ", "2\n"),
        ("calls of this tool with a command `git diff …`", ""),
        (", and any `timeout`", ""),
        ("neither): ", "w"),
        // `git diff --stat` runs without a question.
        ("git diff; rm -rf /", ""),
        (DECIDE, "d"),
        ("why", "never\n"),
        ("git push", ""),
        (DECIDE, "d"),
        ("why", "not yet\n"),
    ];
    at_a_terminal(&desk, &["run", "Show the changes"], &typed).expect(0);
    assert_eq!(decided(&desk), ["c0 approve", "c2 deny", "c3 deny"]);
    let grants = desk.toolgate(&["approvals", "grants"]).expect(0).out;
    assert!(grants.contains("calls with a command `git diff …`"), "{grants}");

    let explain = |command: &str| {
        let arguments = json!({"command": command}).to_string();
        desk.toolgate(&["policy", "explain", "mcp_work_run_command", &arguments]).expect(0).out
    };
    let covered = explain("git diff HEAD~1");
    assert!(covered.contains("no approval is required in any session: grant grant_"), "{covered}");
    assert!(!explain("git push").contains("no approval is required"));
}

#[test]
fn a_chained_command_is_approved_by_the_words_of_its_parts_or_by_a_typed_condition() {
    let desk =
        running(&["cd app && git diff | head -3", "cd app && git log; head x", "git diff 2>&1", "FOO=1 make", "ls"]);
    let typed = [
        (DECIDE, "l"),
        ("1. the same command", ""),
        ("2. only `cd app`, `git diff …`, `head …`, in any order", ""),
        ("or a condition; empty: none): ", "2\n"),
        ("neither): ", "s"),
        ("git log; head x", ""),
        (DECIDE, "d"),
        ("why", "not the log\n"),
        // `git diff 2>&1` runs without a question.
        ("FOO=1 make", ""),
        (DECIDE, "l"),
        ("1. the same command", ""),
        ("or a condition; empty: none): ", "args.timeout <\n"),
        ("or a condition; empty: none): ", "args.timeout > 9\n"),
        ("does not hold for the call itself", ""),
        ("or a condition; empty: none): ", "args.timeout < 9\n"),
        ("calls of this tool with args.timeout < 9, and any `command`", ""),
        ("neither): ", "s"),
        ("does not compare the whole of `command`", ""),
        ("allow it: [y]es, [n]o: ", "y"),
    ];
    at_a_terminal(&desk, &["run", "Show the changes"], &typed).expect(0);
    assert_eq!(decided(&desk), ["c0 approve", "c1 deny", "c3 approve"]);
}

#[test]
fn one_key_approves_commands_with_the_same_first_words_for_the_session() {
    let desk = running(&["git diff HEAD", "git diff --stat", "git diff --output=x", "git log"]);
    let likely = "[g] allow in this session: a command `git diff …`, any description";
    let typed = [
        (likely, ""),
        (DECIDE, "b"),
        ("that key is not offered for this call", ""),
        (DECIDE, "g"),
        // `git diff --stat` runs without a question.
        ("git diff --output=x", ""),
        ("[g] allow in this session: the same command, any description", ""),
        (DECIDE, "d"),
        ("why", "\n"),
        (DECIDE, "a"),
    ];
    at_a_terminal(&desk, &["run", "Show the changes"], &typed).expect(0);
    assert_eq!(decided(&desk), ["c0 approve", "c2 deny", "c3 approve"]);
    let grants = desk.toolgate(&["approvals", "grants", "--json"]).expect(0).out.replace(r#"\""#, "\"");
    assert!(grants.contains(r#"args.all(name, name in ["command", "description", "timeout"#), "{grants}");
}

#[test]
fn one_key_for_a_program_that_prints_files_opens_no_other_folder_and_no_hidden_file() {
    let desk = running(&["cat src/x", "cat src/y 2>/dev/null", "cat .env", "cat /etc/passwd"]);
    let typed = [
        ("a command `cat …` (files of its folder)", ""),
        (DECIDE, "g"),
        // `cat src/y` runs without a question.
        ("cat .env", ""),
        (DECIDE, "d"),
        ("why", "\n"),
        ("cat /etc/passwd", ""),
        (DECIDE, "d"),
        ("why", "\n"),
    ];
    at_a_terminal(&desk, &["run", "Look"], &typed).expect(0);
    assert_eq!(decided(&desk), ["c0 approve", "c2 deny", "c3 deny"]);
}

#[test]
fn a_proposal_shows_the_past_calls_that_it_would_have_allowed() {
    let desk = running(&["git diff a", "git diff b", "git log", "git diff c", "git diff d"]);
    let decide = |key| (DECIDE, key);
    let typed = [
        decide("a"),
        decide("d"),
        ("why", "secret\n"),
        decide("a"),
        decide("l"),
        ("counted: 3 other calls of this tool in the newest 1 run of this agent", ""),
        ("2. a command `git diff …`", ""),
        ("would also have allowed 2 past calls, ", ""),
        ("1 of them refused", ""),
        ("(its number, several with commas, or a condition; empty: none): ", "\n"),
        decide("a"),
        decide("a"),
    ];
    at_a_terminal(&desk, &["run", "Show the changes"], &typed).expect(0);
    let grants = desk.toolgate(&["approvals", "grants"]).expect(0).out;
    assert!(!grants.contains("git"), "{grants}");
}

#[test]
fn a_condition_on_a_command_is_given_without_a_prompt_and_has_to_cover_the_call() {
    let desk = running(&["git diff HEAD"]);
    desk.toolgate(&["run", "Show the changes"]).expect(10);
    let approve =
        |condition| desk.toolgate(&["approvals", "approve", "last", "c0", "--scope", "always", "--when", condition]);
    let other = approve("args.commandStartsWith(['git', 'log'])").expect(1);
    assert!(other.err.contains("does not hold for the call itself"), "{}", other.err);
    approve("args.commandStartsWith(['git', 'diff'])").expect(0);
    let again = desk.toolgate(&["run", "Show the changes"]).expect(0);
    assert!(again.out.contains("done"), "{}", again.out);
}
