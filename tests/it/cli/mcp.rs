//! `toolgate mcp`: direct access to servers for their authors.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::desk::{Desk, Ended, steady};

const DEMO: [&str; 3] = ["--", "toolgate", "demo-server"];

fn desk() -> Desk {
    Desk::playing("turns: []")
}

/// The end of a command line that starts a fixture server.
fn fixture(script: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/mcp").join(script);
    ["--", "python3", "-B", path.to_str().unwrap()].map(str::to_owned).into()
}

/// A command with a fixture server.
fn with_fixture(words: &[&str], script: &str, more: &[&str]) -> Ended {
    let server = fixture(script);
    let words: Vec<&str> =
        words.iter().copied().chain(server.iter().map(String::as_str)).chain(more.iter().copied()).collect();
    desk().toolgate(&words)
}

fn call(words: &[&str], script: &str) -> Ended {
    with_fixture(&[&["mcp", "call"], words].concat(), script, &[])
}

fn parsed(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {} {}", ended.out, ended.err))
}

#[test]
fn a_configured_server_is_listed_with_its_tools_in_a_few_lines_each() {
    let ended = desk().toolgate(&["mcp", "list", "shop"]).expect(0);
    insta::assert_snapshot!(steady(&ended.out));
    assert_eq!(ended.err, "");
}

#[test]
fn a_command_is_listed_without_any_configuration() {
    let desk = Desk::empty();
    desk.write("toolgate.yaml", "broken: [");
    let ended = desk.toolgate(&[&["mcp", "list"], &DEMO[..]].concat()).expect(0);
    assert!(ended.out.contains("get_invoice  Fetch an invoice  → mcp_server_get_invoice"), "{}", ended.out);
    let named = desk.toolgate(&["mcp", "list", "--name", "desk", "--command", "toolgate 'demo-server'"]).expect(0);
    assert!(named.out.contains("→ mcp_desk_get_invoice"), "{}", named.out);
    assert_eq!(desk.toolgate(&["mcp", "list", "shop"]).code, 2, "the configuration is read for a configured server");
}

#[test]
fn a_list_as_json_has_everything_the_server_said() {
    let listed = parsed(&desk().toolgate(&["mcp", "list", "shop", "--json"]).expect(0));
    let server = &listed["server"];
    assert_eq!((&server["id"], &server["state"]), (&json!("shop"), &json!("ready")));
    assert_eq!(server["name"], "toolgate-demo-shop");
    assert!(server["ready_ms"].is_u64() && server["protocol_version"].is_string(), "{server}");
    let invoice = listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "get_invoice").unwrap();
    assert_eq!(invoice["model_sees"], "mcp_shop_get_invoice");
    assert_eq!(invoice["input_schema"]["properties"]["order_id"]["pattern"], "^A-[0-9]{4}$");
    assert_eq!(invoice["annotations"]["readOnlyHint"], true);
}

#[test]
fn schemas_are_shown_when_they_are_asked_for() {
    let ended = desk().toolgate(&["mcp", "list", "shop", "--schemas"]).expect(0);
    assert!(ended.out.contains("  takes:\n    {\n") && ended.out.contains("  returns:\n"), "{}", ended.out);
}

#[test]
fn omitted_tools_and_warnings_are_shown_beside_the_list() {
    let ended = with_fixture(&["mcp", "list"], "lister.py", &["malformed"]).expect(0);
    assert!(ended.out.ends_with("\n2 tools\n"), "{}", ended.out);
    assert!(
        ended.err.contains("left out: server/bare: its definition is malformed: `inputSchema` is missing"),
        "{}",
        ended.err
    );
    let liar = with_fixture(&["mcp", "list"], "liar.py", &[]).expect(0);
    for told in [
        "left out: server/keeps: listed twice under one name",
        "warning: 1 tool has no description: mumbles; a model cannot tell when to call it",
        "warning: 4 tools have no annotations: forgets, keeps, lies, mumbles",
    ] {
        assert!(liar.err.contains(told), "{told}: {}", liar.err);
    }
}

#[test]
fn a_dead_server_is_reported_with_its_last_stderr_and_a_code() {
    let listed = with_fixture(&["mcp", "list"], "dies.py", &[]).expect(5);
    assert!(listed.err.contains("fatal: SHOP_TOKEN is not set"), "{}", listed.err);
    assert_eq!(listed.out, "");
    let called = parsed(&call(&["--json", "anything"], "dies.py").expect(5));
    assert_eq!((&called["status"], &called["error"]["kind"]), (&json!("failed"), &json!("unavailable")));
}

