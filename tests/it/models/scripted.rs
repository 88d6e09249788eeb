//! Scripted model: plays its script, and rejects what a provider would reject.

use std::time::Duration;

use serde_json::json;
use toolgate::core::chat::{Message, Reply, Role, Stop, Usage};
use toolgate::core::error::{ErrorCode, Failure};
use toolgate::core::lifecycle::Delta;
use toolgate::core::run::ToolAccess;
use toolgate::core::tool::{Arguments, ToolCall};
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::ports::Model;

use super::asking::{Ask, ask, calls, result, results, says, user};

fn model(turns: serde_json::Value) -> ScriptedModel {
    ScriptedModel::new("demo", Script::from_json(&json!({"turns": turns}).to_string()).unwrap())
}

async fn played(turns: serde_json::Value, ask: Ask) -> Result<Reply, Failure> {
    ask.of(&mut *model(turns).converse()).await
}

async fn refused(messages: Vec<Message>) -> String {
    let failure = played(json!([{"say": "a"}, {"say": "b"}, {"say": "c"}]), ask(messages)).await.unwrap_err();
    assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderRejected, false));
    failure.message
}

#[tokio::test]
async fn a_turn_is_played_in_the_order_reasoning_text_calls() {
    let turn = json!({
        "reasoning": "Hm.", "say": "Looking.", "usage": {"input_tokens": 7, "output_tokens": 3},
        "calls": [{"name": "ext_b", "arguments": {"x": 1}}, {"id": "mine", "name": "ext_a"},
                  {"name": "ext_c", "arguments": "{\"cut"}]
    });
    let reply = played(json!([turn]), ask([user("go")])).await.unwrap();

    let expected = Reply {
        content: vec![
            toolgate::core::chat::Part::Reasoning { text: "Hm.".into() },
            toolgate::core::chat::Part::text("Looking."),
            ToolCall::new("call_1_1", "ext_b", json!({"x": 1})).into_part(),
            ToolCall::new("mine", "ext_a", json!({})).into_part(),
            ToolCall { id: "call_1_3".into(), name: "ext_c".into(), arguments: Arguments::Malformed("{\"cut".into()) }
                .into_part(),
        ],
        stop: Stop::ToolCalls,
        usage: Usage { input_tokens: Some(7), output_tokens: Some(3), ..Usage::default() },
        model: Some("demo".into()),
        ..Reply::empty()
    };
    assert_eq!(reply, expected);
}

#[tokio::test]
async fn the_transcript_selects_the_turn() {
    let turns = json!([{"calls": [{"name": "ext_look"}]}, {"say": "It says {{last_result}}."}]);
    let resumed = ask([user("go"), calls(&["call_1_1"]), results(&[("call_1_1", "42")])]);
    assert_eq!(played(turns, resumed).await.unwrap().joined_text(), "It says 42.");
}

#[tokio::test]
async fn the_end_of_the_script_is_a_failure() {
    let failure = played(json!([{"say": "only"}]), ask([user("a"), says("only"), user("b")])).await.unwrap_err();
    assert_eq!(failure.message, "scripted model demo: the script has 1 turns and was asked for turn 2");
    assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderRejected, false));
}

#[tokio::test]
async fn an_unmet_expectation_names_the_turn_and_the_message() {
    let turns = json!([{"expect": {"contains": "Zürich"}, "say": "ok"}]);
    let failure = played(turns.clone(), ask([user("Bern")])).await.unwrap_err();
    assert!(failure.message.contains("turn 1 expects") && failure.message.contains("Bern"), "{}", failure.message);
    assert_eq!(played(turns, ask([user("in Zürich?")])).await.unwrap().joined_text(), "ok");
}

#[tokio::test]
async fn an_expectation_reads_tool_results() {
    let turns = json!([{"calls": [{"name": "ext_look"}]}, {"expect": {"contains": "42"}, "say": "ok"}]);
    let met = ask([user("go"), calls(&["a"]), results(&[("a", "it is 42")])]);
    assert!(played(turns.clone(), met).await.is_ok());
    let unmet = ask([user("42"), calls(&["a"]), results(&[("a", "nothing")])]);
    assert!(played(turns, unmet).await.is_err());
}

#[tokio::test]
async fn a_turn_is_played_after_its_scripted_failures() {
    let fail = json!({"code": "provider_rate_limit", "message": "slow down", "retry_after_ms": 9, "times": 2});
    let model = model(json!([{"fail": fail, "say": "at last"}]));
    let (mut conversation, ask) = (model.converse(), ask([user("go")]));
    let failure = Failure::new(ErrorCode::ProviderRateLimit, "slow down").after_ms(Some(9));
    assert_eq!(ask.of(&mut *conversation).await, Err(failure.clone()));
    assert_eq!(ask.of(&mut *conversation).await, Err(failure.clone()));
    assert_eq!(ask.of(&mut *conversation).await.unwrap().joined_text(), "at last");
    assert_eq!(ask.of(&mut *model.converse()).await, Err(failure), "another conversation has its own count");
}

