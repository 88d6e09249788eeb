//! `toolgate runs`: show, list, events, export, cancel, fork and recover.

use super::desk::{Desk, steady};

const TURNS: &str = "
turns:
  - say: I look at her orders.
    usage: { input_tokens: 100, output_tokens: 20 }
    calls:
      - { name: mcp_shop_list_orders, arguments: { customer_id: C-1001 } }
      - { name: mcp_shop_get_invoice, arguments: { order_id: '1077' } }
      - { name: mcp_shop_fly, arguments: {} }
  - calls:
      - { name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }
      - { name: ext_issue_refund, arguments: { order_id: A-1077 } }
  - { say: Done. }
";

fn pending() -> Desk {
    let desk = Desk::playing(TURNS);
    desk.toolgate(&["run", "Sort it out"]).expect(10);
    desk
}

#[test]
fn show_lists_turns_calls_and_pending_items() {
    let desk = pending();
    let ended = desk.toolgate(&["runs", "show", "last"]).expect(0);
    insta::assert_snapshot!(steady(&ended.out));
}

#[test]
fn a_shortened_result_names_the_command_that_shows_its_call_whole() {
    let desk = pending();
    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0).out;
    let command = shown.lines().find_map(|line| line.trim().strip_prefix("… whole: toolgate ")).unwrap();
    let whole = desk.toolgate(&command.split(' ').collect::<Vec<_>>()).expect(0).out;
    assert!(whole.starts_with("✓ mcp_shop_list_orders  call_1_1  allowed, rule read-only"), "{whole}");
    assert!(whole.contains("\narguments\n  customer_id: \"C-1001\"\nresult\n"), "{whole}");
    assert!(whole.contains("\n  |     \"order_id\": \"A-1041\",\n") && !whole.contains('…'), "{whole}");
    assert_eq!(whole.matches("A-1041").count(), 1, "in one form: {whole}");
    assert_eq!(desk.toolgate(&["runs", "show", "last", "call_1_1"]).expect(0).out, whole);

    let rejected = desk.toolgate(&["runs", "show", "last", "2"]).expect(0).out;
    assert!(rejected.contains("what the model read\n") && rejected.contains("^A-[0-9]{4}$"), "{rejected}");
    let json = desk.toolgate(&["runs", "show", "last", "1", "--json"]).expect(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["number"], &json["id"], &json["name"]),
        (&1.into(), &"call_1_1".into(), &"mcp_shop_list_orders".into())
    );
    assert!(json["outcome"]["returned"]["content"][0]["text"].as_str().unwrap().contains("A-1041"), "{json}");
    let missing = desk.toolgate(&["runs", "show", "last", "9"]).expect(2).err;
    assert!(
        missing.contains("has no call `9`") && missing.contains("its calls are: 1 call_1_1, 2 call_1_2"),
        "{missing}"
    );
}

#[test]
fn a_result_that_is_stored_beside_the_journal_is_shown_whole() {
    let desk = Desk::playing(
        "turns: [{ calls: [{ name: ext_issue_refund, arguments: { order_id: A-1077 } }] }, { say: Done. }]",
    );
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &config.replace("  desk:\n", "  desk:\n    limits: { max_result_bytes: 2048 }\n"));
    desk.toolgate(&["run", "Refund it"]).expect(10);
    let rows: Vec<String> = (0..1_000).map(|row| format!("row {row}")).collect();
    let result = serde_json::json!({"status": "refunded", "rows": rows});
    desk.toolgate(&["resume", "last", "--result", &format!("call_1_1={result}")]).expect(0);
    let journal = serde_json::to_string(&desk.journal("last")).unwrap();
    assert!(!journal.contains("row 500"), "the journal has an excerpt only");
    let whole = desk.toolgate(&["runs", "show", "last", "1"]).expect(0).out;
    let shown: Vec<&str> = whole.lines().filter(|line| line.contains("\"row ")).collect();
    assert_eq!((shown.len(), shown[500]), (1_000, "  |     \"row 500\","));
}

#[test]
fn the_turns_that_a_fork_has_copied_have_no_duration() {
    let desk = Desk::playing("turns: [{ say: First. }, { say: Second. }]");
    desk.toolgate(&["run", "x"]).expect(0);
    desk.toolgate(&["runs", "fork", "last", "--message", "And more?"]).expect(0);
    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0).out;
    assert!(shown.contains("\nturn 1\n") && shown.contains("\nturn 2  "), "{shown}");
}

#[test]
fn show_as_json_is_the_report() {
    let report: serde_json::Value =
        serde_json::from_str(&pending().toolgate(&["runs", "show", "last", "--json"]).out).unwrap();
    assert_eq!((report["status"].as_str(), report["pending"].as_array().unwrap().len()), (Some("pending"), 2));
}

