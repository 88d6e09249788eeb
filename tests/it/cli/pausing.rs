//! Pauses at the command line (row 4.23).

use std::io::Read;
use std::process::Stdio;

use super::desk::Desk;
use super::run::{interrupt, until_second_turn};

const SLOW: &str = "
turns:
  - { calls: [{ name: mcp_shop_find_customer, arguments: { name: Ada } }] }
  - { stream: { fragments: 20, delay_ms: 50 }, say: Ada is a customer since 1842. }
";

#[test]
fn row_4_23_ctrl_c_pauses_the_run_and_the_shown_command_continues_it() {
    let desk = Desk::playing(SLOW);
    let flags = ["run", "--json", "--on-interrupt", "pause", "x"];
    let mut child = desk.command(&flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = until_second_turn(&mut child);
    interrupt(&child);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(10), "{rest}");
    let result: serde_json::Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!((result["status"].as_str(), result["pending"][0]["type"].as_str()), (Some("pending"), Some("pause")));

    let shown = desk.toolgate(&["resume", "last"]).expect(10);
    let command = format!("toolgate resume {} --continue", result["run_id"].as_str().unwrap());
    assert!(shown.err.contains(&command), "{}", shown.err);
    let done = desk.toolgate(&["resume", "last", "--continue"]).expect(0);
    assert_eq!(done.out.trim(), "Ada is a customer since 1842.");
    let asked = desk.journal("last").iter().filter(|event| event["type"] == "llm.call.started").count();
    assert_eq!(asked, 2, "the reply in progress was kept");
}

#[test]
fn row_4_23_a_command_pauses_a_run_of_another_process() {
    let desk = Desk::playing("turns: [{ hang: true }]");
    let mut child = desk.command(&["run", "x"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while desk.toolgate(&["runs", "show", "last"]).code != 0 {}
    let paused = desk.toolgate(&["runs", "pause", "last", "--reason", "lunch"]).expect(0);
    assert!(paused.err.contains("--continue"), "{}", paused.err);
    desk.toolgate(&["runs", "cancel", "last"]).expect(0);
    child.wait().unwrap();
    let refused = desk.toolgate(&["runs", "pause", "last"]).expect(1);
    assert!(refused.err.contains("the run is over: cancelled"), "{}", refused.err);
}
