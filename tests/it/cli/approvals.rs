//! Pending approvals: the commands that list, show and decide them.

use serde_json::{Value, json};

use super::desk::{Desk, Ended, person};

const NOTE: &str = "
turns:
  - { calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }] }
  - { say: '{{last_result}}' }
";
const TWO: &str = "
turns:
  - calls:
      - { id: one, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: a } }
      - { id: two, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: b } }
  - { say: '{{last_result}}' }
";
const NOTE_AFTER_NOTE: &str = "
turns:
  - { calls: [{ id: one, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: a } }] }
  - { calls: [{ id: two, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: b } }] }
  - { say: done }
";
const REFUND: &str = "
turns:
  - { calls: [{ id: refund, name: ext_issue_refund, arguments: { order_id: A-1077 } }] }
  - { say: '{{last_result}}' }
";

/// A pending run.
fn pending(turns: &str) -> Desk {
    let desk = Desk::playing(turns);
    desk.toolgate(&["run", "Sort it out"]).expect(10);
    desk
}

fn approvals(desk: &Desk, words: &[&str]) -> Ended {
    desk.toolgate(&[&["approvals"], words].concat())
}

/// The pending items from `list --json`.
fn waiting(desk: &Desk) -> Vec<Value> {
    approvals(desk, &["list", "--json"]).expect(0).json_lines()
}

/// The events of that kind in the latest run's journal.
fn facts(desk: &Desk, kind: &str) -> Vec<Value> {
    desk.journal("last").into_iter().filter(|fact| fact["type"] == kind).collect()
}

#[test]
fn pending_items_of_all_runs_are_listed_with_reason_and_age() {
    let desk = pending(NOTE);
    desk.toolgate(&["run", "--session", "s2", "Once more"]).expect(10);
    let listed = approvals(&desk, &["list"]).expect(0);
    let summary = r#"shop: add_note(customer_id: "C-1001", text: "late")"#;
    assert_eq!(listed.out.matches(summary).count(), 2, "{}", listed.out);
    let order =
        [summary, "    agent desk, ", "    because: no rule of policy `accept-edits` matches this call", " note\n"];
    let places = order.map(|told| listed.out.find(told).unwrap_or_else(|| panic!("{told}: {}", listed.out)));
    assert!(places.is_sorted() && listed.out.contains("    agent desk, session s2, "), "{}", listed.out);
    assert!(listed.err.contains("2 pending items in 2 runs"), "{}", listed.err);
    for (filter, lines) in [("--session=s2", 1), ("--session=s3", 0), ("--agent=desk", 2), ("--run=last", 1)] {
        let listed = approvals(&desk, &["list", "--json", filter]).expect(0);
        assert_eq!(listed.json_lines().len(), lines, "{filter}");
    }
    let nothing = approvals(&desk, &["list", "--agent", "unknown"]).expect(0);
    assert!(nothing.err.contains("there are no pending approvals or questions"), "{}", nothing.err);
}

#[test]
fn an_external_call_is_listed_with_the_party_that_answers_it() {
    let desk = pending(REFUND);
    let listed = approvals(&desk, &["list"]).expect(0);
    assert!(listed.out.starts_with("issue_refund(order_id: \"A-1077\")\n    agent desk, "), "{}", listed.out);
    assert!(listed.out.contains("\n    your application answers it\n"), "{}", listed.out);
    assert!(listed.err.contains("there are no pending approvals or questions"), "{}", listed.err);
    assert_eq!(waiting(&desk), Vec::<Value>::new(), "JSON has what a person decides");
}

#[test]
fn json_shows_a_pending_item_with_its_digest() {
    let desk = pending(NOTE);
    let [listed] = &waiting(&desk)[..] else { panic!("one thing waits") };
    assert_eq!(
        (&listed["type"], &listed["call_id"], &listed["agent"]),
        (&json!("approval"), &json!("note"), &json!("desk"))
    );
    assert_eq!(listed["arguments"], json!({"customer_id": "C-1001", "text": "late"}));
    assert_eq!((&listed["trusted"], &listed["policy"]["name"]), (&json!(true), &json!("accept-edits")));
    assert!(listed["run_id"].is_string() && listed["session_id"].is_string() && listed["version"].is_u64());
    assert!(listed["digest"].as_str().unwrap().starts_with("sha256:"), "{listed}");
    let shown: Value =
        serde_json::from_str(&approvals(&desk, &["show", "last", "note", "--json"]).expect(0).out).unwrap();
    assert_eq!(shown, *listed);
}

