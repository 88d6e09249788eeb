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
    let none = desk.toolgate(&["policy", "backtest", "paying.yaml", "--agent", "nobody"]).expect(0).out;
    assert!(none.contains("0 calls of 0 runs"), "{none}");
    desk.toolgate(&["policy", "backtest", "paying.yaml", "--since", "yesterday"]).expect(2);
}
