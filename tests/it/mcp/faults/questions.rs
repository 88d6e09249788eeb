//! Servers that ask in the middle of a call.

use std::sync::Arc;

use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::run::{AnsweredElicitation, ElicitationAnswer};
use toolgate::core::tool::{
    Action, CallReply, ElicitationRequest, ElicitationResponse, FailureKind, Outcome, Question,
};
use toolgate::ports::{McpCall, McpServers};

use super::*;

#[tokio::test]
async fn a_question_suspends_the_call_and_its_answer_ends_it_in_either_era() {
    for era in ["2025-11-25", "2026-07-28"] {
        let (stdio, wire) = of_era(era, &["elicits"]);
        let endpoint = Endpoint::of_era(era, &["elicits"]).await;
        for (transport, settings, wire) in [("stdio", stdio, &wire), ("http", endpoint.settings(), &endpoint.wire)] {
            suspended_and_answered(era, transport, settings, wire).await;
        }
    }
}

async fn suspended_and_answered(era: &str, transport: &str, settings: ServerSettings, wire: &Wire) {
    let servers = servers([("asking", settings)]);
    let needed = asked(ask(&servers, "asking", None).await);
    assert_eq!(needed.questions.values().collect::<Vec<_>>(), [&the_form()], "{era} over {transport}");
    assert_eq!(executed(&servers, "asking").await, 0, "{era} over {transport}: nothing happened yet");
    let answer = returned(ended(ask(&servers, "asking", Some(&with_a_name(&needed))).await));
    let said: Vec<_> = answer.content.iter().filter_map(|part| part.as_text()).collect();
    assert_eq!(said, ["hello, Ada", "goodbye"], "{era} over {transport}");
    assert_eq!(executed(&servers, "asking").await, 1, "{era} over {transport}");
    assert_eq!(wire.calls(), ["echo", "count", "echo", "count"], "{era} over {transport}");
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_asks_for_ever_is_answered_each_time_and_nothing_is_executed() {
    let (settings, _wire) = of_era("2026-07-28", &["elicits-forever"]);
    let servers = servers([("asking", settings)]);
    let mut needed = asked(ask(&servers, "asking", None).await);
    for _ in 0..5 {
        let next = asked(ask(&servers, "asking", Some(&with_a_name(&needed))).await);
        assert_ne!(next.state, needed.state, "it is another round");
        needed = next;
    }
    assert_eq!(executed(&servers, "asking").await, 0);
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_wants_a_call_again_and_again_without_a_question_is_given_up() {
    let (settings, wire) = of_era("2026-07-28", &["asks-nothing"]);
    let settings = ServerSettings { total_timeout: Duration::from_secs(1), ..settings };
    let servers = servers([("asking", settings)]);
    let (kind, message) = failed(ended(ask(&servers, "asking", None).await));
    assert_eq!(kind, FailureKind::Timeout, "{message}");
    assert!((2..=10).contains(&wire.calls().len()), "ever more slowly: {:?}", wire.calls());
    assert_eq!(executed(&servers, "asking").await, 0);
    servers.close().await;
}

#[tokio::test]
async fn a_question_that_its_server_withdraws_neither_holds_nor_repeats_the_call() {
    let (stdio, stdio_wire) = of_era("2025-11-25", &["elicits-and-withdraws"]);
    let endpoint = Endpoint::of_era("2025-11-25", &["elicits-and-withdraws"]).await;
    for (way, settings, wire) in [("stdio", stdio, &stdio_wire), ("http", endpoint.settings(), &endpoint.wire)] {
        let servers = servers([("asking", settings)]);
        let (run, call_id, server, trace) =
            (RunId::from("run_1"), CallId::from("call_1"), ServerId::from("asking"), trace());
        let arguments = json!({"text": "goodbye"});
        let call = McpCall {
            run: &run,
            call: &call_id,
            server: &server,
            tool: "echo",
            arguments: arguments.as_object().expect("an object"),
            is_repeatable: false,
            trace: &trace,
            deadline: None,
            answered: None,
            elicitation: Some(&NoAnswer),
        };
        let outcome = ended(servers.call(call, &|_| {}).await.reply);
        assert_eq!(text(outcome), "goodbye", "{way}");
        assert_eq!(executed(&servers, "asking").await, 1, "{way}");
        assert!(wire.received("notifications/cancelled").is_empty(), "{way}: the call was not cancelled");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_question_that_its_server_withdraws_at_once_does_not_suspend_a_call_that_is_not_held() {
    for way in ["stdio", "http"] {
        let endpoint = Endpoint::of_era("2025-11-25", &["elicits-and-withdraws=0"]).await;
        let settings = match way {
            "stdio" => fault(&["elicits-and-withdraws=0"]),
            _ => endpoint.settings(),
        };
        let servers = servers([("asking", settings)]);
        assert_eq!(text(ended(ask(&servers, "asking", None).await)), "goodbye", "{way}");
        assert_eq!(executed(&servers, "asking").await, 1, "{way}");
        servers.close().await;
    }
}

/// A person who never answers.
struct NoAnswer;

#[async_trait::async_trait]
impl toolgate::ports::ElicitationHandler for NoAnswer {
    async fn elicit(&self, _: ElicitationRequest) -> Option<toolgate::core::tool::ElicitationResponses> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn roots_and_completions_are_refused_to_a_server_of_the_newer_era() {
    for (fault, method) in [("asks-roots", "roots/list"), ("asks-sampling", "sampling/createMessage")] {
        let (settings, _wire) = of_era("2026-07-28", &[fault]);
        let servers = servers([("asking", settings)]);
        let (_, message) = failed(ended(ask(&servers, "asking", None).await));
        assert!(message.contains(method), "{message}");
        assert_eq!(executed(&servers, "asking").await, 0);
        servers.close().await;
    }
}

#[tokio::test]
async fn a_server_that_wants_a_completion_is_refused_one() {
    let servers = servers([("bad", fault(&["asks-sampling"]))]);
    let answer = returned(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
    let said = answer.content[0].as_text().expect("text");
    assert!(answer.is_error && said.starts_with("the client cannot be asked: {\"code\":-32601"), "{answer:?}");
    servers.close().await;
}

/// Makes a call, perhaps the second time, with these answers.
async fn ask(servers: &Servers, id: &str, answered: Option<&AnsweredElicitation>) -> CallReply {
    let (run, call, server, trace) = (RunId::from("run_1"), CallId::from("call_1"), ServerId::from(id), trace());
    let arguments = json!({"text": "goodbye"});
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

/// The questions that suspended the call.
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

/// The same answer to every question.
fn with_a_name(needed: &ElicitationRequest) -> AnsweredElicitation {
    let content = json!({"name": "Ada"}).as_object().cloned();
    let reaction = ElicitationResponse { action: Action::Accept, content };
    let reactions = needed.questions.keys().map(|key| (key.clone(), reaction.clone())).collect();
    AnsweredElicitation {
        needed: Arc::new(needed.clone()),
        given: Arc::new(ElicitationAnswer { reactions, by: "ann".into(), via: Default::default(), repeat: false }),
    }
}

fn the_form() -> Question {
    let name = json!({"type": "string", "title": "Name", "minLength": 1});
    let schema = json!({"type": "object", "properties": {"name": name}, "required": ["name"]});
    Question::Form { message: "Who is asking?".into(), schema }
}