#[test]
fn show_prints_a_whole_call_and_escapes_hidden_characters() {
    let desk = pending(
        "turns: [{ calls: [{ id: note, name: mcp_shop_add_note,
           arguments: { customer_id: C-1001, text: \"a\\u202Eb\" } }] }, { say: done }]",
    );
    let shown = approvals(&desk, &["show", "last"]).expect(0).out;
    for told in [
        "tool add_note of MCP server shop, which the model knows as mcp_shop_add_note",
        "text: \"a\\u{202e}b\"",
        "hints of the trusted server: not read-only, not destructive",
        "asked by agent desk, session ",
        "digest sha256:",
        "toolgate approvals deny run_",
    ] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    let offered = |verb: &str| shown.lines().find(|line| line.contains(verb)).unwrap().trim();
    assert!(offered("approvals deny").contains(" --digest sha256:"), "a no is bound like a yes: {shown}");
    desk.paste(offered("approvals approve")).expect(0);
}

#[test]
fn an_error_about_a_call_lists_the_pending_ones() {
    let desk = pending(NOTE);
    let show = approvals(&desk, &["show", "last", "nope"]).expect(2);
    assert!(
        show.err.contains("call `nope` of run run_") && show.err.contains("these calls of the run do: note"),
        "{}",
        show.err
    );
    let approve = approvals(&desk, &["approve", "last", "nope", "--json"]).expect(2);
    assert!(approve.err.contains("pending calls of this run: note"), "{}", approve.err);
    assert_eq!(approve.result()["error"]["code"], "not_found");
    let run = approvals(&desk, &["deny", "run_nope", "note"]).expect(2);
    assert!(run.err.contains("there is no run `run_nope`"), "{}", run.err);
    desk.toolgate(&["runs", "cancel", "last"]).expect(0);
    let over = approvals(&desk, &["approve", "last", "--all"]).expect(2);
    assert!(
        over.err.contains("has no pending approvals or questions") && over.err.contains("approvals list"),
        "{}",
        over.err
    );
}

#[test]
fn the_journal_records_approver_channel_and_policy() {
    let desk = pending(NOTE);
    let ended = approvals(&desk, &["approve", "last", "note", "--by", "ann", "--reason", "as agreed"]).expect(0);
    assert!(ended.out.contains("noted; Ada Lindqvist now has 1 note(s)"), "{}", ended.out);
    assert!(ended.err.contains("approved by ann on the command line (policy accept-edits@"), "{}", ended.err);
    let [decided] = &facts(&desk, "approval.decided")[..] else { panic!("one decision") };
    let decision = &decided["decision"];
    assert_eq!(
        (&decision["by"], &decision["via"], &decision["reason"]),
        (&json!("ann"), &json!("command_line"), &json!("as agreed"))
    );
    assert_eq!(decision["binding"]["policy"]["name"], "accept-edits");
    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0).out;
    assert!(shown.contains("approved by ann on the command line, policy accept-edits@"), "{shown}");
    assert!(waiting(&desk).is_empty());
}

#[test]
fn an_approval_can_be_repeated_but_not_changed() {
    let desk = pending(NOTE);
    approvals(&desk, &["approve", "last", "note"]).expect(0);
    approvals(&desk, &["approve", "last", "note"]).expect(0);
    approvals(&desk, &["deny", "last", "note"]).expect(1);
    assert_eq!(facts(&desk, "tool.started").len(), 1);
}

