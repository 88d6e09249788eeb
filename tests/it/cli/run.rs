use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

use serde_json::json;

use super::desk::{Desk, Ended};
#[cfg(target_os = "linux")]
use super::shell::Shell;

const ANSWER: &str = "turns: [{ say: Forty-two., usage: { input_tokens: 10, output_tokens: 2 } }]";
const LOOKUP: &str = "
turns:
  - say: I look her up.
    stream: { fragments: 3 }
    calls: [{ name: mcp_shop_find_customer, arguments: { name: Ada } }]
  - { say: 'She is C-1001.', stream: { fragments: 4 } }
";
const NOTE_AND_REFUND: &str = "
turns:
  - calls:
      - { name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }
      - { name: ext_issue_refund, arguments: { order_id: A-1077 } }
  - { say: Both done. }
";
const HANGS: &str = "
turns:
  - { calls: [{ name: mcp_shop_find_customer, arguments: { name: Ada } }] }
  - { hang: true }
";

#[test]
fn the_answer_goes_to_stdout_and_the_live_view_to_stderr() {
    let desk = Desk::playing(LOOKUP);
    let ended = desk.toolgate(&["run", "Who is Ada?"]).expect(0);
    assert_eq!(ended.out, "She is C-1001.\n");
    for told in ["> Who is Ada?", "I look her up.", "→ mcp_shop_find_customer name: \"Ada\"", "✓", "completed"] {
        assert!(ended.err.contains(told), "{told}: {}", ended.err);
    }
    assert!(!ended.err.contains('\u{1b}'), "no colours outside a terminal: {}", ended.err);
}

#[test]
fn quiet_prints_only_the_answer() {
    let ended = Desk::playing(LOOKUP).toolgate(&["run", "-q", "Who is Ada?"]).expect(0);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("She is C-1001.\n", ""));
}

#[test]
fn a_run_without_the_tools_of_a_server_says_so_once_and_in_its_result() {
    let desk = Desk::playing("turns: [{ say: Hello. }]");
    desk.write("mcp.json", r#"{"mcpServers": {"ghost": {"command": "no-such-program"}}}"#);
    let ended = desk.toolgate(&["run", "Hello", "--mcp-config", "mcp.json"]).expect(0);
    let last = "warning: the run had no tools, or not all tools, of the MCP servers `ghost`";
    assert_eq!(ended.err.lines().last(), Some(last), "{}", ended.err);
    assert_eq!(ended.err.matches("no-such-program").count(), 1, "{}", ended.err);
    let result = desk.toolgate(&["run", "--json", "Hello", "--mcp-config", "mcp.json"]).expect(0).result();
    assert_eq!(
        result["warnings"],
        json!([{"code": "incomplete_tools", "servers": ["ghost"], "limit": null, "restart": null}])
    );
}

#[test]
fn an_answer_that_stays_empty_is_a_warning_for_people_programs_and_traces() {
    let desk = Desk::playing("turns: [{ say: '' }, { say: '' }, { say: '' }, { say: '' }, { say: '' }, { say: '' }]");
    for quiet in [&["run", "Who is Ada?"][..], &["run", "-q", "Who is Ada?"]] {
        let ended = desk.toolgate(quiet).expect(0);
        assert_eq!(ended.out, "");
        assert_eq!(ended.err.lines().last(), Some("warning: the model's answer is empty"), "{}", ended.err);
    }
    let result = desk.toolgate(&["run", "--json", "Who is Ada?"]).expect(0).result();
    assert_eq!(
        (&result["status"], &result["warnings"]),
        (&json!("completed"), &json!([{"code": "empty_answer", "servers": [], "limit": null, "restart": null}]))
    );
    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0).out;
    assert!(shown.contains("warning: the model's answer is empty"), "{shown}");
    let trace = desk.toolgate(&["runs", "trace", "last", "--json"]).expect(0).out;
    assert!(trace.contains("toolgate.run.warnings") && trace.contains("empty_answer"), "{trace}");
}

