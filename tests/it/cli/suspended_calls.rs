//! Suspended calls: calls that wait for an answer or continue as a task, and how the command line shows and resumes
//! them.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use super::desk::{Desk, person, steady};

const ECHO: &str = "
turns:
  - { calls: [{ id: echo, name: mcp_odd_echo, arguments: { text: hi } }] }
  - { say: '{{last_result}}' }
";

/// The fault server, which misbehaves on command.
pub(super) fn fault_server() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_toolgate")).parent().unwrap().join("examples/fault_server");
    let remedy = "build it with `cargo build --example fault_server`, or run all of `cargo test`";
    assert!(program.exists(), "{} is missing: {remedy}", program.display());
    program
}

/// An agent with a server that has this fault.
fn desk(era: &str, fault: &str) -> Desk {
    let desk = Desk::playing(ECHO);
    let server = json!({"command": fault_server(), "args": ["--stdio", "--protocol-version", era, "--fault", fault]});
    let config = json!({
        "lease_s": 1,
        "models": {"played": {"scripted": {"file": "conversation.yaml"}}},
        "servers": {"odd": {"stdio": server}},
        "agents": {"desk": {"servers": ["odd"], "policy": "bypass"}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    desk
}

#[test]
fn a_question_of_a_server_is_listed_with_its_command_in_both_eras() {
    for era in ["2025-11-25", "2026-07-28"] {
        let desk = desk(era, "elicits");
        let ended = desk.toolgate(&["run", "Say hi"]).expect(10);
        for told in ["Who is asking?", "name: text, at least 1 character, required", "(or --decline echo)"] {
            assert!(ended.err.contains(told), "{told}: {}", ended.err);
        }
        let command = ended.offered_command();
        assert!(command.contains(r#"--answer 'echo={"name":"VALUE"}'"#), "{command}");
        let resumed = desk.paste(&command.replace("VALUE", "Ada")).expect(0);
        assert!(resumed.out.contains("hello, Ada"), "{}", resumed.out);
        assert!(resumed.err.contains(&format!("mcp_odd_echo answered by {}", person())), "{}", resumed.err);
    }
}

#[test]
fn a_question_of_a_server_is_shown_and_answered_among_the_approvals() {
    let desk = desk("2026-07-28", "elicits");
    desk.toolgate(&["run", "Say hi"]).expect(10);
    let shown = desk.toolgate(&["approvals", "show", "last"]).expect(0).out;
    assert!(shown.contains("waits for answers to its server") && shown.contains("Who is asking?"), "{shown}");
    let offered = shown.lines().find(|line| line.contains("approvals answer")).unwrap().trim();
    let wrong = desk.toolgate(&["approvals", "answer", "last", "echo", "Ada"]).expect(2);
    assert!(wrong.err.contains("call `echo`: not JSON"), "{}", wrong.err);
    let answered = desk.paste(&format!("{} --by ann", offered.replace("VALUE", "Ada"))).expect(0);
    assert!(answered.out.contains("hello, Ada") && answered.err.contains("answered by ann"), "{}", answered.err);
}

#[test]
fn only_a_server_is_declined_and_not_the_model() {
    let ask = "{ id: ask, name: ask_human, arguments: { question: Which? } }";
    let desk = Desk::playing(&format!("turns: [{{ calls: [{ask}] }}, {{ say: done }}]"));
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &config.replace("    policy:", "    ask_human: true\n    policy:"));
    desk.toolgate(&["run", "Ask"]).expect(10);
    let declined = desk.toolgate(&["resume", "last", "--decline", "ask"]).expect(2);
    assert!(declined.err.contains("call `ask` waits for an answer to the model's question"), "{}", declined.err);
    desk.toolgate(&["resume", "last", "--answer", "ask=red"]).expect(0);
}

#[test]
fn a_question_that_is_declined_is_no_answer() {
    let desk = desk("2026-07-28", "elicits");
    desk.toolgate(&["run", "Say hi"]).expect(10);
    let resumed = desk.toolgate(&["resume", "last", "--decline", "echo"]).expect(0);
    assert!(resumed.err.contains(&format!("mcp_odd_echo declined by {}", person())), "{}", resumed.err);
    assert!(resumed.out.contains("the answer has no name: decline"), "{}", resumed.out);
}

#[test]
fn a_file_answers_by_the_servers_keys_and_a_wrong_key_is_refused() {
    let desk = desk("2026-07-28", "elicits");
    let pending = desk.toolgate(&["run", "--json", "Say hi"]).expect(10).result();
    assert_eq!(pending["pending"][0]["type"], "elicitation");
    assert_eq!(pending["pending"][0]["questions"]["who"]["message"], "Who is asking?");
    let file = |key: &str| {
        let answers = json!({key: {"action": "accept", "content": {"name": "Ada"}}});
        desk.write(
            "answers.json",
            &json!({"answers": [{"type": "elicitation", "call_id": "echo", "responses": answers}]}).to_string(),
        );
        desk.toolgate(&["resume", "last", "--json", "--file", "answers.json"])
    };
    let refused = file("other").expect(1);
    assert!(refused.err.contains("answer `other`, which was not asked; asked are: `who`"), "{}", refused.err);
    let result = file("who").expect(0).result();
    assert!(result["output"]["text"].as_str().unwrap().contains("hello, Ada"), "{result}");
}

#[test]
fn answers_without_a_question_are_reported_by_call() {
    let desk = desk("2026-07-28", "elicits");
    desk.toolgate(&["run", "Say hi"]).expect(10);
    let text = desk.toolgate(&["resume", "last", "--answer", "echo=Ada"]).expect(2);
    assert!(text.err.contains("--answer echo: not JSON"), "{}", text.err);
    let unknown = desk.toolgate(&["resume", "last", "--answer", "ohce={}"]).expect(2);
    assert!(unknown.err.contains("call `ohce` is not a call of this run that waits"), "{}", unknown.err);
    let kind = desk.toolgate(&["resume", "last", "--approve", "echo"]).expect(2);
    assert!(kind.err.contains("call `echo` waits for"), "{}", kind.err);
}

#[test]
fn the_same_answer_fits_a_repeated_question() {
    let desk = desk("2026-07-28", "elicits-forever");
    desk.toolgate(&["run", "Say hi"]).expect(10);
    let answer = ["resume", "last", "--answer", r#"echo={"name": "Ada"}"#];
    let rounds = |desk: &Desk| desk.journal("last").iter().filter(|fact| fact["type"] == "tool.input.required").count();
    desk.toolgate(&answer).expect(10);
    desk.toolgate(&answer).expect(10);
    assert_eq!(rounds(&desk), 3);
}

#[test]
fn a_task_is_listed_with_how_to_wait_for_it_and_waiting_ends_with_its_result() {
    let desk = desk("2026-07-28", "task=4");
    let ended = desk.toolgate(&["run", "Say hi"]).expect(10);
    for told in [
        "pending: the run waits for 1 task",
        "runs at its server as task-1",
        "no answer is required; wait for it with:",
    ] {
        assert!(ended.err.contains(told), "{told}: {}", ended.err);
    }
    assert_eq!(ended.err.matches("--wait").count(), 1, "{}", ended.err);
    // A server that is restarted for each command has no tasks; this test polls the server while it lives.
    let waited = desk.toolgate(&["run", "--wait", "Say hi"]).expect(0);
    assert_eq!(waited.out, "hi\n");
    assert!(waited.err.contains("waits for the task of mcp_odd_echo"), "{}", waited.err);
}

#[test]
fn json_reports_the_wait_and_the_result() {
    let ended = desk("2026-07-28", "task=3").toolgate(&["run", "--json", "--wait", "Say hi"]).expect(0);
    let lines = ended.json_lines();
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    let place = |name: &str| types.iter().position(|kind| *kind == name).unwrap_or_else(|| panic!("{name}: {types:?}"));
    assert!(place("tool.task.started") < place("execution.pending"), "{types:?}");
    assert!(place("execution.pending") < place("tool.mcp.completed"), "{types:?}");
    assert_eq!((ended.result()["output"]["text"].as_str(), ended.err.as_str()), (Some("hi"), ""));
}

#[test]
fn a_task_that_asks_something_leaves_the_run_pending_for_the_answer() {
    let desk = desk("2026-07-28", "task-input");
    let ended = desk.toolgate(&["run", "--json", "--wait", "Say hi"]).expect(10);
    assert_eq!(ended.result()["pending"][0]["type"], "elicitation");
}

#[test]
fn ctrl_c_ends_the_wait_and_leaves_the_run_pending() {
    let desk = desk("2026-07-28", "task=1000000");
    let mut command = desk.command(&["run", "--wait", "Say hi"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("waits for the task") {
        line.clear();
        assert!(told.read_line(&mut line).unwrap() > 0, "it ended before it waited");
    }
    let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(10));
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("pending: the run waits for 1 task"), "{rest}");
}

#[test]
fn show_pictures_what_was_asked_and_who_answered() {
    let desk = desk("2026-07-28", "elicits");
    desk.toolgate(&["run", "Say hi"]).expect(10);
    desk.toolgate(&["resume", "last", "--answer", r#"echo={"name": "Ada"}"#]).expect(0);
    insta::assert_snapshot!(steady(&desk.toolgate(&["runs", "show", "last"]).expect(0).out));
}

fn tried(more: &[&str], era: &str, fault: &str) -> super::desk::Ended {
    let program = fault_server();
    let server = ["--", program.to_str().unwrap(), "--stdio", "--protocol-version", era, "--fault", fault];
    Desk::empty().toolgate(&[&["mcp", "call", "echo", r#"{"text": "hi"}"#], more, &server].concat())
}

#[test]
fn a_trial_call_uses_answer_flags_or_ends_with_the_questions() {
    for era in ["2025-11-25", "2026-07-28"] {
        let asked = tried(&[], era, "elicits").expect(10);
        let questions: Value = serde_json::from_str(&asked.out).unwrap();
        let question = questions.as_object().unwrap().values().next().unwrap();
        assert_eq!((&question["mode"], &question["message"]), (&json!("form"), &json!("Who is asking?")));
        assert!(asked.err.contains(r#"--answer '{"name":"VALUE"}'"#), "{}", asked.err);
        let answered = tried(&["--answer", r#"{"name": "Ada"}"#], era, "elicits").expect(0);
        assert_eq!(answered.out, "hello, Ada\nhi\n");
    }
    let declined = tried(&["--decline", "who"], "2026-07-28", "elicits").expect(3);
    assert!(declined.out.contains("the answer has no name"), "{}", declined.out);
    let json: Value = serde_json::from_str(&tried(&["--json"], "2026-07-28", "elicits").expect(10).out).unwrap();
    assert_eq!((&json["status"], &json["questions"]["who"]["mode"]), (&json!("pending"), &json!("form")));
}

#[test]
fn a_trial_call_waits_for_its_task_and_cancels_it_at_timeout() {
    let done = tried(&[], "2026-07-28", "task=2").expect(0);
    assert_eq!(done.out, "hi\n");
    assert!(done.err.contains("continues at the server as task task-1"), "{}", done.err);
    let late = tried(&["--timeout", "0.3"], "2026-07-28", "task=1000000").expect(6);
    assert!(late.err.contains("the task task-1 did not end in time"), "{}", late.err);
    let asking = tried(&["--answer", r#"{"name": "Ada"}"#], "2026-07-28", "task-input").expect(0);
    assert!(asking.out.contains("hello, Ada"), "{}", asking.out);
}

#[test]
fn answers_that_repeat_a_call_need_the_repeat_flag() {
    let desk = desk("2025-11-25", "elicits-late");
    let ended = desk.toolgate(&["run", "Say hi"]).expect(10);
    assert!(ended.err.contains("with them it is sent a second time"), "{}", ended.err);
    let answer = ["resume", "last", "--answer", r#"echo={"name": "Ada"}"#];
    let refused = desk.toolgate(&answer).expect(1);
    assert!(refused.err.contains("confirm that with `--repeat echo`"), "{}", refused.err);
    let unanswered = desk.toolgate(&["resume", "last", "--repeat", "echo"]).expect(2);
    assert!(unanswered.err.contains("answer its server too"), "{}", unanswered.err);
    desk.toolgate(&[&answer[..], &["--repeat", "echo"]].concat()).expect(0);
}

#[test]
fn a_trial_call_with_an_answer_flag_is_sent_once() {
    let program = fault_server();
    let server = ["--", program.to_str().unwrap(), "--stdio", "--fault", "elicits-late", "--log", "wire.jsonl"];
    let desk = Desk::empty();
    let call = ["mcp", "call", "echo", r#"{"text": "hi"}"#, "--answer", r#"{"name": "Ada"}"#];
    desk.toolgate(&[&call[..], &server].concat()).expect(0);
    let wire = std::fs::read_to_string(desk.path().join("wire.jsonl")).unwrap();
    assert_eq!(wire.matches(r#""method":"tools/call""#).count(), 1, "{wire}");
}