#[test]
fn all_calls_or_all_up_to_an_event_are_approved_at_once() {
    let desk = pending(TWO);
    let first = waiting(&desk)[0]["event"].as_u64().unwrap().to_string();
    approvals(&desk, &["approve", "last", "--up-to", &first]).expect(10);
    assert_eq!(waiting(&desk).iter().map(|waiting| waiting["call_id"].clone()).collect::<Vec<_>>(), ["two"]);
    approvals(&desk, &["approve", "last", "--all"]).expect(0);
    assert_eq!(facts(&desk, "approval.decided").len(), 2);
}

#[test]
fn a_denied_call_does_not_run_and_the_model_reads_why() {
    let desk = pending(NOTE);
    let ended = approvals(&desk, &["deny", "last", "note", "--reason", "not today"]).expect(0);
    assert!(ended.out.contains("not today"), "{}", ended.out);
    assert_eq!(facts(&desk, "tool.started"), [] as [Value; 0]);
}

#[test]
fn edited_arguments_are_checked_and_then_sent() {
    let desk = pending(NOTE);
    let wrong = approvals(&desk, &["approve", "last", "note", "--edit", "{\"text\": 1}"]).expect(1);
    assert!(wrong.err.contains("the edited arguments"), "{}", wrong.err);
    let no_json = approvals(&desk, &["approve", "last", "note", "--edit", "text"]).expect(2);
    assert!(no_json.err.contains("--edit: not JSON"), "{}", no_json.err);
    let edit = "{\"customer_id\": \"C-1002\", \"text\": \"soon\"}";
    let ended = approvals(&desk, &["approve", "last", "note", "--edit", edit]).expect(0);
    assert!(ended.out.contains("Bruno Okafor"), "{}", ended.out);
}

#[test]
fn a_decision_about_a_changed_call_is_rejected_and_shows_it() {
    let desk = pending(NOTE);
    let seen = waiting(&desk)[0]["digest"].as_str().unwrap().to_owned();
    let other = format!("{}0", &seen[..seen.len() - 1]);
    let other = if other == seen { format!("{}1", &seen[..seen.len() - 1]) } else { other };
    let refused = approvals(&desk, &["approve", "last", "note", "--digest", &other]).expect(8);
    assert!(refused.err.contains("changed since it was shown"), "{}", refused.err);
    assert!(refused.out.contains("requires approval") && refused.out.contains(&seen), "{}", refused.out);
    let machine = approvals(&desk, &["approve", "last", "note", "--digest", &other, "--json"]).expect(8);
    assert_eq!(
        (machine.result()["error"]["code"].as_str(), machine.result()["status"].as_str()),
        (Some("conflict"), Some("pending"))
    );
    assert_eq!(facts(&desk, "approval.decided"), [] as [Value; 0]);
    approvals(&desk, &["approve", "last", "note", "--digest", &seen]).expect(0);
}

#[test]
fn a_call_that_changed_after_approval_needs_a_new_one_with_a_diff() {
    let desk = pending(NOTE);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let other_way =
        config.replace("command: toolgate, args: [demo-server]", "command: env, args: [toolgate, demo-server]");
    desk.write("toolgate.yaml", &other_way);
    let ended = approvals(&desk, &["approve", "last", "note"]).expect(8);
    assert!(
        ended
            .err
            .contains("! changed since it was cleared: server (its program, arguments and directory, or its address)"),
        "{}",
        ended.err
    );
    assert!(facts(&desk, "tool.started").is_empty());
    let [again] = &waiting(&desk)[..] else { panic!("it waits again") };
    assert_eq!(again["differences"][0]["field"], "server (its program, arguments and directory, or its address)");
    approvals(&desk, &["approve", "last", "note"]).expect(0);
}

#[test]
fn a_stored_answer_is_used_by_the_next_process() {
    let desk = pending(NOTE);
    let stored = approvals(&desk, &["approve", "last", "note", "--no-wait"]).expect(0);
    assert!(stored.out.contains(" stored; the run resumes in the process that executes it"), "{}", stored.out);
    assert!(facts(&desk, "tool.started").is_empty());
    let recovered = desk.toolgate(&["runs", "recover"]).expect(0);
    assert!(recovered.out.contains("completed"), "{}", recovered.out);
}