#[test]
fn list_finds_runs_by_status_and_says_when_there_are_none() {
    let desk = pending();
    let listed = desk.toolgate(&["runs", "list", "--status", "pending"]).expect(0);
    assert!(listed.out.contains("Sort it out") && listed.out.contains("pending"), "{}", listed.out);
    let none = desk.toolgate(&["runs", "list", "--status", "failed"]).expect(0);
    assert_eq!((none.out.as_str(), none.err.contains("no runs")), ("", true));
    let wrong = desk.toolgate(&["runs", "list", "--status", "lost"]).expect(2);
    assert!(wrong.err.contains("a status is one of running, pending"), "{}", wrong.err);
}

#[test]
fn rows_0_03_and_0_04_runs_are_listed_by_trigger_and_schedule() {
    let desk = Desk::playing("turns: [{ say: Done. }]");
    desk.toolgate(&["run", "First"]).expect(0);
    desk.toolgate(&["run", "--schedule", "nightly", "Second"]).expect(0);
    for (filter, title) in [(["--trigger", "manual"], "First"), (["--schedule", "nightly"], "Second")] {
        let rows = desk.toolgate(&["runs", "list", "--json", filter[0], filter[1]]).expect(0).json_lines();
        let titles: Vec<_> = rows.iter().map(|row| row["title"].as_str().unwrap()).collect();
        assert_eq!(titles, [title], "{filter:?}");
    }
    let wrong = desk.toolgate(&["runs", "list", "--trigger", "chance"]).expect(2);
    assert!(wrong.err.contains("a trigger is one of manual, api"), "{}", wrong.err);
    desk.toolgate(&["run", "--schedule", "", "x"]).expect(2);
}

#[test]
fn row_0_35_each_run_has_a_readable_log_file_that_goes_with_its_content() {
    let desk = Desk::playing(TURNS);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &format!("{config}\nlog_folder: logs\n"));
    desk.toolgate(&["run", "Sort it out"]).expect(10);
    let id = desk.toolgate(&["runs", "list", "--json"]).json_lines()[0]["id"].as_str().unwrap().to_owned();
    let file = desk.path().join("logs").join(format!("{id}.log"));
    let events =
        |text: &str| -> Vec<String> { text.lines().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect() };

    let begun = std::fs::read_to_string(&file).unwrap();
    assert!(
        begun.contains("execution.started iteration=0 agent=") && begun.contains("input=\"Sort it out\""),
        "{begun}"
    );
    assert!(begun.contains("text=\"I look at her orders.\""), "{begun}");
    assert_eq!(events(&begun).last().unwrap(), "execution.pending", "{begun}");
    desk.toolgate(&["runs", "cancel", "last"]).expect(0);
    let ended = std::fs::read_to_string(&file).unwrap();
    assert!(ended.starts_with(&begun), "{ended}");
    assert_eq!(events(&ended).last().unwrap(), "execution.cancelled", "{ended}");
    for once in ["execution.started", "execution.cancelled"] {
        assert_eq!(events(&ended).iter().filter(|event| *event == once).count(), 1, "{ended}");
    }

    desk.toolgate(&["runs", "fork", "last", "--message", "Again"]);
    let files = std::fs::read_dir(desk.path().join("logs")).unwrap().map(|entry| entry.unwrap().path());
    let fork = files.into_iter().find(|other| *other != file).unwrap();
    assert!(std::fs::read_to_string(fork).unwrap().contains("input=\"Sort it out\""), "the copied events are there");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let session = desk.toolgate(&["runs", "list", "--json"]).json_lines().pop().unwrap();
    desk.toolgate(&["sessions", "delete", session["session_id"].as_str().unwrap()]).expect(0);
    assert!(!file.exists(), "deleted with the content of its run");
}

#[test]
fn a_run_is_found_by_the_end_of_its_id() {
    let desk = pending();
    let id = desk.toolgate(&["runs", "list", "--json"]).json_lines()[0]["id"].as_str().unwrap().to_owned();
    let shown = desk.toolgate(&["runs", "show", &id[id.len() - 8..]]).expect(0);
    assert!(shown.out.starts_with(&id), "{}", shown.out);
}

#[test]
fn events_are_those_of_the_run_itself() {
    let desk = Desk::playing("turns: [{ say: Done. }]");
    let live = desk.toolgate(&["run", "--json", "x"]).expect(0);
    let told = desk.toolgate(&["runs", "events", "last", "--json"]).expect(0);
    let facts: Vec<_> = live.json_lines().into_iter().filter(|line| line.get("seq").is_some()).collect();
    assert_eq!(told.json_lines(), facts);
    let story = desk.toolgate(&["runs", "events", "last", "--follow"]).expect(0);
    assert!(story.out.contains("Done.") && story.out.contains("completed"), "{}", story.out);
}

