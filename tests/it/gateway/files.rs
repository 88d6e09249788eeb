//! Uploaded files as input of runs: what models read of them, and what is left when a file is gone.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::core::blob::BlobHandle;
use toolgate::core::chat::{Media, Message, Part, Reply};
use toolgate::models::{Settings, anthropic};
use toolgate::ports::{Quota, Quotas};
use toolgate::service::FileLimits;

use super::file_uploads::{ANN, PDF, PNG, send, served, upload};
use super::principals::Person;
use super::served::{HttpAnswer, Served};
use crate::fakes::{RecordingModel, SentMessages};
use crate::models::model_server::{ModelServer, Prepared};
use crate::runner::world::{Kept, given_an_agent, on_every_store};

/// A gateway whose model records the messages that it reads.
async fn recording(kept: Kept) -> (Served, SentMessages) {
    let said = |text: &str| Reply { content: vec![Part::text(text)], ..Reply::empty() };
    let (model, sent) = RecordingModel::with(["One.", "Two.", "Three.", "Four."].map(said).to_vec());
    (served(given_an_agent().with_the_model(model).kept(kept).await, FileLimits::default()).await, sent)
}

/// An input of one message with these parts.
fn input(parts: Value) -> Value {
    json!([{"role": "user", "content": parts}])
}

/// An input that asks about a file.
fn about(file: &str) -> Value {
    input(json!([{"type": "text", "text": "What is this?"}, {"type": "file", "file_id": file}]))
}

/// The media of the parts that the model read last, as bytes, and the texts.
fn read(sent: &SentMessages) -> Vec<Vec<u8>> {
    let messages = sent.lock().unwrap().last().unwrap().clone();
    let data = |part: &Part| match part {
        Part::Image(Media { data, .. }) | Part::Audio(Media { data, .. }) => Media::decode(data.as_ref().unwrap()),
        Part::Resource { data: Some(data), .. } => Media::decode(data),
        Part::Resource { text: Some(text), .. } | Part::Text { text } => Some(text.clone().into_bytes()),
        other => panic!("not read as content: {other:?}"),
    };
    messages.iter().flat_map(|message: &std::sync::Arc<Message>| &message.content).filter_map(data).collect()
}

fn refusal(refused: &HttpAnswer) -> (&str, &Value, &Value) {
    (refused.problem(), &refused.body["errors"][0]["pointer"], &refused.body["errors"][0]["detail"])
}

