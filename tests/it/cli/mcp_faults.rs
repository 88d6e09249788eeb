//! `toolgate mcp break` with toolgate's own client on one side and a server on the other, and `--wire` of the commands that
//! use it without a fault.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use super::desk::{Desk, Ended};
use super::suspended_calls::fault_server;

const CALL: [&str; 2] = ["list_orders", "{\"customer_id\": \"C-1001\"}"];
const DEMO: [&str; 3] = ["--", "toolgate", "demo-server"];

fn read(desk: &Desk, name: &str) -> String {
    std::fs::read_to_string(desk.path().join(name)).unwrap()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A call of the demo server through the proxy, and the injections of its report.
fn call(flags: &[&str], fault: &str) -> (Ended, Value) {
    let desk = Desk::empty();
    let proxy = ["--", "toolgate", "mcp", "break", "--fault", fault, "--report", "faults.jsonl"];
    let ended = desk.toolgate(&[&["mcp", "call"], flags, &CALL, &proxy, &DEMO].concat());
    let report = read(&desk, "faults.jsonl").lines().last().map(parsed).unwrap();
    (ended, report["injections"].clone())
}

#[test]
fn a_hung_call_is_cancelled_by_the_client_and_answered_by_the_server() {
    let (ended, injections) = call(&["--timeout", "1"], "hang");
    ended.expect(6);
    assert_eq!(injections[0]["fault"], "hang", "{injections}");
    assert_eq!(injections[0]["tool"], "list_orders");
    assert_eq!(injections[0]["client"][0]["what"], "cancelled", "{injections}");
    assert_eq!(injections[0]["server"][0]["what"], "answered", "{injections}");
    assert_eq!(injections[0]["findings"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_killed_server_is_an_unknown_outcome_and_the_call_is_not_repeated() {
    let (ended, injections) = call(&[], "die");
    ended.expect(5);
    assert_eq!(injections.as_array().map(Vec::len), Some(1), "{injections}");
    assert_eq!(injections[0]["server"][0]["what"], "killed", "{injections}");
}

#[test]
fn noise_and_repeated_answers_change_nothing() {
    for fault in ["stdout-garbage", "duplicate-replies", "indented", "text-id"] {
        let (ended, injections) = call(&[], fault);
        assert!(ended.expect(0).out.contains("A-1077"), "{fault}");
        assert_eq!(injections[0]["fault"], fault);
    }
}

/// A program that prints its URL as its first line; dropping it kills it.
struct Listening(Child, String);

impl Listening {
    fn start(desk: &Desk, program: &str, arguments: &[&str]) -> Self {
        let mut command = desk.program(program);
        let mut child = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = parsed(&line)["url"].as_str().unwrap().to_owned();
        Self(child, url)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_session_lost_over_http_is_initialized_again_and_the_wire_has_no_secret() {
    let desk = Desk::empty();
    let server = Listening::start(&desk, &fault_server().to_string_lossy(), &["--http", "0"]);
    let header = "Authorization: Bearer sk-a1b2c3d4e5f6";
    let flags = ["mcp", "break", "--fault", "lost-session", "--report", "faults.jsonl", "--wire", "wire.jsonl"];
    let reach = ["--header", header, "--url", &server.1];
    let mut proxy = Listening::start(&desk, "toolgate", &[&flags[..], &reach].concat());
    let words = "{\"text\": \"sk-a1b2c3d4e5f6\"}";
    let client = ["mcp", "call", &proxy.1, "echo", words, "--protocol-version", "2025-11-25"];
    desk.toolgate(&client).expect(0);
    desk.program("kill").arg(proxy.0.id().to_string()).status().unwrap();
    assert!(proxy.0.wait().unwrap().success());
    let report = parsed(read(&desk, "faults.jsonl").trim());
    let facts = report["injections"][0]["client"].as_array().unwrap();
    assert!(facts.iter().any(|fact| fact["what"] == "initialized"), "{report:#}");
    assert!(facts.iter().any(|fact| fact["what"] == "repeated"), "{report:#}");
    let wire = read(&desk, "wire.jsonl");
    assert!(wire.contains("[redacted]") && !wire.contains("a1b2c3d4"), "{wire}");
}

#[test]
fn a_command_behind_http_gets_the_faults_of_http() {
    for version in ["2025-11-25", "2026-07-28"] {
        let desk = Desk::empty();
        let flags = ["mcp", "break", "--http", "0", "--fault", "http-503-retry-after=1", "--report", "faults.jsonl"];
        let mut proxy = Listening::start(&desk, "toolgate", &[&flags[..], &DEMO].concat());
        let call = [&["mcp", "call", &proxy.1], &CALL[..], &["--protocol-version", version]].concat();
        let first = desk.toolgate(&call);
        let second = desk.toolgate(&call).expect(0);
        assert!(second.out.contains("A-1041"), "{version}: {} {}", second.out, first.err);
        desk.program("kill").arg(proxy.0.id().to_string()).status().unwrap();
        assert!(proxy.0.wait().unwrap().success());
        let report = parsed(read(&desk, "faults.jsonl").trim());
        assert_eq!(report["injections"][0]["fault"], "http-503-retry-after=1", "{version}: {report:#}");
    }
}

#[test]
fn the_wire_of_a_call_has_both_sides_and_no_secret() {
    let desk = Desk::empty();
    let flags = ["mcp", "call", "--wire", "wire.jsonl", "--inherit-env", "--env", "API_KEY=sk-a1b2c3d4e5f6"];
    let noisy = ["--", "sh", "-c", "echo \"key $API_KEY\"; exec toolgate demo-server"];
    desk.toolgate(&[&flags[..], &CALL, &noisy].concat()).expect(0);
    let wire = read(&desk, "wire.jsonl");
    let lines: Vec<Value> = wire.lines().map(parsed).collect();
    assert!(lines.iter().any(|line| line["line"] == "key [redacted]" && line["dropped"] == "not a message"), "{wire}");
    assert!(lines.iter().any(|line| line["connection"] == "client" && line["direction"] == "received"), "{wire}");
    assert!(!wire.contains("a1b2c3d4"), "{wire}");
}

#[test]
fn status_writes_the_wire_of_one_server() {
    let desk = Desk::empty();
    let shop = r#"{"command": "toolgate", "args": ["demo-server"]}"#;
    desk.write("mcp.json", &format!(r#"{{"mcpServers": {{"shop": {shop}, "other": {shop}}}}}"#));
    let status = ["mcp", "status", "--mcp-config", "mcp.json", "--wire", "wire.jsonl"];
    desk.toolgate(&[&status[..], &["shop"]].concat()).expect(0);
    let wire = read(&desk, "wire.jsonl");
    assert!(wire.contains("\"connection\":\"client\"") && wire.contains("tools/list"), "{wire}");
    let ended = desk.toolgate(&status).expect(2);
    assert!(ended.err.contains("--wire writes the wire of one server"), "{}", ended.err);
}

#[test]
fn faults_are_listed_and_wrong_ones_are_refused() {
    let desk = Desk::empty();
    let listed = desk.toolgate(&["mcp", "break", "--list-faults"]).expect(0);
    assert!(listed.out.contains("huge-result[=MIB]"), "{}", listed.out);
    for (flags, reason) in [
        (&["--fault", "hangs"][..], "there is no fault `hangs`"),
        (&["--fault", "http-401"], "is a fault of HTTP"),
        (&["--rate", "2"], "from 0 to 1"),
    ] {
        let ended = desk.toolgate(&[&["mcp", "break"], flags, &DEMO].concat()).expect(2);
        assert!(ended.err.contains(reason), "{}", ended.err);
    }
    let ended = desk.toolgate(&["mcp", "break", "--", "no-such-program"]).expect(5);
    assert!(ended.err.contains("`no-such-program` cannot be started"), "{}", ended.err);
}

#[test]
fn tools_of_a_command_are_compared_with_a_provider_without_a_configuration() {
    let desk = Desk::empty();
    for provider in ["openai", "gemini"] {
        let ended = desk.toolgate(&[&["tools", "--for", provider], &DEMO[..]].concat()).expect(0);
        assert!(ended.out.contains("mcp_server_list_orders") && ended.out.contains("5 tools"), "{}", ended.out);
    }
    let ended = desk.toolgate(&[&["tools", "--for", "other"], &DEMO[..]].concat()).expect(2);
    assert!(ended.err.contains("gemini"), "{}", ended.err);
}
