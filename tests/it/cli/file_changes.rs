//! Files that calls change without a question, as a terminal shows them.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};

use super::at_a_terminal::at_a_terminal;
use super::command_grants::SERVER;
use super::desk::Desk;

fn write(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

/// A desk whose model makes these calls in one turn. The server writes each file in the folder that `FOLDER` names, with
/// `actual` in place of the content if it is there, and answers with `reply`.
fn writing(folder: &str, arguments: &[Value]) -> Desk {
    let call = |arguments| json!({"name": "mcp_work_write_file", "arguments": arguments});
    let calls: Vec<_> = arguments.iter().map(call).collect();
    let desk = Desk::playing(&json!({"turns": [{"calls": calls}, {"say": "All written."}]}).to_string());
    let server = SERVER
        .replace(r#""name": "run_command""#, r#""name": "write_file""#)
        .replace(r#""required": ["command"]"#, r#""required": ["path"]"#)
        .replace("import json, sys", "import json, os, sys")
        .replace(
            r#"        result = {"content": [{"type": "text", "text": "ran " + asked["arguments"]["command"]}]}"#,
            r#"        given = asked["arguments"]
        if "content" in given:
            open(os.path.join(os.environ["FOLDER"], given["path"]), "w").write(given.get("actual", given["content"]))
        result = {"content": [{"type": "text", "text": given.get("reply", "written")}]}"#,
        );
    desk.write("server.py", &server);
    let stdio = json!({"command": "python3", "args": ["-B", "server.py"], "env": {"FOLDER": folder}});
    let config = json!({
        "models": {"played": {"scripted": {"file": "conversation.yaml"}}},
        "servers": {"work": {"stdio": stdio}},
        "agents": {"desk": {"servers": ["work"], "policy": "bypass"}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    desk
}

#[test]
fn a_file_written_without_a_question_is_shown_as_the_difference_from_its_former_text() {
    let desk = writing(".", &[write("a.txt", "one\nTwo\n"), write("new.txt", "fresh\n")]);
    desk.write("a.txt", "one\ntwo\n");
    let screen = at_a_terminal(&desk, &["run", "Write"], &[("All written.", "")]).expect(0);
    for line in ["- two", "+ Two", "+ fresh"] {
        assert!(screen.text.contains(line), "{line:?}: {}", screen.text);
    }
}

#[test]
fn a_file_that_the_server_wrote_otherwise_than_the_call_says_is_shown_as_it_is() {
    let change = json!({"path": "a.txt", "content": "one\nTwo\n", "actual": "eins\nTwo\n"});
    let screen = at_a_terminal(&writing(".", &[change]), &["run", "Write"], &[("All written.", "")]).expect(0);
    for line in ["! the file changed otherwise than the call says:", "+ eins", "+ Two"] {
        assert!(screen.text.contains(line), "{line:?}: {}", screen.text);
    }
}

#[test]
fn a_file_of_another_folder_is_not_taken_for_the_written_one() {
    let desk = writing("elsewhere", &[write("a.txt", "one\nTwo\n")]);
    std::fs::create_dir(desk.path().join("elsewhere")).unwrap();
    desk.write("a.txt", "one\ntwo\n");
    let screen = at_a_terminal(&desk, &["run", "Write"], &[("All written.", "")]).expect(0);
    assert!(screen.text.contains("| Two") && !screen.text.contains("- two"), "{}", screen.text);
}

#[test]
fn only_the_difference_that_a_server_returns_for_a_changed_file_is_left_out() {
    let change = json!({"path": "a.txt", "content": "one\n", "reply": "diff --git a b\n+one"});
    let command = json!({"path": "a.txt", "reply": "diff --git c d\n+two"});
    let screen = at_a_terminal(&writing(".", &[change, command]), &["run", "Write"], &[("All written.", "")]).expect(0);
    assert!(screen.text.contains("diff --git c d") && !screen.text.contains("diff --git a b"), "{}", screen.text);
}
