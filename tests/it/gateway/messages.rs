//! Messages of a run: they are listed and added.

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::service::FileLimits;

use super::principals::Person;
use super::served::Served;
use crate::runner::world::{Kept, given_an_agent, on_every_store, say};

#[tokio::test]
async fn messages_are_listed_in_pages_with_calls_and_results() {
    let turns = json!([{"say": "Let me look.", "calls": [{"name": "mcp_files_read", "arguments": {"path": "a"}}]}, say("It is A.")]);
    let world = given_an_agent().with_tools("files", &["read"]).whose_model_says(turns).kept(Kept::InMemory).await;
    let served = Served::to_all(world).await;
    let run = served.run(json!({"input": "What is in a?"})).await;
    let path = format!("/v1/runs/{run}/messages");

    let whole = served.get(&path).await;

    let messages = whole.body["data"].as_array().unwrap();
    let spoken: Vec<(&str, &str)> = messages
        .iter()
        .flat_map(|message| {
            let role = message["role"].as_str().unwrap();
            message["content"].as_array().unwrap().iter().map(move |part| (role, part["type"].as_str().unwrap()))
        })
        .collect();
    assert_eq!(
        spoken,
        [
            ("user", "text"),
            ("assistant", "text"),
            ("assistant", "tool_use"),
            ("user", "tool_result"),
            ("assistant", "text")
        ]
    );
    let (call, result) = (&messages[1]["content"][1], &messages[2]["content"][0]);
    assert_eq!((call["name"].as_str(), &call["arguments"]), (Some("mcp_files_read"), &json!({"path": "a"})));
    assert_eq!((&result["call_id"], &result["is_error"]), (&call["call_id"], &json!(false)));
    let first = served.get(&format!("{path}?limit=1")).await;
    assert_eq!((&first.body["data"][0], &first.body["has_more"]), (&messages[0], &json!(true)));
    let second = served.get(&format!("{path}?after={}", first.text("last_id"))).await;
    assert_eq!(second.body["data"].as_array().unwrap()[..], messages[1..]);
}

#[tokio::test]
async fn a_pending_run_stores_messages_until_it_resumes() {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Thank you.")]);
    let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(Kept::InAFile).await).await;
    let run = served.run(json!({"input": "Hello", "external_tools": [{"name": "lookup"}]})).await;
    let path = format!("/v1/runs/{run}/messages");

    let said = served.post(&path, json!({"text": "And be quick"})).await;

    assert_eq!((said.status.as_u16(), said.text("status")), (202, "pending"));
    let call = &said.body["pending"][0]["call_id"];
    served
        .post(&format!("/v1/runs/{run}/resume"), json!({"answers": [{"type": "result", "call_id": call, "output": 1}]}))
        .await;
    assert!(served.get(&path).await.body.to_string().contains("And be quick"));
    let late = served.post(&path, json!({"text": "Still there?"})).await;
    assert_eq!((late.status.as_u16(), late.problem()), (409, "conflict"));
    let empty = served.post(&path, json!({"text": " "})).await;
    assert_eq!((empty.problem(), &empty.body["errors"][0]["pointer"]), ("validation", &json!("/text")));
}

