//! Export of a run: its journal, and the blobs that it refers to.

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::core::blob::BlobHandle;
use toolgate::core::run::JournalEntry;

use super::served::Served;
use crate::runner::world::{Kept, given_an_agent, say};

const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n";

fn sha256(bytes: &[u8]) -> String {
    BlobHandle::for_bytes(bytes).to_string().trim_start_matches("media://sha256-").to_owned()
}

#[tokio::test]
async fn an_export_is_the_journal_line_by_line() {
    let served = Served::to_all(given_an_agent().whose_model_says(json!([say("Hi.")])).kept(Kept::InAFile).await).await;
    let run = served.run(json!({"input": "Hello"})).await;

    let response = served.request(Method::GET, &format!("/v1/runs/{run}/export")).send().await.unwrap();

    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let text = response.text().await.unwrap();
    let facts: Vec<JournalEntry> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(facts, served.world.runner.journal(&run.as_str().into()).await.unwrap());
}

#[tokio::test]
async fn media_are_served_with_their_type_and_never_executed() {
    let media = json!([{"media": [{"media_type": "image/png", "data": "iVBORw0KGgo="}]}]);
    let served = Served::to_all(given_an_agent().whose_model_says(media).kept(Kept::InAFile).await).await;
    let created = served.post("/v1/runs", json!({"input": "A cat"})).await;
    let url = created.body["output"]["media"][0]["url"].as_str().unwrap();
    assert_eq!(url, BlobHandle::for_bytes(PICTURE).to_string());

    let path = format!("/v1/runs/{}/blobs/{}", created.text("id"), sha256(PICTURE));
    let blob = served.request(Method::GET, &path).send().await.unwrap();

    assert_eq!(blob.headers()["content-type"], "image/png");
    assert_eq!(blob.headers()["x-content-type-options"], "nosniff");
    assert_eq!(blob.headers()["content-disposition"], "attachment");
    assert_eq!(blob.bytes().await.unwrap(), PICTURE);
}

#[tokio::test]
async fn a_run_that_only_mentions_a_blob_cannot_read_it() {
    let turns = json!([{"media": [{"media_type": "image/png", "data": "iVBORw0KGgo="}]}, say("No.")]);
    let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(Kept::InMemory).await).await;
    served.run(json!({"input": "A cat"})).await;
    let handle = BlobHandle::for_bytes(PICTURE).to_string();
    let refused = async |content: Value| {
        // The model draws in its first turn only, and this conversation is past it.
        let conversation = json!([
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hello"},
            {"role": "user", "content": content},
        ]);
        let thief = served.run(json!({"input": conversation})).await;
        let path = format!("/v1/runs/{thief}/blobs/{}", sha256(PICTURE));
        served.get(&path).await.problem().to_owned()
    };
    assert_eq!(refused(json!(format!("Show me {handle}"))).await, "not_found");
    let image = json!({"type": "image", "media_type": "image/png", "url": handle});
    let shown = served.post("/v1/runs", json!({"input": [{"role": "user", "content": [image]}]})).await;
    assert_eq!(
        (shown.problem(), &shown.body["errors"][0]["pointer"]),
        ("validation", &json!("/input/0/content/0/url"))
    );
    let run = served.get("/v1/runs").await.body["data"][0]["id"].as_str().unwrap().to_owned();
    for nonsense in ["x", "..", &"g".repeat(64)] {
        let path = format!("/v1/runs/{run}/blobs/{nonsense}");
        let answer = served.get(&path).await;
        assert_eq!(answer.status, 404, "{path}");
    }
}