#[test]
fn export_gives_the_journal_or_the_conversation() {
    let desk = pending();
    let journal = desk.journal("last");
    assert_eq!(journal[0]["type"], "execution.started");
    let places: Vec<u64> = journal.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(places, (0..journal.len() as u64).collect::<Vec<_>>());
    let text = desk.toolgate(&["runs", "export", "last", "--format", "text"]).expect(0).out;
    assert!(text.starts_with("user: Sort it out\n\nassistant: I look at her orders.\n\ncall call_1_1:"), "{text}");
}

#[test]
fn a_cancelled_run_is_over_and_cancelling_it_again_changes_nothing() {
    let desk = pending();
    let cancel = ["runs", "cancel", "last", "--reason", "wrong customer"];
    let ended = desk.toolgate(&cancel).expect(0);
    assert!(ended.out.ends_with(" cancelled\n"), "{}", ended.out);
    let before = desk.journal("last");
    desk.toolgate(&cancel).expect(0);
    assert_eq!(desk.journal("last"), before);
    assert!(desk.toolgate(&["resume", "last", "--approve", "call_2_1"]).expect(1).err.contains("the run is over"));
}

#[test]
fn a_fork_leaves_its_source_unchanged() {
    let desk = Desk::playing("turns: [{ say: First. }, { say: Second. }]");
    desk.toolgate(&["run", "x"]).expect(0);
    let first = desk.journal("last");
    let forked = desk.toolgate(&["runs", "fork", "last", "--message", "And more?"]).expect(0);
    assert_eq!(forked.out, "Second.\n");
    let runs = desk.toolgate(&["runs", "list", "--json"]).json_lines();
    assert_eq!(desk.journal(runs[1]["id"].as_str().unwrap()), first);
    let beyond = desk.toolgate(&["runs", "fork", "last", "--at", "999"]).expect(2);
    assert!(beyond.err.contains("cannot be forked at 999"), "{}", beyond.err);
}

#[test]
fn a_retry_with_another_model_asks_it_unless_the_run_has_a_reply() {
    let desk = Desk::playing("turns: [{ fail: { code: provider_rejected } }]");
    desk.add_another_model();
    desk.toolgate(&["run", "Hello"]).expect(1);
    assert_eq!(desk.toolgate(&["runs", "retry", "last", "--model", "other"]).expect(0).out, "Here I am.\n");
    desk.write("other.yaml", "turns: [{ say: Here I am. }, { say: Still here. }]");
    let again = desk.toolgate(&["runs", "retry", "last", "--message", "More", "--model", "played"]).expect(0);
    assert_eq!(again.out, "Still here.\n");
    assert!(again.err.contains("model other goes on with the turn that it began"), "{}", again.err);
    assert!(desk.toolgate(&["runs", "retry", "last", "--model", "thrid"]).expect(2).err.contains("thrid"));
}

#[test]
fn a_retry_takes_the_place_of_the_latest_run_of_its_session() {
    let desk = Desk::playing("turns: [{ say: First. }, { say: Second. }, { say: Third. }]");
    desk.toolgate(&["run", "--session", "chat", "One"]).expect(0);
    desk.toolgate(&["run", "--session", "chat", "Two"]).expect(0);
    let runs = desk.toolgate(&["runs", "list", "--json"]).json_lines();
    let (second, first) = (runs[0]["id"].as_str().unwrap(), runs[1]["id"].as_str().unwrap());

    let retried = desk.toolgate(&["runs", "retry", "last"]).expect(0);
    let refused = desk.toolgate(&["runs", "retry", first]).expect(1);

    assert_eq!(retried.out, "Second.\n");
    assert!(retried.err.contains(&format!("retries {second}")), "{}", retried.err);
    assert!(refused.err.contains("is not the latest of its session; fork it"), "{}", refused.err);
    assert_eq!(desk.toolgate(&["runs", "retry", "last", "--message", "More"]).expect(0).out, "Third.\n");
}

#[test]
fn recovery_without_orphaned_runs_reports_zero() {
    let ended = pending().toolgate(&["runs", "recover"]).expect(0);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("", "0 runs resumed\n"));
}

#[test]
fn row_0_27_lists_have_cost_and_session_and_name_interrupted_runs() {
    let turns = "turns: [{ say: Done., usage: { input_tokens: 1000, output_tokens: 10 } }]";
    let desk = Desk::playing(turns);
    let configuration = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &format!("{configuration}prices: {{ played: {{ input: 2, output: 8 }} }}\n"));
    desk.toolgate(&["run", "Hello"]).expect(0);
    let listed = desk.toolgate(&["runs", "list"]).expect(0).out;
    assert!(listed.contains("COST") && listed.contains("$0.0021"), "{listed}");
    let row = &desk.toolgate(&["runs", "list", "--json"]).expect(0).json_lines()[0];
    assert_eq!(row["session_id"], row["id"], "{row}");
}
