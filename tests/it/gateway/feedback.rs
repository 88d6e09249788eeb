//! `/v1/runs/{run}/feedback`: who judges a run, what replaces what, and when it is deleted.

use reqwest::Method;
use serde_json::{Value, json};

use super::principals::{Person, served};
use super::served::{HttpAnswer, Served};
use crate::runner::world::{Kept, given_an_agent, on_every_store, say};

const APP: &str = "key:app acme all";

/// A gateway, and the path of the feedback on a run that has completed.
async fn judged(kept: Kept) -> (Served, String) {
    let served = served(given_an_agent().whose_model_says(json!([say("Paris."), say("Rome.")])).kept(kept).await).await;
    let run = Person { served: &served, badge: APP }.post("/v1/runs", json!({"input": "Capital?"})).await;
    let path = format!("/v1/runs/{}/feedback", run.text("id"));
    (served, path)
}

async fn listed(app: &Person<'_>, path: &str) -> Vec<Value> {
    let list = app.get(path).await;
    assert_eq!((list.status.as_u16(), &list.body["has_more"]), (200, &json!(false)), "{list:?}");
    list.body["data"].as_array().unwrap().clone()
}

fn refusal(refused: &HttpAnswer) -> (u16, &str, &Value) {
    (refused.status.as_u16(), refused.problem(), &refused.body["errors"][0]["pointer"])
}

