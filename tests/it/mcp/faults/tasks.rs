//! Calls that become tasks, and their outcomes.

use std::sync::Arc;

use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::run::{AnsweredElicitation, ElicitationAnswer};
use toolgate::core::tool::{Action, CallReply, ElicitationResponse, FailureKind, Outcome, TaskHandle};
use toolgate::ports::{McpCall, McpServers, McpTask, TaskAction};

use super::*;

async fn send(servers: &Servers, answered: Option<&AnsweredElicitation>) -> CallReply {
    let (run, call, server, trace) = (RunId::from("run_1"), CallId::from("call_1"), ServerId::from("busy"), trace());
    let arguments = json!({"text": "done"});
    let call = McpCall {
        run: &run,
        call: &call,
        server: &server,
        tool: "echo",
        arguments: arguments.as_object().expect("an object"),
        is_repeatable: false,
        trace: &trace,
        deadline: None,
        answered,
        elicitation: None,
    };
    servers.call(call, &|_| {}).await.reply
}

async fn ask(servers: &Servers, task: &TaskHandle, action: TaskAction) -> CallReply {
    let (run, call, server, trace) = (RunId::from("run_1"), CallId::from("call_1"), ServerId::from("busy"), trace());
    let about = McpTask { run: &run, call: &call, server: &server, tool: "echo", task, trace: &trace, action };
    servers.task(about).await.expect("it can be asked").reply
}

/// The task of a call.
fn task(reply: CallReply) -> TaskHandle {
    match reply {
        CallReply::Task(task) => task,
        other => panic!("expected a task, got {other:?}"),
    }
}

fn ended(reply: CallReply) -> Outcome {
    match reply {
        CallReply::Ended { outcome, .. } => outcome,
        other => panic!("expected the end of the call, got {other:?}"),
    }
}

/// Polls a task until it ends.
async fn end_of(servers: &Servers, mut handle: TaskHandle) -> CallReply {
    for _ in 0..10 {
        match ask(servers, &handle, TaskAction::Poll).await {
            CallReply::Task(still) => handle = still,
            other => return other,
        }
    }
    panic!("the task never ends: {handle:?}");
}

#[tokio::test]
async fn a_call_that_becomes_a_task_is_asked_about_until_it_is_done() {
    let (settings, wire) = of_era("2026-07-28", &["task=2"]);
    let servers = servers([("busy", settings)]);
    let first = task(send(&servers, None).await);
    assert_eq!(first, TaskHandle { id: "task-1".into(), message: None, poll_ms: Some(50), ttl_ms: Some(600_000) });
    assert_eq!(text(ended(end_of(&servers, first).await)), "done");
    assert_eq!(wire.received("tasks/get").len(), 3, "the first two polls found it working");
    assert_eq!(executed(&servers, "busy").await, 1);
    servers.close().await;
}

#[tokio::test]
async fn a_call_that_waits_for_an_approval_is_executed_only_if_approved() {
    for (fault, executions, expected) in [("task-approval", 1, "done"), ("task-denied", 0, "the call was not executed")]
    {
        let (settings, _wire) = of_era("2026-07-28", &[fault]);
        let servers = servers([("busy", settings)]);
        let first = task(send(&servers, None).await);
        assert_eq!(executed(&servers, "busy").await, 0, "{fault}: the approval is pending");
        let outcome = format!("{:?}", ended(end_of(&servers, first).await));
        assert!(outcome.contains(expected), "{fault}: {outcome}");
        assert_eq!(executed(&servers, "busy").await, executions, "{fault}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_task_that_asks_resumes_with_the_answer() {
    let (settings, wire) = of_era("2026-07-28", &["task-input"]);
    let servers = servers([("busy", settings)]);
    let first = task(send(&servers, None).await);
    let CallReply::NeedsInput(needed) = end_of(&servers, first).await else { panic!("expected a question") };
    let reaction = ElicitationResponse { action: Action::Accept, content: json!({"name": "Ada"}).as_object().cloned() };
    let reactions = needed.questions.keys().map(|key| (key.clone(), reaction.clone())).collect();
    let answered = AnsweredElicitation {
        needed: Arc::new(needed),
        given: Arc::new(ElicitationAnswer { reactions, by: "ann".into(), via: Default::default(), repeat: false }),
    };
    let again = task(send(&servers, Some(&answered)).await);
    let answer = returned(ended(end_of(&servers, again).await));
    let said: Vec<_> = answer.content.iter().filter_map(|part| part.as_text()).collect();
    assert_eq!(said, ["hello, Ada", "done"]);
    assert_eq!((wire.calls(), wire.received("tasks/update").len()), (vec!["echo".to_owned()], 1), "made once");
    servers.close().await;
}

#[tokio::test]
async fn a_failed_or_forgotten_task_ends_the_call_with_the_servers_reason() {
    for (fault, kind, expected) in [
        ("task-fails", FailureKind::Refused, "the task fell over (JSON-RPC error -32603)"),
        ("task-forgotten", FailureKind::Unavailable, "there is no task `task-1`"),
    ] {
        let (settings, _wire) = of_era("2026-07-28", &[fault]);
        let servers = servers([("busy", settings)]);
        let first = task(send(&servers, None).await);
        let (failed, message) = failed(ended(end_of(&servers, first).await));
        assert_eq!(failed, kind, "{message}");
        assert!(message.contains(expected), "{message}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_task_without_a_waiting_caller_is_cancelled_at_the_server() {
    let (settings, wire) = of_era("2026-07-28", &["task=100"]);
    let servers = servers([("busy", settings)]);
    let first = task(send(&servers, None).await);
    let (kind, _) = failed(ended(ask(&servers, &first, TaskAction::Stop).await));
    assert_eq!(kind, FailureKind::Cancelled);
    assert_eq!(wire.received("tasks/cancel")[0]["params"]["taskId"], "task-1");
    servers.close().await;
}
