//! Decisions at a terminal about several calls: going back, approving all, and stopping the run.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::desk::Desk;
use super::shell::Shell;
use super::suspended_calls::fault_server;

const DECIDE: &str = "[q] later: ";

/// A desk whose model calls a tool that requires approval three times in one reply.
fn three_approvals() -> Desk {
    let calls = ["one", "two", "three"]
        .map(|id| format!("{{ id: {id}, name: mcp_shop_add_note, arguments: {{ customer_id: C-1001, text: {id} }} }}"));
    Desk::playing(&format!("turns: [{{ calls: [{}] }}, {{ say: All done. }}]", calls.join(", ")))
}

fn shell(desk: &Desk, command: &str) -> Shell {
    let mut shell = Shell::at(desk);
    shell.runs(command);
    shell
}

fn facts(desk: &Desk, kind: &str) -> Vec<Value> {
    desk.journal("last").into_iter().filter(|fact| fact["type"] == kind).collect()
}

/// The decided calls, each with the answer.
fn decided(desk: &Desk) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let decided = facts(desk, "approval.decided");
    decided.iter().map(|fact| (text(&fact["call"]), text(&fact["decision"]["answer"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(call, answer)| ((*call).to_owned(), (*answer).to_owned())).collect()
}

#[test]
fn escape_leaves_a_call_pending_and_loses_no_key() {
    let desk = three_approvals();
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees(DECIDE);
    shell.types("\x1b").sees("(2 of 3)");
    shell.sees(DECIDE);
    // The key after Esc is a key of its own.
    shell.types("d").sees("why (the model reads it): ");
    shell.types("not th\x1b").sees(DECIDE);
    shell.types("a").sees("(3 of 3)");
    shell.sees(DECIDE);
    shell.types("l").sees("none): ");
    shell.types("\x1b").sees(DECIDE);
    shell.types("a").sees("pending: the run waits for 1 answer");
    shell.sees("[10] ready> ");
    assert_eq!(decided(&desk), pairs(&[("two", "approve"), ("three", "approve")]));
}

#[test]
fn a_decision_can_be_changed_until_the_last_one() {
    let desk = three_approvals();
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    assert!(!shell.sees(DECIDE).contains("[b]ack"), "there is nothing before the first call");
    shell.types("a").sees("(2 of 3)");
    assert!(shell.sees(DECIDE).contains("[b]ack"));
    shell.types("b").sees("(1 of 3)");
    shell.sees(DECIDE);
    shell.types("d").sees("why");
    shell.types("wrong customer\r").sees("(2 of 3)");
    shell.sees(DECIDE);
    shell.types("a").sees("(3 of 3)");
    shell.sees(DECIDE);
    shell.types("a").sees("All done.");
    assert_eq!(decided(&desk), pairs(&[("one", "deny"), ("two", "approve"), ("three", "approve")]));
}

#[test]
fn all_calls_are_approved_after_they_were_shown() {
    let desk = three_approvals();
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees("[r]emaining 3,");
    shell.sees(DECIDE);
    shell.types("r");
    let shown = shell.sees("approve these 3 calls, once each: [y]es, [n]o: ");
    assert!(shown.contains("3. mcp_shop_add_note") && shown.contains("text: \"three\""), "{shown}");
    // The letters decide about the first call again, which is shown again.
    let again = shell.types("n").sees(DECIDE);
    assert!(again.contains("(1 of 3)") && again.contains("text: \"one\""), "{again}");
    shell.types("r").sees("[y]es, [n]o: ");
    shell.types("y").sees("All done.");
    assert_eq!(decided(&desk).len(), 3);
}

#[test]
fn edited_arguments_are_kept_if_the_file_changes_before_they_are_approved() {
    let arguments = "{ customer_id: C-1001, text: late, path: a.txt }";
    let call = format!("{{ id: note, name: mcp_shop_add_note, arguments: {arguments} }}");
    let desk = Desk::playing(&format!("turns: [{{ calls: [{call}] }}, {{ say: Noted. }}]"));
    desk.write("a.txt", "early");
    let mut shell = shell(&desk, "EDITOR= VISUAL= toolgate run 'Note it'");
    shell.sees(DECIDE);
    shell.types("e").sees("the arguments, as JSON");
    shell.types("\x15{\"customer_id\": \"C-1001\", \"text\": \"mine\", \"path\": \"a.txt\"}\r");
    shell.sees("[a]pprove once with these arguments");
    desk.write("a.txt", "another");
    let again = shell.types("a").sees("[a]pprove once with these arguments");
    assert!(again.contains("A file changed after it was shown") && again.contains("- another"), "{again}");
    shell.types("a").sees("Noted.");
    assert_eq!(decided_arguments(&desk), ["mine"]);
}

/// The texts of the notes that were sent with edited arguments.
fn decided_arguments(desk: &Desk) -> Vec<String> {
    let decided = desk.journal("last").into_iter().filter(|fact| fact["type"] == "approval.decided");
    let text = |fact: serde_json::Value| fact["decision"]["edited_arguments"]["text"].as_str().unwrap_or("").to_owned();
    decided.map(text).collect()
}

#[test]
fn a_file_is_compared_as_an_earlier_call_leaves_it() {
    let note = |id, path| {
        let arguments = format!("customer_id: C-1001, text: x, path: {path}");
        format!("{{ id: {id}, name: mcp_shop_add_note, arguments: {{ {arguments} }} }}")
    };
    let calls = [note("one", "sub/a.txt"), note("two", "b.txt"), note("three", "./sub/c/../a.txt")];
    let desk = Desk::playing(&format!("turns: [{{ calls: [{}] }}, {{ say: done }}]", calls.join(", ")));
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees(DECIDE);
    shell.types("a").sees(DECIDE);
    let third = shell.types("a").sees(DECIDE);
    assert!(third.contains("text: the same as the file after call 1"), "{third}");
    shell.types("b").sees(DECIDE);
    shell.types("b").sees(DECIDE);
    let all = shell.types("r").sees("[y]es, [n]o: ");
    assert!(all.contains("text: the same as the file after call 1"), "{all}");
    shell.types("n").sees(DECIDE);
    shell.types("a").sees(DECIDE);
    shell.types("a").sees(DECIDE);
    shell.types("a").sees("ready> ");
}

#[test]
fn calls_that_wait_for_something_else_are_not_approved_with_the_others() {
    let note = |id| format!("{{ id: {id}, name: mcp_shop_add_note, arguments: {{ customer_id: C-1001, text: x }} }}");
    let refund = "{ id: refund, name: ext_issue_refund, arguments: { order_id: A-1 } }";
    let turns = format!("turns: [{{ calls: [{}, {refund}, {}] }}, {{ say: done }}]", note("one"), note("two"));
    let desk = Desk::playing(&turns);
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees("[r]emaining 2,");
    shell.sees(DECIDE);
    shell.types("r").sees("[y]es, [n]o: ");
    shell.types("y").sees("waits for your application");
    shell.sees("empty leaves it pending): ");
    shell.types("\r").sees("[10] ready> ");
    assert_eq!(decided(&desk).len(), 2);
}

#[test]
fn an_approval_for_the_session_decides_the_calls_after_it() {
    let desk = three_approvals();
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees(DECIDE);
    shell.types("s");
    let shown = shell.sees("All done.");
    assert!(shown.contains("(2 of 3): approved too") && !shown.contains("May mcp_shop_add_note run?"), "{shown}");
    let reasons: Vec<Value> =
        facts(&desk, "approval.decided").iter().map(|fact| fact["decision"]["reason"].clone()).collect();
    let covered = json!("covered by the approval of one");
    assert_eq!(reasons, [Value::Null, covered.clone(), covered]);
}

#[test]
fn a_denial_can_stop_the_run_and_keeps_what_was_decided() {
    let desk = three_approvals();
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees(DECIDE);
    shell.types("a").sees("(2 of 3)");
    shell.sees(DECIDE);
    shell.types("x").sees("why (the journal keeps it");
    shell.types("wrong folder\r").sees("approved, and not sent before the run");
    shell.sees("cancelled: stopped at the terminal");
    shell.sees("[130] ready> ");
    assert_eq!(decided(&desk), pairs(&[("one", "approve"), ("two", "deny")]));
    assert_eq!(facts(&desk, "approval.decided")[1]["decision"]["reason"], "wrong folder");
    let explained = desk.toolgate(&["runs", "explain", "last"]).expect(0).out;
    assert!(explained.contains("one mcp_shop_add_note abandoned"), "{explained}");
    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0).out;
    assert!(shown.contains("no result before the run ended") && !shown.contains('◆'), "{shown}");
    assert!(shown.contains("reason: wrong folder"), "{shown}");
    shell.runs("toolgate resume last").sees("was cancelled before; an ended run is not resumed");
    shell.sees("toolgate runs retry run_");
}

#[test]
fn an_approved_call_that_the_application_got_is_not_called_unsent() {
    let desk = Desk::playing(
        "turns: [{ calls: [{ id: refund, name: ext_issue_refund, arguments: { order_id: A-1 } }] }, { say: done }]",
    );
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &format!("{config}\npolicies: {{ careful: {{ default: ask, rules: [] }} }}\n"));
    desk.toolgate(&["run", "--policy", "careful", "Refund it"]).expect(10);
    desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(10);
    let cancelled = desk.toolgate(&["runs", "cancel", "last"]).expect(0);
    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0).out;
    assert!(shown.contains("no result before the run ended") && !shown.contains("not sent"), "{shown}");
    assert!(!cancelled.err.contains("not sent"), "{}", cancelled.err);
}

