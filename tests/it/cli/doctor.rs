//! `toolgate doctor`: what is configured, reachable and missing.

use serde_json::{Value, json};

use super::costs::toolgate;
use super::desk::{Desk, Ended};
use crate::models::model_server::{ModelServer, Prepared};

fn report(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {} {}", ended.out, ended.err))
}

/// The findings of a section, each with its verdict and its subject.
fn verdicts(report: &Value, section: &str) -> Vec<(String, String)> {
    let findings = report["findings"].as_array().unwrap().iter().filter(|finding| finding["section"] == section);
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    findings.map(|finding| (text(finding, "verdict"), text(finding, "subject"))).collect()
}

fn finding(report: &Value, subject: &str) -> Value {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["subject"] == subject).cloned().unwrap_or_else(|| panic!("{report:#}"))
}

fn pair(verdict: &str, subject: &str) -> (String, String) {
    (verdict.into(), subject.into())
}

/// A desk whose model is at that address.
fn asking(base_url: &str) -> Desk {
    let desk = Desk::empty();
    let model = format!("{{ openai_chat: {{ base_url: '{base_url}', api_key: sk-very-secret, model: m }} }}");
    desk.write("toolgate.yaml", &format!("models: {{ main: {model} }}\n"));
    desk
}

#[test]
fn a_sound_configuration_has_no_failed_check_and_no_store_afterwards() {
    let desk = Desk::playing("turns: [{ say: Done. }]");
    let report = report(&desk.toolgate(&["doctor", "--json"]).expect(0));
    assert_eq!(report["ok"], true);
    assert_eq!(verdicts(&report, "configuration"), [pair("ok", "file")]);
    assert_eq!(verdicts(&report, "models"), [pair("ok", "played")]);
    assert_eq!(verdicts(&report, "servers"), [pair("ok", "shop")]);
    assert_eq!(verdicts(&report, "store"), [pair("ok", "SQLite")]);
    assert!(!desk.path().join(".toolgate").exists(), "the doctor created the store");
    let shown = desk.toolgate(&["doctor"]).expect(0).out;
    for told in ["MCP servers\n  ✓ shop", "· traces", "does not exist yet", "no check failed"] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
}

#[test]
fn a_server_that_does_not_start_fails_with_its_fault_and_the_remedy() {
    let desk = Desk::playing("turns: [{ say: Done. }]");
    desk.write("toolgate.yaml", "servers: { ghost: { stdio: { command: no-such-program } } }\nmodels: { played: { scripted: { file: conversation.yaml } } }\n");
    let ended = desk.toolgate(&["doctor"]).expect(1);
    assert!(ended.out.contains("✗ ghost") && ended.out.contains("no-such-program"), "{}", ended.out);
    assert!(ended.out.contains("help: `toolgate mcp status ghost`"), "{}", ended.out);
    assert!(ended.out.contains("1 check failed"), "{}", ended.out);
}

