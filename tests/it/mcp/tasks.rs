//! Calls that servers continue as tasks, which are polled later.

use serde_json::json;
use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::tool::{CallReply, FailureKind, TaskHandle};
use toolgate::mcp::{ServerSettings, Servers};
use toolgate::ports::{McpServers as _, McpTask, TaskAction};

use super::elicitation::{answered, asked, ended, name, send, who_is_asking};
use super::faults::{Endpoint, executed, fault};
use super::support::*;

/// The task of a call.
pub(super) fn task(reply: CallReply) -> TaskHandle {
    match reply {
        CallReply::Task(task) => task,
        other => panic!("expected a task, got {other:?}"),
    }
}

pub(super) async fn ask(
    servers: &Servers,
    id: &str,
    task: &TaskHandle,
    action: TaskAction,
) -> Result<CallReply, String> {
    let (run, call, server) = (RunId::from("run_1"), CallId::from("call_1"), ServerId::from(id));
    let trace = trace();
    let told = servers
        .task(McpTask { run: &run, call: &call, server: &server, tool: "echo", task, trace: &trace, action })
        .await;
    told.map(|replied| replied.reply)
}

pub(super) async fn news(servers: &Servers, id: &str, task: &TaskHandle) -> CallReply {
    ask(servers, id, task, TaskAction::Poll).await.expect("the server answers")
}

fn modern(faulty: &str) -> ServerSettings {
    fault(&["protocol-version=2026-07-28", faulty])
}

#[tokio::test]
async fn a_call_that_becomes_a_task_is_asked_about_until_it_has_the_result_of_the_call() {
    let endpoint = Endpoint::with(&["protocol-version=2026-07-28", "task=2"]).await;
    let servers = servers([("stdio", modern("task=2")), ("http", endpoint.settings())]);
    for id in ["stdio", "http"] {
        let started = task(send(&servers, id, "echo", None).await);
        assert_eq!((started.poll_ms, started.ttl_ms), (Some(50), Some(600_000)));
        for _ in 0..2 {
            let still = task(news(&servers, id, &started).await);
            assert_eq!((&still.id, still.message.as_deref()), (&started.id, Some("still at it")));
        }
        assert_eq!(text(ended(news(&servers, id, &started).await)), "hello");
        assert_eq!(executed(&servers, id).await, 1);
    }
    servers.close().await;
}

#[tokio::test]
async fn a_task_that_asks_waits_for_the_answer_and_is_not_asked_the_same_twice() {
    let servers = servers([("asks", modern("task-input"))]);
    let started = task(send(&servers, "asks", "echo", None).await);
    task(news(&servers, "asks", &started).await);
    let needed = asked(news(&servers, "asks", &started).await);
    assert_eq!(needed.questions.values().collect::<Vec<_>>(), [&who_is_asking()]);
    assert_eq!(needed.task.as_ref().map(|task| &task.id), Some(&started.id));
    let going_on = task(send(&servers, "asks", "echo", Some(&answered(needed, &name("Ada")))).await);
    let said = text(ended(news(&servers, "asks", &going_on).await));
    assert!(said.starts_with("hello, Ada"), "{said}");
    servers.close().await;
}

#[tokio::test]
async fn a_task_that_fails_is_forgotten_or_is_stopped_ends_its_call_with_the_reason() {
    let servers =
        servers([("fails", modern("task-fails")), ("forgets", modern("task-forgotten")), ("works", modern("task=9"))]);
    let started = task(send(&servers, "fails", "echo", None).await);
    task(news(&servers, "fails", &started).await);
    let (kind, message) = failed(ended(news(&servers, "fails", &started).await));
    assert_eq!(kind, FailureKind::Refused);
    assert!(message.ends_with("failed at the MCP server: the task fell over (JSON-RPC error -32603)"), "{message}");

    let started = task(send(&servers, "forgets", "echo", None).await);
    let (kind, message) = failed(ended(news(&servers, "forgets", &started).await));
    assert_eq!(kind, FailureKind::Unavailable);
    assert!(message.contains("does not know the task `task-1` any more") && message.contains("600 s"), "{message}");

    let started = task(send(&servers, "works", "echo", None).await);
    let stopped = ask(&servers, "works", &started, TaskAction::Stop).await.expect("the server answers");
    assert_eq!(failed(ended(stopped)).0, FailureKind::Cancelled);
    assert_eq!(failed(ended(news(&servers, "works", &started).await)).0, FailureKind::Cancelled);
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_asked_now_says_nothing_about_its_task() {
    let endpoint = Endpoint::with(&["protocol-version=2026-07-28", "task=9"]).await;
    let servers = servers([("gone", endpoint.settings())]);
    let started = task(send(&servers, "gone", "echo", None).await);
    drop(endpoint);
    eventually("it is gone", async || ask(&servers, "gone", &started, TaskAction::Poll).await.is_err()).await;
    let why = ask(&servers, "gone", &started, TaskAction::Poll).await.expect_err("the server is gone");
    assert!(why.starts_with("the MCP server `gone` "), "{why}");
    assert_eq!(json!(started)["id"], "task-1");
    servers.close().await;
}