#[test]
fn a_file_that_changed_after_it_was_shown_is_shown_again() {
    let desk = Desk::empty();
    let path = desk.path().join("notes.txt");
    let arguments = json!({"customer_id": "C-1001", "text": "x", "path": path, "content": "one\ntwo\n"});
    let call = json!({"id": "write", "name": "mcp_shop_add_note", "arguments": arguments});
    let desk_of = Desk::playing(&json!({"turns": [{"calls": [call]}, {"say": "All done."}]}).to_string());
    std::fs::write(&path, "one\n").unwrap();
    let mut shell = shell(&desk_of, "toolgate run 'Write it'");
    shell.sees("+ two");
    shell.sees(DECIDE);
    std::fs::write(&path, "one\nmine\n").unwrap();
    shell.types("a").sees("changed after it was shown");
    shell.sees("- mine");
    shell.sees(DECIDE);
    assert!(decided(&desk_of).is_empty());
    shell.types("a").sees("All done.");
    shell.sees("[0] ready> ");
    assert_eq!(decided(&desk_of), pairs(&[("write", "approve")]));
}

#[test]
fn a_call_is_asked_about_again_if_its_file_changed_while_others_were_decided() {
    let files = Desk::empty();
    let path = files.path().join("notes.txt");
    let write = json!({"customer_id": "C-1001", "text": "x", "path": path, "content": "one\ntwo\n"});
    let note = json!({"customer_id": "C-1001", "text": "late"});
    let call = |id: &str, arguments: &Value| json!({"id": id, "name": "mcp_shop_add_note", "arguments": arguments});
    let desk = Desk::playing(
        &json!({"turns": [{"calls": [call("write", &write), call("note", &note)]}, {"say": "All done."}]}).to_string(),
    );
    std::fs::write(&path, "one\n").unwrap();
    let mut shell = shell(&desk, "toolgate run 'Write it'");
    shell.sees("(1 of 2)");
    shell.sees(DECIDE);
    shell.types("a").sees("(2 of 2)");
    shell.sees(DECIDE);
    std::fs::write(&path, "one\nmine\n").unwrap();
    shell.types("a").sees("nothing was decided about that call");
    shell.sees("- mine");
    shell.sees(DECIDE);
    assert!(decided(&desk).is_empty());
    shell.types("d").sees("why (the model reads it): ");
    shell.types("not now\r").sees("All done.");
    assert_eq!(decided(&desk), pairs(&[("write", "deny"), ("note", "approve")]));
}

