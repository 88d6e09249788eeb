//! Compensation end to end (row 3.49): a run with a real server over stdio undoes its calls, and the commands show it.

use super::desk::Desk;

const CONFIG: &str = "
models: { played: { scripted: { file: conversation.yaml } } }
servers:
  shop:
    stdio: { command: sh, args: [-c, 'tee -a received | toolgate demo-server'] }
    trusted: true
    tools:
      add_note: { undo: { tool: add_note, arguments: { customer_id: /arguments/customer_id, text: /result } } }
agents: { desk: { model: played, servers: [shop], policy: POLICY, compensate: true } }
";

const SAID: &str = "
turns:
  - calls: [{ id: first, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: one } }]
  - calls: [{ id: second, name: mcp_shop_add_note, arguments: { customer_id: C-1003, text: two } }]
  - { fail: { code: provider_auth, message: the key was revoked } }
";

fn desk(policy: &str) -> Desk {
    let desk = Desk::empty();
    desk.write("toolgate.yaml", &CONFIG.replace("POLICY", policy));
    desk.write("conversation.yaml", SAID);
    desk
}

fn told(desk: &Desk, arguments: &[&str]) -> (Option<i32>, String) {
    let output = desk.command(arguments).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn row_3_49_a_failed_run_undoes_its_calls_at_a_real_server() {
    let desk = desk("bypass");

    let (code, _) = told(&desk, &["run", "Note it"]);

    assert_eq!(code, Some(1));
    let received = std::fs::read_to_string(desk.path().join("received")).unwrap();
    let texts: Vec<&str> = received.split("\"text\":\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let noted = |name: &str| format!("noted; {name} now has 1 note(s)");
    assert_eq!(texts, ["one", "two", &noted("Chiara Lindqvist"), &noted("Ada Lindqvist")], "{received}");
    let (_, shown) = told(&desk, &["runs", "show", "last"]);
    let lines = ["compensation", "undone: the undo of second", "undone: the undo of first"];
    assert!(lines.iter().all(|line| shown.contains(line)), "{shown}");
    let (_, explained) = told(&desk, &["runs", "explain", "last"]);
    assert!(explained.contains("compensation  2 undo calls"), "{explained}");
    assert!(explained.contains("undo_second mcp_shop_add_note ran"), "{explained}");
    let (_, json) = told(&desk, &["runs", "show", "last", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let undone = &report["compensation"]["undone"];
    assert_eq!((&undone[0]["undoes"], &undone[0]["state"]), (&"second".into(), &"undone".into()), "{report}");
    let (_, trace) = told(&desk, &["runs", "trace", "last"]);
    assert_eq!(trace.matches("mcp_shop_add_note").count(), 4, "{trace}");
}

#[test]
fn row_3_49_a_misspelt_pointer_is_found_when_the_configuration_is_read() {
    let desk = desk("bypass");
    desk.write("toolgate.yaml", &CONFIG.replace("POLICY", "bypass").replace("text: /result", "text: result"));

    let output = desk.command(&["config", "check"]).output().unwrap();

    let err = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && err.contains("`result` points to no part of the call that is undone"), "{err}");
    assert!(err.contains("begins with `/arguments` or `/result`"), "{err}");
}