#[test]
fn the_line_with_which_a_server_ends_is_shown_to_its_end() {
    let desk = Desk::playing("turns: [{ say: Done. }]");
    let script = format!("echo loading {} >&2; echo 'KeyError: NOTES_FOLDER is missing' >&2; exit 1", "x".repeat(300));
    let config = json!({
        "servers": {"notes": {"stdio": {"command": "sh", "args": ["-c", script]}}},
        "models": {"played": {"scripted": {"file": "conversation.yaml"}}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    let ended = desk.toolgate(&["doctor"]).expect(1);
    assert!(ended.out.contains("\n    |   KeyError: NOTES_FOLDER is missing\n"), "{}", ended.out);
}

#[test]
fn without_a_configuration_keys_are_named_and_editors_files_are_found() {
    let desk = Desk::empty();
    desk.write(".mcp.json", r#"{"mcpServers": {"git": {"command": "uvx", "env": {"GIT_TOKEN": "hunter2"}}}}"#);
    let mut command = desk.command(&["doctor"]);
    // The address is one where nothing listens: no key leaves this machine.
    command.env("OPENAI_API_KEY", "sk-very-secret").env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let ended = Ended::from(command.output().unwrap()).expect(1);
    for told in [
        "there is no toolgate.yaml here",
        "set: OPENAI_API_KEY",
        ".mcp.json: git",
        "Next: toolgate init",
        "127.0.0.1:9 cannot be reached",
    ] {
        assert!(ended.out.contains(told), "{told}: {}", ended.out);
    }
    assert!(!ended.out.contains("sk-very-secret") && !ended.out.contains("hunter2"), "{}", ended.out);
}

#[test]
fn without_any_model_the_remedy_names_the_variables() {
    let report = report(&Desk::empty().toolgate(&["doctor", "--json"]).expect(1));
    let model = finding(&report, "environment");
    assert_eq!((&model["verdict"], &report["ok"]), (&json!("failed"), &json!(false)));
    assert!(model["remedy"].as_str().unwrap().contains("OPENAI_API_KEY"), "{model}");
}

#[test]
fn a_script_that_stands_in_for_a_model_is_a_warning() {
    let desk = Desk::empty();
    desk.toolgate(&["init"]).expect(0);
    let report = report(&desk.toolgate(&["doctor", "--json"]).expect(0));
    let model = finding(&report, "auto");
    assert_eq!(model["verdict"], "warning");
    assert!(model["message"].as_str().unwrap().contains("plays the script"), "{model}");
}

#[test]
fn an_unusable_configuration_is_the_finding_and_nothing_else_is_judged() {
    let desk = Desk::empty();
    desk.write("toolgate.yaml", "agents:\n  desk:\n    instruction: Be kind.\n");
    let report = report(&desk.toolgate(&["doctor", "--json"]).expect(2));
    assert_eq!(verdicts(&report, "configuration"), [pair("failed", "file"), pair("unknown", "not checked")]);
    assert!(finding(&report, "file")["message"].as_str().unwrap().contains("toolgate.yaml:3:5"), "{report:#}");
    assert_eq!(verdicts(&report, "models"), []);
}

#[tokio::test]
async fn a_listed_model_is_reachable_and_its_key_is_not_judged_by_a_public_list() {
    let server = ModelServer::answering([Prepared::json(r#"{"data": [{"id": "m"}]}"#)]).await;
    let report = report(&toolgate(&asking(&server.base_url), &["doctor", "--json"]).await.expect(0));
    let model = finding(&report, "main");
    assert_eq!(model["verdict"], "ok");
    assert!(model["message"].as_str().unwrap().contains("whether the key is valid is not known"), "{model}");
    assert_eq!(server.asked()[0].path, "/v1/models", "and no model was called");
}

#[tokio::test]
async fn a_rejected_key_fails_and_a_missing_list_leaves_the_result_open() {
    let server = ModelServer::answering([Prepared::json("{}").status(401), Prepared::json("{}").status(404)]).await;
    let desk = asking(&server.base_url);
    let rejected = toolgate(&desk, &["doctor"]).await.expect(1).out;
    assert!(rejected.contains("✗ main") && rejected.contains("rejects the key (HTTP 401)"), "{rejected}");
    let open = report(&toolgate(&desk, &["doctor", "--json"]).await.expect(0));
    let model = finding(&open, "main");
    assert_eq!(model["verdict"], "unknown");
    assert!(model["remedy"].as_str().unwrap().contains("toolgate models check main"), "{model}");
}

#[test]
fn an_existing_store_is_tested_and_interrupted_runs_are_counted() {
    let desk = Desk::playing("turns: [{ say: Done. }]");
    desk.toolgate(&["run", "Hello"]).expect(0);
    let store = report(&desk.toolgate(&["doctor", "--json"]).expect(0));
    assert_eq!(verdicts(&store, "store"), [pair("ok", "SQLite"), pair("ok", "runs")]);
    desk.write(".toolgate/toolgate.db", "no database");
    let broken = report(&desk.toolgate(&["doctor", "--json"]).expect(1));
    assert_eq!(verdicts(&broken, "store"), [pair("failed", "SQLite")]);
}

#[test]
fn a_fault_of_a_setting_is_not_a_fault_of_the_store() {
    let desk = Desk::playing("turns: [{ say: Done. }]");
    desk.toolgate(&["run", "Hello"]).expect(0);
    let settings = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write(
        "toolgate.yaml",
        &format!("{settings}telemetry: {{ otlp_endpoint: 'http://me:hunter2@127.0.0.1:9' }}\n"),
    );
    let report = report(&desk.toolgate(&["doctor", "--json"]).expect(1));
    assert_eq!(verdicts(&report, "configuration"), [pair("ok", "file"), pair("failed", "setting")]);
    assert_eq!(verdicts(&report, "store"), [pair("unknown", "SQLite")]);
    assert!(!report.to_string().contains("hunter2"), "{report:#}");
}

#[test]
fn a_receiver_that_is_not_there_and_a_taken_port_are_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let desk = Desk::playing("turns: [{ say: Done. }]");
    let settings = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let listen = format!("gateway: {{ listen: '{}' }}\n", taken.local_addr().unwrap());
    desk.write("toolgate.yaml", &format!("{settings}{listen}telemetry: {{ otlp_endpoint: 'http://127.0.0.1:9' }}\n"));
    let report = report(&desk.toolgate(&["doctor", "--json"]).expect(0));
    assert_eq!(verdicts(&report, "telemetry"), [pair("warning", "traces")]);
    assert_eq!(verdicts(&report, "gateway"), [pair("unknown", "address"), pair("note", "API keys")]);
}