/// A desk whose model runs a command.
fn commands() -> Desk {
    let call = r#"{ id: run, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: x, command: "rm x" } }"#;
    Desk::playing(&format!("turns: [{{ calls: [{call}] }}, {{ say: done }}]"))
}

#[test]
fn any_arguments_of_a_tool_that_runs_commands_take_a_second_key() {
    let desk = commands();
    let mut shell = shell(&desk, "toolgate run 'Run it'");
    shell.sees("al[w]ays");
    shell.sees(DECIDE);
    shell.types("w").sees("whatever the model writes as `command` runs");
    shell.sees("[y]es, [n]o: ");
    shell.types("n").sees(DECIDE);
    shell.types("s").sees("in this session, with");
    shell.sees("[y]es, [n]o: ");
    shell.types("y").sees("done");
    assert_eq!(facts(&desk, "approval.decided")[0]["decision"]["scope"], "session");
}

#[test]
fn an_invalid_edit_opens_again_with_the_text_and_the_error() {
    let desk = three_approvals();
    let editor = r#"#!/bin/sh
if [ -e tries ]; then cp "$1" seen; sed -i 's/broken/{"customer_id": "C-1001", "text": "soon"}/' "$1"
else touch tries; echo broken > "$1"; fi
"#;
    desk.write("editor.sh", editor);
    let mut shell = shell(&desk, "EDITOR='sh ./editor.sh' toolgate run 'Note it'");
    shell.sees(DECIDE);
    shell.types("e").sees("a JSON object");
    shell.sees("[e]dit again, [n]o: ");
    shell.types("a");
    let shown = shell.sees("(2 of 3)");
    assert!(!shown.contains(DECIDE), "the editor opened again by itself: {shown}");
    let second = shell.sees(DECIDE);
    assert_eq!(second.matches("[a]pprove once").count(), 1, "{second}");
    shell.types("\x03").sees("pending");
    let seen = std::fs::read_to_string(desk.path().join("seen")).unwrap();
    assert!(seen.starts_with("# arguments are a JSON object") && seen.ends_with("\nbroken\n"), "{seen}");
    assert_eq!(facts(&desk, "approval.decided")[0]["decision"]["edited_arguments"]["text"], "soon");
}

