//! Narrowing and preconditions: the options of a run stay within those of its agent, and a request can require a
//! version of its run. Violations are refused with a pointer (row 3.19 for tools).

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::core::chat::Message;
use toolgate::core::policy::Verdict;
use toolgate::core::run::{Event, Limits};
use toolgate::core::tool::{LeftOut, ToolFilter};

use super::served::{HttpAnswer, Served};
use crate::fakes::{Change, Fault};
use crate::runner::world::{Kept, given_an_agent, say};

#[tokio::test]
async fn limits_become_tighter_and_never_wider() {
    let limits = Limits { max_iterations: 10, max_mcp_calls: Some(5), ..Limits::default() };
    let world = given_an_agent().within(limits).whose_model_says(json!([say("Hi.")])).kept(Kept::InMemory).await;
    let served = Served::to_all(world).await;

    let tight = served.post("/v1/runs", json!({"input": "Hello", "limits": {"max_mcp_calls": 2}})).await;

    let budget = &tight.body["budget"];
    assert_eq!((&budget["max_mcp_calls"], &budget["max_iterations"]), (&json!(2), &json!(10)), "{tight:?}");
    let wide = served.post("/v1/runs", json!({"input": "Hello", "limits": {"max_iterations": 11}})).await;
    assert_eq!((wide.status.as_u16(), wide.problem()), (422, "validation"));
    assert_eq!(wide.body["errors"][0]["pointer"], "/limits/max_iterations");
    assert!(wide.text("detail").contains("`max_iterations` of 11 is wider than the 10 of agent `clerk`"), "{wide:?}");
}

#[tokio::test]
async fn row_3_13_a_model_of_the_agent_is_chosen_and_no_other() {
    let given = given_an_agent().whose_model_says(json!([say("Hi.")])).with_a_fallback("backup", json!([say("Ho.")]));
    let served = Served::to_all(given.kept(Kept::InMemory).await).await;

    let chosen = served.post("/v1/runs", json!({"input": "Hello", "model": "backup"})).await;
    assert_eq!(chosen.body["output"]["text"], "Ho.", "{chosen:?}");
    let other = served.post("/v1/runs", json!({"input": "Hello", "model": "other"})).await;
    assert_eq!((other.problem(), &other.body["errors"][0]["pointer"]), ("validation", &json!("/model")));
}

#[tokio::test]
async fn an_invalid_pattern_is_refused_with_a_pointer() {
    let served = Served::to_all(given_an_agent().kept(Kept::InMemory).await).await;
    let tools = json!({"allow": ["mcp_*", "mcp_[a"], "deny": []});
    let refused = served.post("/v1/runs", json!({"input": "Hello", "tools": tools})).await;
    assert_eq!((refused.problem(), &refused.body["errors"][0]["pointer"]), ("validation", &json!("/tools/allow/1")));
}

