//! Questions of servers in the middle of a call. No connection is held for the answer: the call is suspended with the
//! questions, and resumes with the answers, in another process if necessary.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::run::{AnsweredElicitation, ElicitationAnswer};
use toolgate::core::tool::{
    CallReply, ElicitationRequest, ElicitationResponse, ElicitationResponses, FailureKind, Outcome, Question,
};
use toolgate::mcp::{ServerSettings, Servers};
use toolgate::ports::{ElicitationHandler, McpCall, McpServers as _};

use super::faults::{Endpoint, Wire, executed, fault, watched};
use super::support::*;

/// The reply to a call, with the answers that it resumes with.
pub(super) async fn send(servers: &Servers, id: &str, tool: &str, answered: Option<&AnsweredElicitation>) -> CallReply {
    let (run, call, server) = (RunId::from("run_1"), CallId::from("call_1"), ServerId::from(id));
    let (arguments, trace) = (json!({"text": "hello"}), trace());
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

/// The questions of the server.
pub(super) fn asked(reply: CallReply) -> ElicitationRequest {
    match reply {
        CallReply::NeedsInput(needed) => needed,
        other => panic!("expected questions, got {other:?}"),
    }
}

/// The outcome of the call.
pub(super) fn ended(reply: CallReply) -> Outcome {
    match reply {
        CallReply::Ended { outcome, .. } => outcome,
        other => panic!("expected the end, got {other:?}"),
    }
}

/// The same reaction to every question.
pub(super) fn answered(needed: ElicitationRequest, reaction: &ElicitationResponse) -> AnsweredElicitation {
    let reactions = needed.questions.keys().map(|key| (key.clone(), reaction.clone())).collect();
    AnsweredElicitation {
        needed: needed.into(),
        given: ElicitationAnswer { reactions, by: "test".into(), via: Default::default(), repeat: false }.into(),
    }
}

/// The form, filled in with that name.
pub(super) fn name(name: &str) -> ElicitationResponse {
    ElicitationResponse::accept(json!({"name": name}).as_object().expect("an object").clone())
}

/// The question of the fault server.
pub(super) fn who_is_asking() -> Question {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "title": "Name", "minLength": 1}},
        "required": ["name"],
    });
    Question::Form { message: "Who is asking?".into(), schema }
}

#[tokio::test]
async fn a_question_suspends_the_call_and_its_answer_resumes_it() {
    for (era, restarts) in [("protocol-version=2025-11-25", true), ("protocol-version=2026-07-28", false)] {
        let faults = [era, "elicits"];
        let (child, stdio) = watched(&faults);
        let endpoint = Endpoint::with(&faults).await;
        let servers = servers([("stdio", child), ("http", endpoint.settings())]);
        for (id, wire) in [("stdio", &stdio), ("http", &endpoint.wire)] {
            let needed = asked(send(&servers, id, "echo", None).await);
            let questions: Vec<&Question> = needed.questions.values().collect();
            assert_eq!((questions, needed.restarts), (vec![&who_is_asking()], restarts), "{era} over {id}");
            assert_eq!(needed.task, None);
            let output = returned(ended(send(&servers, id, "echo", Some(&answered(needed, &name("Ada")))).await));
            let said: Vec<&str> = output.content.iter().filter_map(|part| part.as_text()).collect();
            assert_eq!((said, output.is_error), (vec!["hello, Ada", "hello"], false), "{era} over {id}");
            if restarts {
                assert_taken_back_in_order(wire);
            } else {
                assert_eq!(executed(&servers, id).await, 1);
            }
        }
        servers.close().await;
    }
}

/// The server was notified of the cancelled call before the cancelled question.
fn assert_taken_back_in_order(wire: &Wire) {
    let received = wire.noted("received");
    let cancelled = received.iter().position(|message| message["method"] == "notifications/cancelled");
    let answer = received.iter().position(|message| message["result"]["action"] == "cancel");
    assert!(cancelled.expect("cancelled") < answer.expect("answered"), "{received:?}");
}

/// A person who takes their time before they enter their name.
struct Slow(Duration);

#[async_trait::async_trait]
impl ElicitationHandler for Slow {
    async fn elicit(&self, needed: ElicitationRequest) -> Option<ElicitationResponses> {
        tokio::time::sleep(self.0).await;
        Some(needed.questions.into_keys().map(|key| (key, name("Ada"))).collect())
    }
}