on_every_store! {
    async fn the_model_reads_files_and_the_journal_has_their_handles(kept: Kept) {
        let (served, sent) = recording(kept).await;
        let ann = Person { served: &served, badge: ANN };
        let wav = b"RIFF\x10\0\0\0WAVEfmt \0\xff";
        let pdf = upload(&served, ANN, "a.pdf", PDF).await;
        let png = upload(&served, ANN, "a.png", PNG).await;
        let sound = upload(&served, ANN, "a.wav", wav).await;
        let text = upload(&served, ANN, "notes.md", "# Notes é".as_bytes()).await;

        let parts = json!([
            {"type": "text", "text": "Compare:"}, {"type": "file", "file_id": pdf}, {"type": "image", "file_id": png},
            {"type": "audio", "file_id": sound}, {"type": "file", "file_id": text}, {"type": "file", "file_id": png},
        ]);
        let run = ann.post("/v1/runs", json!({"input": input(parts)})).await;

        assert_eq!((run.status.as_u16(), run.text("status")), (201, "completed"), "{run:?}");
        assert_eq!(read(&sent), [b"Compare:".as_slice(), PDF, PNG, wav, "# Notes é".as_bytes(), PNG]);
        let path = format!("/v1/runs/{}", run.text("id"));
        let export = served.request(Method::GET, &format!("{path}/export")).header("x-badge", ANN).send().await;
        let export = export.unwrap().text().await.unwrap();
        for bytes in [PDF, PNG] {
            let inline = Media::inline("", bytes).data.unwrap();
            assert!(!export.contains(&inline) && export.contains(&BlobHandle::for_bytes(bytes).to_string()), "{export}");
        }
        assert!(export.contains("# Notes é"), "a text is part of the journal");

        let messages = ann.get(&format!("{path}/messages")).await;
        let shown = &messages.body["data"][0]["content"];
        let handle = BlobHandle::for_bytes(PDF).to_string();
        assert_eq!((&shown[1]["uri"], &shown[1]["name"]), (&json!(handle), &json!("a.pdf")), "{messages:?}");
        let sha256 = handle.replace("media://sha256-", "");
        let blob = served.request(Method::GET, &format!("{path}/blobs/{sha256}")).header("x-badge", ANN).send().await;
        assert_eq!(blob.unwrap().bytes().await.unwrap(), PDF);
    }

    async fn a_long_text_and_a_part_with_other_content_are_refused_at_their_place(kept: Kept) {
        let (served, _) = recording(kept).await;
        let ann = Person { served: &served, badge: ANN };
        let long = upload(&served, ANN, "long.txt", &vec![b'x'; (2 << 20) + 1]).await;
        let refused = ann.post("/v1/runs", json!({"input": about(&long)})).await;
        let (code, pointer, detail) = refusal(&refused);
        assert_eq!((code, pointer), ("validation", &json!("/input/0/content/1/file_id")));
        assert!(detail.as_str().unwrap().contains("2 MiB"), "{detail}");

        let png = upload(&served, ANN, "a.png", PNG).await;
        let url = BlobHandle::for_bytes(PNG).to_string();
        let other = json!({"type": "image", "media_type": "x", "data": "not base64", "url": url});
        let parts = json!([{"type": "image", "file_id": png}, other]);
        let refused = ann.post("/v1/runs", json!({"input": input(parts)})).await;
        assert_eq!(refused.problem(), "validation", "{refused:?}");
    }

    async fn a_run_that_a_quota_refuses_keeps_no_bytes(kept: Kept) {
        let (served, _) = recording(kept).await;
        let ann = Person { served: &served, badge: ANN };
        let pdf = upload(&served, ANN, "a.pdf", PDF).await;
        let none = Quota { runs: Some(0), ..Quota::default() };
        served.world.usage().set_quotas(Quotas { tenants: [("*".to_owned(), none)].into(), ..Quotas::default() });

        let refused = ann.post("/v1/runs", json!({"input": about(&pdf)})).await;

        assert_eq!((refused.status.as_u16(), refused.problem()), (429, "rate_limited"), "{refused:?}");
        assert_eq!(ann.delete(&format!("/v1/files/{pdf}")).await.status, 204);
        let blobs = served.world.runner.blobs().unwrap();
        assert_eq!(blobs.get(&BlobHandle::for_bytes(PDF)).await.unwrap(), None);
    }

    async fn a_run_its_session_and_its_fork_keep_the_bytes_of_a_deleted_file(kept: Kept) {
        let (served, sent) = recording(kept).await;
        let ann = Person { served: &served, badge: ANN };
        let file = upload(&served, ANN, "a.pdf", PDF).await;
        let run = ann.post("/v1/runs", json!({"input": about(&file), "session_id": "chat"})).await;
        assert_eq!(ann.delete(&format!("/v1/files/{file}")).await.status, 204);

        let next = ann.post("/v1/runs", json!({"input": "And now?", "session_id": "chat"})).await;
        assert_eq!(read(&sent), [b"What is this?".as_slice(), PDF, b"One.", b"And now?"], "{next:?}");
        let fork = ann.post(&format!("/v1/runs/{}/fork", run.text("id")), json!({"at": 1})).await;
        assert_eq!((fork.status.as_u16(), read(&sent)), (201, vec![b"What is this?".to_vec(), PDF.to_vec()]), "{fork:?}");
        let refused = ann.post("/v1/runs", json!({"input": about(&file)})).await;
        assert_eq!(refused.problem(), "validation");

        let blob = async || {
            let other = served.world.another_process().await;
            other.blobs().unwrap().get(&BlobHandle::for_bytes(PDF)).await.unwrap()
        };
        for path in ["/v1/sessions/chat", &format!("/v1/runs/{}", fork.text("id"))] {
            assert_eq!(blob().await.map(|blob| blob.into_bytes()).as_deref(), Some(PDF));
            let deleted = ann.delete(path).await;
            assert!(deleted.status.is_success(), "{path}: {deleted:?}");
        }
        assert_eq!(blob().await, None, "the last run that used the bytes is gone");
    }

    async fn files_that_the_caller_cannot_use_are_not_told_apart(kept: Kept) {
        let (served, sent) = recording(kept).await;
        let foreign = upload(&served, "bob bolt all", "a.pdf", PDF).await;
        let of_eve = upload(&served, "eve acme all eve", "a.pdf", PDF).await;
        let deleted = upload(&served, ANN, "a.pdf", PDF).await;
        assert_eq!(Person { served: &served, badge: ANN }.delete(&format!("/v1/files/{deleted}")).await.status, 204);
        let ann = Person { served: &served, badge: "ann acme runs:write ann" };
        for file in [&foreign, &of_eve, &deleted, "file_unknown", "", "../x", &BlobHandle::for_bytes(PDF).to_string()] {
            let refused = ann.post("/v1/runs", json!({"input": about(file)})).await;
            let detail = json!(format!("there is no file `{file}`, or it has expired; upload it again"));
            assert_eq!(refusal(&refused), ("validation", &json!("/input/0/content/1/file_id"), &detail));
        }
        // A handle that a caller writes gives no access, although the store has its bytes.
        let url = BlobHandle::for_bytes(PDF).to_string();
        let parts = json!([{"type": "image", "media_type": "image/png", "url": url}]);
        assert_eq!(ann.post("/v1/runs", json!({"input": input(parts)})).await.problem(), "validation");
        let text = ann.post("/v1/runs", json!({"input": url})).await;
        assert_eq!((text.status.as_u16(), read(&sent)), (201, vec![url.into_bytes()]));
        // Nor does a file with such a name.
        let name = BlobHandle::for_bytes(PDF).to_string().replace("media://", "");
        let named = upload(&served, ANN, &name, b"text").await;
        let run = ann.post("/v1/runs", json!({"input": about(&named)})).await;
        assert_eq!((run.status.as_u16(), read(&sent)), (201, vec![b"What is this?".to_vec(), b"text".to_vec()]));
        let path = format!("/v1/runs/{}/blobs/{}", run.text("id"), name.replace("sha256-", ""));
        assert_eq!(Person { served: &served, badge: ANN }.get(&path).await.problem(), "not_found");
        assert_eq!(Person { served: &served, badge: "eve acme all eve" }.post("/v1/runs", json!({"input": about(&of_eve)})).await.status, 201);
    }

    async fn a_wrong_use_of_a_file_is_refused_at_its_place(kept: Kept) {
        let (served, sent) = recording(kept).await;
        let ann = Person { served: &served, badge: ANN };
        let pdf = upload(&served, ANN, "a.pdf", PDF).await;
        let png = upload(&served, ANN, "a.png", PNG).await;
        let place = "/input/0/content/0";
        for (part, pointer) in [
            (json!({"type": "image", "file_id": pdf}), format!("{place}/file_id")),
            (json!({"type": "audio", "file_id": png}), format!("{place}/file_id")),
            (json!({"type": "image", "file_id": png, "media_type": "image/png"}), place.to_owned()),
            (json!({"type": "image", "file_id": png, "data": "AAAA"}), place.to_owned()),
            (json!({"type": "image", "data": "AAAA"}), format!("{place}/media_type")),
            (json!({"type": "image", "media_type": "image/png"}), place.to_owned()),
        ] {
            let refused = ann.post("/v1/runs", json!({"input": input(json!([part]))})).await;
            assert_eq!((refused.problem(), &refused.body["errors"][0]["pointer"]), ("validation", &json!(pointer)), "{part}");
        }
        let turns = json!([
            {"role": "assistant", "content": [{"type": "file", "file_id": pdf}]}, {"role": "user", "content": "And?"},
        ]);
        let refused = ann.post("/v1/runs", json!({"input": turns})).await;
        assert_eq!(refusal(&refused), ("validation", &json!("/input/0/content/0"), &json!("only user messages may contain uploaded files")));
        assert!(sent.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn the_files_of_an_input_have_a_limit_together() {
    let (served, sent) = recording(Kept::InMemory).await;
    let ann = Person { served: &served, badge: ANN };
    let file = upload(&served, ANN, "a.pdf", &[PDF, &vec![b'x'; 8 << 20]].concat()).await;
    let text = upload(&served, ANN, "a.txt", &vec![b'x'; 1 << 20]).await;
    for file in [file, text] {
        let part = json!({"type": "file", "file_id": file});
        let twice = ann.post("/v1/runs", json!({"input": input(json!([part, part]))})).await;
        assert_eq!(twice.status, 201, "{:?}", twice.body["error"]);
        let often = vec![part; 1000];
        let refused = ann.post("/v1/runs", json!({"input": input(json!(often))})).await;
        assert_eq!(
            (refused.problem(), &refused.body["errors"][0]["pointer"]),
            ("validation", &json!("/input/0/content/2/file_id"))
        );
    }
    assert_eq!(sent.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_reads_a_file_after_it_expired() {
    let (served, sent) = recording(Kept::InMemory).await;
    let ann = Person { served: &served, badge: ANN };
    let uploaded =
        send(&served, ANN, &[("name=\"file\"; filename=\"a.pdf\"", PDF), ("name=\"expires_in_s\"", b"60")]).await;
    let file = uploaded.text("id");
    let run = ann.post("/v1/runs", json!({"input": about(file)})).await;
    tokio::time::advance(Duration::from_secs(61)).await;
    let files = served.gateway.service().file_config().unwrap();
    assert_eq!(files.delete_expired(served.gateway.service().runner().now()).await.unwrap(), 1);

    assert_eq!(ann.post("/v1/runs", json!({"input": about(file)})).await.problem(), "validation");
    let retried = ann.post(&format!("/v1/runs/{}/retry", run.text("id")), json!({"message": "Again."})).await;
    assert_eq!(retried.status, 201, "{retried:?}");
    assert_eq!(read(&sent), [b"What is this?".as_slice(), PDF, b"One.", b"Again."]);
}

#[tokio::test]
async fn a_provider_gets_the_bytes_of_a_file() {
    const HI: &str = r#"{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}"#;
    let provider = ModelServer::answering([Prepared::json(HI)]).await;
    let model = anthropic::model(&Settings { stream: false, ..Settings::new(&provider.base_url, "m") }).unwrap();
    let served = served(given_an_agent().with_the_model(model).kept(Kept::InAFile).await, FileLimits::default()).await;
    let pdf = upload(&served, ANN, "a.pdf", PDF).await;
    let png = upload(&served, ANN, "a.png", PNG).await;
    let parts = json!([{"type": "file", "file_id": pdf}, {"type": "image", "file_id": png}]);
    let run = Person { served: &served, badge: ANN }.post("/v1/runs", json!({"input": input(parts)})).await;

    assert_eq!(run.text("status"), "completed", "{run:?}");
    let asked = provider.asked().remove(0).json();
    let content = &asked["messages"][0]["content"];
    let data = |bytes| json!(Media::inline("", bytes).data.unwrap());
    assert_eq!((&content[0]["type"], &content[0]["source"]["data"]), (&json!("document"), &data(PDF)), "{asked}");
    assert_eq!((&content[1]["type"], &content[1]["source"]["data"]), (&json!("image"), &data(PNG)), "{asked}");
}