#[tokio::test]
async fn a_failure_without_times_repeats_and_may_override_retryable() {
    let model = model(json!([{"fail": {"code": "provider_unavailable", "retryable": false}}]));
    let (mut conversation, ask) = (model.converse(), ask([user("go")]));
    for _ in 0..5 {
        let failure = ask.of(&mut *conversation).await.unwrap_err();
        assert_eq!((failure.code, failure.retryable), (ErrorCode::ProviderUnavailable, false));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_turn_ends_only_by_being_dropped() {
    let hanging = played(json!([{"hang": true}]), ask([user("go")]));
    assert!(tokio::time::timeout(Duration::from_secs(86_400), hanging).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn text_is_streamed_in_delayed_fragments() {
    let turn =
        json!({"reasoning": "ab", "say": "Grüße!", "latency_ms": 100, "stream": {"fragments": 3, "delay_ms": 10}});
    let began = tokio::time::Instant::now();
    let (reply, deltas) = ask([user("go")]).watched(&mut *model(json!([turn])).converse()).await;

    assert_eq!(began.elapsed(), Duration::from_millis(100 + 5 * 10));
    let text = |text: &str| Delta::Text { text: text.into() };
    let reasoning = |text: &str| Delta::Reasoning { text: text.into() };
    assert_eq!(deltas, [reasoning("a"), reasoning("b"), text("Gr"), text("üß"), text("e!")]);
    let reply = reply.unwrap();
    assert_eq!((reply.joined_text().as_str(), reply.first_token_ms), ("Grüße!", Some(110)));
}

#[tokio::test]
async fn without_tools_the_final_text_replaces_the_turn() {
    let with_final = json!([{"calls": [{"name": "ext_look"}], "final_text": "What I have."}]);
    for tool_access in [ToolAccess::BudgetExhausted, ToolAccess::FinalAnswer] {
        let reply = played(with_final.clone(), ask([user("go")]).offering(tool_access)).await.unwrap();
        assert_eq!((reply.joined_text().as_str(), reply.calls().count()), ("What I have.", 0));
    }
    assert_eq!(played(with_final, ask([user("go")])).await.unwrap().calls().count(), 1);
    let without = json!([{"calls": [{"name": "ext_look"}]}]);
    assert_eq!(
        played(without, ask([user("go")]).offering(ToolAccess::BudgetExhausted)).await.unwrap().calls().count(),
        1
    );
}

#[tokio::test]
async fn an_unknown_field_is_rejected() {
    let error = Script::from_json(r#"{"turns": [{"says": "hi"}]}"#).unwrap_err();
    assert!(error.to_string().contains("says"), "{error}");
}

#[tokio::test]
async fn an_empty_transcript_is_rejected() {
    assert!(refused(vec![]).await.contains("empty"));
}

#[tokio::test]
async fn a_transcript_ending_with_the_assistant_is_rejected() {
    assert!(refused(vec![user("a"), says("b")]).await.contains("assistant"));
}

#[tokio::test]
async fn broken_alternation_is_rejected() {
    assert!(refused(vec![says("a"), user("b")]).await.contains("alternate"));
    assert!(refused(vec![user("a"), user("b")]).await.contains("alternate"));
    assert!(refused(vec![user("a"), says("b"), says("c"), user("d")]).await.contains("alternate"));
}

#[tokio::test]
async fn an_unanswered_call_is_rejected_at_any_position() {
    assert!(refused(vec![user("a"), calls(&["x"]), user("b")]).await.contains("x has no result"));
    assert!(refused(vec![user("a"), calls(&["x", "y"]), results(&[("x", "1")])]).await.contains("y has no result"));
    assert!(refused(vec![user("a"), calls(&["x"])]).await.contains("x has no result"));
    let early = vec![user("a"), calls(&["x"]), user("b"), says("c"), user("d")];
    assert!(refused(early).await.contains("x has no result"));
}

#[tokio::test]
async fn a_repeated_call_id_is_rejected() {
    assert!(refused(vec![user("a"), calls(&["x", "x"]), results(&[("x", "1")])]).await.contains("x was used before"));
    let later = vec![user("a"), calls(&["x"]), results(&[("x", "1")]), calls(&["x"]), results(&[("x", "1")])];
    assert!(refused(later).await.contains("x was used before"));
}

#[tokio::test]
async fn a_result_without_an_open_call_is_rejected() {
    assert!(refused(vec![results(&[("x", "1")])]).await.contains("result for x"));
    let twice = vec![user("a"), calls(&["x"]), results(&[("x", "1"), ("x", "2")])];
    assert!(refused(twice).await.contains("result for x"));
    let late = vec![user("a"), calls(&["x"]), results(&[("x", "1")]), says("b"), results(&[("x", "1")])];
    assert!(refused(late).await.contains("result for x"));
}

#[tokio::test]
async fn results_out_of_order_are_rejected() {
    let swapped = vec![user("a"), calls(&["x", "y"]), results(&[("y", "1"), ("x", "2")])];
    assert!(refused(swapped).await.contains("order"));
}

#[tokio::test]
async fn a_part_of_the_wrong_role_is_rejected() {
    let call_by_user = Message { role: Role::User, ..calls(&["x"]) };
    assert!(refused(vec![call_by_user]).await.contains("cannot hold a tool call"));
    let result_by_assistant =
        Message { role: Role::Assistant, content: vec![result("x", "1", false)], provider_state: None };
    assert!(refused(vec![user("a"), result_by_assistant, user("b")]).await.contains("cannot hold a tool result"));
}
