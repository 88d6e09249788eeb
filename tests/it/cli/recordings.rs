//! `toolgate mcp record` and `toolgate mcp replay`: runs as files, with the bundled shop and scripted models.

use serde_json::{Value, json};

use super::desk::{Desk, Ended};

const TURNS: &str = r#"
turns:
  - say: I look her up.
    calls: [{ name: mcp_shop_find_customer, arguments: { name: Ada Lindqvist } }]
  - calls:
      - { name: mcp_shop_list_orders, arguments: { customer_id: C-1001 } }
      - { name: mcp_shop_get_invoice, arguments: { order_id: A-1077 } }
  - say: "Order A-1077 is late."
"#;

/// A desk with a recording of its run, `ada.yaml`.
fn recorded(turns: &str) -> Desk {
    let desk = Desk::playing(turns);
    desk.toolgate(&["mcp", "record", "-o", "ada.yaml", "What is late?"]).expect(0);
    desk
}

fn text(desk: &Desk, name: &str) -> String {
    std::fs::read_to_string(desk.path().join(name)).unwrap()
}

/// The recording with a text in it replaced.
fn edited(desk: &Desk, from: &str, to: &str) {
    let before = text(desk, "ada.yaml");
    assert!(before.contains(from), "{from}: {before}");
    desk.write("ada.yaml", &before.replacen(from, to, 1));
}

fn replay(desk: &Desk, more: &[&str]) -> (i32, Value) {
    let ended = desk.toolgate(&[&["mcp", "replay", "ada.yaml", "--json"], more].concat());
    let report = serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{} {}", ended.out, ended.err));
    (ended.code, report)
}

fn first(report: &Value) -> [&Value; 3] {
    [&report["first"]["kind"], &report["first"]["call"], &report["first"]["path"]]
}

fn diverged(desk: &Desk, more: &[&str]) -> Value {
    let (code, report) = replay(desk, more);
    assert_eq!(code, 9, "{report}");
    report
}

#[test]
fn recording_a_run_twice_gives_the_same_bytes() {
    let desk = recorded(TURNS);
    desk.toolgate(&["mcp", "record", "-o", "stored.yaml", "--from-run", "last"]).expect(0);
    assert_eq!(text(&desk, "stored.yaml"), text(&desk, "ada.yaml"));
    desk.toolgate(&["mcp", "record", "-o", "again.yaml", "What is late?"]).expect(0);
    assert_eq!(text(&desk, "again.yaml"), text(&desk, "ada.yaml"));
    let recording = text(&desk, "ada.yaml");
    assert!(recording.contains("id: call_3") && !recording.contains("run_"), "{recording}");
}

#[test]
fn a_replay_without_changes_is_as_recorded_on_either_side() {
    let desk = recorded(TURNS);
    let ended = desk.toolgate(&["mcp", "replay", "ada.yaml"]).expect(0);
    assert!(ended.out.starts_with("as recorded: 3 turns with 3 calls, "), "{}", ended.out);
    assert_eq!(replay(&desk, &["--server", "recorded"]).0, 0);
    desk.toolgate(&["mcp", "record", "-o", "ada.jsonl", "--from-run", "last"]).expect(0);
    desk.toolgate(&["mcp", "replay", "ada.jsonl"]).expect(0);
    desk.toolgate(&["mcp", "replay", "ada.yaml", "--", "toolgate", "demo-server"]).expect(0);
}

#[test]
fn a_server_that_is_not_configured_is_in_the_header() {
    let desk = Desk::playing(&TURNS.replace("mcp_shop_", "mcp_server_"));
    let without = ["mcp", "record", "-o", "ada.yaml", "What is late?", "--", "toolgate", "demo-server"];
    let pending = desk.toolgate(&without).expect(10);
    assert!(pending.err.contains("with --policy bypass no call requires approval"), "{}", pending.err);
    let words = [
        "mcp",
        "record",
        "-o",
        "ada.yaml",
        "What is late?",
        "--policy",
        "bypass",
        "--env",
        "SHOP_TOKEN=hunter2hunter2",
        "--",
    ];
    desk.toolgate(&[&words[..], &["toolgate", "demo-server"]].concat()).expect(0);
    let recording = text(&desk, "ada.yaml");
    assert!(recording.contains("stdio: { command: toolgate, args: [demo-server], env: [SHOP_TOKEN] }"), "{recording}");
    assert!(!recording.contains("hunter2"), "{recording}");
    let ended = desk.toolgate(&["mcp", "replay", "ada.yaml"]).expect(2);
    assert!(
        ended.err.contains("the environment variable `SHOP_TOKEN` of the server `server` is not set"),
        "{}",
        ended.err
    );
    let ended = Ended::from(desk.command(&["mcp", "replay", "ada.yaml"]).env("SHOP_TOKEN", "x").output().unwrap());
    ended.expect(0);
}