#[test]
fn every_line_of_json_is_an_event_with_its_content_and_the_last_is_the_result() {
    let ended = Desk::playing(LOOKUP).toolgate(&["run", "--json", "Who is Ada?"]).expect(0);
    let lines = ended.json_lines();
    let named = |name: &str| lines.iter().filter(|line| line["type"] == name).collect::<Vec<_>>();
    assert_eq!(named("execution.started").len(), 1);
    assert_eq!(named("tool.mcp.executing")[0]["arguments"]["name"], "Ada");
    assert!(named("tool.mcp.completed")[0]["result"].as_str().unwrap().contains("C-1001"));
    let text: String = named("llm.text.delta").iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(text, "I look her up.She is C-1001.");
    let result = ended.result();
    assert_eq!(
        (result["status"].as_str(), result["output"]["text"].as_str()),
        (Some("completed"), Some("She is C-1001."))
    );
    assert_eq!(result["run_id"], lines[0]["run_id"]);
    assert_eq!(ended.err, "");
}

#[test]
fn a_pending_run_ends_with_ten_and_a_command_that_works_as_it_is_printed() {
    let desk = Desk::playing(NOTE_AND_REFUND);
    let ended = desk.toolgate(&["run", "Sort it out"]).expect(10);
    assert_eq!(ended.out, "");
    let command = ended.offered_command();
    assert!(command.starts_with("toolgate resume run_"), "{command}");
    let resumed = desk.paste(&command).expect(0);
    assert_eq!(resumed.out, "Both done.\n");
}

#[test]
fn the_printed_command_repeats_what_the_run_was_started_with() {
    let desk = Desk::playing(NOTE_AND_REFUND);
    std::fs::rename(desk.path().join("toolgate.yaml"), desk.path().join("my desk.yaml")).unwrap();
    let ended = desk.toolgate(&["run", "--config", "my desk.yaml", "--policy", "default", "Sort it out"]).expect(10);
    let command = ended.offered_command();
    assert!(command.ends_with("--config 'my desk.yaml'"), "{command}");
    desk.paste(&command).expect(0);
}

#[test]
fn json_lists_the_pending_items_with_the_digest_of_an_approval() {
    let desk = Desk::playing(NOTE_AND_REFUND);
    let ended = desk.toolgate(&["run", "--json", "Sort it out"]).expect(10);
    let result = ended.result();
    let kinds: Vec<&str> = result["pending"].as_array().unwrap().iter().map(|d| d["type"].as_str().unwrap()).collect();
    assert_eq!(result["status"], "pending");
    assert_eq!(kinds, ["approval", "external_result"]);
    let (call, digest) = (&result["pending"][0]["call_id"], result["pending"][0]["digest"].as_str().unwrap());
    let approve = ["approvals", "approve", "last", call.as_str().unwrap(), "--no-wait", "--digest"];
    desk.toolgate(&[&approve[..], &["sha256:0123456789abcdef"]].concat()).expect(8);
    desk.toolgate(&[&approve[..], &[digest]].concat()).expect(0);
    let lines = ended.json_lines();
    assert_eq!(lines[lines.len() - 2]["type"], "execution.pending");
}

#[test]
fn row_3_33_a_run_without_a_required_server_fails() {
    let desk = Desk::playing("turns: [{ say: Done. }]\n");
    let config = |required: &str| {
        let servers = format!("{{ shop: {{ stdio: {{ command: ./missing }}, {required} }} }}");
        format!(
            "models: {{ played: {{ scripted: {{ file: conversation.yaml }} }} }}\nservers: {servers}\nagents: {{ desk: {{ servers: [shop] }} }}\n"
        )
    };
    desk.write("toolgate.yaml", &config("required: false"));
    desk.toolgate(&["run", "Hello"]).expect(0);
    desk.write("toolgate.yaml", &config("required: true"));
    let ended = desk.toolgate(&["run", "--json", "Hello"]).expect(1);
    assert_eq!(ended.result()["error"]["code"], "tool_unavailable", "{}", ended.out);
}

#[test]
fn a_policy_flag_replaces_the_agents_policy() {
    let desk = Desk::playing(NOTE_AND_REFUND);
    let ended = desk.toolgate(&["run", "--json", "--policy", "bypass", "Sort it out"]).expect(10);
    assert_eq!(ended.result()["pending"].as_array().unwrap().len(), 1, "only the external call waits");
    let unknown = desk.toolgate(&["run", "--policy", "lax", "x"]).expect(2);
    assert!(
        unknown.err.contains(
            "there is no policy `lax`; configured are: accept-edits, accept-reads, bypass, default, delegate, dont-ask, plan"
        )
    );
}

