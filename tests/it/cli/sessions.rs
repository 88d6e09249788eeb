//! `toolgate sessions`: list, show, messages, set and delete; and `--session last`.

use super::desk::Desk;

const TURNS: &str = "
turns:
  - say: Forty-two.
  - calls: [{ id: ask, name: mcp_shop_find_customer, arguments: { name: Ada } }]
  - say: As I said.
  - say: And so on.
";

/// A desk with one session of two runs.
fn two_runs() -> Desk {
    let desk = Desk::playing(TURNS);
    desk.toolgate(&["run", "--session", "chat-77", "What is it?"]).expect(0);
    desk.toolgate(&["run", "--session", "last", "What was it?"]).expect(0);
    desk
}

#[test]
fn sessions_are_listed_with_status_and_number_of_runs() {
    let desk = Desk::playing(TURNS);
    let none = desk.toolgate(&["sessions", "list"]).expect(0);
    assert_eq!((none.out.as_str(), none.err.contains("no sessions")), ("", true));
    desk.toolgate(&["run", "--session", "chat-77", "What is it?"]).expect(0);
    let listed = desk.toolgate(&["sessions", "list"]).expect(0).out;
    let words: Vec<&str> = listed.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words[..3], ["chat-77", "idle", "1"], "{listed}");
    assert!(listed.contains("What is it?"), "{listed}");
    let row = &desk.toolgate(&["sessions", "list", "--json"]).json_lines()[0];
    assert_eq!((row["id"].as_str(), row["runs"].as_u64()), (Some("chat-77"), Some(1)));
    let others = desk.toolgate(&["sessions", "list", "--tenant", "acme"]).expect(0);
    assert!(others.err.contains("no sessions"), "{}", others.err);
}

#[test]
fn last_continues_the_session_of_the_last_run() {
    let desk = two_runs();
    assert_eq!(desk.toolgate(&["sessions", "list", "--json"]).json_lines()[0]["runs"], 2);
    desk.toolgate(&["run", "-c", "And then?"]).expect(0);
    assert_eq!(desk.toolgate(&["sessions", "list", "--json"]).json_lines()[0]["runs"], 3);
    let empty = Desk::playing(TURNS).toolgate(&["run", "--session", "last", "Hello"]).expect(2);
    assert!(empty.err.contains("there are no runs yet"), "{}", empty.err);
}

#[test]
fn messages_are_the_conversation_of_all_runs() {
    let desk = two_runs();
    let text = desk.toolgate(&["sessions", "messages", "chat-77"]).expect(0).out;
    assert!(text.starts_with("user: What is it?\n\nassistant: Forty-two.\n\nuser: What was it?\n\ncall "), "{text}");
    assert!(text.ends_with("assistant: As I said.\n\n"), "{text}");
    let lines = desk.toolgate(&["sessions", "messages", "chat", "--json"]).expect(0).json_lines();
    let indexes: Vec<u64> = lines.iter().map(|line| line["index"].as_u64().unwrap()).collect();
    assert_eq!(indexes, [0, 1, 2, 3, 4, 5]);
    assert_eq!((&lines[0]["run_id"], &lines[1]["role"]), (&lines[1]["run_id"], &"assistant".into()));
    assert_ne!(lines[1]["run_id"], lines[2]["run_id"]);
}

#[test]
fn a_renamed_session_is_shown_with_its_title_and_runs() {
    let desk = two_runs();
    let renamed = desk.toolgate(&["sessions", "set", "last", "--title", "Order A-1077"]).expect(0);
    assert!(renamed.out.starts_with("chat-77  idle\n    Order A-1077\n"), "{}", renamed.out);
    let shown = desk.toolgate(&["sessions", "show", "chat-77"]).expect(0).out;
    assert!(shown.starts_with("chat-77  idle\n    Order A-1077\n    agent desk, 2 runs, "), "{shown}");
    assert_eq!(shown.matches("run_").count(), 2, "{shown}");
    let long = "x".repeat(257);
    let refused = desk.toolgate(&["sessions", "set", "chat-77", "--title", &long]).expect(1);
    assert!(refused.err.contains("a title has at most 256 bytes"), "{}", refused.err);
    let record: serde_json::Value =
        serde_json::from_str(&desk.toolgate(&["sessions", "show", "chat-77", "--json"]).out).unwrap();
    assert_eq!((&record["title"], record["latest_runs"].as_array().unwrap().len()), (&"Order A-1077".into(), 2));
}

#[test]
fn a_deleted_session_and_its_runs_are_gone() {
    let desk = two_runs();
    assert_eq!(desk.toolgate(&["sessions", "delete", "chat-77"]).expect(0).out, "chat-77 deleted\n");
    desk.toolgate(&["sessions", "delete", "chat-77"]).expect(0);
    let read = desk.toolgate(&["sessions", "messages", "chat-77"]).expect(2);
    assert!(read.err.contains("session `chat-77` was deleted at "), "{}", read.err);
    assert!(desk.toolgate(&["sessions", "show", "chat-77"]).expect(0).out.starts_with("chat-77  deleted "));
    assert!(desk.toolgate(&["runs", "list"]).expect(0).err.contains("no runs"));
    let again = desk.toolgate(&["run", "--session", "chat-77", "Hello"]).expect(2);
    assert!(again.err.contains("its id is not used again"), "{}", again.err);
}

#[test]
fn a_session_with_a_live_run_is_not_deleted() {
    let desk = Desk::playing("turns: [{ calls: [{ name: ext_issue_refund, arguments: { order_id: A-1077 } }] }]");
    desk.toolgate(&["run", "--session", "chat", "Refund"]).expect(10);
    let refused = desk.toolgate(&["sessions", "delete", "chat"]).expect(1);
    assert!(refused.err.contains("session `chat` has a run that is pending"), "{}", refused.err);
    assert!(desk.toolgate(&["sessions", "show", "chat"]).expect(0).out.starts_with("chat  pending run_"));
}

#[test]
fn an_unknown_session_is_reported_with_the_newest() {
    let unknown = two_runs().toolgate(&["sessions", "show", "nope"]).expect(2);
    assert!(unknown.err.contains("there is no session `nope`; the newest are: chat-77"), "{}", unknown.err);
}

#[test]
fn the_limits_of_a_session_are_set_shown_and_removed() {
    let desk = two_runs();
    let limits = ["--max-iterations", "3", "--max-cost-usd", "2.5", "--expire-after-s", "3600"];
    let shown = desk.toolgate(&[["sessions", "set", "chat-77"].as_slice(), &limits].concat()).expect(0).out;
    assert!(shown.contains("limits 3 of 3 turns, $0 of $2.5") && shown.contains("    expires "), "{shown}");
    let refused = desk.toolgate(&["run", "--session", "chat-77", "And then?"]).expect(1);
    assert!(refused.err.contains("has used up its `max_iterations` of 3"), "{}", refused.err);
    let unknown = desk.toolgate(&["sessions", "set", "chat-77", "--mode", "open"]).expect(1);
    assert!(unknown.err.contains("agent `desk` has no permission mode `open`"), "{}", unknown.err);
    let free = ["--max-iterations", "none", "--max-cost-usd", "none", "--expire-after-s", "none"];
    let shown = desk.toolgate(&[["sessions", "set", "chat-77"].as_slice(), &free].concat()).expect(0).out;
    assert!(!shown.contains("limits") && !shown.contains("expires"), "{shown}");
    desk.toolgate(&["run", "--session", "chat-77", "And then?"]).expect(0);
}
