//! Sessions over HTTP: a run with a session id continues the conversation.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::ports::{SessionRow, SessionSaved, SessionStore as _};
use toolgate::stores::MemoryStore;

use super::principals::{self, Badges, Person};
use super::served::{HttpAnswer, Served};
use crate::runner::world::{Given, Kept, given_an_agent, say};

fn chat(text: &str) -> serde_json::Value {
    json!({"input": text, "session_id": "chat-77"})
}

fn talker() -> Given {
    given_an_agent().whose_model_says(json!([say("One."), say("Two."), say("Three.")]))
}

#[tokio::test]
async fn a_run_with_a_session_id_reads_the_runs_before_it() {
    let served = principals::served(talker().kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "key:ann acme all" };

    assert_eq!(ann.post("/v1/runs", chat("First")).await.text("status"), "completed");
    let second = ann.post("/v1/runs", chat("Second")).await;

    let messages = ann.get(&format!("/v1/runs/{}/messages", second.text("id"))).await;
    let texts: Vec<&str> = messages.body["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["First", "One.", "Second", "Two."]);
}

#[tokio::test]
async fn a_second_run_of_a_live_session_reads_which_run_is_live() {
    let world = given_an_agent()
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Ordered.")]));
    let served = principals::served(world.kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "key:ann acme all" };
    let tool = json!([{"name": "order", "input_schema": {"type": "object"}}]);
    let first = json!({"input": "First", "session_id": "chat-77", "external_tools": tool});
    let first = ann.post("/v1/runs", first).await;
    assert_eq!(first.text("status"), "pending");

    let refused = ann.post("/v1/runs", chat("Second")).await;

    assert_eq!((refused.status.as_u16(), refused.problem()), (409, "conflict"));
    let current =
        json!({"object": "run", "id": first.text("id"), "status": "pending", "version": first.body["version"]});
    assert_eq!(refused.body["current"], current, "{refused:?}");
}

#[tokio::test]
async fn a_session_takes_the_new_message_alone_and_belongs_to_one_principal() {
    let served = principals::served(talker().kept(Kept::InMemory).await).await;
    let ann = Person { served: &served, badge: "key:ann acme all" };
    ann.post("/v1/runs", chat("First")).await;

    let history = json!([
        {"role": "user", "content": "First"},
        {"role": "assistant", "content": "One."},
        {"role": "user", "content": "Second"},
    ]);
    let refused = ann.post("/v1/runs", json!({"input": history, "session_id": "chat-77"})).await;
    assert_eq!(
        (refused.status.as_u16(), refused.body["errors"][0]["pointer"].as_str()),
        (422, Some("/input")),
        "{refused:?}"
    );
    let other = json!({"input": "What was said?", "session_id": "chat-77", "principal": "bob"});
    assert_eq!(ann.post("/v1/runs", other).await.problem(), "forbidden");
    let eve = Person { served: &served, badge: "key:eve evil all" };
    let alone = eve.post("/v1/runs", chat("What was said?")).await;
    let messages = eve.get(&format!("/v1/runs/{}/messages", alone.text("id"))).await;
    assert_eq!(messages.body["data"].as_array().unwrap().len(), 2, "a session of the same name in another tenant");
}

fn ann(served: &Served) -> Person<'_> {
    Person { served, badge: "key:ann acme all" }
}

async fn served() -> Served {
    principals::served(talker().kept(Kept::InMemory).await).await
}

/// The text of each message of a list.
fn texts(answer: &HttpAnswer) -> Vec<&str> {
    let messages = answer.body["data"].as_array().unwrap();
    messages.iter().map(|message| message["content"][0]["text"].as_str().unwrap()).collect()
}