#[test]
fn servers_of_an_editors_file_are_added_for_this_command() {
    let desk = Desk::playing(
        "turns: [{ calls: [{ name: mcp_extra_get_loyalty, arguments: { customer_id: C-1001 } }] },
        { say: '{{last_result}}' }]",
    );
    desk.write("mcp.json", r#"{"mcpServers": {"extra": {"command": "toolgate", "args": ["demo-server"]}}}"#);
    let arguments = ["run", "-q", "--mcp-config", "mcp.json", "--policy", "bypass", "How many points?"];
    let ended = desk.toolgate(&arguments).expect(0);
    assert!(ended.out.contains("1280"), "{}", ended.out);
}

#[test]
fn external_tools_of_a_file_are_available_and_pending() {
    let desk = Desk::playing("turns: [{ calls: [{ name: ext_weather, arguments: {} }] }, { say: '{{last_result}}' }]");
    desk.write("tools.json", r#"[{"type": "function", "function": {"name": "weather", "description": "Now."}}]"#);
    let ended = desk.toolgate(&["run", "--external-tools", "tools.json", "How is it?"]).expect(10);
    let resumed = desk.paste(&ended.offered_command().replace("RESULT", "sunny")).expect(0);
    assert_eq!(resumed.out, "sunny\n");
}

#[test]
fn an_answer_with_a_schema_is_printed_as_json() {
    let desk = Desk::playing("turns: [{ say: no json }, { say: '{\"points\": 7}' }]");
    desk.write("schema.json", r#"{"type": "object", "required": ["points"]}"#);
    let ended = desk.toolgate(&["run", "--output-schema", "schema.json", "How many?"]).expect(0);
    assert_eq!(ended.out, "{\n  \"points\": 7\n}\n");
    assert!(ended.err.contains("the answer does not fit"), "{}", ended.err);
}

#[test]
fn a_limit_ends_the_run_with_one() {
    let desk = Desk::playing(
        "turns: [{ calls: [{ name: mcp_shop_find_customer, arguments: { name: Ada } }] },
        { say: Enough. }]",
    );
    let ended = desk.toolgate(&["run", "--json", "--max-iterations", "1", "Who?"]).expect(1);
    assert_eq!(ended.result()["status"], "incomplete");
}

#[test]
fn a_session_continues_with_its_earlier_messages() {
    let desk = Desk::playing("turns: [{ say: Forty-two. }, { say: As I said. }]");
    desk.toolgate(&["run", "--session", "chat", "What is it?"]).expect(0);
    let again = desk.toolgate(&["run", "--session", "chat", "What was it?"]).expect(0);
    assert_eq!(again.out, "As I said.\n");
}

#[test]
fn a_session_continues_after_a_run_at_its_limit() {
    let desk = Desk::playing(
        "turns: [{ calls: [{ name: mcp_shop_find_customer, arguments: { name: Ada } }] },
        { say: Enough. }, { expect: { contains: Go on }, say: More. }]",
    );
    desk.toolgate(&["run", "--session", "chat", "--max-iterations", "1", "Who?"]).expect(1);
    assert_eq!(desk.toolgate(&["run", "--session", "chat", "Go on"]).expect(0).out, "More.\n");
}

#[test]
fn a_session_continues_after_a_cancelled_run() {
    let desk = Desk::playing(
        "turns: [{ say: First. }, { calls: [{ id: ask, name: ask_human, arguments: { question: Which? } }] },
        { expect: { contains: Go on }, say: More. }]",
    );
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &config.replace("    policy:", "    ask_human: true\n    policy:"));
    desk.toolgate(&["run", "--session", "chat", "Hello"]).expect(0);
    desk.toolgate(&["run", "--session", "chat", "Ask"]).expect(10);
    desk.toolgate(&["runs", "cancel", "last"]).expect(0);
    assert_eq!(desk.toolgate(&["run", "--session", "chat", "Go on"]).expect(0).out, "More.\n");
}

#[test]
fn a_fork_may_have_more_turns_than_its_source() {
    let look = "{ calls: [{ name: mcp_shop_find_customer, arguments: { name: Ada } }] }";
    let desk = Desk::playing(&format!("turns: [{look}, {look}, {look}, {{ say: Enough. }}]"));
    desk.toolgate(&["run", "--max-iterations", "1", "Who?"]).expect(1);
    assert_eq!(desk.toolgate(&["runs", "fork", "last", "--max-iterations", "5"]).expect(0).out, "Enough.\n");
}