#[tokio::test]
async fn an_invalid_resume_is_refused_with_a_pointer() {
    let turns = json!([{"calls": [{"name": "ext_lookup"}, {"name": "mcp_files_delete"}]}, say("Done.")]);
    let world = given_an_agent()
        .that_checks_arguments()
        .with_tools("files", &["delete"])
        .whose_policy_says(Verdict::Ask, "mcp_files_delete")
        .whose_model_says(turns)
        .kept(Kept::InMemory)
        .await;
    let served = Served::to_all(world).await;
    let tool =
        json!({"name": "lookup", "result_schema": {"type": "object", "properties": {"state": {"type": "string"}}}});
    let created = served.post("/v1/runs", json!({"input": "Hello", "external_tools": [tool]})).await;
    let of_kind = |kind: &str| {
        let owed = created.body["pending"].as_array().unwrap();
        owed.iter().find(|owed| owed["type"] == kind).unwrap()["call_id"].clone()
    };
    let (lookup, delete) = (of_kind("external_result"), of_kind("approval"));
    let path = format!("/v1/runs/{}/resume", created.text("id"));
    let refused = async |body: Value| {
        let answer = served.post(&path, body.clone()).await;
        answer.problem();
        answer.body["errors"][0]["pointer"].as_str().unwrap_or_else(|| panic!("{body}: {answer:?}")).to_owned()
    };
    let result = |call: &Value, output: Value| json!({"type": "result", "call_id": call, "output": output});

    let unknown =
        json!({"answers": [result(&lookup, json!({})), result(&json!("unknown"), json!(1))], "partial": true});
    assert_eq!(refused(unknown).await, "/answers/1/call_id");
    assert_eq!(refused(json!({"answers": [result(&delete, json!(1))], "partial": true})).await, "/answers/0/call_id");
    let twice = json!({"answers": [result(&lookup, json!({})), result(&lookup, json!({"a": 1}))], "partial": true});
    assert_eq!(refused(twice).await, "/answers/1/call_id");
    assert_eq!(refused(json!({"answers": [result(&lookup, json!(5))], "partial": true})).await, "/answers/0");
    let state = json!({"answers": [result(&lookup, json!({"state": 5}))], "partial": true});
    assert_eq!(refused(state).await, "/answers/0/output/state");
    assert_eq!(refused(json!({"answers": [result(&lookup, json!({}))]})).await, "", "an action is missing");
    let seen = json!({"answers": [{"type": "decision", "call_id": delete, "decision": "approve", "digest": "old"}], "partial": true});
    assert_eq!(refused(seen).await, "/answers/0/digest");
    let stale = json!({"answers": [result(&lookup, json!({}))], "partial": true, "expected_version": 1});
    assert_eq!(refused(stale).await, "/expected_version");
}

#[tokio::test]
async fn an_unreadable_answer_is_refused_at_its_member() {
    let served =
        Served::to_all(given_an_agent().whose_model_says(json!([say("Done.")])).kept(Kept::InMemory).await).await;
    let run = served.run(json!({"input": "Hello"})).await;
    for (answer, pointer, words) in [
        (json!({"type": "verdict", "call_id": "a"}), "/type", "unknown variant `verdict`, expected one of"),
        (json!({"type": 5, "call_id": "a"}), "/type", "invalid type: integer `5`, expected a string"),
        (json!({"call_id": "a", "output": 1}), "", "missing field `type`"),
        (json!({"type": "result", "call_id": "a", "outputs": 1}), "/outputs", "unknown field `outputs`"),
        (json!({"type": "result", "call_id": "a", "abandoned": "yes"}), "/abandoned", "invalid type: string"),
        (json!({"type": "decision", "call_id": "a", "decision": "maybe"}), "/decision", "unknown variant `maybe`"),
        (
            json!({"type": "elicitation", "call_id": "a", "responses": {"a/b": {"action": "wait"}}}),
            "/responses/a~1b/action",
            "unknown variant `wait`",
        ),
    ] {
        let refused = served.post(&format!("/v1/runs/{run}/resume"), json!({"answers": [answer]})).await;
        assert_eq!(refused.problem(), "invalid_request", "{answer}");
        let place = &refused.body["errors"][0];
        assert_eq!(place["pointer"], format!("/answers/0{pointer}"), "{refused:?}");
        let detail = place["detail"].as_str().unwrap();
        assert!(detail.contains(words) && !detail.contains("(at "), "{detail}");
    }
}

#[tokio::test]
async fn a_request_for_another_version_of_a_run_is_refused() {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Done.")]);
    let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(Kept::InAFile).await).await;
    let run = served.run(json!({"input": "Hello", "external_tools": [{"name": "lookup"}]})).await;
    let path = format!("/v1/runs/{run}");
    let read = served.get(&path).await;
    let (tag, call) = (read.header("etag").to_owned(), read.body["pending"][0]["call_id"].clone());
    let sent = async |child: &str, tag: &str, body: Value| {
        let request = served.request(Method::POST, &format!("{path}/{child}")).header("if-match", tag).json(&body);
        HttpAnswer::of(request.send().await.unwrap()).await
    };
    let answer = json!({"answers": [{"type": "result", "call_id": call, "output": 1}]});

    for child in ["resume", "cancel"] {
        let body = if child == "resume" { answer.clone() } else { json!({}) };
        let refused = sent(child, "\"1\"", body).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (412, "precondition_failed"), "{child}");
    }
    assert_eq!(served.get(&path).await.body, read.body, "no input was stored");
    assert_eq!(sent("resume", &tag, answer).await.text("status"), "completed");
    assert_eq!(sent("cancel", "*", json!({})).await.text("status"), "completed");
}

