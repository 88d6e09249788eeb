use super::desk::{Desk, steady};

const CONVERSATION: &str = "turns: [{ say: Done. }]";

#[test]
fn tools_are_listed_with_origin_priority_and_what_becomes_of_a_call() {
    let desk = Desk::playing(CONVERSATION);
    insta::assert_snapshot!(desk.toolgate(&["tools"]).expect(0).out);
}

#[test]
fn a_verdict_that_depends_on_arguments_is_listed_as_such_and_a_rule_about_another_tool_does_not_count() {
    let desk = Desk::playing(CONVERSATION);
    let rule = |id: &str, when: &str, verdict: &str| {
        let matches = serde_json::json!({"server": "shop"});
        serde_json::json!({"id": id, "match": matches, "when": when, "verdict": verdict, "reason": "Because."})
    };
    let rules = [
        rule("large", "has(args.amount) && args.amount > 100", "ask"),
        rule("text", "tool == 'mcp_shop_add_note' && args.text == ''", "deny"),
    ];
    let config = serde_json::json!({
        "models": {"played": {"scripted": {"file": "conversation.yaml"}}},
        "servers": {"shop": {"stdio": {"command": "toolgate", "args": ["demo-server"]}}},
        "agents": {"desk": {"servers": ["shop"], "policy": {"default": "allow", "rules": rules}}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    let listed = desk.toolgate(&["tools"]).expect(0).out;
    insta::assert_snapshot!(listed);
    let json: serde_json::Value = serde_json::from_str(&desk.toolgate(&["tools", "--json"]).expect(0).out).unwrap();
    let note = json["data"].as_array().unwrap().iter().find(|tool| tool["tool_name"] == "mcp_shop_add_note").unwrap();
    assert_eq!(note["verdict"], "depends");
}

#[test]
fn a_server_that_does_not_start_is_left_out_with_the_reason_and_the_exit_code_says_so() {
    let desk = Desk::playing(CONVERSATION);
    desk.write("mcp.json", r#"{"mcpServers": {"ghost": {"command": "no-such-program"}}}"#);
    let ended = desk.toolgate(&["tools", "--mcp-config", "mcp.json"]).expect(5);
    assert!(ended.out.contains("mcp_shop_add_note"), "{}", ended.out);
    assert!(ended.err.contains("left out: the MCP server `ghost` could not be started: "), "{}", ended.err);
    assert!(ended.err.contains("no-such-program"), "{}", ended.err);
    assert_eq!(
        ended.err.matches("could not be started").count(),
        1,
        "told once, and not logged as well: {}",
        ended.err
    );
}

#[test]
fn an_invalid_script_file_is_reported_with_its_position() {
    for (conversation, told) in [
        ("turns:\n  - sya: hello\n", ["conversation.yaml:2:5", "unknown key `sya`", "did you mean `say`?"]),
        ("- say: hello\n", ["conversation.yaml:1:1", "expected a mapping", "write `key: value`"]),
        ("turns: [\n", ["conversation.yaml:1:8", "unclosed bracket", "turns: ["]),
    ] {
        let ended = Desk::playing(conversation).toolgate(&["run", "hello"]).expect(2);
        told.iter().for_each(|told| assert!(ended.err.contains(told), "{told}: {}", ended.err));
    }
}

#[test]
fn tools_as_json_carry_their_schemas() {
    let ended = Desk::playing(CONVERSATION).toolgate(&["tools", "--json"]).expect(0);
    let tools: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let invoice =
        tools["data"].as_array().unwrap().iter().find(|tool| tool["tool_name"] == "mcp_shop_get_invoice").unwrap();
    assert_eq!(
        invoice["tool"],
        serde_json::json!({"type": "mcp", "server": "shop", "name": "get_invoice", "title": "Fetch an invoice"})
    );
    assert_eq!(invoice["input_schema"]["properties"]["order_id"]["pattern"], "^A-[0-9]{4}$");
}

#[test]
fn a_mistyped_key_is_shown_with_file_line_caret_and_remedy() {
    let desk = Desk::playing(CONVERSATION);
    desk.write("toolgate.yaml", "agents:\n  desk:\n    instruction: Be kind.\n");
    let ended = desk.toolgate(&["config", "check"]).expect(2);
    insta::assert_snapshot!(ended.err);
    assert_eq!(ended.out, "");
}

#[test]
fn config_check_summarises_a_valid_configuration() {
    let ended = Desk::playing(CONVERSATION).toolgate(&["config", "check"]).expect(0);
    let told = ["ok       toolgate.yaml", "store    SQLite, .toolgate/toolgate.db", "agent    desk: model played"];
    told.iter().for_each(|line| assert!(ended.out.contains(line), "{line}: {}", ended.out));
}

#[test]
fn config_check_names_a_policy_that_no_agent_applies() {
    let desk = Desk::playing(CONVERSATION);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &format!("{config}\npolicies: {{ notes: {{ default: ask, rules: [] }} }}\n"));
    let ended = desk.toolgate(&["config", "check", "--strict"]).expect(0);
    assert!(ended.out.contains("policy   notes: no agent applies it"), "{}", ended.out);
}

#[test]
fn the_schema_is_json() {
    let ended = Desk::empty().toolgate(&["config", "schema"]).expect(0);
    let schema: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert!(schema["properties"]["agents"].is_object());
}

#[test]
fn the_files_of_init_work_at_once_and_are_not_overwritten() {
    let desk = Desk::empty();
    let wrote = desk.toolgate(&["init"]).expect(0);
    assert!(wrote.out.contains("toolgate run \"Who is Ada Lindqvist?\""), "{}", wrote.out);
    let asked = desk.toolgate(&["run", "Who is Ada Lindqvist?"]).expect(10);
    assert!(asked.err.contains("no rule of policy `default` matches this call"), "{}", asked.err);
    let ran = desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(0);
    assert!(ran.out.contains("C-1001"), "{}", ran.out);
    let again = desk.toolgate(&["init"]).expect(2);
    assert!(again.err.contains("already exists; nothing was written"), "{}", again.err);
    desk.toolgate(&["init", "--force"]).expect(0);
    desk.toolgate(&["init", "a/new/folder"]).expect(0);
}

#[test]
fn a_run_without_configuration_explains_how_to_set_a_model() {
    let desk = Desk::empty();
    let ended = desk.toolgate(&["run", "Hello"]).expect(2);
    assert!(ended.err.contains("OPENAI_API_KEY"), "{}", ended.err);
    assert_eq!(desk.toolgate(&["runs", "list"]).expect(0).out, "", "no run was started");
}

#[test]
fn the_demonstration_shows_the_main_job() {
    let desk = Desk::empty();
    let ended = desk.toolgate(&["demo"]).expect(0);
    let told = [
        "priority 10 first: 1 call now, 2 deferred",
        "mcp_shop_get_invoice rejected, invalid arguments: /order_id:",
        "mcp_shop_add_note requires approval",
        "mcp_shop_add_note approved by the demo",
        "ext_issue_refund order_id: ",
        "ext_issue_refund from the caller",
        "18.90.",
    ];
    told.iter().for_each(|fact| assert!(ended.out.contains(fact), "{fact}: {}", ended.out));
    let printed: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("  toolgate ")).collect();
    assert_eq!(printed.len(), 4);
    printed[..3].iter().for_each(|line| drop(desk.paste(line).expect(0)));
    // Without the demo, the run waits for the person's decision.
    desk.paste(printed[3]).expect(10);
}

#[test]
fn version_and_completions_are_printed() {
    let desk = Desk::empty();
    let version = desk.toolgate(&["--version"]).expect(0).out;
    assert_eq!(version, format!("toolgate {}\n", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish"] {
        assert!(desk.toolgate(&["completions", shell]).expect(0).out.contains("resume"), "{shell}");
    }
}

#[test]
fn ids_and_times_do_not_make_a_snapshot_unsteady() {
    assert_eq!(steady("run_01ab x, 12 ms, 1.5 s\n2026-01-02 10:11:12 UTC"), "RUN x, N ms, N ms\nT T UTC");
}

#[test]
fn an_invalid_output_schema_is_reported_before_the_run() {
    let desk = Desk::playing(CONVERSATION);
    desk.write("answer.json", r#"{"type": "objekt"}"#);
    let run = desk.toolgate(&["run", "--output-schema", "answer.json", "x"]).expect(2);
    assert!(run.err.contains("the schema in `answer.json` is broken at `/type`"), "{}", run.err);
    let yaml = "models: { m: { scripted: { file: conversation.yaml } } }\nagents:\n  a: { output_schema: { type: objekt } }\n  b: { output_schema: { minimum: low } }";
    desk.write("toolgate.yaml", yaml);
    let checked = desk.toolgate(&["config", "check"]).expect(2);
    assert!(checked.err.starts_with("error: toolgate.yaml has 2 errors:\n"), "{}", checked.err);
    let told = "the output_schema of agent `a` is not a JSON Schema: it is broken at";
    assert!(checked.err.replace("\n  │ ", " ").contains(told), "{}", checked.err);
    assert!(checked.err.contains("[toolgate.yaml:3:23]"), "{}", checked.err);
    assert!(checked.err.contains("[toolgate.yaml:4:23]"), "{}", checked.err);
}

#[test]
fn invalid_settings_of_models_are_reported_with_their_places() {
    let desk = Desk::playing(CONVERSATION);
    let yaml = "models:\n  m: { openai_images: { model: x, api_key: k, top_p: 0.5 } }\n  i: { openai_images: { model: x, api_key: k, temperature: 0.5 } }\nagents: { a: { model: m } }\n";
    desk.write("toolgate.yaml", yaml);
    let checked = desk.toolgate(&["config", "check"]).expect(2);
    assert!(checked.err.contains("has 2 errors:\n\n  × model `i`: "), "{}", checked.err);
    assert!(
        checked.err.contains("[toolgate.yaml:2:6]") && checked.err.contains("[toolgate.yaml:3:6]"),
        "{}",
        checked.err
    );
}

#[test]
fn invalid_webhooks_are_rejected_by_index_before_serving() {
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let desk = Desk::playing(CONVERSATION);
    let usual = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let good = format!("{{ url: 'https://example.com/token-hunter2', secret: {SECRET} }}");
    for (second, told) in [
        ("{ url: 'https://example.com/hunter2', secret: whsec_c2hvcnQ= }".to_owned(), "number 2: a webhook secret is"),
        (
            format!("{{ url: 'https://kim:hunter2@example.com', secret: {SECRET} }}"),
            "number 2: leave name and password",
        ),
        (good.clone(), "number 2 has the tenant and the address of an earlier one"),
        (format!("{{ url: 'https://example.com', secret: {SECRET}, events: [webhook.test] }}"), "there is no event"),
    ] {
        desk.write("toolgate.yaml", &format!("{usual}gateway: {{ webhooks: [{good}, {second}] }}\n"));
        let refused = desk.toolgate(&["config", "check"]).expect(2);
        assert!(refused.err.contains(told), "{told}: {}", refused.err);
        assert!(!refused.err.contains("hunter2") && !refused.err.contains(", webhook.test"), "{}", refused.err);
    }
}

#[test]
fn a_configuration_with_the_other_ending_is_not_ignored() {
    let desk = Desk::playing(CONVERSATION);
    std::fs::rename(desk.path().join("toolgate.yaml"), desk.path().join("toolgate.yml")).unwrap();
    let refused = desk.toolgate(&["config", "check"]).expect(2);
    assert!(refused.err.contains("rename it to `toolgate.yaml`"), "{}", refused.err);
    desk.toolgate(&["config", "check", "--config", "toolgate.yml"]).expect(0);
}