#[test]
fn ctrl_c_at_a_question_keeps_the_decisions_and_starts_nothing() {
    let desk = three_approvals();
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees(DECIDE);
    shell.types("a").sees("(2 of 3)");
    shell.sees(DECIDE);
    shell.types("\x03").sees("1 decision kept; nothing starts before the run is continued");
    shell.sees("[10] ready> ");
    assert_eq!((facts(&desk, "approval.decided").len(), facts(&desk, "tool.started").len()), (1, 0));
    shell.types("toolgate resume last\r").sees("(1 of 2)");
    shell.sees(DECIDE);
    shell.types("r").sees("[y]es, [n]o: ");
    shell.types("y").sees("[0] ready> ");
    assert_eq!(facts(&desk, "tool.completed").len(), 3);
}

#[test]
fn a_message_after_ctrl_c_denies_what_still_waits() {
    let desk = three_approvals();
    let mut shell = shell(&desk, "toolgate chat");
    shell.sees("Ctrl-D leaves");
    shell.runs("Note it").sees(DECIDE);
    shell.types("a").sees("(2 of 3)");
    shell.sees(DECIDE);
    shell.types("\x03").sees("a message denies what waits for approval");
    for command in ["runs show last", "sessions list"] {
        Shell::at(&desk).runs(&format!("toolgate {command}")).sees("interrupted");
    }
    shell.sees("> ");
    shell.runs("never mind").sees("All done.");
    assert_eq!(decided(&desk), pairs(&[("one", "approve"), ("two", "deny"), ("three", "deny")]));
    assert_eq!(facts(&desk, "tool.completed").len(), 1, "what was approved runs");
}