#[test]
fn secrets_of_the_configuration_are_not_recorded() {
    let desk = Desk::playing("turns: [{ say: the key is sk-canary-0123456789 }]");
    let config = text(&desk, "toolgate.yaml");
    let headers = "servers: { api: { http: { url: \"http://localhost:9/mcp\", headers: { authorization: Bearer sk-canary-0123456789 } } }, ";
    desk.write("toolgate.yaml", &config.replace("servers: { ", headers));
    desk.toolgate(&["mcp", "record", "-o", "ada.yaml", "use sk-canary-0123456789 please"]).expect(0);
    let recording = text(&desk, "ada.yaml");
    assert!(recording.contains("[redacted]") && !recording.contains("canary"), "{recording}");
}

#[test]
fn a_recorded_server_recognises_a_call_with_a_redacted_argument() {
    let desk = recorded(TURNS);
    edited(&desk, "name: Ada Lindqvist", "name: \"Ada [redacted]\"");
    assert_eq!(replay(&desk, &["--server", "recorded"]).0, 0);
    desk.write("conversation.yaml", &TURNS.replace("Ada Lindqvist", "Bob"));
    assert_eq!(first(&diverged(&desk, &["--server", "recorded"]))[0], "arguments");
}

#[test]
fn a_changed_result_is_reported_with_its_path() {
    let desk = recorded(TURNS);
    edited(&desk, "\\\"status\\\":\\\"late\\\"", "\\\"status\\\":\\\"paid\\\"");
    let report = diverged(&desk, &[]);
    assert_eq!(first(&report), [&json!("result"), &json!(2), &json!("$.text[1].status")]);
    assert_eq!((&report["first"]["expected"], &report["first"]["actual"]), (&json!("paid"), &json!("late")));
    let ended = desk.toolgate(&["mcp", "replay", "ada.yaml"]).expect(9);
    assert_eq!(
        ended.out,
        "diverged at call 2 (mcp_shop_list_orders), $.text[1].status: the result differs\n  expected: \"paid\"\n  \
         actual  : \"late\"\n"
    );
    assert!(
        ended.err.contains("ignore: [{ tool: mcp_shop_list_orders, in: result, path: \"$.text[1].status\" }]"),
        "{}",
        ended.err
    );
    edited(&desk, "turns:", "ignore: [{ tool: mcp_shop_list_orders, in: result, path: \"$.text[1].status\" }]\nturns:");
    assert_eq!(replay(&desk, &[]).0, 0);
}

#[test]
fn a_changed_schema_and_a_removed_tool_are_reported_as_such() {
    let desk = recorded(TURNS);
    edited(&desk, "description: The name or a part of it.", "description: A name.");
    let report = diverged(&desk, &[]);
    assert_eq!(
        first(&report),
        [&json!("tool_changed"), &Value::Null, &json!("$.input_schema.properties.name.description")]
    );
    let desk = recorded(TURNS);
    edited(&desk, "- name: find_customer", "- name: search");
    let report = diverged(&desk, &[]);
    assert_eq!(report["first"]["kind"], "tool_removed");
    assert_eq!(report["notes"][0]["kind"], "tool_added");
}

#[test]
fn a_change_of_a_tool_that_is_not_called_is_a_note() {
    let desk = recorded(TURNS);
    edited(&desk, "description: What the next colleague should know.", "description: Text.");
    let (code, report) = replay(&desk, &[]);
    assert_eq!((code, &report["notes"][0]["tool"]), (0, &json!("mcp_shop_add_note")));
}

#[test]
fn a_server_that_does_not_start_is_the_reason_for_its_removed_tools() {
    let desk = recorded(TURNS);
    let report = diverged(&desk, &["--", "sh", "-c", "echo no such shop >&2; exit 3"]);
    assert_eq!(report["first"]["kind"], "tool_removed");
    assert!(report["first"]["actual"].as_str().is_some_and(|reason| reason.contains("no such shop")), "{report}");
}

#[test]
fn calls_of_another_model_are_compared_with_the_recorded_ones() {
    for (turns, found) in [
        (TURNS.replace("A-1077 } }", "A-1041 } }"), [json!("arguments"), json!(3), json!("$.order_id")]),
        (TURNS.replace("mcp_shop_get_invoice", "mcp_shop_get_loyalty"), [json!("call"), json!(3), Value::Null]),
        (
            TURNS.replace("      - { name: mcp_shop_get_invoice, arguments: { order_id: A-1077 } }\n", ""),
            [json!("missing_call"), json!(3), Value::Null],
        ),
        (
            TURNS.replace(
                "  - say: \"Order",
                "  - calls: [{ name: mcp_shop_get_loyalty, arguments: { customer_id: C-1001 } }]\n  - say: \"Order",
            ),
            [json!("extra_call"), json!(4), Value::Null],
        ),
        ("turns: []".to_owned(), [json!("missing_call"), json!(1), Value::Null]),
    ] {
        let desk = recorded(TURNS);
        desk.write("conversation.yaml", &turns);
        let report = diverged(&desk, &["--server", "recorded"]);
        assert_eq!(first(&report), found.each_ref(), "{report}");
    }
}

