//! Waterfall of a run, drawn from its journal.

use super::canaries::Collected;
use super::desk::Desk;

const NOTE: &str = "
turns:
  - { calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }] }
  - { say: done }
";

/// Whether this is the name of the span of the server's listing, with or without its start.
fn is_listing(name: &str) -> bool {
    ["initialize shop", "tools/list shop"].contains(&name)
}

#[test]
fn a_run_that_waited_is_drawn_as_two_executions_with_the_wait_between_them() {
    let desk = Desk::playing(NOTE);
    desk.toolgate(&["run", "Note it"]).expect(10);
    desk.toolgate(&["approvals", "approve", "last", "note"]).expect(0);

    let drawn = desk.toolgate(&["runs", "trace", "last"]).expect(0).out;

    let begins: Vec<&str> = drawn.lines().map(|line| line.split(['█', '·']).next().unwrap().trim()).collect();
    // The server starts again for the second execution. How long that takes decides whether it has a span.
    let begins: Vec<&str> = begins.into_iter().filter(|line| !is_listing(line.trim_start_matches("├ "))).collect();
    let expected = [
        "execution 1 of 2",
        "invoke_agent desk",
        "└ chat played",
        "",
        "execution 2 of 2",
        "invoke_agent desk",
        "├ approval",
        "├ mcp_shop_add_note",
        "└ chat played",
    ];
    assert_eq!(begins, expected, "{drawn}");
    assert!(drawn.contains("· waited ") && drawn.contains(" for an answer"), "{drawn}");
}

#[test]
fn spans_are_visible_without_a_collector() {
    let desk = Desk::playing("turns: [{ say: done }]");
    let ran = desk.command(&["run", "Go"]).env("OTEL_TRACES_SAMPLER", "always_off").output().unwrap();
    assert!(ran.status.success());

    let spans = desk.toolgate(&["runs", "trace", "last", "--json"]).expect(0).json_lines();

    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert!(is_listing(names[0]), "{names:?}");
    assert_eq!(names[1..], ["chat played", "invoke_agent desk"]);
    let attribute =
        |name: &str| spans[2]["attributes"].as_array().unwrap().iter().find(|pair| pair[0] == name).cloned();
    assert_eq!(attribute("input.value").unwrap()[1], "Go");
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_that_never_left_are_sent_from_the_journal() {
    let collected = Collected::default();
    let endpoint = collected.listen().await;
    let sent = tokio::task::spawn_blocking(move || {
        let desk = Desk::playing("turns: [{ say: done }]");
        desk.toolgate(&["run", "Go"]).expect(0);
        let nowhere = desk.toolgate(&["runs", "trace", "last", "--send"]).expect(2);
        assert!(nowhere.err.contains("OTEL_EXPORTER_OTLP_ENDPOINT"), "{}", nowhere.err);
        desk.command(&["runs", "trace", "last", "--send"])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
            .output()
            .unwrap()
    });
    let sent = sent.await.unwrap();

    let said = String::from_utf8_lossy(&sent.stdout);
    assert!(sent.status.success() && said.starts_with("3 spans of run_"), "{sent:?}");
    let spans = collected.text();
    assert!([" shop", "chat played", "invoke_agent desk"].iter().all(|name| spans.contains(name)), "{spans}");
}

#[test]
fn a_secret_that_was_configured_later_is_not_in_the_printed_spans() {
    let desk = Desk::playing("turns: [{ say: The key is canary-of-the-model. }]");
    desk.toolgate(&["run", "Hello"]).expect(0);
    let configuration = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let model = "models: { away: { openai_chat: { model: m, api_key: canary-of-the-model } }, ";
    desk.write(
        "toolgate.yaml",
        &configuration.replace("models: { ", model).replace("servers: [shop]", "model: played\n    servers: [shop]"),
    );

    let printed = desk.toolgate(&["runs", "trace", "last", "--json"]).expect(0).out;

    assert!(printed.contains("The key is __REDACTED__") && !printed.contains("canary"), "{printed}");
}
