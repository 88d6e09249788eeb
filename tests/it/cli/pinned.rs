//! Pinned arguments end to end (row 3.46): the server receives the values, and they appear nowhere else.

use super::canaries::{Collected, found};
use super::desk::Desk;

const CONFIG: &str = "
models: { played: { scripted: { file: conversation.yaml } } }
servers:
  shop:
    stdio: { command: sh, args: [-c, 'tee -a received | toolgate demo-server'] }
    trusted: true
    tools:
      add_note: { arguments: { customer_id: C-1003, text: { secret: '${NOTE}' } } }
      find_customer: { arguments: { name: canary-of-the-operator } }
agents: { desk: { model: played, servers: [shop], policy: bypass } }
";

const SAID: &str = "
turns:
  - calls:
      - { id: note, name: mcp_shop_add_note, arguments: {} }
      - { id: find, name: mcp_shop_find_customer, arguments: {} }
      - { id: wrong, name: mcp_shop_add_note, arguments: { customer_id: C-1001 } }
  - { say: Done. }
";

fn desk() -> Desk {
    let desk = Desk::empty();
    desk.write("toolgate.yaml", CONFIG);
    desk.write("conversation.yaml", SAID);
    desk
}

#[tokio::test(flavor = "multi_thread")]
async fn pinned_values_reach_the_server_and_nothing_else() {
    let collected = Collected::default();
    let endpoint = collected.listen().await;
    let shown = tokio::task::spawn_blocking(move || {
        let desk = desk();
        let mut shown = String::new();
        for arguments in [
            &["run", "--json", "Note it"][..],
            &["runs", "export", "last"],
            &["runs", "trace", "last"],
            &["tools", "--json"],
            &["mcp", "list", "shop", "--schemas"],
            &["config", "check"],
        ] {
            let mut command = desk.command(arguments);
            command.env("NOTE", "canary-of-the-note").env("RUST_LOG", "trace");
            let output = command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint).output().unwrap();
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{arguments:?}: {out}\n{err}");
            shown = shown + &out + &err;
        }
        for file in std::fs::read_dir(desk.path().join(".toolgate")).unwrap().map(|entry| entry.unwrap().path()) {
            shown +=
                &std::fs::read(file).map_or_else(|_| String::new(), |it| String::from_utf8_lossy(&it).into_owned());
        }
        let received = std::fs::read_to_string(desk.path().join("received")).unwrap();
        assert_eq!(found(&received, "nothing").len(), 2, "{received}");
        shown
    });
    let shown = shown.await.unwrap();

    assert!(shown.contains("noted; Chiara Lindqvist now has 1 note(s)"), "{shown}");
    assert!(shown.contains("`customer_id` is set by the operator; leave it out"), "{shown}");
    assert!(shown.contains("DEBUG") || shown.contains("TRACE"), "the log is loud");
    assert_eq!(found(&shown, "nothing"), [""; 0], "in output, logs or the store");
    assert!(collected.text().contains("execute_tool mcp_shop_add_note"), "the spans were sent");
    assert_eq!(found(&collected.text(), "nothing"), [""; 0], "in spans");
}

#[test]
fn a_direct_call_cannot_set_a_pinned_argument() {
    let desk = desk();
    let call = |arguments: &str| {
        let mut command = desk.command(&["mcp", "call", "shop", "add_note", arguments]);
        let output = command.env("NOTE", "canary-of-the-note").output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(call("{\"text\": \"mine\"}").0, Some(4));
    let (code, told) = call("{}");
    assert!(code == Some(0) && told.contains("Chiara Lindqvist now has 1 note"), "{told}");
}