#[test]
fn an_approval_with_a_scope_creates_a_revocable_grant() {
    let desk = pending(NOTE_AFTER_NOTE);
    let scope =
        ["approve", "last", "one", "--scope", "always", "--match", "tool", "--expires", "8h", "--reason", "harmless"];
    approvals(&desk, &scope).expect(0);
    let listed = approvals(&desk, &["grants"]).expect(0);
    for told in [
        "mcp_shop_add_note  until 2",
        "agent desk, in every session",
        &format!("by {} on the command line", person()),
        ": harmless",
    ] {
        assert!(listed.out.contains(told), "{told}: {}", listed.out);
    }
    let [grant] = &approvals(&desk, &["grants", "--json"]).expect(0).json_lines()[..] else { panic!("one grant") };
    assert_eq!(
        (&grant["active"], &grant["call_id"], &grant["tool_name"]),
        (&json!(true), &json!("one"), &json!("mcp_shop_add_note"))
    );
    let id = grant["id"].as_str().unwrap();
    let revoked = approvals(&desk, &["revoke", &id[..12], "--by", "ann"]).expect(0);
    assert!(revoked.out.contains("revoked by ann"), "{}", revoked.out);
    assert!(approvals(&desk, &["grants", "--json"]).expect(0).json_lines().is_empty());
    let ended = approvals(&desk, &["grants", "--ended", "--json"]).expect(0).json_lines();
    assert_eq!((&ended[0]["active"], &ended[0]["revoked"]["by"]), (&json!(false), &json!("ann")));
    desk.toolgate(&["run", "Again"]).expect(10);
    let unknown = approvals(&desk, &["revoke", "grant_nope"]).expect(2);
    assert!(unknown.err.contains("grants --ended"), "{}", unknown.err);
}

#[test]
fn a_grant_for_arguments_does_not_cover_others() {
    let desk = pending(NOTE_AFTER_NOTE);
    let ended = approvals(&desk, &["approve", "last", "one", "--scope", "session"]).expect(10);
    assert!(ended.err.contains("decision on two"), "{}", ended.err);
    let listed = approvals(&desk, &["grants"]).expect(0);
    assert!(listed.out.contains("covers only shop: add_note("), "{}", listed.out);
}

#[test]
fn invalid_flags_are_rejected_before_the_store_is_opened() {
    let desk = Desk::empty();
    for (words, told) in [
        (&["approve", "last"][..], "name them (`toolgate approvals list` lists pending calls)"),
        (&["approve", "last", "a", "--expires", "8h"], "--match, --when and --expires go with --scope session"),
        (&["approve", "last", "a", "--match", "arguments"], "--match, --when and --expires go with --scope session"),
        (&["approve", "last", "a", "--scope", "always", "--expires", "soon"], "write how long (90s, 30m, 8h, 2d)"),
        (
            &["approve", "last", "a", "--scope", "always", "--expires", "2020-01-01T00:00:00Z"],
            "give a time in the future",
        ),
        (&["approve", "last", "a", "b", "--digest", "sha256:0123456789ab"], "decide about one call at a time"),
        (&["approve", "last", "--all", "--edit", "{}"], "name that one call"),
        (&["extend", "last", "a"], "set it with --for 8h or --until"),
        (&["approve", "last", "a", "--digest", "9f86"], "at least the first 12 hexadecimal digits"),
    ] {
        let refused = approvals(&desk, words).expect(2);
        assert!(refused.err.contains(told), "{words:?}: {}", refused.err);
    }
    assert!(!desk.path().join(".toolgate").exists());
}

/// A refund with this answer timeout.
fn pending_for(seconds: u64) -> Desk {
    let desk = Desk::playing(REFUND);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let name = "- name: issue_refund\n";
    desk.write("toolgate.yaml", &config.replace(name, &format!("{name}        deadline_s: {seconds}\n")));
    desk.toolgate(&["run", "Sort it out"]).expect(10);
    desk
}