// FEATURES 4.01, 4.02
#[tokio::test]
async fn a_created_session_has_its_title_and_metadata_before_its_first_run() {
    let served = served().await;
    let new = json!({"id": "chat 77/ä", "title": "Refund", "metadata": {"ticket": 9}, "principal": "bob"});

    let created = ann(&served).post("/v1/sessions", new).await;

    assert_eq!((created.status.as_u16(), created.header("etag")), (201, "\"1.0\""), "{created:?}");
    let path = "/v1/sessions/chat%2077%2F%C3%A4";
    assert!(created.header("location").ends_with(path), "{created:?}");
    let read = ann(&served).get(path).await;
    assert_eq!(read.body, created.body);
    let times = [&created.body["created_at"], &created.body["updated_at"]];
    let expected = json!({
        "id": "chat 77/ä", "object": "session", "version": 1, "status": "idle", "agent": "clerk", "principal": "bob",
        "title": "Refund", "metadata": {"ticket": 9}, "mode": null, "runtime": null, "head": null, "runs": 0,
        "limits": {"max_iterations": null, "max_tokens": null, "max_cost_usd": null, "deadline_s": null},
        "usage": {
            "input_tokens": null, "output_tokens": null, "total_tokens": null, "cache_read_tokens": null,
            "cache_write_tokens": null, "reasoning_tokens": null, "cost_usd": null, "costs": null,
        },
        "iterations": 0, "created_by": "key:ann", "created_at": times[0], "updated_at": times[1], "last_used_at": null,
        "expire_after_s": null, "expires_at": null,
    });
    assert_eq!(created.body, expected);
}

#[tokio::test]
async fn a_session_gets_an_id_and_takes_a_known_one_only_once() {
    let served = served().await;
    let ann = ann(&served);
    assert_eq!(ann.post("/v1/sessions", json!({})).await.text("id"), "session_1");
    ann.post("/v1/sessions", json!({"id": "chat-77"})).await;
    let run = ann.post("/v1/runs", json!({"input": "First"})).await;

    for known in ["chat-77", run.text("id")] {
        let again = ann.post("/v1/sessions", json!({"id": known})).await;
        assert_eq!(
            (again.status.as_u16(), again.problem(), &again.body["retryable"]),
            (409, "conflict", &json!(false))
        );
    }
    for (wrong, pointer) in
        [(json!({"id": ""}), "/id"), (json!({"title": "a\nb"}), "/title"), (json!({"agent": "none"}), "/agent")]
    {
        let refused = ann.post("/v1/sessions", wrong).await;
        assert_eq!((refused.problem(), &refused.body["errors"][0]["pointer"]), ("validation", &json!(pointer)));
    }
}

// FEATURES 4.16
#[tokio::test]
async fn runs_started_in_a_session_continue_it_with_its_agent_and_principal() {
    let served = served().await;
    let ann = ann(&served);
    ann.post("/v1/sessions", json!({"id": "chat-77", "principal": "bob"})).await;

    let first = ann.post("/v1/sessions/chat-77/runs", json!({"input": "First"})).await;
    let second = ann.post("/v1/sessions/chat-77/runs", json!({"input": "Second"})).await;

    assert_eq!((first.status.as_u16(), first.text("session_id"), first.text("principal")), (201, "chat-77", "bob"));
    let session = ann.get("/v1/sessions/chat-77").await;
    assert_eq!((session.text("status"), session.text("title"), &session.body["runs"]), ("idle", "First", &json!(2)));
    let head =
        json!({"object": "run", "id": second.text("id"), "status": "completed", "version": second.body["version"]});
    assert_eq!(session.body["head"], head);
    let messages = ann.get("/v1/sessions/chat-77/messages").await;
    assert_eq!(texts(&messages), ["First", "One.", "Second", "Two."]);
    let place = |index: usize| (&messages.body["data"][index]["index"], &messages.body["data"][index]["run_id"]);
    assert_eq!((place(1), place(2)), ((&json!(1), &first.body["id"]), (&json!(2), &second.body["id"])));
    let page = ann.get("/v1/sessions/chat-77/messages?limit=1&after=1").await;
    assert_eq!((texts(&page), &page.body["has_more"]), (vec!["Second"], &json!(true)));
    let named = ann.post("/v1/sessions/chat-77/runs", json!({"input": "Third", "session_id": "chat-78"})).await;
    assert_eq!((named.problem(), &named.body["errors"][0]["pointer"]), ("validation", &json!("/session_id")));
    assert_eq!(ann.post("/v1/sessions/chat-79/runs", json!({"input": "Hello"})).await.problem(), "not_found");
}

