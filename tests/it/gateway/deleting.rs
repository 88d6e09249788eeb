//! Deletion of runs: their data is deleted, and their id remains known.

use reqwest::Method;
use serde_json::json;
use toolgate::ports::RunFilter;

use super::served::{HttpAnswer, Served};
use crate::runner::world::{Kept, given_an_agent, on_every_store, say};

impl Served {
    async fn delete(&self, path: &str) -> HttpAnswer {
        HttpAnswer::of(self.request(Method::DELETE, path).send().await.unwrap()).await
    }
}

on_every_store! {
    async fn a_deleted_run_is_gone_and_its_fork_is_not(kept: Kept) {
        let turns = json!([{"media": [{"media_type": "image/png", "data": "iVBORw0KGgo="}]}, say("Second.")]);
        let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(kept).await).await;
        let run = served.run(json!({"input": "A secret"})).await;
        let path = format!("/v1/runs/{run}");
        let fork = served.post(&format!("{path}/fork"), json!({"message": "More"})).await;
        let copy = fork.text("id").to_owned();
        let before = served.get(&format!("/v1/runs/{copy}/messages")).await.body;

        assert_eq!(served.delete(&path).await.status, 204);

        let gone = served.get(&path).await;
        assert_eq!((gone.status.as_u16(), gone.problem()), (410, "gone"));
        assert!(gone.text("detail").contains("was deleted at 2"), "{gone:?}");
        let hash = "a".repeat(64);
        for child in ["events", "messages", "export", &format!("blobs/{hash}")] {
            assert_eq!(served.get(&format!("{path}/{child}")).await.problem(), "gone", "{child}");
        }
        for child in ["resume", "cancel", "fork"] {
            assert_eq!(served.post(&format!("{path}/{child}"), json!({})).await.problem(), "gone", "{child}");
        }
        assert_eq!(served.delete(&path).await.status, 204, "a second delete has no further effect");
        assert_eq!(served.get(&path).await.text("detail"), gone.text("detail"));
        let listed = served.get("/v1/runs").await;
        assert_eq!(listed.body["data"].as_array().unwrap().len(), 1);
        assert_eq!(served.get(&format!("/v1/runs/{copy}/messages")).await.body, before);
        let left = RunFilter { run: Some(run.as_str().into()), purged: true, ..RunFilter::default() };
        let row = served.world.runner.list(&left).await.unwrap().remove(0);
        assert_eq!((row.status.as_str(), row.title.as_str()), ("completed", ""));
    }
}

#[tokio::test]
async fn a_blob_goes_with_the_last_run_that_uses_it() {
    let turns = json!([{"media": [{"media_type": "image/png", "data": "iVBORw0KGgo="}]}, say("Second.")]);
    let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(Kept::InAFile).await).await;
    let run = served.run(json!({"input": "A cat"})).await;
    let fork = served.post(&format!("/v1/runs/{run}/fork"), json!({"message": "More"})).await;
    let copy = fork.text("id").to_owned();
    let hash = "4c4b6a3be1314ab86138bef4314dde022e600960d8689a2c8f8631802d20dab6";
    let handle = toolgate::core::blob::BlobHandle::for_bytes(b"\x89PNG\r\n\x1a\n");
    assert_eq!(handle.to_string(), format!("media://sha256-{hash}"));
    let blobs = served.world.runner.blobs().unwrap().clone();

    served.delete(&format!("/v1/runs/{run}")).await;
    assert_eq!(served.get(&format!("/v1/runs/{copy}/blobs/{hash}")).await.status, 200, "the fork uses it");
    served.delete(&format!("/v1/runs/{copy}")).await;

    assert!(blobs.get(&handle).await.unwrap().is_none());
}

#[tokio::test]
async fn a_run_that_is_not_over_is_not_deleted() {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Thank you.")]);
    let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(Kept::InMemory).await).await;
    let run = served.run(json!({"input": "Hello", "external_tools": [{"name": "lookup"}]})).await;
    let path = format!("/v1/runs/{run}");

    let refused = served.delete(&path).await;

    assert_eq!((refused.status.as_u16(), refused.problem()), (409, "conflict"));
    assert!(refused.text("detail").contains("is pending") && refused.text("detail").contains("cancel it first"));
    served.post(&format!("{path}/cancel"), json!({})).await;
    assert_eq!(served.delete(&path).await.status, 204);
    assert_eq!(served.delete("/v1/runs/run_unknown").await.problem(), "not_found");
}
