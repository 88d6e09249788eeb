//! The modern era over HTTP, where requests share no state: tasks, questions, and tools that change during a run.

use std::sync::Arc;

use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::run::{AnsweredElicitation, ElicitationAnswer, PendingApproval, PendingItem, Status};
use toolgate::core::tool::{
    Action, CallReply, ElicitationRequest, ElicitationResponse, FailureKind, Outcome, TaskHandle,
};
use toolgate::ports::{McpCall, McpServers, McpTask, TaskAction};

use super::runs::run;
use super::*;

/// A server with this fault, and the endpoint behind it.
async fn with(fault: &str) -> (Servers, Endpoint) {
    let endpoint = Endpoint::of_era("2026-07-28", &[fault]).await;
    (servers([("server", endpoint.settings())]), endpoint)
}

async fn send(servers: &Servers, answered: Option<&AnsweredElicitation>) -> CallReply {
    let (run, call, server, trace) = (RunId::from("run_1"), CallId::from("call_1"), ServerId::from("server"), trace());
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
    let (run, call, server, trace) = (RunId::from("run_1"), CallId::from("call_1"), ServerId::from("server"), trace());
    let about = McpTask { run: &run, call: &call, server: &server, tool: "echo", task, trace: &trace, action };
    servers.task(about).await.expect("it can be asked").reply
}

fn task(reply: CallReply) -> TaskHandle {
    match reply {
        CallReply::Task(task) => task,
        other => panic!("expected a task, got {other:?}"),
    }
}

fn asked(reply: CallReply) -> ElicitationRequest {
    match reply {
        CallReply::NeedsInput(needed) => needed,
        other => panic!("expected a question, got {other:?}"),
    }
}

fn ended(reply: CallReply) -> Outcome {
    match reply {
        CallReply::Ended { outcome, .. } => outcome,
        other => panic!("expected the end of the call, got {other:?}"),
    }
}

/// Polls a task until its state changes.
async fn end_of(servers: &Servers, mut handle: TaskHandle) -> CallReply {
    for _ in 0..10 {
        match ask(servers, &handle, TaskAction::Poll).await {
            CallReply::Task(still) => handle = still,
            other => return other,
        }
    }
    panic!("the task never ends: {handle:?}");
}

/// The answer with a name.
fn a_name(needed: ElicitationRequest) -> AnsweredElicitation {
    let reaction = ElicitationResponse { action: Action::Accept, content: json!({"name": "Ada"}).as_object().cloned() };
    let reactions = needed.questions.keys().map(|key| (key.clone(), reaction.clone())).collect();
    AnsweredElicitation {
        needed: Arc::new(needed),
        given: Arc::new(ElicitationAnswer { reactions, by: "ann".into(), via: Default::default(), repeat: false }),
    }
}