#[test]
fn a_deadline_can_be_extended_but_not_shortened() {
    let desk = pending_for(3_600);
    let extended = approvals(&desk, &["extend", "last", "refund", "--for", "8h", "--by", "ann"]).expect(0);
    assert!(extended.out.contains("refund: deadline extended to 2"), "{}", extended.out);
    let less = approvals(&desk, &["extend", "last", "refund", "--for", "5m"]).expect(1);
    assert!(less.err.contains("give a later time"), "{}", less.err);
    let item = approvals(&desk, &["extend", "last", "refund", "--until", "2999-01-01T00:00:00Z", "--json"]).expect(0);
    assert_eq!(item.json_lines()[0]["expires_at"], "2999-01-01T00:00:00.000Z");
    assert_eq!(facts(&desk, "pending.extended")[0]["by"], "ann");
    approvals(&desk, &["extend", "last", "nope", "--for", "8h"]).expect(2);
}

#[test]
fn expire_resumes_an_overdue_run_once() {
    let desk = pending_for(1);
    let swept = loop {
        let swept = approvals(&desk, &["expire", "--json"]).expect(0).json_lines();
        if !swept.is_empty() {
            break swept;
        }
    };
    assert_eq!((&swept[0]["expired"], &swept[0]["status"]), (&json!(["refund"]), &json!("completed")));
    let nothing = approvals(&desk, &["expire"]).expect(0);
    assert_eq!(
        (nothing.out.as_str(), nothing.err.contains("0 runs with overdue items")),
        ("", true),
        "{}",
        nothing.err
    );
    let late = desk.toolgate(&["resume", "last", "--result", "refund={\"status\": \"refunded\"}"]).expect(1);
    assert!(late.err.contains("was not answered in time"), "{}", late.err);
}

#[test]
fn the_list_has_the_rest_of_a_deadline() {
    let listed = approvals(&pending_for(900), &["list"]).expect(0).out;
    assert!(listed.contains(" s, due in 14 min\n") || listed.contains(" s, due in 15 min\n"), "{listed}");
}

#[test]
fn a_late_answer_is_rejected_and_leaves_the_run_to_expire() {
    let desk = pending_for(1);
    let late = loop {
        // Before the deadline the call needs a result, so a decision is the wrong kind of answer.
        let refused = approvals(&desk, &["deny", "last", "refund"]);
        if refused.err.contains("was not answered in time") {
            break refused.err;
        }
    };
    assert!(late.contains("toolgate resume RUN"), "{late}");
    let result = ["resume", "last", "--result", "refund={\"status\": \"refunded\"}"];
    assert!(desk.toolgate(&result).expect(1).err.contains("was not answered in time"));
    let swept = approvals(&desk, &["expire", "--json"]).expect(0).json_lines();
    assert_eq!((&swept[0]["expired"], &swept[0]["status"]), (&json!(["refund"]), &json!("completed")));
}

#[test]
fn past_approvals_suggest_the_narrowest_rule_that_covers_them() {
    let desk = pending(TWO);
    approvals(&desk, &["approve", "last", "--all"]).expect(0);
    let suggest = ["suggest", "--at-least", "1"];
    let [suggested] = &approvals(&desk, &[&suggest[..], &["--json"]].concat()).expect(0).json_lines()[..] else {
        panic!("one rule")
    };
    assert_eq!((&suggested["covered"], &suggested["rule"]["verdict"]), (&json!(2), &json!("allow")));
    let when =
        r#"principal == null && args in [{"customer_id":"C-1001","text":"a"}, {"customer_id":"C-1001","text":"b"}]"#;
    assert_eq!(suggested["rule"]["when"], when);
    let printed = approvals(&desk, &suggest).expect(0).out;
    assert!(printed.contains("# would have covered 2 past approvals"), "{printed}");
    desk.write("suggested.yaml", &printed);
    let checked = desk.toolgate(&["policy", "check", "--strict", "suggested.yaml"]).expect(0);
    assert!(!checked.err.contains("warning") && !checked.out.contains("warning"), "{}", checked.err);
    let seldom = approvals(&desk, &["suggest"]).expect(0);
    assert!(
        seldom.out.starts_with("# nothing to suggest") && seldom.err.contains("nothing to suggest from 2 approvals"),
        "{}",
        seldom.err
    );
    let planned = desk.toolgate(&["run", "--policy", "plan", "Again"]).expect(0);
    assert!(planned.out.contains("Denied by policy `plan`"), "{}", planned.out);
    let after_plan = approvals(&desk, &suggest).expect(0).out;
    assert_eq!(after_plan, printed, "the preset denies every call, which says nothing about these");
    desk.toolgate(&["run", "Again"]).expect(10);
    approvals(&desk, &["deny", "last", "--all"]).expect(0);
    let refused = approvals(&desk, &[&suggest[..], &["--json"]].concat()).expect(0);
    assert!(refused.json_lines().is_empty(), "what was ever denied is not suggested: {}", refused.out);
}

