//! Rows of the table: each fault over each of its transports, as a client sees it.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::client::{ARRIVAL, HttpClient, SILENCE, Seen, StdioClient, call, cancelled, initialize, plan, request};
use super::flaws::answer_with;
use crate::fault_proxy::{ClientFact, FaultKind, FaultTransport, Report, ServerFact, kinds};
use crate::message_flaws::Flaw;

/// Sessions at the same time.
const PARALLEL: usize = 6;

/// The fault in the second call, with a value that keeps the test short.
fn written(kind: &FaultKind) -> String {
    let value = match kind.name {
        "slow" => "=0.2",
        "huge-result" => "=1",
        _ => "",
    };
    format!("{}{value}#2", kind.name)
}

/// Fails unless a client sees the fault. `plain` is the answer without it.
fn examine(name: &str, seen: &Seen, plain: &Value, report: &Report) {
    let plain_line = plain.to_string();
    let half = plain_line.get(..plain_line.len() / 2).unwrap().as_bytes();
    let server = &report.injections[0].server;
    if let Some(flaw) = Flaw::ALL.iter().find(|flaw| flaw.name() == name) {
        // A line feed within an answer separates lines or events.
        let without_line_feeds = |bytes: Vec<u8>| bytes.into_iter().filter(|byte| *byte != b'\n').collect::<Vec<_>>();
        let found = without_line_feeds(seen.messages.concat());
        assert_eq!(found, without_line_feeds(answer_with(*flaw)), "{name}: {seen:?}");
        let is_unterminated = *flaw == Flaw::NoLineFeed;
        assert_eq!(found == plain_line.as_bytes(), is_unterminated, "{name}");
        return assert_eq!(seen.took.is_zero(), is_unterminated, "{name}: a line or an event has to end");
    }
    match name {
        "slow" => assert!(seen.took >= Duration::from_millis(200) && seen.message(0) == *plain, "{seen:?}"),
        "hang" => assert!(seen.messages.is_empty() && !seen.is_broken, "{seen:?}"),
        "late-reply" => {
            assert_eq!(seen.message(0), *plain);
            assert!(matches!(report.injections[0].client[0], ClientFact::Cancelled { .. }), "{report}");
        }
        "die" => {
            assert!(seen.messages.is_empty() && seen.is_broken, "{seen:?}");
            assert!(server.iter().any(|fact| matches!(fact, ServerFact::Killed { .. })), "{report}");
        }
        "die-in-answer" => assert!(seen.is_broken && seen.messages == [half], "{seen:?}"),
        "connection-reset" => assert!(seen.is_broken && seen.messages.is_empty(), "{seen:?}"),
        "restarts-inside" => {
            assert_eq!(seen.message(0), *plain);
            assert!(matches!(server[0], ServerFact::Restarted { .. }), "{report}");
        }
        "lost-session" => assert_eq!(seen.status, 404),
        "tools-change" => {
            assert_eq!(seen.message(0)["method"], "notifications/tools/list_changed");
            assert_eq!(seen.message(1), *plain);
        }
        "huge-result" => assert!(seen.messages[0].len() > 1 << 20),
        "malformed" => assert!(seen.messages[0].starts_with(b"{'") && seen.messages.len() == 1, "{seen:?}"),
        "out-of-order" => assert_eq!(seen.ids(), [4, 3]),
        "duplicate-replies" => assert_eq!(seen.ids(), [3, 3]),
        "wrong-ids" => assert_eq!(seen.ids(), [1_000_003]),
        "is-error" => assert_eq!(seen.message(0)["result"]["isError"], true),
        "rpc-error" => assert_eq!(seen.message(0)["error"]["code"], -32603),
        "result-null" => assert_eq!(seen.message(0), json!({"jsonrpc": "2.0", "id": 3, "result": null})),
        "stdout-garbage" => assert!(seen.messages[0].starts_with(b"[INFO]") && seen.message(1) == *plain),
        "http-401" => assert_eq!((seen.status, seen.headers.contains_key("www-authenticate")), (401, true)),
        "http-429" => assert_eq!((seen.status, &seen.headers["retry-after"]), (429, &"1".parse().unwrap())),
        "http-500" => assert_eq!(seen.status, 500),
        "http-503-retry-after" => assert_eq!((seen.status, &seen.headers["retry-after"]), (503, &"7".parse().unwrap())),
        "http-html" => assert!(seen.status == 200 && seen.messages[0].starts_with(b"<!DOCTYPE")),
        _ => panic!("the fault {name} has no scenario"),
    }
}

fn limit(name: &str) -> Duration {
    match name {
        "hang" => SILENCE,
        // Its line never ends.
        "no-line-feed" => 4 * SILENCE,
        _ => ARRIVAL,
    }
}

async fn over_stdio(kind: FaultKind) {
    let mut client = StdioClient::start(plan(&[&written(&kind)], FaultTransport::Stdio), &[]);
    client.answer(&initialize(1)).await;
    let mut plain = client.answer(&call(2)).await;
    plain["id"] = json!(3);
    client.send(&call(3)).await;
    match kind.name {
        "late-reply" => {
            assert!(client.read(SILENCE).await.messages.is_empty());
            client.send(&cancelled(3)).await;
        }
        "out-of-order" => client.send(&call(4)).await,
        _ => {}
    }
    let seen = client.read(limit(kind.name)).await;
    if kind.name == "tools-change" {
        let tools = client.answer(&request(5, "tools/list", json!({}))).await;
        assert!(tools["result"]["tools"][0]["description"].as_str().unwrap().ends_with("(changed)"), "{tools}");
    }
    let report = client.close().await;
    assert_eq!(report.injections.len(), 1, "{}: {report}", kind.name);
    examine(kind.name, &seen, &plain, &report);
}

async fn over_http(kind: FaultKind) {
    let mut client = HttpClient::start(plan(&[&written(&kind)], FaultTransport::Http), &[]).await;
    client.initialize(1).await;
    let mut plain = client.exchange(&call(2)).await.message(0);
    plain["id"] = json!(3);
    let seen = match kind.name {
        "late-reply" => {
            let cancellation = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                client.exchange(&cancelled(3)).await
            };
            let called = call(3);
            tokio::join!(client.exchange(&called), cancellation).0
        }
        _ => client.exchange_within(limit(kind.name), &call(3)).await,
    };
    let report = client.close().await;
    assert_eq!(report.injections.len(), 1, "{}: {report}", kind.name);
    examine(kind.name, &seen, &plain, &report);
}

async fn all<F: Future<Output = ()>>(transport: FaultTransport, scenario: impl Fn(FaultKind) -> F) {
    let rows = stream::iter(kinds().filter(|kind| kind.transport.includes(transport)));
    rows.for_each_concurrent(PARALLEL, scenario).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_over_stdio_sees_each_fault() {
    all(FaultTransport::Stdio, over_stdio).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_over_http_sees_each_fault() {
    all(FaultTransport::Http, over_http).await;
}