#[test]
fn a_prompt_is_drawn_once_after_the_editor() {
    let desk = three_approvals();
    let mut shell = shell(&desk, "EDITOR=true toolgate run 'Note it'");
    shell.sees(DECIDE);
    shell.types("e").sees(DECIDE);
    // A second prompt would be on the screen before the answer to this key.
    shell.types("?");
    let shown = shell.sees("Ctrl-C leaves all");
    assert!(!shown.contains("[a]pprove once"), "{shown}");
    shell.types("\x03");
}

#[test]
fn a_command_that_asks_about_a_run_shows_its_task_and_what_the_model_says_first() {
    let call = "{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }";
    for command in ["resume last", "approvals"] {
        let desk = Desk::playing(&format!("turns: [{{ say: I note it., calls: [{call}] }}, {{ say: done }}]"));
        let piped = "toolgate run 'Note the late parcel' | cat";
        let mut shell = shell(&desk, piped);
        shell.sees("or be asked again with:");
        shell.sees("ready> ");
        shell.runs(&format!("toolgate {command}")).sees("agent desk");
        let shown = shell.sees(DECIDE);
        assert!(shown.contains("| Note the late parcel") && shown.contains("| I note it."), "{shown}");
        shell.types("a").sees("done");
    }
}

#[test]
fn the_inbox_names_the_agent_and_the_task_of_each_run() {
    let desk = three_approvals();
    desk.toolgate(&["run", "Note the late parcel"]).expect(10);
    desk.toolgate(&["run", "Note the broken cup"]).expect(10);
    let mut shell = shell(&desk, "toolgate approvals");
    shell.sees("1. shop: add_note");
    shell.sees("agent desk, ");
    shell.sees("Note the late parcel");
    shell.sees("Esc: leave): ");
    shell.types("\x1b").sees("ready> ");
    // The arrow keys choose as well as the number.
    shell.types("toolgate approvals\r").sees("\u{276f} 1. shop: add_note");
    shell.sees("Esc: leave): ");
    shell.types("\x1b[B").sees("\u{276f} 2. shop: add_note");
    shell.types("\r").sees(DECIDE);
    shell.types("l").sees("empty: none): ");
    shell.types("\x1b[B").sees("\u{276f} 1. the same");
    shell.types("\r").sees("from now on: in this [s]ession");
    shell.types("\x03");
}

#[test]
fn a_question_that_waits_rings_the_bell_once() {
    let desk = three_approvals();
    let mut shell = shell(&desk, "TOOLGATE_BELL_S=1 toolgate run 'Note it'");
    shell.sees(DECIDE);
    shell.sees("\x1b]9;toolgate waits for your decision\x1b\\\x07");
    shell.types("?");
    let shown = shell.sees("Ctrl-C leaves all");
    assert!(!shown.contains('\x07'), "{shown:?}");
    shell.types("\x03");
}

#[test]
fn a_policy_that_changed_since_it_asked_is_named_before_the_prompts() {
    let desk = three_approvals();
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let policy = |name: &str| {
        format!(
            "{}policies: {{ careful: {{ default: ask, rules: {name} }} }}\n",
            config.replace("accept-edits", "careful")
        )
    };
    desk.write("toolgate.yaml", &policy("[]"));
    desk.toolgate(&["run", "Note it"]).expect(10);
    let mut same = shell(&desk, "toolgate resume last");
    assert!(!same.sees(DECIDE).contains("has changed since"));
    same.close();
    desk.write(
        "toolgate.yaml",
        &policy("[{ id: reads, match: { tool_name: find_customer }, verdict: allow, reason: It reads. }]"),
    );
    let mut changed = shell(&desk, "toolgate resume last");
    changed.sees("policy careful@");
    changed.sees(" asked, and has changed since: policy careful@");
    changed.sees(DECIDE);
    changed.types("\x03");
}

