//! `toolgate policy`: check, explain, backtest.

use serde_json::{Value, json};

use super::desk::Desk;

const PAYING: &str = "
name: paying
default: ask
rules:
  - id: small
    match: { named: \"*note\", server: shop }
    when: size(args.text) < 40
    verdict: allow
    justification: A short note is no matter.
    examples:
      match: [{ server: shop, tool: add_note, arguments: { text: hello } }]
      no_match: [{ server: shop, tool: find_customer }]
  - id: nothing-for-guests
    match: { principal: \"guest-*\" }
    verdict: deny
    justification: Guests only look.
";

const TURNS: &str = "
turns:
  - { calls: [{ name: mcp_shop_find_customer, arguments: { name: Ada } }] }
  - { calls: [{ name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }] }
  - { say: Done. }
";

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn policy_check_says_of_each_file_what_was_checked_or_what_is_wrong() {
    let desk = Desk::empty();
    desk.write("good.yaml", PAYING);
    desk.write("bad.yaml", &PAYING.replace("size(args.text)", "size(arg.text)"));
    let good = desk.toolgate(&["policy", "check", "good.yaml"]).expect(0);
    assert!(
        good.out.contains("good.yaml: policy paying") && good.out.contains("2 rules; 1 condition; 2 examples"),
        "{}",
        good.out
    );
    assert!(good.out.contains("without an example: nothing-for-guests"), "{}", good.out);
    let both = desk.toolgate(&["policy", "check", "good.yaml", "bad.yaml"]).expect(2);
    assert!(both.out.contains("✗ bad.yaml: 1 fault"), "{}", both.out);
    assert!(both.out.contains("✓ good.yaml") && both.err.contains("there is no `arg`"), "{}", both.err);
    assert!(both.err.contains("bad.yaml:7:"), "the place is told: {}", both.err);

    let all = json_of(&desk.toolgate(&["policy", "check", "good.yaml", "bad.yaml", "--json"]).expect(2).out);
    assert_eq!((&all["policies"][0]["ok"], &all["policies"][0]["examples"]), (&json!(true), &json!(2)));
    assert_eq!((&all["policies"][1]["ok"], &all["policies"][1]["faults"][0]["line"]), (&json!(false), &json!(7)));
}

#[test]
fn policy_check_without_files_checks_those_of_the_configuration() {
    let desk = Desk::empty();
    desk.write("paying.yaml", PAYING);
    desk.write("toolgate.yaml", "policies: { paying: paying.yaml }\nagents: { a: { policy: { default: deny } } }\n");
    let told = desk.toolgate(&["policy", "check"]).expect(0).out;
    for place in ["✓ accept-edits:", "✓ bypass:", "✓ default:", "✓ plan:", "✓ paying:", "✓ agent a:"] {
        assert!(told.contains(place), "{place} in {told}");
    }
}

#[test]
fn policy_explain_says_which_rule_decides_and_why_the_others_do_not() {
    let desk = Desk::empty();
    desk.write("paying.yaml", PAYING);
    let explain = |arguments: &[&str]| {
        let mut all = vec!["policy", "explain"];
        all.extend(arguments);
        desk.toolgate(&all).expect(0).out
    };
    let made_up = |arguments: &str| explain(&["add_note", arguments, "--server", "shop", "--file", "paying.yaml"]);
    let allowed = made_up(r#"{"text": "hello"}"#);
    assert!(allowed.contains("mcp_shop_add_note  allow, by rule small of policy paying"), "{allowed}");
    assert!(allowed.contains("· deny  nothing-for-guests: there is no principal"), "{allowed}");
    let unclear = made_up("{}");
    assert!(unclear.contains("ask, by rule small") && unclear.contains("! allow small: "), "{unclear}");
    assert!(unclear.contains("there is no `text`"), "{unclear}");
    assert!(unclear.contains("· ask   default: does not decide, rule small does"), "{unclear}");
    let silent = explain(&["fly", "{}", "--server", "shop", "--file", "paying.yaml"]);
    assert!(silent.contains("by no rule") && silent.contains("· ask   default: holds, no rule decides"), "{silent}");

    let denied =
        explain(&["get_order", "{}", "--external", "--principal", "guest-1", "--file", "paying.yaml", "--json"]);
    let denied = json_of(&denied);
    assert_eq!((&denied["verdict"], &denied["rule"]), (&json!("deny"), &json!("nothing-for-guests")));
    assert_eq!(denied["rules"][0]["finding"], "misses");
    assert_eq!(denied["rules"][1]["finding"], "matches");
    let unknown = desk.toolgate(&["policy", "explain", "x", "--external", "--policy", "none"]).expect(2);
    assert!(unknown.err.contains("there is no policy `none`"), "{}", unknown.err);
}

#[test]
fn a_rule_that_cannot_be_evaluated_leaves_no_word_of_a_default_that_holds() {
    let desk = Desk::empty();
    desk.write("open.yaml", &PAYING.replace("default: ask", "default: allow"));
    let told = desk.toolgate(&["policy", "explain", "add_note", "{}", "--server", "shop", "--file", "open.yaml"]);
    let told = told.expect(0).out;
    assert!(told.contains("mcp_shop_add_note  ask, by rule small"), "{told}");
    assert!(told.contains("· allow default: does not decide, rule small does"), "{told}");
    let own = desk.toolgate(&["policy", "explain", "ask_human", "{}", "--file", "open.yaml"]).expect(0).out;
    assert!(own.contains("default: does not decide, toolgate runs the tool itself"), "{own}");
}

#[test]
fn where_only_a_condition_failed_nobody_says_that_no_rule_is_about_the_tool() {
    let desk = Desk::empty();
    desk.write("paying.yaml", PAYING);
    let long = format!(r#"{{"text": "{}"}}"#, "x".repeat(50));
    let explain = ["policy", "explain", "add_note", &long, "--server", "shop", "--file", "paying.yaml"];
    let told = desk.toolgate(&explain).expect(0).out;
    assert!(told.contains("no rule of policy `paying` matches this call"), "{told}");
    assert!(told.contains("· allow small: `size(args.text) < 40` does not hold"), "{told}");
}

#[test]
fn policy_explain_warns_of_a_server_that_is_not_configured() {
    let desk = Desk::playing("turns: []");
    let explain = |server: &str| desk.toolgate(&["policy", "explain", "add_note", "{}", "--server", server]).expect(0);
    let slip = explain("shp");
    assert!(slip.err.contains("no server `shp` is configured; there are: shop"), "{}", slip.err);
    assert!(slip.out.contains("mcp_shp_add_note"), "{}", slip.out);
    assert!(!explain("shop").err.contains("is configured"));
}

#[test]
fn toolgate_s_own_tool_is_not_said_to_run_by_a_default_that_asks() {
    let desk = Desk::empty();
    let told = desk.toolgate(&["policy", "explain", "ask_human", "{}"]).expect(0).out;
    assert!(told.contains("ask_human  allow, by no rule"), "{told}");
    assert!(told.contains("default: does not decide, toolgate runs the tool itself"), "{told}");
}

#[test]
fn a_suffix_that_a_server_chooses_does_not_make_its_tool_one_that_edits_files() {
    let desk = Desk::empty();
    for tool in ["wipe_disk_write_file", "delete_then_move_file", "purge_then_read_file", "x_list_directory"] {
        let explain = ["policy", "explain", tool, "{}", "--server", "shell", "--policy", "accept-edits"];
        let told = desk.toolgate(&explain).expect(0).out;
        assert!(told.contains("ask, by no rule of policy accept-edits"), "{told}");
    }
    let explain = ["policy", "explain", "write_file", "{}", "--server", "disk", "--policy", "accept-edits"];
    assert!(desk.toolgate(&explain).expect(0).out.contains("allow, by rule edit-files"));
}

#[test]
fn policy_check_names_rules_that_allow_across_servers() {
    let desk = Desk::empty();
    let rule = |id: &str, matches: &str, verdict: &str| {
        format!("  - {{ id: {id}, match: {{ {matches} }}, verdict: {verdict}, justification: Because. }}\n")
    };
    let rules = [
        rule("shop", "tool: \"mcp_shop_*\"", "allow"),
        rule("denied", "tool: \"mcp_shop_*\"", "deny"),
        rule("bound", "tool: \"mcp_shop_*\", server: shop", "allow"),
        rule("ours", "tool: \"ext_*\"", "allow"),
        rule("all", "tool: \"*\"", "allow"),
    ];
    desk.write("p.yaml", &format!("name: p\ndefault: ask\nrules:\n{}", rules.concat()));
    let told = desk.toolgate(&["policy", "check", "p.yaml"]).expect(0).out;
    assert!(told.contains("reaches across names of servers: shop (write `server` and `named`)"), "{told}");
    let json = json_of(&desk.toolgate(&["policy", "check", "p.yaml", "--json"]).expect(0).out);
    assert_eq!(json["policies"][0]["across_servers"], json!(["shop"]));
}

#[test]
fn policy_check_warns_of_rules_that_can_hardly_be_meant() {
    let desk = Desk::empty();
    let rule =
        |id: &str, body: &str| format!("  - {{ id: {id}, match: {body}, verdict: deny, justification: Because. }}\n");
    let doubtful = [
        ("regex", r#"{ named: "^read_.*$" }"#, "patterns are globs and compare the whole name: write `read_*`"),
        ("classes", r#"{ server: "(a|b)\\d" }"#, "`*` is any text"),
        ("half", "{ tool: read_file }", "write `named: read_file`, or `tool: mcp_SERVER_read_file`"),
        ("half-pattern", r#"{ tool: "read_*" }"#, "`tool: read_*` is no full name"),
        ("never", "{ origin: external, server: shop }", "remove one of the two"),
        ("any", "{ named: a }, when: args.path", "compare it (`args.path == …`)"),
        ("same", "{ named: a }, when: \"true\"", "says the same of every call"),
    ];
    let meant = [
        ("prefix", r#"{ tool: "mcp_shop_*" }"#),
        ("part", r#"{ tool: "*_delete" }"#),
        ("own", "{ tool: ask_human }"),
        ("own-pattern", r#"{ tool: "ask_*" }"#),
        ("either", r#"{ tool: "{mcp,ext}_x" }"#),
        ("dots", "{ named: a.b }"),
        ("flag", "{ named: a }, when: has(args.force) && args.force"),
        ("proven", r#"{ named: "admin.*" }, examples: { match: [{ tool: admin.x }] }"#),
        (
            "proven-flag",
            "{ named: a }, when: args.force, examples: { match: [{ tool: a, arguments: { force: true } }] }",
        ),
    ];
    let rules =
        doubtful.iter().map(|(id, body, _)| rule(id, body)).chain(meant.iter().map(|(id, body)| rule(id, body)));
    desk.write("p.yaml", &format!("name: p\ndefault: allow\nrules:\n{}", rules.collect::<String>()));
    let json = json_of(&desk.toolgate(&["policy", "check", "p.yaml", "--json"]).expect(0).out);
    let warnings = json["policies"][0]["warnings"].as_array().expect("warnings").clone();
    let warned: Vec<&str> = warnings.iter().map(|warning| warning["rule"].as_str().unwrap()).collect();
    assert_eq!(warned, doubtful.map(|(id, ..)| id), "{warnings:?}");
    let told = desk.toolgate(&["policy", "check", "p.yaml"]).expect(0).err;
    for (id, _, remedy) in doubtful {
        let line = told.lines().find(|line| line.contains(&format!("p.yaml: rule `{id}`: "))).expect(id);
        assert!(line.starts_with("warning:") && line.contains(remedy), "{line}");
    }
}

#[test]
fn no_preset_is_warned_of() {
    let told = Desk::empty().toolgate(&["policy", "check"]).expect(0);
    assert!(!told.err.contains("warning"), "{}", told.err);
}

#[tokio::test]
async fn a_run_that_a_newer_version_wrote_is_named_and_the_others_are_read() {
    let desk = Desk::playing(TURNS);
    desk.write("paying.yaml", PAYING);
    for _ in 0..2 {
        desk.toolgate(&["run", "note it", "--json"]).expect(10);
        desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(0);
    }
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(desk.path().join(".toolgate/toolgate.db"));
    let mut db = <sqlx::SqliteConnection as sqlx::Connection>::connect_with(&options).await.unwrap();
    let newer = r#"UPDATE journal SET event = '{"type":"tool.invented"}' WHERE seq = 2 AND run = (SELECT max(run) FROM journal)"#;
    sqlx::query(newer).execute(&mut db).await.unwrap();
    <sqlx::SqliteConnection as sqlx::Connection>::close(db).await.unwrap();

    let backtest = desk.toolgate(&["policy", "backtest", "paying.yaml"]).expect(0);
    assert!(backtest.err.contains("not read") && backtest.err.contains("tool.invented"), "{}", backtest.err);
    assert!(backtest.out.contains("2 calls of 2 runs"), "{}", backtest.out);
    let suggest = desk.toolgate(&["approvals", "suggest", "--at-least", "1"]).expect(0);
    assert!(suggest.err.contains("not read") && suggest.err.contains("tool.invented"), "{}", suggest.err);
    assert!(suggest.out.contains("approved-mcp-shop-add-note"), "{}", suggest.out);
}

#[test]
fn what_one_agent_was_refused_is_suggested_for_no_other() {
    let desk = Desk::playing(TURNS);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &format!("{config}  other: {{ servers: [shop], policy: accept-edits }}\n"));
    desk.toolgate(&["run", "note it", "--agent", "desk"]).expect(10);
    desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(0);
    let suggest = ["approvals", "suggest", "--at-least", "1", "--agent", "desk", "--json"];
    assert_eq!(desk.toolgate(&suggest).expect(0).json_lines().len(), 1);
    desk.toolgate(&["run", "note it", "--agent", "other"]).expect(10);
    desk.toolgate(&["approvals", "deny", "last", "--all"]).expect(0);
    assert!(desk.toolgate(&suggest).expect(0).json_lines().is_empty());
}

#[test]
fn what_is_left_out_of_a_suggestion_is_named_and_an_empty_file_says_why_it_is_empty() {
    let desk = Desk::playing(TURNS);
    let nothing = desk.toolgate(&["approvals", "suggest"]).expect(0);
    assert!(nothing.err.contains("nothing to suggest from 0 approvals"), "{}", nothing.err);
    desk.toolgate(&["run", "note it"]).expect(10);
    desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(0);
    let seldom = desk.toolgate(&["approvals", "suggest"]).expect(0);
    let why = "not suggested: mcp_shop_add_note, agent desk, approved 1 time: less than 2 times (`--at-least`)";
    assert!(seldom.err.contains(why), "{}", seldom.err);
    desk.toolgate(&["run", "note it"]).expect(10);
    desk.toolgate(&["approvals", "deny", "last", "--all", "--by", "ann"]).expect(0);
    let refused = desk.toolgate(&["approvals", "suggest", "--at-least", "1"]).expect(0);
    assert!(refused.err.contains("approved 1 time: refused by ann in run run_"), "{}", refused.err);
    assert_eq!(refused.out, "# nothing to suggest from 1 approval: no policy\n");
    desk.write("s.yaml", &refused.out);
    let check = desk.toolgate(&["policy", "check", "s.yaml"]).expect(2);
    assert!(check.out.contains("✗ s.yaml: 1 fault"), "{}", check.out);
    assert!(check.err.contains("s.yaml: the file is empty"), "{}", check.err);
    assert!(check.err.contains("a policy has `name`, `default` and `rules`"), "{}", check.err);
}

#[test]
fn policy_explain_looks_at_what_the_servers_offer_now() {
    let desk = Desk::playing("turns: []");
    let told = desk.toolgate(&["policy", "explain", "mcp_shop_find_customer"]).expect(0).out;
    assert!(told.contains("allow, by rule read-only of policy accept-edits"), "{told}");
    assert!(told.contains("`find_customer` of the trusted server shop; agent desk; no arguments"), "{told}");
    let missing = desk.toolgate(&["policy", "explain", "mcp_shop_fly"]);
    assert!(missing.code != 0 && missing.err.contains("is offered no tool `mcp_shop_fly`"), "{}", missing.err);
}

#[test]
fn policy_backtest_says_which_past_calls_would_get_another_verdict() {
    let desk = Desk::playing(TURNS);
    desk.toolgate(&["run", "note it", "--json"]).expect(10);
    desk.write("paying.yaml", PAYING);
    let told = json_of(&desk.toolgate(&["policy", "backtest", "paying.yaml", "--json"]).expect(0).out);
    assert_eq!((&told["runs"], &told["judged"], &told["changed"]), (&json!(1), &json!(2), &json!(2)), "{told}");
    let calls: Vec<Value> = told["calls"].as_array().unwrap().clone();
    let row = |tool: &str| calls.iter().find(|call| call["tool"] == tool).unwrap();
    assert_eq!(row("mcp_shop_find_customer")["then"], json!({"verdict": "allow", "became": "allowed"}));
    assert_eq!(row("mcp_shop_find_customer")["now"]["verdict"], "ask");
    assert_eq!(row("mcp_shop_add_note")["then"], json!({"verdict": "ask", "became": "unanswered"}));
    assert_eq!(row("mcp_shop_add_note")["now"]["rule"], "small");

    let table = desk.toolgate(&["policy", "backtest", "paying.yaml", "--since", "1h"]).expect(0).out;
    assert!(table.contains("policy paying: 2 calls of 1 run, 2 would be another verdict"), "{table}");
    let none = desk.toolgate(&["policy", "backtest", "paying.yaml", "--agent", "nobody"]).expect(0);
    assert!(none.out.contains("0 calls of 0 runs"), "{}", none.out);
    assert!(none.err.contains("there is no agent `nobody`, and no run of one; there are: desk"), "{}", none.err);
    let known = desk.toolgate(&["policy", "backtest", "paying.yaml", "--agent", "desk"]).expect(0);
    assert!(!known.err.contains("there is no agent"), "{}", known.err);
    desk.toolgate(&["policy", "backtest", "paying.yaml", "--since", "yesterday"]).expect(2);
}
