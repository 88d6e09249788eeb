//! A pending run that moves from one machine to another as a file.

use serde_json::Value;

use super::desk::Desk;

const NOTE: &str = "
turns:
  - { calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }] }
  - { say: '{{last_result}}' }
";

/// A separate machine: the same configuration, another store.
fn machine() -> Desk {
    let desk = Desk::playing(NOTE);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let keys = "envelope: { keys: [{ id: k1, hmac: a secret of more than enough bytes to be one }] }\n";
    desk.write("toolgate.yaml", &format!("{config}{keys}"));
    desk
}

/// The envelope of a run that requires approval for a note.
fn handed_out() -> String {
    let desk = machine();
    desk.toolgate(&["run", "Note it"]).expect(10);
    let ended = desk.toolgate(&["runs", "export", "last", "--signed", "-o", "run.json"]).expect(0);
    assert!(ended.err.contains("good until"), "{}", ended.err);
    std::fs::read_to_string(desk.path().join("run.json")).unwrap()
}

#[test]
fn another_machine_resumes_the_run_once() {
    let envelope = handed_out();
    let elsewhere = machine();
    elsewhere.write("run.json", &envelope);

    let approve = ["resume", "--envelope", "run.json", "--approve", "note", "--json"];
    let ended = elsewhere.toolgate(&approve).expect(0);

    assert_eq!(ended.result()["status"], "completed");
    assert!(ended.json_lines().iter().all(|line| line["type"] != "execution.started"), "only new events are printed");
    assert_eq!(elsewhere.toolgate(&approve).expect(0).result()["status"], "completed");
    let spent = elsewhere.toolgate(&["resume", "--envelope", "run.json", "--deny", "note"]).expect(1);
    assert!(spent.err.contains("outdated"), "{}", spent.err);
    let started = elsewhere.journal("last").iter().filter(|fact| fact["type"] == "tool.started").count();
    assert_eq!(started, 1);
}

#[test]
fn an_altered_envelope_is_rejected_and_creates_no_run() {
    let mut envelope: Value = serde_json::from_str(&handed_out()).unwrap();
    envelope["pending"][0]["arguments"]["customer_id"] = "C-1002".into();
    let elsewhere = machine();
    elsewhere.write("run.json", &envelope.to_string());

    let refused = elsewhere.toolgate(&["resume", "--envelope", "run.json", "--approve", "note"]).expect(2);

    assert!(refused.err.contains("was changed after the export"), "{}", refused.err);
    assert_eq!(elsewhere.toolgate(&["runs", "list", "--json"]).expect(0).json_lines().len(), 0);
}

#[test]
fn a_rejected_envelope_is_the_last_line_of_json_with_a_code() {
    let mut envelope: Value = serde_json::from_str(&handed_out()).unwrap();
    let elsewhere = machine();
    elsewhere.write("run.json", &envelope.to_string());
    elsewhere.toolgate(&["resume", "--envelope", "run.json", "--approve", "note"]).expect(0);

    let spent =
        elsewhere.toolgate(&["resume", "--envelope", "run.json", "--deny", "note", "--json"]).expect(1).result();
    assert_eq!((&spent["status"], &spent["error"]["code"]), (&"completed".into(), &"conflict".into()), "{spent}");
    assert_eq!(spent["run_id"], envelope["run_id"]);

    envelope["pending"] = Value::Array(Vec::new());
    for text in [envelope.to_string(), "{}".to_owned()] {
        elsewhere.write("run.json", &text);
        let ended = elsewhere.toolgate(&["resume", "--envelope", "run.json", "--deny", "note", "--json"]).expect(2);
        let (result, line) = (ended.result(), &ended.err);
        assert_eq!(
            (&result["status"], &result["error"]["code"]),
            (&"failed".into(), &"invalid_request".into()),
            "{line}"
        );
    }
}

#[test]
fn a_flag_answers_a_question_of_the_model_in_an_envelope() {
    let ask = "{ id: ask, name: ask_human, arguments: { question: Which?, options: [red, blue], free_text: false } }";
    let asking = || {
        let desk = machine();
        desk.write("conversation.yaml", &format!("turns: [{{ calls: [{ask}] }}, {{ say: '{{{{last_result}}}}' }}]"));
        let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
        desk.write("toolgate.yaml", &config.replace("    policy:", "    ask_human: true\n    policy:"));
        desk
    };
    let desk = asking();
    desk.toolgate(&["run", "Ask"]).expect(10);
    desk.toolgate(&["runs", "export", "last", "--signed", "-o", "run.json"]).expect(0);
    let elsewhere = asking();
    elsewhere.write("run.json", &std::fs::read_to_string(desk.path().join("run.json")).unwrap());

    let ended = elsewhere.toolgate(&["resume", "--envelope", "run.json", "--answer", "ask=blue"]).expect(0);

    assert_eq!(ended.out, "blue\n");
}

#[test]
fn an_export_without_keys_fails_with_a_remedy() {
    let desk = Desk::playing(NOTE);
    desk.toolgate(&["run", "Note it"]).expect(10);

    let refused = desk.toolgate(&["runs", "export", "last", "--signed"]).expect(2);

    assert!(refused.err.contains("envelope.keys"), "{}", refused.err);
}

#[test]
fn config_check_finds_a_weak_key() {
    let desk = machine();
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.toolgate(&["config", "check"]).expect(0);
    desk.write("toolgate.yaml", &config.replace("a secret of more than enough bytes to be one", "guess-me"));

    let refused = desk.toolgate(&["config", "check"]).expect(2);

    assert!(refused.err.contains("`k1`") && refused.err.contains("at least 32 bytes"), "{}", refused.err);
    assert!(!refused.err.contains("guess-me"), "{}", refused.err);
}

#[cfg(unix)]
#[test]
fn an_envelope_file_is_private_and_never_overwrites() {
    use std::os::unix::fs::PermissionsExt;
    let desk = machine();
    desk.toolgate(&["run", "Note it"]).expect(10);
    desk.toolgate(&["runs", "export", "last", "--signed", "-o", "run.json"]).expect(0);

    let mode = std::fs::metadata(desk.path().join("run.json")).unwrap().permissions().mode();

    assert_eq!(mode & 0o777, 0o600);
    let refused = desk.toolgate(&["runs", "export", "last", "--signed", "-o", "run.json"]).expect(2);
    assert!(
        refused.err.contains("`run.json` already exists") && refused.err.contains("another name"),
        "{}",
        refused.err
    );
}

#[test]
fn repeated_answers_report_the_earlier_resume() {
    let envelope = handed_out();
    let elsewhere = machine();
    elsewhere.write("run.json", &envelope);
    let approve = ["resume", "--envelope", "run.json", "--approve", "note"];
    let first = elsewhere.toolgate(&approve).expect(0);
    assert!(!first.err.contains("already"), "{}", first.err);
    let again = elsewhere.toolgate(&approve).expect(0);
    assert!(again.err.contains("was resumed with these answers already; this is what happened:"), "{}", again.err);
}