#[test]
fn suggested_rules_pass_a_strict_check_for_any_approval() {
    let calls = [
        r#"{ id: path, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: "/srv/data/../x" } }"#,
        r#"{ id: url, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: "https://example.com/?a=.*" } }"#,
        r#"{ id: quotes, name: mcp_shop_add_note, arguments: { customer_id: "C-1002", text: "it's \"so\" \\ ${x} \n#" } }"#,
        r#"{ id: refund, name: ext_run_command, arguments: { command: "git diff; rm -rf /", path: "/srv", cwd: ~ } }"#,
    ];
    let desk = Desk::playing(&format!("turns: [{{ calls: [{}] }}, {{ say: done }}]", calls.join(", ")));
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let (agent, _) = config.split_once("    policy:").unwrap();
    let tool = "{ name: run_command, description: Runs it., input_schema: { type: object } }";
    desk.write(
        "toolgate.yaml",
        &format!("{agent}    policy: {{ default: ask, rules: [] }}\n    external_tools: [{tool}]\n"),
    );
    desk.toolgate(&["run", "Sort it out"]).expect(10);
    approvals(&desk, &["approve", "last", "--all"]).expect(10);
    let printed = approvals(&desk, &["suggest", "--at-least", "1"]).expect(0).out;
    desk.write("suggested.yaml", &printed);
    let checked = desk.toolgate(&["policy", "check", "--strict", "suggested.yaml"]).expect(0);
    assert!(!checked.err.contains("warning") && !checked.out.contains("warning"), "{}\n{printed}", checked.err);
}

