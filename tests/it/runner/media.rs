//! Media from a model: stored outside the journal, before the event that refers to them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};
use toolgate::core::blob::BlobHandle;
use toolgate::core::chat::{Media, Message, Part, ProviderState, Reply, Usage};
use toolgate::core::error::ErrorCode;
use toolgate::core::id::{NodeId, RunId};
use toolgate::core::run::{Event, JournalEntry, Limits, Status};
use toolgate::ports::{
    Append, AppendError, Claim, Conversation, DeltaSink, MAX_BLOB_BYTES, Model, ModelFailure, ModelIdentity,
    ModelRequest, Purged, RunFilter, RunRow, RunStore, StoreError,
};
use toolgate::runner::{Agent, AgentRunner, Fork, Report, Request, Resume};
use toolgate::stores::MemoryStore;

use crate::fakes::delegate_sessions;

use super::world::{Kept, World, given_an_agent, on_every_store};

const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\nnot much of a picture";

/// A model with the same reply in every turn.
struct Saying(ModelIdentity, Reply);

impl Saying {
    fn parts(content: Vec<Part>) -> Self {
        Self::reply(Reply { content, ..Reply::empty() })
    }

    fn reply(reply: Reply) -> Self {
        let name = || "painter".to_owned();
        Self(ModelIdentity { system: name(), provider: name(), model: name(), settings: Value::Null }, reply)
    }
}

impl Model for Saying {
    fn identity(&self) -> &ModelIdentity {
        &self.0
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(Turns(self.1.clone()))
    }
}

struct Turns(Reply);

#[async_trait]
impl Conversation for Turns {
    async fn reply(&mut self, _request: &ModelRequest<'_>, _deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        Ok(self.0.clone())
    }
}

fn picture() -> Part {
    Part::Image(Media::inline("image/png", PICTURE))
}

fn handle() -> String {
    BlobHandle::for_bytes(PICTURE).to_string()
}

/// The journaled replies.
async fn replies(runner: &AgentRunner, run: &RunId) -> Vec<Reply> {
    let journal = runner.journal(run).await.unwrap();
    journal
        .iter()
        .filter_map(|fact| if let Event::ModelReplied { reply } = &fact.event { Some((**reply).clone()) } else { None })
        .collect()
}

fn media(report: &Report) -> &[Media] {
    &report.output.as_ref().expect("there is an answer").media
}

async fn bytes_behind(world: &World, handle: &str) -> Vec<u8> {
    let blobs = world.runner.blobs().expect("the store keeps blobs");
    blobs.get(&BlobHandle::parse(handle).unwrap()).await.unwrap().expect("it is there").into_bytes()
}