#[tokio::test]
async fn the_time_of_a_person_counts_against_no_limit_of_the_call() {
    let mut settings = fault(&["elicits-late"]);
    // Each limit is shorter than the person's delay, and long enough for the rest.
    (settings.call_timeout, settings.total_timeout) = (Duration::from_secs(3), Duration::from_secs(3));
    let servers = servers([("child", settings)]);
    let (run, call, server) = (RunId::from("run_1"), CallId::from("call_1"), ServerId::from("child"));
    let (arguments, trace, person) = (json!({"text": "hello"}), trace(), Slow(Duration::from_secs(4)));
    let call = McpCall {
        run: &run,
        call: &call,
        server: &server,
        tool: "echo",
        arguments: arguments.as_object().expect("an object"),
        is_repeatable: false,
        trace: &trace,
        deadline: None,
        answered: None,
        elicitation: Some(&person),
    };
    let output = returned(ended(servers.call(call, &|_| {}).await.reply));
    assert_eq!(output.content[0].as_text(), Some("hello, Ada"));
    assert_eq!(executed(&servers, "child").await, 1);
    servers.close().await;
}

#[tokio::test]
async fn answers_survive_a_restart_of_everything() {
    for era in ["protocol-version=2025-11-25", "protocol-version=2026-07-28"] {
        let before = servers([("child", fault(&[era, "elicits"]))]);
        let needed = asked(send(&before, "child", "echo", None).await);
        before.close().await;
        let written = serde_json::to_value(&needed).expect("JSON");
        let after = servers([("child", fault(&[era, "elicits"]))]);
        let needed: ElicitationRequest = serde_json::from_value(written).expect("as it was");
        let output = returned(ended(send(&after, "child", "echo", Some(&answered(needed, &name("Ada")))).await));
        assert!(!output.is_error, "{output:?}");
        after.close().await;
    }
}

#[tokio::test]
async fn the_server_receives_a_declined_question_as_declined() {
    for era in ["protocol-version=2025-11-25", "protocol-version=2026-07-28"] {
        let servers = servers([("child", fault(&[era, "elicits"]))]);
        let needed = asked(send(&servers, "child", "echo", None).await);
        let declined = answered(needed, &ElicitationResponse::decline());
        let output = returned(ended(send(&servers, "child", "echo", Some(&declined)).await));
        let said: Vec<_> = output.content.iter().filter_map(|part| part.as_text()).collect();
        assert_eq!((said, output.is_error), (vec!["the answer has no name: decline"], true), "{era}");
        servers.close().await;
    }
}