on_every_store! {
    async fn feedback_is_listed_replaced_by_its_annotator_and_deleted(kept: Kept) {
        let (served, path) = judged(kept).await;
        let app = Person { served: &served, badge: APP };
        let ann = json!({"kind": "human", "id": "ann"});

        let first = app.post(&path, json!({"name": "quality", "score": 0.8, "label": "good", "annotator": ann})).await;
        assert_eq!(first.status, 201, "{first:?}");
        let again = app.post(&path, json!({"name": "quality", "score": 0.8, "label": "good", "annotator": ann})).await;
        assert_eq!((again.status.as_u16(), &again.body), (201, &first.body), "the same changes nothing");
        let replaced = app.post(&path, json!({"name": "quality", "comment": "Too short", "annotator": ann})).await;
        assert_eq!((replaced.text("id"), replaced.text("created_at")), (first.text("id"), first.text("created_at")));
        let others = [
            json!({"name": "quality", "score": -1}),
            json!({"name": "quality", "score": 1, "annotator": {"kind": "llm", "id": "ann"}}),
            json!({"name": "safe", "label": "yes", "annotator": ann}),
        ];
        for other in others {
            assert_eq!(app.post(&path, other).await.status, 201);
        }

        let found = listed(&app, &path).await;
        let with = |score: Value| found.iter().find(|feedback| feedback["score"] == score).unwrap();
        assert_eq!(found.len(), 4);
        let of_ann = found.iter().find(|feedback| feedback["id"] == first.body["id"]).unwrap();
        assert_eq!((&of_ann["score"], &of_ann["label"], &of_ann["comment"]), (&json!(null), &json!(null), &json!("Too short")));
        assert_eq!((&of_ann["annotator"], &of_ann["created_by"]), (&ann, &json!("key:app")));
        let unnamed = with(json!(-1.0));
        assert_eq!((&unnamed["annotator"], &unnamed["span_id"]), (&json!({"kind": "human", "id": null}), &json!(null)));
        assert_eq!(with(json!(1.0))["annotator"]["kind"], "llm");

        let one = format!("{path}/{}", first.text("id"));
        assert_eq!(app.delete(&one).await.status, 204);
        assert_eq!(app.delete(&one).await.problem(), "not_found");
        assert_eq!(listed(&app, &path).await.len(), 3);
    }

    async fn feedback_on_a_span_of_another_run_is_refused_at_its_place(kept: Kept) {
        let (served, path) = judged(kept).await;
        let app = Person { served: &served, badge: APP };
        let run = app.get(path.trim_end_matches("/feedback")).await;
        let given = app.post(&path, json!({"name": "quality", "score": 1, "span_id": run.text("span_id")})).await;
        assert_eq!((given.status.as_u16(), given.text("span_id")), (201, run.text("span_id")));
        let other = app.post("/v1/runs", json!({"input": "Italy?"})).await;

        let refused = app.post(&path, json!({"name": "quality", "score": 1, "span_id": other.text("span_id")})).await;

        assert_eq!(refusal(&refused), (422, "validation", &json!("/span_id")));
        assert!(refused.text("detail").contains(other.text("span_id")), "{refused:?}");
        let wrong = app.post(&path, json!({"name": "quality", "score": 1, "span_id": "xyz"})).await;
        assert_eq!(wrong.body["errors"][0]["pointer"], "/span_id", "{wrong:?}");
    }

    async fn invalid_feedback_is_refused_at_its_place(kept: Kept) {
        let (served, path) = judged(kept).await;
        let app = Person { served: &served, badge: APP };
        for (body, pointer) in [
            (json!({"name": "two words", "score": 1}), "/name"),
            (json!({"name": "", "score": 1}), "/name"),
            (json!({"name": "x".repeat(65), "score": 1}), "/name"),
            (json!({"name": "quality"}), "/score"),
            (json!({"name": "quality", "label": ""}), "/label"),
            (json!({"name": "quality", "label": "a\u{202e}b"}), "/label"),
            (json!({"name": "quality", "comment": " \n"}), "/comment"),
            (json!({"name": "quality", "comment": "x".repeat(8193)}), "/comment"),
            (json!({"name": "quality", "score": 1, "annotator": {"kind": "human", "id": "a\nb"}}), "/annotator/id"),
        ] {
            assert_eq!(refusal(&app.post(&path, body.clone()).await), (422, "validation", &json!(pointer)), "{body}");
        }
        let huge = served.request(Method::POST, &path).header("x-badge", APP).header("content-type", "application/json");
        let huge = HttpAnswer::of(huge.body(r#"{"name": "quality", "score": 1e999}"#).send().await.unwrap()).await;
        assert!(huge.status.is_client_error(), "{huge:?}");
        assert_eq!(listed(&app, &path).await, Vec::<Value>::new());
    }

    async fn the_run_that_has_all_feedback_says_so(kept: Kept) {
        let (served, path) = judged(kept).await;
        let app = Person { served: &served, badge: APP };
        for number in 0..100 {
            assert_eq!(app.post(&path, json!({"name": format!("n{number}"), "score": 1})).await.status, 201);
        }
        let refused = app.post(&path, json!({"name": "n100", "score": 1})).await;
        assert_eq!((refused.status.as_u16(), refused.problem(), refused.text("reason")), (409, "conflict", "limit_reached"));
        assert_eq!(refused.body["retryable"], false, "{refused:?}");
        assert_eq!(app.post(&path, json!({"name": "n7", "score": 2})).await.status, 201, "it replaces one");
    }

    async fn feedback_is_deleted_with_its_run(kept: Kept) {
        let (served, path) = judged(kept).await;
        let app = Person { served: &served, badge: APP };
        app.post(&path, json!({"name": "quality", "score": 1})).await;
        let run = path.trim_end_matches("/feedback");
        let before = app.get(run).await;
        assert_eq!(app.delete(run).await.status, 204);
        assert_eq!(app.get(&path).await.problem(), "gone");
        assert_eq!(app.post(&path, json!({"name": "quality", "score": 1})).await.problem(), "gone");
        let left = served.world.runner.feedback(&before.text("id").into()).await.unwrap();
        assert_eq!(left, []);
    }

    async fn callers_judge_the_runs_of_their_tenant_and_principal(kept: Kept) {
        let (served, path) = judged(kept).await;
        let give = json!({"name": "quality", "score": 1});
        for (badge, code) in [
            ("key:other bolt all", "not_found"),
            ("key:reader acme runs:read", "forbidden"),
            ("user:bob acme all bob", "forbidden"),
        ] {
            let person = Person { served: &served, badge };
            assert_eq!(person.post(&path, give.clone()).await.problem(), code, "{badge}");
            assert_eq!(person.delete(&format!("{path}/feedback_1")).await.problem(), code, "{badge}");
        }
        let writer = Person { served: &served, badge: "key:writer acme runs:write" };
        assert_eq!(writer.post(&path, give).await.status, 201);
        assert_eq!(writer.get(&path).await.problem(), "forbidden");
        let bob = Person { served: &served, badge: "user:bob acme all bob" };
        assert_eq!(listed(&bob, &path).await.len(), 1, "the tenant is the boundary for reading");
    }
}