#[tokio::test]
async fn a_session_shows_its_live_run_and_the_messages_of_it() {
    let world = given_an_agent()
        .with_an_external_tool("order")
        .whose_model_says(json!([{"say": "I order.", "calls": [{"name": "ext_order"}]}, say("Ordered.")]));
    let served = principals::served(world.kept(Kept::InMemory).await).await;
    let ann = ann(&served);
    let tool = json!([{"name": "order", "input_schema": {"type": "object"}}]);
    ann.post("/v1/sessions", json!({"id": "chat-77"})).await;
    ann.post("/v1/sessions/chat-77/runs", json!({"input": "First", "external_tools": tool})).await;

    let session = ann.get("/v1/sessions/chat-77").await;

    assert_eq!((session.text("status"), session.body["head"]["status"].as_str()), ("pending", Some("pending")));
    let messages = ann.get("/v1/sessions/chat-77/messages").await;
    assert_eq!(texts(&messages)[..1], ["First"], "{messages:?}");
    assert_eq!(messages.body["data"][1]["role"], "assistant", "{messages:?}");
    // The tag changes with the run, although the session's own version does not.
    let run = session.body["head"]["id"].as_str().unwrap().to_owned();
    ann.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
    let etag = session.header("etag").to_owned();
    let request = served.request(Method::GET, "/v1/sessions/chat-77").header("x-badge", ann.badge);
    let ended = HttpAnswer::of(request.header("if-none-match", &etag).send().await.unwrap()).await;
    assert_eq!((ended.status.as_u16(), ended.text("status")), (200, "idle"));
    let request = served.request(Method::GET, "/v1/sessions/chat-77").header("x-badge", ann.badge);
    let same = request.header("if-none-match", ended.header("etag")).send().await.unwrap();
    assert_eq!(same.status(), 304);
}

#[tokio::test]
async fn a_change_of_a_session_is_a_merge_patch_on_a_condition() {
    let served = served().await;
    let new = json!({"id": "chat-77", "title": "Refund", "metadata": {"ticket": 9, "open": true}});
    let created = ann(&served).post("/v1/sessions", new).await;
    let change = async |condition: &str, change: serde_json::Value| {
        let request = served.request(Method::PATCH, "/v1/sessions/chat-77").header("x-badge", "key:ann acme all");
        HttpAnswer::of(request.header("if-match", condition).json(&change).send().await.unwrap()).await
    };
    let patch = json!({"title": null, "metadata": {"open": null, "by": "ann"}});

    let changed = change(created.header("etag"), patch.clone()).await;
    let late = change(created.header("etag"), json!({"title": "Late"})).await;

    assert_eq!((changed.status.as_u16(), changed.header("etag")), (200, "\"2.0\""), "{changed:?}");
    assert_eq!((changed.text("title"), &changed.body["metadata"]), ("", &json!({"ticket": 9, "by": "ann"})));
    assert_eq!((late.status.as_u16(), late.problem(), late.header("etag")), (412, "precondition_failed", "\"2.0\""));
    let current = json!({"object": "session", "id": "chat-77", "status": "idle", "version": 2});
    assert_eq!(late.body["current"], current);
    assert_eq!(change("*", patch).await.body["version"], 2, "a patch that changes nothing makes no version");
    let titled = ann(&served).post("/v1/sessions/chat-77/runs", json!({"input": "First"})).await;
    assert_eq!(titled.status, 201);
    assert_eq!(ann(&served).get("/v1/sessions/chat-77").await.text("title"), "First");
}

#[tokio::test]
async fn an_array_is_no_change_of_a_session() {
    let served = served().await;
    ann(&served).post("/v1/sessions", json!({"id": "chat-77", "title": "Order 77"})).await;
    let request = served.request(Method::PATCH, "/v1/sessions/chat-77").header("x-badge", "key:ann acme all");
    let refused = HttpAnswer::of(request.json(&json!([null, null])).send().await.unwrap()).await;
    assert_eq!((refused.status.as_u16(), refused.problem()), (400, "invalid_request"), "{refused:?}");
    assert_eq!(ann(&served).get("/v1/sessions/chat-77").await.text("title"), "Order 77");
}

#[tokio::test]
async fn sessions_are_listed_by_principal() {
    let served = Served::to_all(given_an_agent().kept(Kept::InAFile).await).await;
    for (id, principal) in [("chat-1", json!("ann")), ("chat-2", json!("bob")), ("chat-3", json!(null))] {
        served.post("/v1/sessions", json!({"id": id, "principal": principal})).await;
    }
    let of_ann = served.get("/v1/sessions?principal=ann").await;
    let ids: Vec<&Value> = of_ann.body["data"].as_array().unwrap().iter().map(|session| &session["id"]).collect();
    assert_eq!(ids, ["chat-1"]);
}