#[tokio::test]
async fn parallel_calls_on_one_stream_are_each_suspended_and_resumed() {
    let servers = servers([("child", fault(&["elicits"]))]);
    let (one, other) = tokio::join!(send(&servers, "child", "echo", None), send(&servers, "child", "echo", None));
    let (one, other) = (answered(asked(one), &name("Ada")), answered(asked(other), &name("Bob")));
    for (answered, greeting) in [(one, "hello, Ada"), (other, "hello, Bob")] {
        let said = text(ended(send(&servers, "child", "echo", Some(&answered)).await));
        assert!(said.starts_with(greeting), "{said}");
    }
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_may_not_ask_is_refused_and_the_call_says_so() {
    let (mut sessions, mut stateless) = (fault(&["elicits"]), fault(&["protocol-version=2026-07-28", "elicits"]));
    (sessions.elicitation, stateless.elicitation) = (false, false);
    let servers = servers([("sessions", sessions), ("stateless", stateless)]);
    let output = returned(ended(send(&servers, "sessions", "echo", None).await));
    let said = output.content[0].as_text().expect("text");
    assert!(output.is_error && said.contains("-32601"), "{said}");
    let (kind, message) = failed(ended(send(&servers, "stateless", "echo", None).await));
    assert_eq!(kind, FailureKind::Refused);
    assert!(message.contains("toolgate did not offer that; set its `elicitation` to true"), "{message}");
    servers.close().await;
}

#[tokio::test]
async fn a_request_for_an_unoffered_capability_fails_the_call_by_name() {
    let servers = servers([
        ("roots", fault(&["protocol-version=2026-07-28", "asks-roots"])),
        ("sampling", fault(&["protocol-version=2026-07-28", "asks-sampling"])),
    ]);
    for (id, method) in [("roots", "roots/list"), ("sampling", "sampling/createMessage")] {
        let (kind, message) = failed(ended(send(&servers, id, "echo", None).await));
        assert_eq!(kind, FailureKind::Refused);
        let expected = format!(
            "the MCP server `{id}` asks for `{method}`, which toolgate does not offer to servers; it was not among the \
             announced capabilities"
        );
        assert_eq!(message, expected);
    }
    servers.close().await;
}

/// A modern server that answers `tools/call` by the script, whose last result repeats.
pub(super) async fn scripted(results: Vec<Value>) -> (ServerSettings, std::sync::Arc<std::sync::Mutex<Vec<Value>>>) {
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let calls = heard.clone();
    let answer = move |axum::Json(request): axum::Json<Value>| {
        let reply = match request["method"].as_str() {
            Some("server/discover") => json!({"result": {
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "ttlMs": 0, "cacheScope": "private",
            }}),
            Some("tools/call") => {
                let mut calls = calls.lock().unwrap();
                calls.push(request["params"].clone());
                results[(calls.len() - 1).min(results.len() - 1)].clone()
            }
            _ => json!({"result": {"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}}),
        };
        let mut message = json!({"jsonrpc": "2.0", "id": request["id"]});
        message.as_object_mut().expect("an object").extend(reply.as_object().expect("an object").clone());
        async move { axum::Json(message) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let router = axum::Router::new().route("/mcp", axum::routing::post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (ServerSettings::http(url), heard)
}

#[tokio::test]
async fn a_server_that_requests_repetitions_gets_a_limited_number() {
    let again = json!({"result": {"resultType": "input_required", "requestState": "é 1"}});
    let done = json!({"result": {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}});
    let (patient, heard) = scripted(vec![again.clone(), again.clone(), done]).await;
    let (endless, rounds) = scripted(vec![again]).await;
    let servers = servers([("patient", patient), ("endless", endless)]);
    assert_eq!(text(ended(send(&servers, "patient", "wait", None).await)), "done");
    let states: Vec<Value> = heard.lock().unwrap().iter().map(|params| params["requestState"].clone()).collect();
    assert_eq!(states, [Value::Null, json!("é 1"), json!("é 1")]);

    let (kind, message) = failed(call_within(&servers, "endless").await);
    assert_eq!(kind, FailureKind::Timeout, "{message}");
    assert!((2..10).contains(&rounds.lock().unwrap().len()), "{rounds:?}");
    servers.close().await;
}

async fn call_within(servers: &Servers, id: &str) -> Outcome {
    call_with(servers, id, "wait", json!({}), Some(std::time::Duration::from_secs(1)), &|_| {}).await
}

#[tokio::test]
async fn addresses_that_have_to_be_visited_first_are_questions_and_declining_them_ends_the_call() {
    let data = json!({"elicitations": [
        {"mode": "url", "elicitationId": "e1", "url": "https://login.example/x", "message": "Sign in"},
    ]});
    let refused = json!({"error": {"code": -32042, "message": "sign in first", "data": data}});
    let done = json!({"result": {"resultType": "complete", "content": [{"type": "text", "text": "in"}]}});
    let (settings, _) = scripted(vec![refused.clone(), done, refused.clone(), refused]).await;
    let servers = servers([("login", settings)]);
    let needed = asked(send(&servers, "login", "pay", None).await);
    let visit = Question::Url { message: "Sign in".into(), url: "https://login.example/x".into() };
    assert_eq!((&needed.questions, needed.restarts), (&BTreeMap::from([("e1".to_owned(), visit)]), true));
    assert_eq!(
        text(ended(send(&servers, "login", "pay", Some(&answered(needed, &ElicitationResponse::done()))).await)),
        "in"
    );
    let needed = asked(send(&servers, "login", "pay", None).await);
    let declined = answered(needed, &ElicitationResponse::decline());
    let (kind, message) = failed(ended(send(&servers, "login", "pay", Some(&declined)).await));
    assert_eq!(kind, FailureKind::Refused);
    assert!(message.contains("and that was declined: sign in first"), "{message}");
    servers.close().await;
}