/// A desk whose model calls a slow tool that needs no approval, and one that requires approval.
fn slow_and_guarded(fault: &str) -> Desk {
    let desk = Desk::playing(
        "turns: [{ calls: [{ id: slow, name: mcp_odd_echo, arguments: { text: hi } }, { id: note, name: mcp_shop_add_note, \
         arguments: { customer_id: C-1001, text: late } }] }, { say: All done. }]",
    );
    let config = json!({
        "models": {"played": {"scripted": {"file": "conversation.yaml"}}},
        "servers": {
            "odd": {"stdio": {"command": fault_server(), "args": ["--stdio", "--fault", fault]}},
            "shop": {"stdio": {"command": "toolgate", "args": ["demo-server"]}},
        },
        "policies": {"mixed": {"default": "ask", "rules": [
            {"id": "odd", "match": {"server": "odd"}, "verdict": "allow", "reason": "It is harmless."},
        ]}},
        "agents": {"desk": {"servers": ["odd", "shop"], "policy": "mixed"}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    desk
}

#[test]
fn a_call_is_asked_about_while_another_is_in_progress() {
    let desk = slow_and_guarded("slow-call=6");
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees("meanwhile in progress:\r\n  odd · echo (text: \"hi\")\r\n");
    shell.sees("May mcp_shop_add_note run?");
    assert!(facts(&desk, "tool.completed").is_empty(), "the other call ended before the question");
    shell.sees(DECIDE);
    shell.types("a").sees("All done.");
    shell.sees("[0] ready> ");
    let ended: Vec<String> = facts(&desk, "tool.completed").iter().map(|end| end["call"].to_string()).collect();
    assert_eq!(ended, [r#""note""#, r#""slow""#], "the approved call waited for the other one");
}

#[test]
fn the_end_of_a_call_is_shown_above_the_open_question_and_what_is_typed_stays() {
    let desk = slow_and_guarded("slow-call=3");
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees(DECIDE);
    shell.types("d").sees("why (the model reads it): ");
    shell.types("not n").sees("not n");
    shell.sees("odd · echo · ");
    shell.sees("why (the model reads it): not n");
    assert!(facts(&desk, "approval.decided").is_empty());
    let shown = shell.types("ow\r").sees("All done.");
    assert!(!shown.contains("odd · echo"), "{shown}");
    assert_eq!(facts(&desk, "approval.decided")[0]["decision"]["reason"], "not now");
    shell.sees("[0] ready> ");
}

#[test]
fn the_calls_in_progress_are_named_above_the_question() {
    let desk = slow_and_guarded("slow-call=2");
    let slow = |n| format!("{{ id: slow{n}, name: mcp_odd_echo, arguments: {{ text: '{n}' }} }}, ");
    let calls = std::fs::read_to_string(desk.path().join("conversation.yaml")).unwrap();
    let others: String = (1..=3).map(slow).collect();
    desk.write("conversation.yaml", &calls.replacen("{ id: note", &format!("{others}{{ id: note"), 1));
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    let named = ["hi", "1", "2"].map(|text| format!("  odd · echo (text: \"{text}\")\r\n")).concat();
    shell.sees(&format!("meanwhile in progress:\r\n{named}  and 1 more\r\n"));
    shell.sees(DECIDE);
    shell.types("a").sees("All done.");
}

#[test]
fn a_stop_while_a_call_is_in_progress_asks_no_further_question() {
    let desk = slow_and_guarded("slow-call=2");
    let second = "{ id: second, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: lost } }";
    let calls = std::fs::read_to_string(desk.path().join("conversation.yaml")).unwrap();
    desk.write("conversation.yaml", &calls.replacen("] }, { say", &format!(", {second}] }}, {{ say"), 1));
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees("(1 of 2)");
    shell.sees(DECIDE);
    shell.types("x").sees("why (the journal keeps it");
    shell.types("no\r");
    let shown = shell.sees("cancelled: stopped at the terminal");
    let rest = shell.sees("[130] ready> ");
    assert!(!shown.contains("May mcp_shop_add_note run?") && !rest.contains("May "), "{shown}{rest}");
    assert_eq!(decided(&desk), pairs(&[("note", "deny")]));
}

#[test]
fn a_decision_after_the_end_of_the_other_call_continues_the_run() {
    let desk = slow_and_guarded("slow-call=1");
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees(DECIDE);
    while facts(&desk, "tool.completed").is_empty() {}
    shell.types("a").sees("All done.");
    shell.sees("[0] ready> ");
    assert_eq!(decided(&desk), pairs(&[("note", "approve")]));
}

#[test]
fn an_interrupted_call_is_named() {
    let desk = slow_and_guarded("hang-at-call");
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees(DECIDE);
    shell.types("q").sees("odd · echo");
    shell.types("\x1b").sees("cancelling the run");
    shell.sees("mcp_odd_echo");
    shell.sees("took effect is unknown");
    shell.sees("cancelled: interrupted at the terminal");
    shell.sees("ready> ");
}

#[test]
fn a_continued_conversation_shows_a_call_that_was_sent_and_has_no_result() {
    let desk = slow_and_guarded("slow-call=60");
    let run = ["run", "--json", "--policy", "bypass", "Note it"];
    let mut child = desk.command(&run).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let is_done = |line: &String| line.contains("tool.mcp.completed");
    assert!(lines.any(|line| is_done(&line)), "the note is made, and the other call is in progress");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut shell = shell(&desk, "toolgate chat -c");
    let before = shell.sees("mcp_odd_echo");
    assert!(before.contains("shop · add_note"), "{before}");
    shell.sees(": sent, and no result is recorded yet");
    shell.types("\x03");
}

#[test]
fn a_stop_after_the_other_call_has_ended_cancels_the_run() {
    let desk = slow_and_guarded("slow-call=1");
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees(DECIDE);
    let above = shell.sees("odd · echo");
    assert!(above.contains("\x1b[J") && !above.contains("May mcp_shop_add_note run?"), "{above:?}");
    shell.sees("May mcp_shop_add_note run?");
    shell.sees(DECIDE);
    let mut screen = vt100::Parser::default();
    screen.process(shell.shown());
    let screen = screen.screen().contents();
    let (result, question) = screen.split_once("May mcp_shop_add_note run?").expect("the question");
    assert!(result.contains("✓ odd · echo") && !question.contains("run?"), "{screen}");
    assert!(question.contains("customer_id: ") && question.trim_end().ends_with(DECIDE.trim_end()), "{screen}");
    shell.types("x").sees("the run is cancelled): ");
    shell.types("\r").sees("cancelled: stopped at the terminal");
    let after = shell.sees("[130] ready> ");
    assert!(!after.contains("pending"), "{after}");
}

#[test]
fn a_log_line_stands_above_the_open_question_and_not_in_its_input() {
    let desk = three_approvals();
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("server.sh", "echo $$ > pid\nexec toolgate demo-server\n");
    let config = config.replace("command: toolgate, args: [demo-server]", "command: sh, args: [server.sh]");
    desk.write("toolgate.yaml", &format!("{config}log: warn\n"));
    let mut shell = shell(&desk, "toolgate run 'Note it'");
    shell.sees(DECIDE);
    shell.types("d").sees("why (the model reads it): ");
    shell.types("not").sees("not");
    let server = std::fs::read_to_string(desk.path().join("pid")).unwrap();
    desk.program("kill").args(["-9", server.trim()]).status().unwrap();

    let before = shell.sees("MCP server connection lost");
    assert!(before.contains("\x1b[J"), "the question is erased first: {before:?}");
    // All of the question stands below the line.
    shell.sees("May mcp_shop_add_note run?");
    shell.sees("why (the model reads it): not");
    shell.types(" today\r").sees("(2 of 3)");
    shell.sees(DECIDE);
    shell.types("\x03").sees("ready> ");
    let decisions = facts(&desk, "approval.decided");
    assert_eq!(decisions[0]["decision"]["reason"], "not today", "{decisions:?}");
}