#[test]
fn an_unreachable_server_is_reported_without_the_headers() {
    let header = "Authorization: Bearer sk-very-secret";
    let ended = desk().toolgate(&["mcp", "list", "http://127.0.0.1:9/mcp", "--header", header]).expect(5);
    assert!(ended.err.contains("could not be reached"), "{}", ended.err);
    let misplaced = desk().toolgate(&["mcp", "list", "shop", "--header", header]).expect(2);
    assert!(misplaced.err.contains("its configuration says how it is reached"), "{}", misplaced.err);
    for told in [&ended, &misplaced] {
        assert!(!format!("{}{}", told.out, told.err).contains("sk-very-secret"), "{}", told.err);
    }
}

#[test]
fn a_call_prints_its_result_to_stdout_and_progress_to_stderr() {
    let ended = desk().toolgate(&["mcp", "call", "shop", "get_invoice", r#"{"order_id": "A-1077"}"#]).expect(0);
    assert_eq!(ended.out, "Invoice for A-1077\ngrinder: 18900 cents\ntotal: 18900 cents\n");
    for told in ["… 1/3 asking the archive (", "… 3/3 reading the pages (", "✓ get_invoice answered in "] {
        assert!(ended.err.contains(told), "{told}: {}", ended.err);
    }
}

#[test]
fn a_tool_may_be_called_by_the_name_a_model_sees_and_structured_content_is_json() {
    let arguments = r#"{"customer_id": "C-1001"}"#;
    let ended = desk().toolgate(&["mcp", "call", "shop", "mcp_shop_get_loyalty", arguments]).expect(0);
    assert_eq!(serde_json::from_str::<Value>(&ended.out).unwrap(), json!({"points": 1280, "tier": "gold"}));
}

#[test]
fn arguments_come_from_a_file_or_from_standard_input_too() {
    let desk = desk();
    desk.write("arguments.json", r#"{"customer_id": "C-1001"}"#);
    let call = "toolgate mcp call shop get_loyalty";
    let (file, piped) =
        (desk.paste(&format!("{call} @arguments.json")), desk.paste(&format!("{call} - < arguments.json")));
    assert_eq!((file.expect(0).out.contains("1280"), piped.expect(0).out.contains("1280")), (true, true));
}

#[test]
fn invalid_arguments_are_reported_and_not_sent() {
    let arguments = r#"{"customer_id": 7}"#;
    let ended = desk().toolgate(&["mcp", "call", "shop", "add_note", arguments]).expect(4);
    for told in [
        "do not fit the inputSchema of `add_note`",
        "/customer_id: ",
        "\"text\" is a required property",
        "--no-validate",
    ] {
        assert!(ended.err.contains(told), "{told}: {}", ended.err);
    }
    assert_eq!(ended.out, "");
    let json = parsed(&desk().toolgate(&["mcp", "call", "shop", "add_note", arguments, "--json"]).expect(4));
    assert_eq!((&json["status"], json["problems"].as_array().map(Vec::len)), (&json!("invalid_arguments"), Some(2)));
    // `--no-validate` shows the server's own verdict.
    let sent = desk().toolgate(&["mcp", "call", "shop", "add_note", arguments, "--no-validate"]);
    assert!([3, 5].contains(&sent.code), "{} {}", sent.code, sent.err);
}

#[test]
fn a_tool_that_says_that_it_failed_has_a_code_of_its_own() {
    let ended = desk().toolgate(&["mcp", "call", "shop", "get_invoice", r#"{"order_id": "A-9999"}"#]).expect(3);
    assert!(ended.out.starts_with("there is no order A-9999"), "{}", ended.out);
    assert!(ended.err.contains("✗ get_invoice answered with an error in"), "{}", ended.err);
}

#[test]
fn a_result_that_is_not_what_was_declared_has_a_code_of_its_own() {
    let lies = call(&["lies"], "liar.py").expect(7);
    assert!(lies.err.contains("the result does not fit the tool's outputSchema:\n  /sum: "), "{}", lies.err);
    let forgets = parsed(&call(&["forgets", "--json"], "liar.py").expect(7));
    assert_eq!(forgets["problems"][0]["rule"], "structuredContent");
    call(&["keeps"], "liar.py").expect(0);
}

#[test]
fn a_result_with_broken_content_is_shown_with_what_is_wrong_and_has_that_code_too() {
    let broken = call(&["mumbles"], "liar.py").expect(7);
    assert!(broken.out.starts_with("three\n"), "{}", broken.out);
    let told = "error: the server `server` sent content that violates MCP:\n  /content/1/text: `text` is not a string, got 3\n  \
                /content/2/data: `data` is missing\n help: correct what the tool returns\n";
    assert!(broken.err.ends_with(told), "{}", broken.err);
    let json = parsed(&call(&["mumbles", "--json"], "liar.py").expect(7));
    let problems = json!([
        {"path": "/content/1/text", "rule": "unreadable_content", "message": "`text` is not a string", "received": 3},
        {"path": "/content/2/data", "rule": "unreadable_content", "message": "`data` is missing"},
    ]);
    assert_eq!((&json["status"], &json["problems"]), (&json!("invalid_result"), &problems));
    assert_eq!(json["result"]["problems"], json!(null), "told once");
}

#[test]
fn disconnects_refusals_and_timeouts_have_their_own_codes() {
    let died = call(&["die"], "worker.py").expect(5);
    assert!(died.err.contains("error: disconnected: ") && died.err.contains("the roof is on fire"), "{}", died.err);
    let refused = call(&["refuse"], "worker.py").expect(5);
    assert!(refused.err.contains("error: refused: ") && refused.err.contains("the till is closed"), "{}", refused.err);
    let silent = call(&["silent", "--timeout", "0.3"], "worker.py").expect(6);
    assert_eq!(
        silent.err,
        "error: timeout: the MCP server `server` gave no answer within the 0.3 s that were left for the call; the request \
         was cancelled\n help: --timeout SECONDS extends the time, this once\n"
    );
    assert_eq!(died.err.matches("the roof is on fire").count(), 1, "quoted once: {}", died.err);
}

#[test]
fn a_late_server_is_reported_with_the_flag_for_more_time() {
    let program = super::suspended_calls::fault_server();
    for (words, fault, told) in [
        (&["list"][..], "hang-at-start", "did not answer the handshake within 0.5 s; does it speak MCP on its stdin"),
        (&["list"], "hang-at-list", "raise its `start_timeout_s`, which also limits this, if it needs longer"),
        (&["call", "echo"], "hang-at-list", "raise its `start_timeout_s`, which also limits this"),
    ] {
        let server = ["--start-timeout", "0.5", "--", program.to_str().unwrap(), "--stdio", "--fault", fault];
        let ended = Desk::empty().toolgate(&[&["mcp"], words, &server[..]].concat()).expect(5);
        assert!(ended.err.contains(told), "{fault}: {}", ended.err);
        let help = " help: --start-timeout SECONDS extends the time, this once\n";
        assert!(ended.err.ends_with(help), "{fault}: {}", ended.err);
    }
}

#[test]
fn a_login_to_an_unknown_server_lists_the_known_ones() {
    let ended = desk().toolgate(&["mcp", "login", "shpo"]).expect(2);
    assert!(ended.err.contains("there is no MCP server `shpo`; configured are: shop"), "{}", ended.err);
}

#[test]
fn an_unknown_tool_lists_the_known_ones() {
    let ended = desk().toolgate(&["mcp", "call", "shop", "get_invoce"]).expect(2);
    assert!(
        ended.err.contains("there is no tool `get_invoce`; the server has: add_note, find_customer"),
        "{}",
        ended.err
    );
    let malformed = with_fixture(&["mcp", "call", "bare"], "lister.py", &["malformed"]).expect(2);
    assert!(malformed.err.contains("the tool `bare` cannot be used: its definition is malformed"), "{}", malformed.err);
    let unknown = desk().toolgate(&["mcp", "call", "shpo", "get_invoice"]).expect(2);
    assert!(unknown.err.contains("there is no MCP server `shpo`; configured are: shop"), "{}", unknown.err);
}

#[test]
fn a_server_is_given_its_variables_and_the_callers_trace_and_nothing_else() {
    let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let words = ["report", "--json", "--trace", header, "--env", "LEVEL=loud", "--env", "USER"];
    let report = &parsed(&call(&words, "worker.py").expect(0))["result"]["structured"];
    let environment = &report["environment"];
    assert_eq!((&environment["LEVEL"], &environment["USER"]), (&json!("loud"), &json!("kim")));
    assert_eq!(environment.get("COLUMNS"), None, "{environment}");
    let called = report["heard"].as_array().unwrap().iter().find(|heard| heard["method"] == "tools/call").unwrap();
    assert_eq!(called["params"]["_meta"]["traceparent"], header);
    let inherited =
        &parsed(&call(&["report", "--json", "--inherit-env"], "worker.py").expect(0))["result"]["structured"];
    assert_eq!(inherited["environment"]["COLUMNS"], "100");
}

#[test]
fn a_result_is_written_to_a_file_instead() {
    let desk = desk();
    let words = ["mcp", "call", "shop", "get_loyalty", r#"{"customer_id": "C-1001"}"#, "-o", "loyalty.json"];
    let ended = desk.toolgate(&words).expect(0);
    assert_eq!((ended.out.as_str(), ended.err.contains("written to loyalty.json")), ("", true));
    let written = std::fs::read_to_string(desk.path().join("loyalty.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap()["points"], 1280);
}

#[test]
fn ctrl_c_ends_a_call_and_the_server_with_it() {
    let desk = desk();
    let server = fixture("worker.py");
    let words: Vec<&str> = ["mcp", "call", "slow"].into_iter().chain(server.iter().map(String::as_str)).collect();
    let mut child = desk.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    assert!(line.contains("… 1 started"), "{line}");
    let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("interrupted"), "{rest}");
}

#[test]
fn a_server_that_logs_to_stdout_gets_a_warning_and_works() {
    let program = super::suspended_calls::fault_server();
    let server = ["mcp", "list", "--", program.to_str().unwrap(), "--stdio", "--fault", "stdout-garbage"];
    let ended = Desk::empty().toolgate(&server).expect(0);
    assert!(ended.err.contains("warning: it writes log lines to stdout ("), "{}", ended.err);
    assert!(ended.err.contains("they belong on stderr"), "{}", ended.err);
}

#[test]
fn a_protocol_version_can_be_asked_for() {
    let program = super::suspended_calls::fault_server();
    let listed = |version: &str| {
        let words = [
            "mcp",
            "list",
            "--json",
            "--protocol-version",
            version,
            "--",
            program.to_str().unwrap(),
            "--stdio",
            "--protocol-version",
            "both",
        ];
        parsed(&Desk::empty().toolgate(&words).expect(0))["server"]["protocol_version"].clone()
    };
    assert_eq!(
        (listed("2025-11-25"), listed("2026-07-28"), listed("auto")),
        (json!("2025-11-25"), json!("2026-07-28"), json!("2026-07-28"))
    );
}

const SERVERS: &str = r#"{"mcpServers": {
    "ghost": {"command": "no-such-program"},
    "dying": {"command": "sh", "args": ["-c", "echo 'no database' >&2; exit 3"]}
}}"#;

#[test]
fn the_status_of_all_servers_is_a_table_and_what_is_wrong_below_it() {
    let desk = desk();
    desk.write("mcp.json", SERVERS);
    let ended = desk.toolgate(&["mcp", "status", "--mcp-config", "mcp.json"]).expect(5);
    // The width of a column depends on how long the slowest server takes.
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    insta::assert_snapshot!(steady(&ended.out).lines().map(words).collect::<Vec<_>>().join("\n"));
    desk.toolgate(&["mcp", "status"]).expect(0);
}

#[test]
fn the_status_as_json_says_of_each_server_whether_it_is_ready() {
    let desk = desk();
    desk.write("mcp.json", SERVERS);
    let status =
        parsed(&desk.toolgate(&["mcp", "status", "--json", "shop", "dying", "--mcp-config", "mcp.json"]).expect(5));
    let told: Vec<_> =
        status["servers"].as_array().unwrap().iter().map(|row| (&row["id"], &row["ready"], &row["tools"])).collect();
    assert_eq!(told, [(&json!("dying"), &json!(false), &json!(0)), (&json!("shop"), &json!(true), &json!(5))]);
    let unknown = desk.toolgate(&["mcp", "status", "shpo"]).expect(2);
    assert!(unknown.err.contains("there is no MCP server `shpo`"), "{}", unknown.err);
}

#[test]
fn without_servers_the_status_says_what_to_do() {
    let ended = Desk::empty().toolgate(&["mcp", "status"]).expect(0);
    assert!(ended.err.contains("no MCP servers are configured"), "{}", ended.err);
}

#[test]
fn a_server_is_added_to_the_file_and_comments_stay() {
    let desk = Desk::empty();
    desk.toolgate(&["init", "--yes"]).expect(0);
    let file = || std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let before = file();
    let added = desk.toolgate(&["mcp", "add", "stock", "--", "toolgate", "demo-server"]).expect(0).out;
    for told in ["tools, ready after", "added server stock to toolgate.yaml", "agent assistant may use it"] {
        assert!(added.contains(told), "{told}: {added}");
    }
    assert!(!added.contains("--trusted"), "the policy asks whatever a server says: {added}");
    let after = file();
    assert!(after.contains("\n  stock:\n    stdio:\n") && after.contains("servers: [demo, stock]"), "{after}");
    let is_kept = |line: &&str| !line.contains("servers: [demo]");
    assert!(before.lines().filter(is_kept).all(|line| after.lines().any(|kept| kept == line)), "{after}");
    let forgotten = desk.toolgate(&["mcp", "add", "files", "npx", "-y", "server"]).expect(2).err;
    assert!(forgotten.contains("stands after `--`: toolgate mcp add files -- npx -y server"), "{forgotten}");
    let again = desk.toolgate(&["mcp", "add", "stock", "--url", "http://localhost:1/mcp"]).expect(2).err;
    assert!(again.contains("has a server `stock` already"), "{again}");
    let header = ["--header", "Authorization: Bearer sk-secret-12345678901234567890"];
    let secret = [&["mcp", "add", "crm", "--url", "http://localhost:1/mcp"][..], &header].concat();
    let secret = desk.toolgate(&secret).expect(2).err;
    assert!(secret.contains("`CRM_AUTHORIZATION` is not set") && !secret.contains("sk-secret"), "{secret}");
    let absent = desk.toolgate(&["mcp", "add", "gone", "--", "./no-such-program"]).expect(5).err;
    assert!(absent.contains("nothing was written") && file() == after, "{absent}");
    desk.toolgate(&["mcp", "add", "gone", "--unchecked", "--", "./no-such-program"]).expect(0);
    assert!(file().contains("servers: [demo, stock, gone]"), "{}", file());
    for name in ["gone", "stock"] {
        let removed = desk.toolgate(&["mcp", "remove", name]).expect(0).out;
        assert!(removed.contains(&format!("removed server {name} from toolgate.yaml")), "{removed}");
    }
    assert_eq!(file(), before, "what was added is removed, and nothing else");
    let config = ["--config", "trusted.yaml"];
    std::fs::write(desk.path().join("trusted.yaml"), &before).unwrap();
    let add = [&["mcp", "add", "sure", "--trusted"][..], &config, &["--", "toolgate", "demo-server"]].concat();
    desk.toolgate(&add).expect(0);
    let written = std::fs::read_to_string(desk.path().join("trusted.yaml")).unwrap();
    let trusted = |text: &str| text.matches("\n    trusted: true\n").count();
    assert_eq!(trusted(&written), trusted(&before) + 1, "{written}");
    let unknown = desk.toolgate(&["mcp", "remove", "stock"]).expect(2).err;
    assert!(unknown.contains("has no server `stock`") && unknown.contains("it has: demo"), "{unknown}");
    let token = ["mcp", "add", "crm", "--env", "CRM_TOKEN=new-4711", "--unchecked", "--", "./no-such-program"];
    let other = Ended::from(desk.command(&token).env("CRM_TOKEN", "old-0815").output().unwrap()).expect(2).err;
    assert!(other.contains("`CRM_TOKEN` has another value") && !other.contains("4711"), "{other}");
    assert!(desk.command(&token).env("CRM_TOKEN", "new-4711").output().unwrap().status.success());
}

#[test]
fn trust_is_mentioned_where_the_policy_would_believe_the_hints_of_the_added_server() {
    let desk = Desk::empty();
    desk.toolgate(&["init", "--policy", "accept-edits"]).expect(0);
    let add = |id: &str, flags: &[&str]| {
        desk.toolgate(&[&["mcp", "add", id], flags, &["--", "toolgate", "demo-server"]].concat()).expect(0).out
    };
    let added = add("stock", &[]);
    assert!(added.contains("believes hints (readOnlyHint, …) only of trusted servers: with --trusted"), "{added}");
    assert!(!add("sure", &["--trusted"]).contains("believes hints"));
}

#[test]
fn a_file_in_another_form_is_left_to_its_author() {
    let desk = Desk::playing("turns: [{ say: done }]");
    let refused = desk.toolgate(&["mcp", "add", "stock", "--", "toolgate", "demo-server"]).expect(2).err;
    assert!(refused.contains("nothing was written") && refused.contains("  stock:"), "{refused}");
    let one_line = "servers:\n  shop:\n    stdio: { command: toolgate, args: [demo-server] }\nagents: { desk: { servers: [shop] } }\n";
    desk.write("one-line.yaml", one_line);
    let add = ["mcp", "add", "stock", "--agent", "desk", "--config", "one-line.yaml", "--", "toolgate", "demo-server"];
    let refused = desk.toolgate(&add).expect(2).err;
    assert!(refused.contains("add `stock` to the `servers` of agent `desk`"), "{refused}");
    assert_eq!(std::fs::read_to_string(desk.path().join("one-line.yaml")).unwrap(), one_line);
    let refused = desk.toolgate(&["mcp", "remove", "shop"]).expect(2).err;
    assert!(refused.contains("nothing was written") && refused.contains("remove `shop` below `servers:`"), "{refused}");
}