#[tokio::test]
async fn sessions_are_listed_newest_first_and_page_by_page() {
    let served = served().await;
    let ann = ann(&served);
    for id in ["chat-1", "chat-2", "chat-3"] {
        ann.post("/v1/sessions", json!({"id": id})).await;
    }
    let ids = |page: &HttpAnswer| -> Vec<String> {
        page.body["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };

    let first = ann.get("/v1/sessions?agent=clerk&limit=2").await;
    let next = ann.get(&format!("/v1/sessions?limit=2&after={}", first.text("last_id"))).await;

    assert_eq!((ids(&first), &first.body["has_more"]), (vec!["chat-3".to_owned(), "chat-2".to_owned()], &json!(true)));
    assert_eq!((ids(&next), &next.body["has_more"]), (vec!["chat-1".to_owned()], &json!(false)));
    assert_eq!(ids(&ann.get("/v1/sessions?agent=none").await), Vec::<String>::new());
    assert_eq!(ann.get("/v1/sessions?after=chat-9").await.problem(), "validation");
}

#[tokio::test]
async fn a_session_is_read_by_its_tenant_and_changed_by_its_principal() {
    let served = served().await;
    ann(&served).post("/v1/sessions", json!({"id": "chat-77", "principal": "bob", "title": "A secret"})).await;
    let carl = Person { served: &served, badge: "key:carl acme all carl" };
    let eve = Person { served: &served, badge: "key:eve evil all" };
    let change = async |person: &Person<'_>| {
        let request = served.request(Method::PATCH, "/v1/sessions/chat-77").header("x-badge", person.badge);
        HttpAnswer::of(request.json(&json!({"title": "Mine"})).send().await.unwrap()).await
    };

    assert_eq!(carl.get("/v1/sessions/chat-77").await.text("title"), "A secret");
    assert_eq!(change(&carl).await.problem(), "forbidden");
    assert_eq!(carl.post("/v1/sessions/chat-77/runs", json!({"input": "Hi"})).await.problem(), "forbidden");
    assert_eq!(carl.post("/v1/sessions", json!({"id": "chat-78", "principal": "bob"})).await.problem(), "forbidden");
    assert_eq!(carl.post("/v1/sessions", json!({"id": "chat-78"})).await.text("principal"), "carl");
    for foreign in [
        eve.get("/v1/sessions/chat-77").await,
        eve.get("/v1/sessions/chat-77/messages").await,
        eve.post("/v1/sessions/chat-77/runs", json!({"input": "Hi"})).await,
        change(&eve).await,
    ] {
        assert_eq!((foreign.status.as_u16(), foreign.problem()), (404, "not_found"), "{foreign:?}");
        assert!(!foreign.body.to_string().contains("secret"), "{foreign:?}");
    }
    assert_eq!(eve.get("/v1/sessions").await.body["data"], json!([]));
}

#[tokio::test]
async fn the_id_of_a_run_inside_a_session_begins_no_other_session() {
    let served = served().await;
    let ann = ann(&served);
    let inside = ann.post("/v1/runs", chat("First")).await;

    let refused = ann.post("/v1/runs", json!({"input": "Second", "session_id": inside.text("id")})).await;
    let created = ann.post("/v1/sessions", json!({"id": inside.text("id")})).await;

    for (answer, pointer) in [(refused, "/session_id"), (created, "/id")] {
        assert_eq!((answer.problem(), &answer.body["errors"][0]["pointer"]), ("validation", &json!(pointer)));
        assert!(answer.text("detail").contains("belongs to session `chat-77`"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_repeated_start_in_a_session_finds_its_run() {
    let world = talker().kept(Kept::InMemory).await;
    let store = Arc::new(MemoryStore::default());
    let served = Served::with(world, |builder| builder.authenticator(Arc::new(Badges)).idempotency(store)).await;
    ann(&served).post("/v1/sessions", json!({"id": "chat-77"})).await;
    let start = async |text: &str| {
        let request = served.request(Method::POST, "/v1/sessions/chat-77/runs").header("x-badge", "key:ann acme all");
        let request = request.header("idempotency-key", "\"once\"").json(&json!({"input": text}));
        HttpAnswer::of(request.send().await.unwrap()).await
    };

    let (first, again) = (start("First").await, start("First").await);

    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 201));
    assert_eq!((again.text("id"), again.header("idempotent-replayed")), (first.text("id"), "true"));
    assert_eq!(ann(&served).get("/v1/sessions/chat-77").await.body["runs"], 1);
}

#[tokio::test]
async fn a_deleted_session_is_gone_with_its_runs_and_its_id_is_not_used_again() {
    let served = served().await;
    let ann = ann(&served);
    ann.post("/v1/sessions", json!({"id": "chat-77", "title": "A secret"})).await;
    let first = ann.post("/v1/runs", chat("First")).await;
    let second = ann.post("/v1/runs", chat("Second")).await;
    let carl = Person { served: &served, badge: "key:carl acme all carl" };
    let eve = Person { served: &served, badge: "key:eve evil all" };
    assert_eq!(carl.delete("/v1/sessions/chat-77").await.problem(), "forbidden");
    assert_eq!(eve.delete("/v1/sessions/chat-77").await.problem(), "not_found");

    assert_eq!(ann.delete("/v1/sessions/chat-77").await.status, 204);

    assert_eq!(ann.delete("/v1/sessions/chat-77").await.status, 204, "a repeat");
    for gone in [
        ann.get("/v1/sessions/chat-77").await,
        ann.get("/v1/sessions/chat-77/messages").await,
        ann.post("/v1/sessions/chat-77/runs", json!({"input": "Third"})).await,
        ann.post("/v1/sessions", json!({"id": "chat-77"})).await,
        ann.post("/v1/runs", chat("Third")).await,
        ann.get(&format!("/v1/runs/{}", first.text("id"))).await,
        ann.get(&format!("/v1/runs/{}", second.text("id"))).await,
    ] {
        assert_eq!((gone.status.as_u16(), gone.problem()), (410, "gone"), "{gone:?}");
        assert!(!gone.body.to_string().contains("secret"), "{gone:?}");
    }
    for list in ["/v1/sessions", "/v1/runs?session_id=chat-77"] {
        assert_eq!(ann.get(list).await.body["data"], json!([]));
    }
    assert_eq!(ann.delete("/v1/sessions/chat-78").await.problem(), "not_found");
}

#[tokio::test]
async fn a_session_with_a_live_run_is_deleted_after_its_cancellation() {
    let world = given_an_agent()
        .with_an_external_tool("order")
        .whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Ordered.")]));
    let served = principals::served(world.kept(Kept::InMemory).await).await;
    let ann = ann(&served);
    let tool = json!([{"name": "order", "input_schema": {"type": "object"}}]);
    let live = json!({"input": "First", "session_id": "chat-77", "external_tools": tool});
    let live = ann.post("/v1/runs", live).await;

    let refused = ann.delete("/v1/sessions/chat-77").await;

    assert_eq!((refused.status.as_u16(), refused.problem()), (409, "conflict"));
    assert_eq!(refused.body["current"]["id"], live.body["id"]);
    assert_eq!(ann.get("/v1/sessions/chat-77").await.text("status"), "pending");
    ann.post(&format!("/v1/runs/{}/cancel", live.text("id")), json!({})).await;
    assert_eq!(ann.delete("/v1/sessions/chat-77").await.status, 204);
}

#[tokio::test]
async fn a_repeated_deletion_finishes_one_that_ended_after_its_mark() {
    let served = served().await;
    let ann = ann(&served);
    let run = ann.post("/v1/runs", chat("First")).await;
    let store = &served.world.store;
    let row = store.session(&"acme".into(), &"chat-77".into()).await.unwrap().unwrap();
    let marked = SessionRow { deleted_at: Some(row.updated_at), ..row.clone() };
    assert_eq!(store.save_session(row.version, &marked).await.unwrap(), SessionSaved::Saved);
    assert_eq!(ann.get(&format!("/v1/runs/{}", run.text("id"))).await.status, 200);

    assert_eq!(ann.delete("/v1/sessions/chat-77").await.status, 204);

    assert_eq!(ann.get(&format!("/v1/runs/{}", run.text("id"))).await.problem(), "gone");
}

// FEATURES 0.31
#[tokio::test]
async fn a_compacted_session_keeps_its_pages_of_messages() {
    let script = json!({"turns": [say("One."), say("Two.")], "summary": say("They began.")});
    let script = Script::from_json(&script.to_string()).unwrap();
    let world = given_an_agent().with_the_model(ScriptedModel::new("scripted", script)).kept(Kept::InMemory).await;
    let served = principals::served(world).await;
    let ann = ann(&served);
    ann.post("/v1/runs", chat("First")).await;
    let before = ann.get("/v1/sessions/chat-77/messages").await;

    let compacted = ann.post("/v1/sessions/chat-77/compact", json!({"keep_tokens": 0})).await;

    assert_eq!((compacted.status.as_u16(), compacted.text("status")), (201, "completed"), "{compacted:?}");
    assert_eq!(compacted.body["output"]["text"], "They began.[replies before: 1]", "{compacted:?}");
    assert_eq!(ann.get("/v1/sessions/chat-77/messages").await.body, before.body);
    let second = ann.post("/v1/runs", chat("Second")).await;
    let messages = ann.get(&format!("/v1/runs/{}/messages", second.text("id"))).await;
    assert_eq!(texts(&messages), ["First", "One.", "Second", "Two."]);
    assert_eq!(ann.get("/v1/sessions/chat-77").await.body["runs"], 3);
}

#[tokio::test]
async fn a_session_is_compacted_by_callers_of_its_tenant_that_may_write() {
    let served = served().await;
    ann(&served).post("/v1/runs", chat("First")).await;
    let path = "/v1/sessions/chat-77/compact";
    let eve = Person { served: &served, badge: "key:eve evil all" };
    assert_eq!(eve.post(path, json!({})).await.problem(), "not_found");
    let carl = Person { served: &served, badge: "key:carl acme runs:read" };
    assert_eq!(carl.post(path, json!({})).await.problem(), "forbidden");
    assert_eq!(ann(&served).post(path, json!({"keep": 0})).await.problem(), "invalid_request");
}

#[tokio::test]
async fn the_limits_and_the_expiry_of_a_session_are_set_and_kept_over_http() {
    let served = served().await;
    let ann = ann(&served);
    let limits = json!({"max_iterations": 1, "max_cost_usd": "2.5"});
    let new = json!({"id": "chat-77", "limits": limits, "expire_after_s": 3600, "mode": "allow"});
    let created = ann.post("/v1/sessions", new).await;
    let kept = json!({"max_iterations": 1, "max_tokens": null, "max_cost_usd": "2.5", "deadline_s": null});
    assert_eq!((&created.body["limits"], created.text("mode")), (&kept, "allow"), "{created:?}");
    assert!(created.text("expires_at") > created.text("created_at"), "{created:?}");
    let unknown = ann.post("/v1/sessions", json!({"mode": "open"})).await;
    assert_eq!((unknown.problem(), &unknown.body["errors"][0]["pointer"]), ("validation", &json!("/mode")));

    assert_eq!(ann.post("/v1/runs", chat("First")).await.status, 201);
    let refused = ann.post("/v1/runs", chat("Second")).await;
    assert_eq!((refused.status.as_u16(), refused.problem()), (409, "budget_exhausted"), "{refused:?}");
    assert!(refused.text("detail").contains("`max_iterations` of 1"), "{refused:?}");

    let patch = json!({"limits": {"max_iterations": null}, "expire_after_s": null, "mode": null});
    let request = served.request(Method::PATCH, "/v1/sessions/chat-77").header("x-badge", ann.badge);
    let changed = HttpAnswer::of(request.json(&patch).send().await.unwrap()).await;
    assert_eq!(
        (&changed.body["limits"]["max_iterations"], changed.body["iterations"].as_u64()),
        (&json!(null), Some(1))
    );
    assert!(changed.body["expires_at"].is_null() && changed.body["mode"].is_null(), "{changed:?}");
    let runtime = &changed.body["runtime"];
    assert_eq!((&runtime["servers"], &runtime["policy"]), (&json!([]), &json!("allow")), "{changed:?}");
    assert_eq!(ann.post("/v1/runs", chat("Second")).await.text("status"), "completed");
}