#[tokio::test]
async fn a_conditional_cancel_fails_if_the_run_changes_meanwhile() {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Done.")]);
    let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(Kept::InAFile).await).await;
    let run = served.run(json!({"input": "Hello", "external_tools": [{"name": "lookup"}]})).await;
    let path = format!("/v1/runs/{run}");
    let tag = served.get(&path).await.header("etag").to_owned();
    let said = Event::MessageAdded { message: Message::user("Wait") };
    served.world.store.fail_next(Fault::Intrusion(said.into()));

    let request = served.request(Method::POST, &format!("{path}/cancel")).header("if-match", tag).json(&json!({}));
    let refused = HttpAnswer::of(request.send().await.unwrap()).await;

    assert_eq!((refused.status.as_u16(), refused.problem()), (412, "precondition_failed"));
    assert_eq!(served.get(&path).await.text("status"), "pending");
}

#[tokio::test]
async fn a_name_that_no_tool_of_the_agent_has_is_refused() {
    let world = given_an_agent()
        .with_tools("files", &["read", "delete"])
        .that(|agent| agent.tools = ToolFilter { allow: vec!["mcp_files_read".into(), "ext_*".into()], deny: vec![] })
        .whose_model_says(json!([say("Hi."), say("Hi.")]))
        .kept(Kept::InMemory)
        .await;
    let served = Served::to_all(world).await;
    let asked = async |tools: Value| {
        served.post("/v1/runs", json!({"input": "Hello", "tools": tools, "external_tools": [{"name": "order"}]})).await
    };

    let foreign = asked(json!({"allow": ["ext_order", "ext_refund"]})).await;
    assert_eq!((foreign.status.as_u16(), foreign.problem()), (422, "validation"));
    assert_eq!(foreign.body["errors"][0]["pointer"], "/tools/allow/1");
    assert!(foreign.text("detail").contains("agent `clerk` has no tool `ext_refund`"), "{foreign:?}");
    let builtin = asked(json!({"deny": ["shell"]})).await;
    assert_eq!(builtin.body["errors"][0]["pointer"], "/tools/deny/0");

    for tools in [json!({"allow": ["mcp_files_delete"]}), json!({"deny": ["mcp_files_raed"]})] {
        let wider = asked(tools.clone()).await;
        assert_eq!((wider.text("status"), &wider.body["error"]["code"]), ("failed", &json!("validation")), "{tools}");
        assert!(wider.body["error"]["message"].as_str().unwrap().contains("/0`); a run may narrow"), "{wider:?}");
    }
    for tools in
        [json!({"allow": ["mcp_files_read", "ext_order"]}), json!({"deny": ["mcp_files_read", "ask_human", "x*"]})]
    {
        let narrow = asked(tools.clone()).await;
        assert_eq!(narrow.text("status"), "completed", "{tools}: {narrow:?}");
    }
}

#[tokio::test]
async fn while_a_server_is_not_available_its_names_are_not_judged() {
    let world = given_an_agent().with_tools("files", &["read"]).whose_model_says(json!([say("Hi.")]));
    let served = Served::to_all(world.kept(Kept::InMemory).await).await;
    let is_down: Change = |servers| {
        let files = servers.get_mut(&"files".into()).unwrap();
        files.tools = Default::default();
        files.left_out.push(LeftOut { server: Some("files".into()), tool: None, reason: "it does not start".into() });
    };
    served.world.servers.change_when_looked_at([is_down]);
    let run = served.post("/v1/runs", json!({"input": "Hello", "tools": {"allow": ["mcp_files_read"]}})).await;
    assert_eq!(run.text("status"), "completed", "{run:?}");
}
