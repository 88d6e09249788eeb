//! Model fallback as the user at the terminal sees it.

use super::desk::{Desk, Ended};

const CONFIG: &str = "
models:
  main: { scripted: { file: main.yaml } }
  backup: { scripted: { file: backup.yaml } }
servers: { shop: { stdio: { command: toolgate, args: [demo-server] }, trusted: true } }
agents:
  desk: { model: main, fallback: [{ model: backup, attempts: 1 }], servers: [shop], policy: accept-edits }
";
const MAIN: &str = "
turns:
  - fail: { code: provider_auth, message: the key is refused }
";
const BACKUP: &str = "
turns:
  - calls: [{ name: mcp_shop_find_customer, arguments: { name: Ada } }]
  - { say: She is C-1001. }
";

#[test]
fn rows_0_19_and_3_26_the_result_names_the_models_and_the_exit_code() {
    let desk = desk();
    let ended = desk.toolgate(&["run", "--json", "Who is Ada?"]).expect(0);
    let result = ended.json_lines().pop().unwrap();
    assert_eq!(result["models"], serde_json::json!(["backup"]), "{result}");
    assert_eq!((&result["summary"], &result["exit_code"]), (&"She is C-1001.".into(), &0.into()), "{result}");
    assert!(result["duration_ms"].is_u64(), "{result}");
    let row = desk.toolgate(&["runs", "list", "--json"]).expect(0).json_lines().remove(0);
    for member in ["models", "summary", "exit_code", "duration_ms", "iterations"] {
        assert_eq!(row[member], result[member], "{member}");
    }
    let table = desk.toolgate(&["runs", "list"]).expect(0).out;
    assert!(table.contains("STATUS") && table.contains("DURATION"), "{table}");
}

fn desk() -> Desk {
    let desk = Desk::empty();
    desk.write("toolgate.yaml", CONFIG);
    desk.write("main.yaml", MAIN);
    desk.write("backup.yaml", BACKUP);
    desk
}

/// The lines of standard error that name a model.
fn about_models(ended: &Ended) -> Vec<&str> {
    let lines = ended.err.lines().map(str::trim);
    lines.filter(|line| line.contains("model ") || line.contains("model:")).collect()
}

#[test]
fn the_live_view_names_the_fallback_and_the_answering_model() {
    let ended = desk().toolgate(&["run", "Who is Ada?"]).expect(0);
    assert_eq!(ended.out, "She is C-1001.\n");
    let [began, failed, instead, called, answered] = about_models(&ended)[..] else { panic!("{}", ended.err) };
    assert!(began.contains("model main"), "{began}");
    assert!(failed.contains("provider_auth: the key is refused"), "{failed}");
    assert_eq!(instead, "asking model backup instead of main, attempt 2");
    for line in [called, answered] {
        assert!(line.starts_with("model backup: "), "{line}");
    }
}

#[test]
fn the_events_name_the_model_of_each_attempt() {
    let ended = desk().toolgate(&["run", "--json", "Who is Ada?"]).expect(0);
    let lines = ended.json_lines();
    let told = lines.iter().filter(|line| line["type"].as_str().is_some_and(|name| name.starts_with("llm.call.")));
    let told: Vec<String> = told
        .map(|line| {
            let word = |key: &str| line[key].as_str().map(|word| format!(" {word}")).unwrap_or_default();
            let fallback = if line["fallback"] == true { " fallback" } else { "" };
            format!("{}{}{}{fallback}", line["type"].as_str().unwrap(), word("model"), word("instead_of"))
        })
        .collect();
    let expected = [
        "llm.call.started main",
        "llm.call.failed main",
        "llm.call.retrying backup main",
        "llm.call.started backup fallback",
        "llm.call.completed backup fallback",
        "llm.call.started backup fallback",
        "llm.call.completed backup fallback",
    ];
    assert_eq!(told, expected);
}

#[test]
fn show_names_the_fallback_model_that_answered() {
    let desk = desk();
    let run = desk.toolgate(&["run", "--json", "Who is Ada?"]).expect(0).result()["run_id"].clone();
    let shown = desk.toolgate(&["runs", "show", run.as_str().unwrap()]).expect(0).out;
    let turns: Vec<&str> = shown.lines().filter(|line| line.starts_with("turn ")).collect();
    assert_eq!(turns.len(), 2, "{shown}");
    assert!(turns.iter().all(|turn| turn.contains("model backup")), "{shown}");
    assert!(shown.contains("✗ model main: provider_auth: the key is refused"), "{shown}");
}

#[test]
fn row_0_58_the_failure_in_the_result_names_run_agent_model_and_attempt() {
    let desk = desk();
    desk.write("backup.yaml", "turns: [{ fail: { code: provider_unavailable, message: it is down } }]");
    let result = desk.toolgate(&["run", "--json", "Who is Ada?"]).expect(1).result();
    let context = serde_json::json!({
        "run_id": result["run_id"], "agent": "desk", "model": "backup", "attempt": 2,
    });
    assert_eq!(result["error"]["context"], context, "{result}");
}

#[test]
fn a_run_with_no_fallback_left_reports_it() {
    let desk = desk();
    desk.write("backup.yaml", "turns: [{ fail: { code: provider_unavailable, message: it is down } }]");
    let ended = desk.toolgate(&["run", "Who is Ada?"]).expect(1);
    assert!(ended.err.contains("it is down (this is the last failure; 2 models were tried)"), "{}", ended.err);
}