fn said(outcome: Outcome) -> Vec<String> {
    returned(outcome).content.iter().filter_map(|part| part.as_text()).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_task_is_polled_until_it_is_done() {
    let (servers, endpoint) = with("task=2").await;
    let first = task(send(&servers, None).await);
    assert_eq!((first.id.as_str(), first.poll_ms), ("task-1", Some(50)));
    assert_eq!(said(ended(end_of(&servers, first).await)), ["done"]);
    assert_eq!(endpoint.wire.received("tasks/get").len(), 3, "the first two polls found it working");
    assert_eq!(executed(&servers, "server").await, 1);
    servers.close().await;
}

#[tokio::test]
async fn a_task_resumes_with_the_answer_and_the_call_is_made_once() {
    let (servers, endpoint) = with("task-input").await;
    let first = task(send(&servers, None).await);
    let answered = a_name(asked(end_of(&servers, first).await));
    let again = task(send(&servers, Some(&answered)).await);
    assert_eq!(said(ended(end_of(&servers, again).await)), ["hello, Ada", "done"]);
    assert_eq!((endpoint.wire.calls(), endpoint.wire.received("tasks/update").len()), (vec!["echo".to_owned()], 1));
    servers.close().await;
}

#[tokio::test]
async fn a_task_that_fails_is_forgotten_or_is_cancelled_ends_its_call_with_the_reason() {
    for (fault, kind, expected) in [
        ("task-fails", FailureKind::Refused, "the task fell over (JSON-RPC error -32603)"),
        ("task-forgotten", FailureKind::Unavailable, "there is no task `task-1`"),
    ] {
        let (servers, _endpoint) = with(fault).await;
        let first = task(send(&servers, None).await);
        let (failed, message) = failed(ended(end_of(&servers, first).await));
        assert!(failed == kind && message.contains(expected), "{fault}: {message}");
        servers.close().await;
    }
    let (servers, endpoint) = with("task=100").await;
    let first = task(send(&servers, None).await);
    let (kind, _) = failed(ended(ask(&servers, &first, TaskAction::Stop).await));
    assert_eq!(kind, FailureKind::Cancelled);
    assert_eq!(endpoint.wire.received("tasks/cancel")[0]["params"]["taskId"], "task-1");
    let (kind, message) = failed(ended(ask(&servers, &first, TaskAction::Poll).await));
    assert_eq!((kind, message.as_str()), (FailureKind::Cancelled, "the MCP server cancelled the task `task-1`"));
    servers.close().await;
}

#[tokio::test]
async fn a_question_ends_its_request_and_the_next_one_brings_answer_and_state_back() {
    let (servers, endpoint) = with("elicits").await;
    let needed = asked(send(&servers, None).await);
    let state = needed.state.clone().expect("a state");
    assert_eq!(said(ended(send(&servers, Some(&a_name(needed))).await)), ["hello, Ada", "done"]);
    let calls = endpoint.wire.received("tools/call");
    assert_eq!(calls.len(), 2);
    assert_eq!((calls[0]["params"].get("requestState"), &calls[1]["params"]["requestState"]), (None, &json!(state)));
    assert_ne!(calls[0]["id"], calls[1]["id"], "they are independent requests");
    assert_eq!(executed(&servers, "server").await, 1);
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_asks_nothing_and_only_wants_the_call_again_is_given_up_before_the_deadline() {
    let endpoint = Endpoint::of_era("2026-07-28", &["asks-nothing"]).await;
    let settings = ServerSettings { total_timeout: Duration::from_secs(1), ..endpoint.settings() };
    let servers = servers([("server", settings)]);
    let (kind, message) = failed(ended(send(&servers, None).await));
    let calls = endpoint.wire.received("tools/call");
    assert_eq!(kind, FailureKind::Timeout, "{message}");
    let beginning = format!("the MCP server `server` answered {} times within ", calls.len());
    assert!(message.starts_with(&beginning), "{message}");
    assert!(
        message.contains("without a result and without a question, as a server does that is overloaded"),
        "{message}"
    );
    let states: Vec<&Value> = calls.iter().map(|call| &call["params"]["requestState"]).collect();
    assert!(states.windows(2).all(|pair| pair[0] != pair[1]), "the newest state goes back: {states:?}");
    servers.close().await;
}

#[tokio::test]
async fn a_tool_that_changes_between_two_turns_is_shown_to_a_person_before_it_is_called() {
    let endpoint = Endpoint::of_era("2026-07-28", &["tools-change"]).await;
    let servers = Arc::new(servers([("server", endpoint.settings())]));
    list(&servers, &["server"]).await;
    eventually("the change stream is open", async || endpoint.wire.received("subscriptions/listen").len() == 1).await;
    let turns = json!([
        {"calls": [{"name": "mcp_server_echo", "arguments": {"text": "hello"}}]},
        {"calls": [{"name": "mcp_server_slow", "arguments": {"ms": 1500}}]},
        {"calls": [{"name": "mcp_server_mutant", "arguments": {"number": 2, "note": "hunter2"}}]},
        {"say": "Four."},
    ]);
    let ran = run(&servers, &["server"], turns).await;
    assert_eq!(ran.report.status, Status::Pending);
    let [PendingItem::Approval(PendingApproval { reason, .. })] = &ran.report.pending[..] else {
        panic!("{:?}", ran.report.pending)
    };
    assert!(reason.contains("changed the tool's definition during this run"), "{reason}");
    assert_eq!(endpoint.wire.calls(), ["echo", "slow"]);
    servers.close().await;
}
