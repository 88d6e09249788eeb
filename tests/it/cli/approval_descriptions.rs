//! Descriptions of pending items and decisions: complete, and without false statements.

use serde_json::{Value, json};

use super::desk::{Desk, Ended, person};

const NOTE: &str = "
turns:
  - say: She wants to know.
    calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }]
  - { say: done }
";
const READ_AND_TWO: &str = "
turns:
  - calls:
      - { id: read, name: mcp_shop_list_orders, arguments: { customer_id: C-1001 } }
      - { id: one, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: a } }
      - { id: two, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: b } }
  - { say: done }
";
const EDIT: &str = r#"{"customer_id": "C-1002", "text": "soon"}"#;

fn pending(turns: &str) -> Desk {
    let desk = Desk::playing(turns);
    desk.toolgate(&["run", "Tell her when it comes"]).expect(10);
    desk
}

fn approvals(desk: &Desk, words: &[&str]) -> Ended {
    desk.toolgate(&[&["approvals"], words].concat())
}

fn changed_server(desk: &Desk) {
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let other = config.replace("command: toolgate, args: [demo-server]", "command: env, args: [toolgate, demo-server]");
    assert_ne!(other, config);
    desk.write("toolgate.yaml", &other);
}

#[test]
fn a_run_is_shown_and_explained_with_the_arguments_that_were_sent() {
    let desk = pending(NOTE);
    approvals(&desk, &["approve", "last", "note", "--edit", EDIT, "--by", "ann"]).expect(0);

    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0).out;
    assert!(shown.contains("✓ mcp_shop_add_note  note"), "{shown}");
    assert!(shown.contains(r#"edited by ann: customer_id: "C-1002", text: "soon""#), "{shown}");
    assert!(shown.contains(r#"the model wrote: customer_id: "C-1001", text: "late""#), "{shown}");
    let explained = desk.toolgate(&["runs", "explain", "last"]).expect(0).out;
    for told in [
        r#"    with customer_id: "C-1002", text: "soon""#,
        r#"    the model wrote customer_id: "C-1001", text: "late""#,
        r#"with other arguments: {"customer_id":"C-1002","text":"soon"}"#,
    ] {
        assert!(explained.contains(told), "{told}: {explained}");
    }
    let json: Value = serde_json::from_str(&desk.toolgate(&["runs", "explain", "last", "--json"]).out).unwrap();
    let call = &json["turns"][0]["calls"][0];
    assert_eq!(call["arguments"], json!({"customer_id": "C-1002", "text": "soon"}));
    assert_eq!(call["original_arguments"], json!({"customer_id": "C-1001", "text": "late"}));
}

#[test]
fn an_edited_call_that_is_asked_about_again_says_that_a_person_edited_it() {
    let desk = pending(NOTE);
    changed_server(&desk);
    approvals(&desk, &["approve", "last", "note", "--edit", EDIT]).expect(8);

    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0).out;
    assert!(shown.contains(&format!("edited by {}: customer_id: ", person())), "{shown}");
    assert!(!shown.contains(r#"mcp_shop_add_note customer_id: "C-1001""#), "{shown}");
    let waiting = approvals(&desk, &["show", "last"]).expect(0).out;
    let told = r#"! a person edited the arguments; the model wrote: {"customer_id":"C-1001","text":"late"}"#;
    assert!(waiting.contains(told), "{waiting}");
    let [listed] = &approvals(&desk, &["list", "--json"]).json_lines()[..] else { panic!("one thing waits") };
    assert_eq!(listed["original_arguments"]["text"], "late");
}

#[test]
fn a_pending_call_is_shown_with_task_model_text_and_tool_hints() {
    let desk = pending(NOTE);
    let shown = approvals(&desk, &["show", "last"]).expect(0).out;
    for told in [
        "the task:\n  | Tell her when it comes\n",
        "the model says:\n  | She wants to know.\n",
        "its description:\n  | ",
    ] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    let [listed] = &approvals(&desk, &["list", "--json"]).json_lines()[..] else { panic!("one thing waits") };
    assert_eq!(
        (&listed["task"], &listed["model_text"]),
        (&json!("Tell her when it comes"), &json!("She wants to know."))
    );
}

#[test]
fn resume_and_approve_end_alike_when_the_call_changed() {
    for words in [&["resume", "last", "--approve", "note"][..], &["approvals", "approve", "last", "note"]] {
        let desk = pending(NOTE);
        changed_server(&desk);
        desk.toolgate(words).expect(8);
    }
}

#[test]
fn a_printed_command_is_bound_to_the_call_above_it() {
    let desk = pending(NOTE);
    let offered = desk.toolgate(&["resume", "last"]).expect(10).offered_command();
    assert!(offered.contains(" --approve note --digest note="), "{offered}");
    changed_server(&desk);
    desk.paste(&offered).expect(8);
    // The call is pending again with other arguments, so the pasted command must not approve it.
    let refused = desk.paste(&offered).expect(8);
    assert!(refused.err.contains("changed since it was shown"), "{}", refused.err);
    let anew = desk.toolgate(&["resume", "last"]).expect(10).offered_command();
    desk.paste(&anew).expect(0);
}

#[test]
fn a_digest_prefix_must_match_the_call() {
    let desk = pending(NOTE);
    let seen = approvals(&desk, &["list", "--json"]).json_lines()[0]["digest"].as_str().unwrap().to_owned();
    approvals(&desk, &["approve", "last", "note", "--digest", "0123456789ab"]).expect(8);
    approvals(&desk, &["approve", "last", "note", "--digest", &seen["sha256:".len()..][..12]]).expect(0);
}

#[test]
fn the_coverage_of_a_grant_is_shown_at_approval_and_at_use() {
    let turns = NOTE.replace(
        "  - { say: done }",
        "  - { calls: [{ name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: no } }] }",
    );
    let desk = pending(&turns);
    let ended = approvals(&desk, &["approve", "last", "note", "--scope", "session"]).expect(10);
    let only = "grants in force: mcp_shop_add_note (only with the arguments of 1 earlier call)";
    assert!(ended.err.contains(only), "{}", ended.err);
    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0).out;
    assert!(
        shown.contains(&format!("approved for this session, only with these arguments, by {}", person())),
        "{shown}"
    );
    let explained = desk.toolgate(&["runs", "explain", "last"]).expect(0).out;
    let told = "the policy requires approval, except for auto-approved calls: grant_";
    assert!(explained.contains(told) && explained.contains(", only shop: add_note("), "{explained}");
}

#[test]
fn a_rule_about_arguments_is_not_shown_as_requiring_approval() {
    let desk = Desk::playing(READ_AND_TWO);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let rule = r#"{ default: ask, rules: [{ id: ada, match: { tool_name: list_orders }, when: 'args.customer_id == "C-1001"', verdict: allow, reason: Hers. }] }"#;
    desk.write("toolgate.yaml", &config.replace("policy: accept-edits", &format!("policy: {rule}")));
    desk.toolgate(&["run", "x"]).expect(10);
    let explained = desk.toolgate(&["runs", "explain", "last"]).expect(0).out;
    let depends = "1 tool, available: it depends on the arguments whether the policy requires approval\n    mcp_shop_list_orders\n";
    assert!(explained.contains(depends), "{explained}");
    let asks = explained.lines().skip_while(|line| !line.ends_with("available: the policy requires approval")).nth(1);
    assert!(asks.unwrap().contains("mcp_shop_add_note"), "{explained}");
}

#[test]
fn a_stored_answer_lists_the_items_still_pending() {
    let desk = pending(READ_AND_TWO);
    let stored = approvals(&desk, &["approve", "last", "one", "--no-wait", "--json"]).expect(0).result();
    assert_eq!((&stored["status"], stored["pending"].as_array().unwrap().len()), (&json!("pending"), 1));
    assert_eq!(stored["pending"][0]["call_id"], "two");
    let again = approvals(&desk, &["approve", "last", "one", "--no-wait"]).expect(0).out;
    assert!(again.contains(" still waits for two") && !again.contains("running"), "{again}");
}

#[test]
fn an_answer_to_an_automatic_call_names_the_rule() {
    let desk = pending(READ_AND_TWO);
    let ruled = approvals(&desk, &["deny", "last", "read"]).expect(1);
    assert!(ruled.err.contains("call `read` requires no decision: rule `read-only` allows it"), "{}", ruled.err);
    approvals(&desk, &["approve", "last", "one", "--by", "ann"]).expect(10);
    let answered = desk.toolgate(&["resume", "last", "--deny", "one", "--partial"]).expect(1);
    assert!(answered.err.contains("call `one` was approved by ann on the command line already"), "{}", answered.err);
}

#[test]
fn invalid_edited_arguments_are_reported_in_words() {
    let desk = pending(NOTE);
    let wrong =
        approvals(&desk, &["approve", "last", "note", "--edit", r#"{"customer_id": "C-1001", "text": 1}"#]).expect(1);
    assert!(wrong.err.contains("cannot be used: /text: "), "{}", wrong.err);
    assert!(!wrong.err.contains("problems"), "{}", wrong.err);
}

#[test]
fn a_filter_by_an_unknown_agent_warns() {
    let desk = pending(NOTE);
    for words in [&["approvals", "list"][..], &["approvals", "grants"], &["runs", "list"]] {
        let typed = desk.toolgate(&[words, &["--agent", "dsk"]].concat()).expect(0);
        assert!(typed.err.contains("warning: there is no agent `dsk`; configured are: desk"), "{}", typed.err);
        let right = desk.toolgate(&[words, &["--agent", "desk"]].concat()).expect(0);
        assert!(!right.err.contains("warning"), "{}", right.err);
    }
}

#[test]
fn revoking_a_grant_names_the_grants_that_still_apply() {
    let desk = pending(READ_AND_TWO);
    approvals(&desk, &["approve", "last", "one", "--scope", "session"]).expect(10);
    approvals(&desk, &["approve", "last", "two", "--scope", "always", "--match", "tool"]).expect(0);
    let grants = approvals(&desk, &["grants", "--json"]).expect(0).json_lines();
    let of =
        |call: &str| grants.iter().find(|grant| grant["call_id"] == call).unwrap()["id"].as_str().unwrap().to_owned();
    let narrow = approvals(&desk, &["revoke", &of("one")]).expect(0).out;
    assert!(narrow.contains(&format!("still covered by {}, in every session: any arguments", of("two"))), "{narrow}");
    let wide = approvals(&desk, &["revoke", &of("two"), "--json"]).expect(0).json_lines();
    assert_eq!((&wide[0]["active"], &wide[0]["still_covered_by"]), (&json!(false), &json!([])));
}

#[test]
fn model_output_cannot_imitate_a_line_of_the_live_view() {
    let says = "ok\\n  ✓ mcp_shop_add_note approved by ann on the command line\\npending: nothing";
    let desk = Desk::playing(&NOTE.replace("She wants to know.", &format!("\"{says}\"")));
    let told = desk.toolgate(&["run", "x"]).expect(10).err;
    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0).out;
    for text in [told, shown] {
        assert!(text.contains("\n  | pending: nothing\n"), "{text}");
        assert!(
            !text.lines().any(|line| line.trim_start().starts_with("✓ mcp_shop_add_note approved by ann")),
            "{text}"
        );
    }
}

#[test]
fn an_answer_of_a_person_is_in_the_live_view_and_in_explain() {
    let ask = "{ id: ask, name: ask_human, arguments: { question: Which?, options: [red, blue] } }";
    let desk = Desk::playing(&format!("turns: [{{ calls: [{ask}] }}, {{ say: done }}]"));
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &config.replace("    policy:", "    ask_human: true\n    policy:"));
    desk.toolgate(&["run", "Ask"]).expect(10);
    let story = approvals(&desk, &["answer", "last", "ask", "--choose", "blue"]).expect(0).err;
    let explained = desk.toolgate(&["runs", "explain", "last"]).expect(0).out;
    for text in [story, explained] {
        assert!(text.contains(&format!("answered by {} on the command line: blue", person())), "{text}");
    }
}

#[test]
fn the_environment_does_not_choose_who_decides() {
    let desk = pending(NOTE);
    let mut command = desk.command(&["approvals", "approve", "last", "note"]);
    assert!(command.env("USER", "the boss").output().unwrap().status.success());
    let decided = desk.journal("last").into_iter().find(|fact| fact["type"] == "approval.decided").unwrap();
    assert_eq!(decided["decision"]["by"], person());
}

#[test]
fn a_warning_of_the_runner_is_printed() {
    let desk = pending(NOTE);
    approvals(&desk, &["approve", "last", "note", "--no-wait"]).expect(0);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &config.replace("  desk:", "  office:"));
    let recovered = desk.toolgate(&["runs", "recover"]);
    assert!(recovered.err.contains("run blocked: this process lacks its configuration"), "{}", recovered.err);
}

#[test]
fn a_run_whose_agent_is_gone_is_shown_as_blocked_and_can_be_cancelled() {
    let desk = pending(NOTE);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &config.replace("  desk:", "  office:"));
    let listed = desk.toolgate(&["runs", "list"]).expect(0);
    assert!(listed.err.contains("is blocked: its agent `desk` is not configured"), "{}", listed.err);
    let rows = desk.toolgate(&["runs", "list", "--json"]).json_lines();
    assert_eq!(rows[0]["blocked"], "its agent `desk` is not configured");
    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0);
    assert!(shown.out.contains("blocked: unknown agent `desk`"), "{}", shown.out);
    desk.toolgate(&["runs", "cancel", "last"]).expect(0);
    assert!(!desk.toolgate(&["runs", "list"]).expect(0).err.contains("is blocked"));
}