#[test]
fn a_trace_of_the_caller_is_continued_and_a_malformed_one_refused() {
    let desk = Desk::playing(ANSWER);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let header = format!("00-{trace}-00f067aa0ba902b7-01");
    let ended = desk.toolgate(&["run", "--json", "--traceparent", &header, "x"]).expect(0);
    assert_eq!(ended.json_lines()[0]["trace_id"], trace);
    let refused = desk.toolgate(&["run", "--traceparent", "nonsense", "x"]).expect(2);
    assert!(refused.err.contains("--traceparent is not a traceparent: `nonsense`"), "{}", refused.err);
}

#[test]
fn a_malformed_trace_in_the_environment_is_ignored_with_a_warning() {
    let desk = Desk::playing(ANSWER);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let run = |parent: &str, propagators: &str| {
        let mut command = desk.command(&["run", "--json", "x"]);
        command.envs([("TRACEPARENT", parent), ("OTEL_PROPAGATORS", propagators)]);
        Ended::from(command.output().unwrap())
    };
    let continued = run(&format!("00-{trace}-00f067aa0ba902b7-01"), "").expect(0);
    assert_eq!((continued.json_lines()[0]["trace_id"].as_str(), continued.err.as_str()), (Some(trace), ""));
    let passed_over = run("nonsense", "tracecontext").expect(0);
    assert!(passed_over.err.contains("TRACEPARENT is not a traceparent: `nonsense`; it is ignored"));
    let unwanted = run(&format!("00-{trace}-00f067aa0ba902b7-01"), "none").expect(0);
    assert_ne!(unwanted.json_lines()[0]["trace_id"], trace);
    let unknown = run("", "bthree").expect(2);
    assert!(unknown.err.contains("OTEL_PROPAGATORS: there is no propagator `bthree`"), "{}", unknown.err);
}

#[test]
fn a_message_may_come_from_standard_input() {
    let desk = Desk::playing(ANSWER);
    let mut child = desk.command(&["run", "--json", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"From a pipe").unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap()).expect(0);
    assert_eq!(ended.json_lines()[0]["input"], "From a pipe");
    desk.toolgate(&["run", "-"]).expect(2);
}

#[test]
fn an_unknown_agent_lists_the_known_ones() {
    let desk = Desk::playing(ANSWER);
    let ended = desk.toolgate(&["run", "--json", "--agent", "clerk", "x"]).expect(2);
    assert!(ended.err.contains("error: there is no agent `clerk`; configured are: desk"), "{}", ended.err);
    let result = ended.result();
    assert_eq!((result["status"].as_str(), result["error"]["code"].as_str()), (Some("failed"), Some("not_found")));
}

