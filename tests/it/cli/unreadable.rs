//! A run with an unreadable journal, such as one from a newer toolgate: it does not block the other runs.

use super::desk::Desk;

const REFUND: &str = "
turns:
  - { calls: [{ id: refund, name: ext_issue_refund, arguments: { order_id: A-1077 } }] }
  - { calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }] }
  - { say: done }
";

/// Two runs with a pending approval, of which the first is unreadable; and its id.
async fn desk() -> (Desk, String) {
    let desk = Desk::playing(REFUND);
    for _ in 0..2 {
        desk.toolgate(&["run", "x"]).expect(10);
        desk.toolgate(&["resume", "last", "--result", r#"refund={"status":"refunded"}"#]).expect(10);
    }
    let runs = desk.toolgate(&["runs", "list", "--json"]).expect(0).json_lines();
    let oldest = runs[1]["id"].as_str().unwrap().to_owned();
    let db = rusqlite::Connection::open(desk.path().join(".toolgate/toolgate.db")).unwrap();
    let sql = "UPDATE journal SET event = '{\"type\":\"execution.teleported\"}' WHERE seq = 2 AND run = ?";
    assert_eq!(db.execute(sql, [&oldest]).unwrap(), 1);
    // According to the index, it is overdue.
    db.execute("UPDATE run SET due_at = 1 WHERE id = ?", [&oldest]).unwrap();
    (desk, oldest)
}

#[tokio::test]
async fn other_runs_are_listed_beside_an_unreadable_one() {
    let (desk, unreadable) = desk().await;

    let listed = desk.toolgate(&["approvals", "list"]).expect(1);
    assert!(listed.out.contains("shop: add_note("), "{}", listed.out);
    assert!(
        listed.err.contains(&format!("warning: the pending items of {unreadable} cannot be read")),
        "{}",
        listed.err
    );

    let told = desk.toolgate(&["approvals", "list", "--json"]).expect(1).json_lines();
    assert_eq!(told.iter().map(|line| line["type"].as_str().unwrap()).collect::<Vec<_>>(), ["approval", "unreadable"]);
    assert_eq!((&told[1]["run_id"], &told[1]["error"]["code"]), (&unreadable.into(), &"journal_corrupt".into()));
}

#[tokio::test]
async fn expire_names_the_run_that_it_cannot_read() {
    let (desk, unreadable) = desk().await;

    let swept = desk.toolgate(&["approvals", "expire"]).expect(1);
    assert!(swept.err.contains(&format!("error: {unreadable}: ")), "{}", swept.err);
    assert!(swept.err.contains("0 runs with overdue items"), "{}", swept.err);

    let told = desk.toolgate(&["approvals", "expire", "--json"]).expect(1).json_lines();
    assert_eq!((&told[0]["run_id"], &told[0]["error"]["code"]), (&unreadable.into(), &"journal_corrupt".into()));
}
