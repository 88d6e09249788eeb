//! The demo server as a child process.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;
use toolgate::core::tool::Progress;
use toolgate::mcp::ServerState;

use super::support::*;

#[tokio::test]
async fn the_example_server_lists_its_tools_with_hints_and_schemas() {
    let servers = servers([("shop", demo())]);
    let listed = list(&servers, &["shop"]).await.remove(0);
    assert_eq!(listed.left_out, []);
    let mut tools = listed.tools.to_vec();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["add_note", "find_customer", "get_invoice", "get_loyalty", "list_orders"]);
    let hints: Vec<_> =
        tools.iter().map(|tool| (tool.annotations.read_only_hint, tool.annotations.destructive_hint)).collect();
    let read_only = (Some(true), None);
    assert_eq!(hints, [(Some(false), Some(false)), read_only, read_only, read_only, read_only]);
    assert_eq!(tools[2].input_schema["properties"]["order_id"]["pattern"], "^A-[0-9]{4}$");
    assert_eq!(tools[3].output_schema.as_ref().expect("an output schema")["required"], json!(["points", "tier"]));
    servers.close().await;
}

#[tokio::test]
async fn answers_arrive_as_text_and_structured_and_a_failing_tool_is_an_answer_too() {
    let servers = servers([("shop", demo())]);
    let loyalty = returned(call(&servers, "shop", "get_loyalty", json!({"customer_id": "C-1001"})).await);
    assert_eq!(loyalty.structured, Some(json!({"points": 1280, "tier": "gold"})));
    assert!(!loyalty.is_error);
    let unknown = returned(call(&servers, "shop", "get_invoice", json!({"order_id": "A-9999"})).await);
    assert!(unknown.is_error);
    assert_eq!(
        unknown.content[0].as_text(),
        Some("there is no order A-9999; list the customer's orders to find the right one")
    );
    servers.close().await;
}

#[tokio::test]
async fn progress_is_reported_while_the_call_runs() {
    let servers = servers([("shop", demo())]);
    let said = Mutex::new(Vec::new());
    let note = |progress: Progress| said.lock().unwrap().push((progress.progress, progress.total, progress.message));
    let invoice = text(call_with(&servers, "shop", "get_invoice", json!({"order_id": "A-1041"}), None, &note).await);
    assert!(invoice.ends_with("total: 36150 cents"), "{invoice}");
    let step = |number: f64, doing: &str| (number, Some(3.0), Some(doing.to_owned()));
    let expected = [step(1.0, "asking the archive"), step(2.0, "fetching the pages"), step(3.0, "reading the pages")];
    assert_eq!(*said.lock().unwrap(), expected);
    servers.close().await;
}

#[tokio::test]
async fn parallel_calls_take_no_longer_than_one_and_a_server_gets_no_more_than_it_wants() {
    let mut narrow = demo();
    narrow.max_concurrency = 1;
    let servers = servers([("wide", demo()), ("narrow", narrow)]);
    list(&servers, &["wide", "narrow"]).await;
    let four_calls = async |server: &str| {
        let started = Instant::now();
        let one = || call(&servers, server, "get_loyalty", json!({"customer_id": "C-1001"}));
        tokio::join!(one(), one(), one(), one());
        started.elapsed()
    };
    let (wide, narrow) = tokio::join!(four_calls("wide"), four_calls("narrow"));
    assert!(wide < Duration::from_millis(350), "{wide:?} for four calls of 100 ms side by side");
    assert!(narrow >= Duration::from_millis(400), "{narrow:?} for four calls of 100 ms one by one");
    servers.close().await;
}

#[tokio::test]
async fn the_status_says_who_is_there_and_under_which_revision() {
    let servers = servers([("shop", demo())]);
    assert_eq!(status(&servers, "shop").state, ServerState::Idle);
    list(&servers, &["shop"]).await;
    let ready = status(&servers, "shop");
    assert_eq!((ready.state, ready.name.as_deref()), (ServerState::Ready, Some("toolgate-demo-shop")));
    assert_eq!(ready.version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(ready.protocol_version.as_deref(), Some("2026-07-28"));
    assert!(is_running(ready.pid.expect("a process")));
    servers.close().await;
    assert_eq!(status(&servers, "shop").state, ServerState::Closed);
}