#[tokio::test]
async fn a_run_may_begin_with_a_conversation() {
    let served = Served::to_all(
        given_an_agent().whose_model_says(json!([say("Hello."), say("Bob.")])).kept(Kept::InMemory).await,
    )
    .await;
    let conversation = json!([
        {"role": "user", "content": "I am Bob."},
        {"role": "assistant", "content": [{"type": "text", "text": "Hello Bob."}]},
        {"role": "user", "content": [
            {"type": "text", "text": "Who is this?"},
            {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="},
        ]},
    ]);

    let run = served.run(json!({"input": conversation})).await;

    let messages = served.get(&format!("/v1/runs/{run}/messages")).await;
    let roles: Vec<_> = messages.body["data"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    assert_eq!(messages.body["data"][2]["content"][1]["media_type"], "image/png");
    assert_eq!(served.get("/v1/runs").await.body["data"][0]["title"], "Who is this?");
}

/// The messages of a list, without their run and their position.
fn spoken(messages: &[Value]) -> Vec<Value> {
    messages.iter().map(|message| json!({"role": message["role"], "content": message["content"]})).collect()
}

on_every_store! {
    async fn a_run_may_begin_with_the_messages_of_a_list_as_they_are(kept: Kept) {
        let turns = json!([
            {
                "reasoning": "A file, then a picture.",
                "say": "Let me look.",
                "calls": [{"name": "mcp_files_read", "arguments": {"path": "a"}}],
            },
            {"media": [{"media_type": "image/png", "data": "iVBORw0KGgo="}]},
            say("It is a cat."),
        ]);
        let world = given_an_agent().with_tools("files", &["read"]).whose_model_says(turns).kept(kept).await;
        let served = Served::to_all(world).await;
        let session = json!({"input": "Draw what is in a", "session_id": "drawing"});
        let first = served.run(session).await;
        let question = json!({"role": "user", "content": [{"type": "text", "text": "What is it?"}]});
        for path in [format!("/v1/runs/{first}/messages"), "/v1/sessions/drawing/messages".to_owned()] {
            let mut input = served.get(&path).await.body["data"].as_array().unwrap().clone();
            assert!(input.iter().all(|message| message["run_id"] == first.as_str()), "{input:?}");
            input.push(question.clone());

            let second = served.run(json!({"input": input})).await;

            let listed = served.get(&format!("/v1/runs/{second}/messages")).await;
            let listed = spoken(listed.body["data"].as_array().unwrap());
            let types: Vec<&Value> =
                listed.iter().flat_map(|message| message["content"].as_array().unwrap()).map(|part| &part["type"]).collect();
            assert_eq!(types, ["text", "reasoning", "text", "tool_use", "tool_result", "image", "text", "text"]);
            assert_eq!(listed[..input.len()], spoken(&input));
            assert_eq!(listed.last().unwrap()["content"][0]["text"], "It is a cat.");
            // The picture is the second run's own.
            let picture = listed[3]["content"][0]["url"].as_str().unwrap().replace("media://sha256-", "");
            let blob = served.request(Method::GET, &format!("/v1/runs/{second}/blobs/{picture}")).send().await.unwrap();
            assert_eq!(blob.status(), 200);
        }
    }
}

#[tokio::test]
async fn media_of_a_run_are_given_only_to_callers_that_may_read_it() {
    let media = json!([{"media": [{"media_type": "image/png", "data": "iVBORw0KGgo="}]}, say("A cat.")]);
    let world = given_an_agent().whose_model_says(media).kept(Kept::InMemory).await;
    let served = super::file_uploads::served(world, FileLimits::default()).await;
    let ann = Person { served: &served, badge: "ann acme all" };
    let drawn = ann.post("/v1/runs", json!({"input": "A cat"})).await;
    let mut image = drawn.body["output"]["media"][0].clone();
    image["type"] = json!("image");
    let start = async |badge: &'static str, run: Value| {
        let input = json!([
            {"role": "user", "content": "A cat"},
            {"role": "assistant", "content": [image], "run_id": run},
            {"role": "user", "content": "What is it?"},
        ]);
        Person { served: &served, badge }.post("/v1/runs", json!({"input": input})).await
    };
    let (id, url, run) = (&drawn.body["id"], "/input/1/content/0/url", "/input/1/run_id");

    assert_eq!(start("ann acme all", id.clone()).await.status, 201);
    assert_eq!(start("bob acme runs:write", id.clone()).await.problem(), "forbidden");
    let other = ann
        .post("/v1/runs", json!({"input": [{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "Hi"}]}))
        .await;
    for (badge, run, pointer) in [
        ("eve other all", id.clone(), run),
        ("ann acme all", json!("run_0"), run),
        ("ann acme all", other.body["id"].clone(), url),
        ("ann acme all", Value::Null, url),
    ] {
        let refused = start(badge, run).await;
        assert_eq!(
            (refused.problem(), &refused.body["errors"][0]["pointer"]),
            ("validation", &json!(pointer)),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn an_input_names_media_of_at_most_a_hundred_runs() {
    let media = json!([{"media": [{"media_type": "image/png", "data": "iVBORw0KGgo="}]}, say("Cats.")]);
    let served = Served::to_all(given_an_agent().whose_model_says(media).kept(Kept::InMemory).await).await;
    let mut input = Vec::new();
    for _ in 0..101 {
        let drawn = served.post("/v1/runs", json!({"input": "A cat"})).await;
        let url = &drawn.body["output"]["media"][0]["url"];
        let image = json!({"type": "image", "media_type": "image/png", "url": url});
        input.push(json!({"role": "assistant", "content": [image], "run_id": drawn.body["id"]}));
    }
    let question = json!({"role": "user", "content": "What are they?"});
    input.push(question.clone());
    let refused = served.post("/v1/runs", json!({"input": input})).await;
    assert_eq!((refused.problem(), &refused.body["errors"][0]["pointer"]), ("validation", &json!("/input/100/run_id")));
    let fewer = [&input[..100], &[question]].concat();
    assert_eq!(served.post("/v1/runs", json!({"input": fewer})).await.status, 201);
}

#[tokio::test]
async fn invalid_input_messages_are_refused_with_a_pointer() {
    let served = Served::to_all(given_an_agent().kept(Kept::InMemory).await).await;
    let user = |content: serde_json::Value| json!([{"role": "user", "content": content}]);
    let image = |image: serde_json::Value| user(json!([image]));
    let (unreadable, unmeant) = ("invalid_request", "validation");
    let call = |id: &str| json!({"type": "tool_use", "call_id": id, "name": "mcp_a_b", "arguments": {}});
    let result = |id: &str| json!({"type": "tool_result", "call_id": id, "content": []});
    // What the model called, and what the user messages after it contain.
    let called = |calls: Value, results: Value| json!([{"role": "assistant", "content": calls}, {"role": "user", "content": results}]);
    let text = json!({"type": "text", "text": "Go on"});
    for (input, code, pointer) in [
        (called(json!([call("1")]), json!([text])), unmeant, "/input/0/content/0"),
        (called(json!([call("1"), call("2")]), json!([result("2"), text])), unmeant, "/input/0/content/0"),
        (called(json!([call("1"), call("1")]), json!([result("1"), text])), unmeant, "/input/0/content/1/call_id"),
        (called(json!([call("1")]), json!([result("1"), result("1"), text])), unmeant, "/input/1/content/1/call_id"),
        (called(json!([call("")]), json!([result(""), text])), unmeant, "/input/0/content/0/call_id"),
        (called(json!([call("1")]), json!([result("1")])), unmeant, "/input/1/content"),
        (called(json!([result("1")]), json!([text])), unmeant, "/input/0/content/0"),
        (user(json!([call("1")])), unmeant, "/input/0/content/0"),
        (user(json!([{"type": "reasoning", "text": "So"}])), unmeant, "/input/0/content/0"),
        (
            called(json!([call("1")]), json!([{"type": "tool_result", "call_id": "1", "content": [call("2")]}, text])),
            unmeant,
            "/input/1/content/0/content/0",
        ),
        (user(json!([{"type": "resource", "uri": "a", "data": "!"}, text])), unmeant, "/input/0/content/0/data"),
        (json!([]), unmeant, "/input"),
        (json!({"role": "user"}), unreadable, "/input"),
        (json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]), unmeant, "/input/1/role"),
        (json!([{"role": "system", "content": "a"}]), unreadable, "/input/0/role"),
        (json!([{"role": "user", "content": 5}]), unreadable, "/input/0/content"),
        (image(json!({"type": "picture"})), unreadable, "/input/0/content/0/type"),
        (image(json!({"type": "text", "text": "a", "size": 1})), unreadable, "/input/0/content/0/size"),
        (image(json!({"type": "image", "media_type": "image/png"})), unmeant, "/input/0/content/0"),
        (image(json!({"type": "image", "media_type": "image/png", "data": "!"})), unmeant, "/input/0/content/0/data"),
        (
            image(json!({"type": "image", "media_type": "image/png", "url": "file:///etc/passwd"})),
            unmeant,
            "/input/0/content/0/url",
        ),
        (
            image(json!({"type": "audio", "media_type": "a/b", "url": "http://169.254.169.254/latest"})),
            unmeant,
            "/input/0/content/0/url",
        ),
        (
            image(json!({"type": "audio", "media_type": "a/b", "data": "AA==", "url": "u"})),
            unmeant,
            "/input/0/content/0",
        ),
    ] {
        let refused = served.post("/v1/runs", json!({"input": input})).await;
        assert_eq!(refused.problem(), code, "{input}");
        assert_eq!(refused.body["errors"][0]["pointer"], pointer, "{input}: {refused:?}");
    }
}
