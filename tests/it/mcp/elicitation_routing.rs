//! Elicitation of servers with one stream for all calls: which call a question belongs to, and which call gets the
//! answer.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::run::AnsweredElicitation;
use toolgate::core::tool::{CallReply, ElicitationResponse, FailureKind};
use toolgate::mcp::{ServerSettings, Servers};
use toolgate::ports::{McpCall, McpServers as _};

use super::elicitation::{answered, asked, ended};
use super::support::*;

/// A server that asks, and its notes.
struct Asker {
    folder: TempDir,
}

impl Asker {
    fn new() -> Self {
        Self { folder: TempDir::new().expect("a folder") }
    }

    fn settings(&self) -> ServerSettings {
        python("asker.py", &[self.folder.path().join("notes").to_str().expect("UTF-8")])
    }

    fn notes(&self) -> Vec<String> {
        let notes = std::fs::read_to_string(self.folder.path().join("notes")).unwrap_or_default();
        notes.lines().map(str::to_owned).collect()
    }

    async fn noted(&self, what: &str) {
        eventually(what, async || self.notes().iter().any(|note| note == what)).await;
    }
}

async fn send(servers: &Servers, tool: &str, arguments: Value, answered: Option<&AnsweredElicitation>) -> CallReply {
    let (run, call, server, trace) = (RunId::from("run_1"), CallId::from("call_1"), ServerId::from("asker"), trace());
    let arguments = arguments.as_object().expect("an object");
    let call = McpCall {
        run: &run,
        call: &call,
        server: &server,
        tool,
        arguments,
        is_repeatable: false,
        trace: &trace,
        deadline: None,
        answered,
        elicitation: None,
    };
    servers.call(call, &|_| {}).await.reply
}

async fn delete(servers: &Servers, what: &str, answered: Option<&AnsweredElicitation>) -> CallReply {
    send(servers, "delete", json!({"what": what}), answered).await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_two_resumed_calls_gets_its_own_answer() {
    let asker = Asker::new();
    let servers = servers([("asker", asker.settings())]);
    let (test, production) = tokio::join!(delete(&servers, "test", None), delete(&servers, "production", None));
    let accepted = answered(asked(test), &ElicitationResponse::accept(serde_json::Map::new()));
    let declined = answered(asked(production), &ElicitationResponse::decline());
    for round in 0..25 {
        let (test, production) =
            tokio::join!(delete(&servers, "test", Some(&accepted)), delete(&servers, "production", Some(&declined)));
        let said = (text(ended(test)), text(ended(production)));
        assert_eq!(said, ("deleted test".into(), "kept production".into()), "in round {round}");
    }
    assert!(!asker.notes().contains(&"deleted production".to_owned()));
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_beside_a_cancelled_one_that_asked_is_made_once() {
    let asker = Asker::new();
    let settings = ServerSettings { call_timeout: Duration::from_millis(500), ..asker.settings() };
    let servers = servers([("asker", settings)]);
    names(&servers, "asker").await;
    let slow = send(&servers, "slow", json!({}), None);
    let asks = async {
        asker.noted("slow begins").await;
        send(&servers, "ask", json!({}), None).await
    };
    let (slow, asks) = tokio::join!(slow, asks);
    assert_eq!(text(ended(slow)), "slow done");
    assert_eq!(failed(ended(asks)).0, FailureKind::Timeout);
    asker.noted("ask was told cancel").await;
    let begun = asker.notes().iter().filter(|note| *note == "slow begins").count();
    assert_eq!(begun, 1, "{:?}", asker.notes());
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_came_with_a_question_is_the_result() {
    let asker = Asker::new();
    let servers = servers([("asker", asker.settings())]);
    for _ in 0..25 {
        assert_eq!(text(ended(send(&servers, "both", json!({}), None).await)), "done, and asked");
    }
    assert_eq!(asker.notes().iter().filter(|note| *note == "both").count(), 25);
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_form_is_refused_to_the_server() {
    let asker = Asker::new();
    let servers = servers([("asker", asker.settings())]);
    let said = text(ended(send(&servers, "deep", json!({}), None).await));
    assert!(said.contains("nested more than 32 levels deep") && said.contains("-32602"), "{said}");
    servers.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_and_stops_reading_cannot_exceed_the_time_limit() {
    let asker = Asker::new();
    let settings = ServerSettings { total_timeout: Duration::from_millis(1500), ..asker.settings() };
    let servers = servers([("asker", settings)]);
    names(&servers, "asker").await;
    let asks = send(&servers, "read_no_more", json!({}), None);
    // It asks a moment later. The large message is then being sent, and no other message gets past it.
    let clog = send(&servers, "slow", json!({"clog": "x".repeat(4 * 1024 * 1024)}), None);
    let both = async { tokio::join!(asks, clog) };
    let (asks, _) = tokio::time::timeout(Duration::from_secs(5), both).await.expect("within its time");
    assert_eq!(failed(ended(asks)).0, FailureKind::Timeout);
    servers.close().await;
}