#[test]
fn a_failed_run_ends_with_one_and_its_code() {
    let desk = Desk::playing("turns: [{ fail: { code: provider_auth, message: the key was refused } }]");
    let ended = desk.toolgate(&["run", "x"]).expect(1);
    assert!(ended.err.contains("failed: provider_auth: the key was refused"), "{}", ended.err);
    assert_eq!(desk.toolgate(&["run", "--json", "x"]).expect(1).result()["error"]["code"], "provider_auth");
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let desk = Desk::playing(LOOKUP);
    let mut child =
        desk.command(&["run", "--json", "Who?"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = Ended::from(child.wait_with_output().unwrap()).expect(0);
    assert_eq!(ended.err, "");
    assert_eq!(desk.toolgate(&["runs", "list", "--json"]).json_lines()[0]["status"], "completed");
}

#[test]
fn a_log_that_cannot_be_written_harms_no_run() {
    let desk = Desk::playing(LOOKUP);
    let mut command = desk.command(&["run", "--json", "Who?"]);
    let mut child = command.env("RUST_LOG", "trace").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    let ended = Ended::from(child.wait_with_output().unwrap()).expect(0);
    assert_eq!(ended.result()["status"], "completed");
}

#[test]
fn ctrl_c_cancels_the_run_and_says_so_in_the_journal() {
    let desk = Desk::playing(HANGS);
    let mut child =
        desk.command(&["run", "--json", "x"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = until_second_turn(&mut child);
    interrupt(&child);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    let result: serde_json::Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!((result["type"].as_str(), result["status"].as_str()), (Some("result"), Some("cancelled")));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(desk.journal("last").last().unwrap()["ending"]["status"], "cancelled");
}

/// A desk whose run was killed while its model did not answer; the next attempt answers.
fn killed_in_the_second_turn() -> Desk {
    let desk = Desk::playing(HANGS);
    let mut child = desk.command(&["run", "--json", "x"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    until_second_turn(&mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    desk.write("conversation.yaml", "turns: [{ hang: true }, { say: 'Here I am again.' }]");
    desk
}

#[test]
fn a_run_of_a_killed_process_resumes() {
    let desk = killed_in_the_second_turn();

    let resumed = desk.toolgate(&["resume", "last"]).expect(0);

    assert_eq!(resumed.out, "Here I am again.\n");
    let started = desk.journal("last").iter().filter(|event| event["type"] == "tool.started").count();
    assert_eq!(started, 1, "the call was not made a second time");
}

#[test]
#[cfg(target_os = "linux")]
fn a_conversation_shows_what_a_killed_process_did_and_continues_it() {
    let desk = killed_in_the_second_turn();

    let mut shell = Shell::at(&desk);
    shell.runs("toolgate chat -c").sees("the last turn has not ended; ");
    shell.sees("> ");
    shell.types("\r").sees("Here I am again.");
    shell.sees("> ");
    shell.types("\x04").sees("toolgate chat --session");
}

#[test]
fn a_run_of_another_process_is_waited_for_with_a_note() {
    let desk = Desk::playing(HANGS);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &config.replace("lease_s: 1", "lease_s: 60"));
    let mut child = desk.command(&["run", "--json", "x"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    until_second_turn(&mut child);
    let mut waiting = desk.command(&["resume", "last"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(waiting.stderr.take().unwrap()).read_line(&mut told).unwrap();
    for child in [&mut waiting, &mut child] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(told, "another process executes the run; if it died, the run is free within 61 s\n");
}

#[test]
fn a_run_of_a_terminated_process_can_be_resumed() {
    let desk = Desk::playing(HANGS);
    let mut child = desk.command(&["run", "--json", "x"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = until_second_turn(&mut child);
    signal(&child, "-TERM");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    let result: serde_json::Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!((result["status"].as_str(), result["run_id"].is_string()), (Some("running"), true), "{result}");
    assert_eq!(child.wait().unwrap().code(), Some(143));
    desk.write("conversation.yaml", "turns: [{ hang: true }, { say: 'Here I am again.' }]");

    assert_eq!(desk.toolgate(&["resume", "last"]).expect(0).out, "Here I am again.\n");
}

#[test]
fn a_closed_terminal_and_a_termination_release_the_run_at_once() {
    for which in ["-HUP", "-TERM"] {
        let desk = Desk::playing(HANGS);
        // A process that waited for the other lease would print so.
        let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
        desk.write("toolgate.yaml", &config.replace("lease_s: 1", "lease_s: 60"));
        // The parent process of the tests may ignore SIGHUP, as `nohup` does.
        let mut command = desk.program("env");
        command.args(["--default-signal=HUP", "toolgate", "run", "--json", "x"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = until_second_turn(&mut child);
        signal(&child, which);
        lines.read_to_string(&mut String::new()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(143), "{which}");
        desk.write("conversation.yaml", "turns: [{ hang: true }, { say: 'Here I am again.' }]");

        let resumed = desk.toolgate(&["resume", "last"]).expect(0);

        assert_eq!(resumed.out, "Here I am again.\n", "{which}");
        assert!(!resumed.err.contains("another process drives the run"), "{which}: {}", resumed.err);
    }
}

#[test]
fn a_run_under_nohup_outlives_its_terminal() {
    let desk = Desk::playing(HANGS);
    let mut command = desk.program("env");
    command.args(["--ignore-signal=HUP", "--default-signal=INT", "toolgate", "run", "--json", "x"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = until_second_turn(&mut child);
    signal(&child, "-HUP");
    signal(&child, "-INT");
    lines.read_to_string(&mut String::new()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "only Ctrl-C ended it");
}

#[test]
fn an_interrupted_recovery_releases_its_runs_at_once() {
    for which in ["-HUP", "-TERM", "-INT"] {
        let desk = interrupted(1);
        let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
        desk.write("toolgate.yaml", &config.replace("lease_s: 1", "lease_s: 60"));
        desk.write("conversation.yaml", "turns: [{ hang: true }, { hang: true }]");
        let before = desk.journal("last").len();
        let mut command = desk.program("env");
        command.args(["--default-signal", "toolgate", "runs", "recover"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while desk.journal("last").len() < before + 2 {
            assert!(child.try_wait().unwrap().is_none(), "{which}: the recovery ended early");
        }
        signal(&child, which);
        assert_eq!(child.wait().unwrap().code(), Some(if which == "-INT" { 130 } else { 143 }), "{which}");
        desk.write("conversation.yaml", "turns: [{ hang: true }, { say: 'Here I am again.' }]");

        let resumed = desk.toolgate(&["resume", "last"]).expect(0);

        assert!(!resumed.err.contains("another process drives the run"), "{which}: {}", resumed.err);
    }
}

#[test]
fn a_new_run_lists_interrupted_runs_without_resuming_them() {
    let desk = interrupted(1);
    desk.write("conversation.yaml", "turns: [{ say: Hello. }, { say: 'Here I am again.' }]");
    let old = desk.toolgate(&["runs", "list", "--json"]).json_lines()[0]["id"].as_str().unwrap().to_owned();
    let before = desk.journal(&old);

    let ended = desk.toolgate(&["run", "y"]).expect(0);

    assert!(ended.err.contains(&format!("1 interrupted run: toolgate resume {old}\n")), "{}", ended.err);
    assert_eq!(ended.out, "Hello.\n");
    assert_eq!(desk.journal(&old), before);
    assert_eq!(desk.toolgate(&["run", "--quiet", "z"]).expect(0).err, "");
    assert_eq!(desk.toolgate(&["resume", &old]).expect(0).out, "Here I am again.\n");
    assert!(!desk.toolgate(&["run", "y"]).expect(0).err.contains("interrupted"));
}

#[test]
fn several_interrupted_runs_are_named_with_the_command_for_all() {
    let desk = interrupted(2);
    desk.write("conversation.yaml", "turns: [{ say: Hello. }, { say: 'Here I am again.' }]");
    let ended = desk.toolgate(&["run", "y"]).expect(0);
    assert!(ended.err.contains("2 interrupted runs: toolgate resume run_"), "{}", ended.err);
    assert!(ended.err.contains("(or all of them: toolgate runs recover)"), "{}", ended.err);
    assert!(desk.toolgate(&["runs", "recover"]).expect(0).err.contains("2 runs"));
}

#[test]
fn naming_interrupted_runs_writes_nothing_to_their_rows() {
    let desk = interrupted(2);
    desk.write("conversation.yaml", "turns: [{ say: Hello. }]");
    let before = ownership(&desk);

    let ended = desk.toolgate(&["run", "y"]).expect(0);

    assert!(ended.err.contains("2 interrupted runs"), "{}", ended.err);
    assert_eq!(ownership(&desk)[..2], before);
}

/// Run, owner, lease and last change of each row, oldest first.
fn ownership(desk: &Desk) -> Vec<(String, Option<String>, Option<i64>, String)> {
    let statement = "SELECT id, owner, lease_until, updated_at FROM run ORDER BY id";
    let database = database(desk);
    let mut rows = database.prepare(statement).unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// A desk with runs whose processes were killed and whose leases expired.
fn interrupted(runs: usize) -> Desk {
    let desk = Desk::playing(HANGS);
    for _ in 0..runs {
        let mut child =
            desk.command(&["run", "--json", "x"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        until_second_turn(&mut child);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let_leases_run_out(&desk);
    desk
}

/// Reads events until the second model call, which hangs.
pub(super) fn until_second_turn(child: &mut Child) -> BufReader<std::process::ChildStdout> {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !(line.contains("llm.call.started") && line.contains("\"iteration\":2")) {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the run ended early");
    }
    lines
}

pub(super) fn interrupt(child: &Child) {
    signal(child, "-INT");
}

pub(super) fn signal(child: &Child, which: &str) {
    let sent = std::process::Command::new("kill").args([which, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Expires the lease of the dead process.
pub(super) fn let_leases_run_out(desk: &Desk) {
    database(desk).execute("UPDATE run SET lease_until = 0", []).unwrap();
}

pub(super) fn database(desk: &Desk) -> rusqlite::Connection {
    rusqlite::Connection::open(desk.path().join(".toolgate/toolgate.db")).unwrap()
}

#[test]
fn a_script_that_stands_in_for_a_model_is_named_before_and_after_the_run() {
    let desk = Desk::empty();
    desk.toolgate(&["init"]).expect(0);
    let ended = desk.toolgate(&["run", "--policy", "bypass", "What is 2 + 2?"]).expect(0);
    let told = "warning: the environment names no model, so `auto` plays the script ";
    assert!(ended.err.starts_with(told), "{}", ended.err);
    let end = ended.err.trim_end().lines().last().unwrap();
    assert!(end.starts_with("warning: a script was played, so this is no answer to your message"), "{}", ended.err);
}