#[test]
fn another_order_of_calls_is_a_divergence_unless_the_file_allows_it() {
    let desk = recorded(TURNS);
    let (one, other) = (
        "      - { name: mcp_shop_list_orders, arguments: { customer_id: C-1001 } }\n",
        "      - { name: mcp_shop_get_invoice, arguments: { order_id: A-1077 } }\n",
    );
    desk.write("conversation.yaml", &TURNS.replace(&format!("{one}{other}"), &format!("{other}{one}")));
    assert_eq!(diverged(&desk, &["--server", "recorded"])["first"]["kind"], "order");
    edited(&desk, "turns:", "order: any\nturns:");
    assert_eq!(replay(&desk, &["--server", "recorded"]).0, 0);
}

#[test]
fn matchers_in_the_file_allow_other_arguments() {
    let desk = recorded(TURNS);
    edited(
        &desk,
        "arguments: { order_id: A-1077 }",
        "arguments: { order_id: { $pattern: \"^A-\", $example: A-1077 } }",
    );
    desk.write("conversation.yaml", &TURNS.replace("order_id: A-1077", "order_id: A-1041"));
    assert_eq!(replay(&desk, &["--server", "recorded"]).0, 0);
    assert_eq!(replay(&desk, &[]).0, 0, "the recorded model plays the example");
    edited(&desk, ", $example: A-1077", "");
    let ended = desk.toolgate(&["mcp", "replay", "ada.yaml"]).expect(2);
    assert!(ended.err.contains("call_3 (mcp_shop_get_invoice): the matcher"), "{}", ended.err);
}

#[test]
fn the_answer_is_compared_where_the_model_is_recorded_or_the_file_has_a_matcher() {
    let desk = recorded(TURNS);
    desk.write("conversation.yaml", &TURNS.replace("is late.", "is not here yet."));
    assert_eq!(replay(&desk, &["--server", "recorded"]).0, 0);
    edited(&desk, "answer: Order A-1077 is late.", "answer: { $contains: late }");
    assert_eq!(diverged(&desk, &["--server", "recorded"])["first"]["kind"], "answer");
}

#[test]
fn decisions_and_external_results_are_those_of_the_recording() {
    let turns = "
turns:
  - calls: [{ name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: hi } }, { name: ext_issue_refund, arguments: { order_id: A-1 } }]
  - say: done
";
    let desk = Desk::playing(turns);
    let config = text(&desk, "toolgate.yaml").replace("accept-edits", "default");
    desk.write("toolgate.yaml", &config);
    let pending = desk.toolgate(&["mcp", "record", "-o", "ada.yaml", "go"]).expect(10);
    assert!(pending.err.contains("mcp record -o ada.yaml --from-run"), "{}", pending.err);
    let refused = desk.toolgate(&["mcp", "record", "-o", "ada.yaml", "--from-run", "last"]).expect(2);
    assert!(refused.err.contains("only a run that has ended can be recorded"), "{}", refused.err);
    let words = ["resume", "last", "--deny", "call_1_1=not now", "--result", "call_1_2={\"status\": \"refunded\"}"];
    desk.toolgate(&words).expect(0);
    desk.toolgate(&["mcp", "record", "-o", "ada.yaml", "--from-run", "last"]).expect(0);
    let recording = text(&desk, "ada.yaml");
    assert!(recording.contains("decision: { answer: deny, reason: not now }"), "{recording}");
    assert_eq!(replay(&desk, &[]).0, 0);
    edited(&desk, "answer: deny", "answer: approve");
    let report = diverged(&desk, &[]);
    assert_eq!(report["first"]["kind"], "result", "{report}");
}

#[test]
fn a_bad_file_is_refused_with_its_line_and_a_remedy() {
    let desk = recorded(TURNS);
    for (from, to, told) in [
        ("task: \"What", "tsk: \"What", "unknown key `tsk`"),
        ("toolgate_recording: 1", "toolgate_recording: 7", "reads recordings of version 1, not 7"),
        ("{ order_id: A-1077 }", "{ order_id: { $patern: x } }", "unknown matcher `$patern`"),
        ("turns:", "ignore: [{ in: result, path: id }]\nturns:", "`id` is not a path: it does not begin with `$`"),
        ("turns:", "ignore: [{ in: results }]\nturns:", "unknown value `results`"),
    ] {
        let whole = text(&desk, "ada.yaml");
        edited(&desk, from, to);
        let ended = desk.toolgate(&["mcp", "replay", "ada.yaml"]).expect(2);
        let flat = ended.err.replace("\n  │ ", " ");
        assert!(flat.contains(told) && flat.contains("ada.yaml:"), "{told}: {}", ended.err);
        desk.write("ada.yaml", &whole);
    }
    let both = desk.toolgate(&["mcp", "replay", "ada.yaml", "--server", "recorded", "--model", "recorded"]).expect(2);
    assert!(both.err.contains("both sides would be recorded"), "{}", both.err);
}