#[test]
fn explain_shows_for_each_call_why_it_ran_and_who_approved() {
    let desk = pending(NOTE_AFTER_NOTE);
    approvals(&desk, &["approve", "last", "one", "--scope", "session", "--match", "tool", "--by", "ann"]).expect(0);
    let told = desk.toolgate(&["runs", "explain", "last"]).expect(0).out;
    for line in [
        "turn 1  1 call",
        "5 tools, available: the policy allows it\n    ext_issue_refund, mcp_shop_find_customer,",
        "1 tool, available: the policy requires approval\n    mcp_shop_add_note\n",
        "available: the policy requires approval, auto-approved: grant_",
        "requires approval, because: no rule of policy `accept-edits` matches this call (policy accept-edits@",
        "approved for this session, any arguments, by ann on the command line, under policy accept-edits@",
        "may run: auto-approved, grant_",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let json = desk.toolgate(&["runs", "explain", "last", "--json"]).expect(0).out;
    let explained: Value = serde_json::from_str(&json).unwrap();
    let first = &explained["turns"][0]["calls"][0];
    let steps: Vec<&str> =
        first["steps"].as_array().unwrap().iter().map(|step| step["type"].as_str().unwrap()).collect();
    assert_eq!(steps, ["tool.checked", "approval.decided", "tool.started", "tool.completed"]);
    assert_eq!((&first["stand"], &first["steps"][1]["by"]), (&json!("ran"), &json!("ann")));
    let second = &explained["turns"][1]["calls"][0];
    assert!(second["steps"][0]["grant"].as_str().unwrap().starts_with("grant_"), "{second}");
    assert_eq!(explained["turns"][2]["calls"], json!([]));
}

#[test]
fn explain_shows_rejected_deferred_and_pending_calls() {
    let desk = pending(TWO);
    approvals(&desk, &["deny", "last", "one", "--reason", "no"]).expect(10);
    let told = desk.toolgate(&["runs", "explain", "last"]).expect(0).out;
    for line in [
        "one mcp_shop_add_note refused",
        &format!("denied by {} on the command line", person()),
        "two mcp_shop_add_note pending",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
}

#[test]
fn either_command_answers_a_question_of_the_model() {
    let turns = "
turns:
  - { calls: [{ id: ask, name: ask_human, arguments: { question: Which?, options: [red, blue], free_text: false } }] }
  - { say: '{{last_result}}' }
";
    let asking = || {
        let desk = Desk::playing(turns);
        let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
        let policy = "    policy: accept-edits\n";
        desk.write("toolgate.yaml", &config.replace(policy, &format!("{policy}    ask_human: true\n")));
        desk.toolgate(&["run", "Sort it out"]).expect(10);
        desk
    };
    let desk = asking();
    let [question] = &waiting(&desk)[..] else { panic!("one question") };
    assert_eq!((&question["type"], &question["options"]), (&json!("question"), &json!(["red", "blue"])));
    let none = approvals(&desk, &["answer", "last", "ask"]).expect(2);
    assert!(none.err.contains("choose with --choose: red, blue"), "{}", none.err);
    let other = approvals(&desk, &["answer", "last", "ask", "green"]).expect(1);
    assert!(other.err.contains("one of the options has to be chosen"), "{}", other.err);
    let decided = approvals(&desk, &["approve", "last", "ask"]).expect(2);
    assert!(decided.err.contains("waits for an answer to the model's question"), "{}", decided.err);
    let unknown = approvals(&desk, &["answer", "last", "nope", "red"]).expect(2);
    assert!(unknown.err.contains("pending calls of this run: ask"), "{}", unknown.err);
    let answered = approvals(&desk, &["answer", "last", "ask", "--choose", "blue", "--by", "ann"]).expect(0);
    assert_eq!(answered.out, "blue\n");
    assert_eq!(facts(&desk, "question.answered")[0]["answer"]["by"], "ann");
    let resumed = asking().toolgate(&["resume", "last", "--answer", "ask=red"]).expect(0);
    assert_eq!(resumed.out, "red\n");
}

/// A relative path may be the one that the rule denies.
#[test]
fn a_grant_covers_no_other_call_that_a_rule_may_deny() {
    let note = |id: &str, of: &str| {
        format!("  - calls: [{{ id: {id}, name: mcp_shop_add_note, arguments: {{ customer_id: {of}, text: x }} }}]\n")
    };
    let turns = ["/a", "b", "b", "c"].into_iter().zip(["one", "two", "three", "four"]);
    let turns: String = turns.map(|(of, id)| note(id, of)).collect();
    let desk = Desk::empty();
    desk.write("conversation.yaml", &format!("turns:\n{turns}  - {{ say: Done. }}\n"));
    desk.write(
        "toolgate.yaml",
        "
models: { played: { scripted: { file: conversation.yaml } } }
servers: { shop: { stdio: { command: toolgate, args: [demo-server] } } }
agents:
  desk:
    model: played
    servers: [shop]
    policy:
      default: ask
      rules: [{ id: secret, match: { tool: '*' }, when: \"args.customer_id.within('/secret')\", verdict: deny, reason: It is secret. }]
",
    );
    desk.toolgate(&["run", "Note it"]).expect(10);
    let wide = ["approvals", "approve", "last", "one", "--scope", "session", "--match", "tool"];
    let pending = desk.toolgate(&wide).expect(10).err;
    assert!(pending.contains("secret"), "{pending}");
    let covered = desk.toolgate(&["policy", "explain", "mcp_shop_add_note", r#"{"customer_id": "c"}"#]).expect(0).out;
    assert!(!covered.contains("grant"), "{covered}");
    let exact = desk.toolgate(&["approvals", "approve", "last", "two", "--scope", "session"]).expect(10).err;
    assert!(exact.contains("four") && !exact.contains("three"), "the same call runs: {exact}");
    desk.toolgate(&["approvals", "deny", "last", "four"]).expect(0);
}