on_every_store! {
    async fn a_picture_without_words_is_an_answer_and_the_journal_keeps_only_its_handle(kept: Kept) {
        let world = given_an_agent().with_the_model(Saying::parts(vec![picture()])).kept(kept).await;

        let report = world.run().await;

        assert_eq!((report.status, report.error.clone()), (Status::Completed, None));
        assert_eq!(report.output.as_ref().unwrap().text, "");
        assert_eq!(media(&report), [Media::at("image/png", handle())]);
        assert_eq!(bytes_behind(&world, &handle()).await, PICTURE);
        let Part::Image(Media { data: Some(inline), .. }) = picture() else { unreachable!() };
        let journal = serde_json::to_string(&world.runner.journal(&report.run_id).await.unwrap()).unwrap();
        assert!(!journal.contains(&inline), "{journal}");
    }

    async fn another_process_finds_what_this_one_kept(kept: Kept) {
        let world = given_an_agent().with_the_model(Saying::parts(vec![picture()])).kept(kept).await;
        let report = world.run().await;

        let other = world.another_process().await;

        let found = other.report(&report.run_id).await.unwrap();
        let handle = BlobHandle::parse(media(&found)[0].url.as_deref().unwrap()).unwrap();
        assert_eq!(other.blobs().unwrap().get(&handle).await.unwrap().unwrap().bytes(), PICTURE);
    }

    async fn media_that_landed_outlive_a_store_that_is_away_for_a_moment(kept: Kept) {
        let world = given_an_agent().with_the_model(Saying::parts(vec![picture()])).kept(kept).await;
        world.store.refuse_blobs(3);

        let report = world.run().await;

        assert_eq!((report.status, media(&report).len()), (Status::Completed, 1));
        assert_eq!(world.clock.slept(), [50, 200, 800].map(Duration::from_millis));
    }

    async fn a_store_that_refuses_media_leaves_the_reply_unsaid_and_the_run_goes_on_later(kept: Kept) {
        let world = given_an_agent().with_the_model(Saying::parts(vec![picture()])).kept(kept).await;
        world.store.refuse_blobs(4);

        let execution = world.start().await;
        let run = execution.run.clone();

        let error = execution.until_idle().await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
        assert_eq!(world.journal(&run).await.last(), Some(&"llm.call.started"));
        let report = world.resume(&run, Resume::default()).await.unwrap();
        assert_eq!((report.status, media(&report).len()), (Status::Completed, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_inline_media_is_kept_and_what_is_elsewhere_stays_there() {
    let elsewhere = Media::at("image/webp", "https://images.example/1.webp");
    let document = Part::Resource {
        uri: "file:///report.pdf".into(),
        name: None,
        media_type: None,
        text: None,
        data: Media::inline("", b"%PDF-1.7").data,
    };
    let sound = Part::Audio(Media::inline("audio/wav", b"RIFF"));
    let parts = vec![Part::text("Here."), sound, document, Part::Image(elsewhere.clone())];
    let world = given_an_agent().with_the_model(Saying::parts(parts)).ready().await;

    let report = world.run().await;

    let (sound, document) =
        (BlobHandle::for_bytes(b"RIFF").to_string(), BlobHandle::for_bytes(b"%PDF-1.7").to_string());
    let expected = [Media::at("audio/wav", &*sound), Media::at("application/octet-stream", &*document), elsewhere];
    assert_eq!(report.output.as_ref().unwrap().text, "Here.");
    assert_eq!(media(&report), expected);
    let said = replies(&world.runner, &report.run_id).await;
    let Part::Resource { uri, name, data, .. } = &said[0].content[2] else { panic!("{said:?}") };
    assert_eq!((uri, name.as_deref(), data), (&document, Some("file:///report.pdf"), &None));
}

#[tokio::test(start_paused = true)]
async fn the_providers_own_form_of_a_turn_goes_when_its_media_are_moved_and_only_then() {
    let state = ProviderState {
        wire: "any".into(),
        model: "any".into(),
        origin: None,
        items: vec![json!({"inline": "bytes"})],
    };
    for (part, kept) in [(picture(), None), (Part::text("Hello"), Some(state.clone()))] {
        let reply = Reply { content: vec![part], provider_state: Some(state.clone()), ..Reply::empty() };
        let world = given_an_agent().with_the_model(Saying::reply(reply)).ready().await;
        let report = world.run().await;
        assert_eq!(replies(&world.runner, &report.run_id).await[0].provider_state, kept);
    }
}

#[tokio::test(start_paused = true)]
async fn media_that_cannot_be_read_are_a_failed_attempt_that_tells_what_it_used() {
    let broken = Part::Image(Media { media_type: "image/png".into(), data: Some("<html>".into()), url: None });
    let usage = Usage { output_tokens: Some(1_000), ..Usage::default() };
    let world =
        given_an_agent().with_the_model(Saying::reply(Reply { content: vec![broken], usage, ..Reply::empty() }));
    let world = world.within(Limits { max_attempts: 1, ..Limits::default() }).ready().await;

    let report = world.run().await;

    let error = report.error.unwrap();
    assert_eq!(error.code, ErrorCode::ProviderInvalidResponse);
    assert_eq!(error.message, "the answer holds image/png that cannot be kept: it is not base64");
    assert_eq!(report.budget.usage.output_tokens, Some(1_000));
}

#[tokio::test(start_paused = true)]
async fn media_that_are_too_large_are_not_asked_for_again() {
    let huge = Part::Image(Media::inline("image/png", &vec![0; MAX_BLOB_BYTES + 1]));
    let world = given_an_agent().with_the_model(Saying::parts(vec![huge])).ready().await;

    let report = world.run().await;

    let error = report.error.unwrap();
    assert_eq!((error.code, error.retryable), (ErrorCode::ProviderInvalidResponse, false));
    assert!(error.message.ends_with("67108865 bytes are too many to be kept; the limit is 64 MiB"), "{error}");
    let asked = world.journal(&report.run_id).await.into_iter().filter(|name| *name == "llm.call.started").count();
    assert_eq!(asked, 1);
}

#[tokio::test(start_paused = true)]
async fn where_an_answer_is_checked_media_alone_are_none() {
    let media = json!([{"media_type": "image/png", "data": "iVBORw0KGgo="}]);
    let turns = json!([{"media": media}, {"say": "{\"done\": true}", "media": media}]);
    let world = given_an_agent().whose_model_says(turns).that_checks_answers().ready().await;

    let report = world.run().await;

    assert_eq!((report.status, report.budget.iterations), (Status::Completed, 2));
    let output = report.output.unwrap();
    assert_eq!((output.value, output.media.len()), (Some(json!({"done": true})), 1));
}

#[tokio::test(start_paused = true)]
async fn a_last_word_of_media_alone_is_the_answer_of_a_run_at_its_limit() {
    let turns = json!([
        {"calls": [{"name": "mcp_files_read"}]},
        {"media": [{"media_type": "image/png", "data": "iVBORw0KGgo="}]},
    ]);
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .whose_model_says(turns)
        .within(Limits { max_iterations: 1, ..Limits::default() })
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!((report.status, media(&report).len()), (Status::Incomplete, 1));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_begins_with_a_past_comes_to_use_the_media_in_it() {
    let world = given_an_agent().with_the_model(Saying::parts(vec![picture()])).ready().await;
    let first = world.run().await;
    assert_eq!(world.store.shared(), []);

    // Without a message the answer with its picture would not be part of the fork.
    let message = Some(Message::user("And?"));
    let fork = Fork { message, ..Fork::default() };
    let fork = world.runner.fork(&first.run_id, fork).await.unwrap().until_idle().await.unwrap();
    let history = first.messages.iter().map(|message| (**message).clone()).collect();
    let next = world.runner.execute(Request { history, ..world.request() }).await.unwrap();

    let handle = BlobHandle::for_bytes(PICTURE);
    assert_eq!(world.store.shared(), [(fork.run_id, vec![handle]), (next.run_id, vec![handle])]);
}

/// A store that keeps only journals.
pub(super) struct JournalsOnly(pub(super) MemoryStore);

#[async_trait]
impl RunStore for JournalsOnly {
    async fn append(&self, append: Append) -> Result<(), AppendError> {
        self.0.append(append).await
    }

    async fn load(&self, run: &RunId, from: u64) -> Result<Vec<JournalEntry>, StoreError> {
        self.0.load(run, from).await
    }

    async fn list(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        self.0.list(filter).await
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<RunId>, StoreError> {
        self.0.claim(claim).await
    }

    async fn orphaned(&self, limit: usize) -> Result<Vec<RunId>, StoreError> {
        self.0.orphaned(limit).await
    }

    async fn purge(&self, run: &RunId, at: u64, now: Timestamp) -> Result<Purged, StoreError> {
        self.0.purge(run, at, now).await
    }

    async fn renew(&self, owner: &NodeId, runs: &[RunId], lease: Duration) -> Result<(), StoreError> {
        self.0.renew(owner, runs, lease).await
    }
}

delegate_sessions!(JournalsOnly, 0);

#[tokio::test]
async fn where_nothing_else_is_kept_media_stay_in_the_journal_unless_another_place_is_named() {
    let agent = || Agent::new("painter", Arc::new(Saying::parts(vec![picture()])));
    let journals = || AgentRunner::builder().store(Arc::new(JournalsOnly(MemoryStore::new()))).agent(agent());

    let runner = journals().build().unwrap();
    let report = runner.execute(Request::new("painter", "A cat")).await.unwrap();
    assert_eq!(media(&report), [Media::inline("image/png", PICTURE)]);

    let blobs = Arc::new(MemoryStore::new());
    let runner = journals().blobs(blobs.clone()).build().unwrap();
    let report = runner.execute(Request::new("painter", "A cat")).await.unwrap();
    assert_eq!(media(&report), [Media::at("image/png", handle())]);
}
