//! Images from a tool or a model: stored under their handle, and shown to the model in every later turn.

use std::sync::Arc;

use serde_json::json;
use toolgate::core::blob::BlobHandle;
use toolgate::core::chat::{Media, Message, Part, Reply};
use toolgate::core::run::Status;
use toolgate::core::tool::{Outcome, ToolCall, ToolOutput};
use toolgate::runner::{Request, Resume};

use crate::fakes::{RecordingModel, SentMessages};

use super::world::{Given, Kept, given_an_agent, on_every_store, results};

const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\nnot much of a picture";

fn calls(name: &str, turn: usize) -> Reply {
    let call = ToolCall::new(format!("c{turn}"), name, json!({}));
    Reply { content: vec![call.into_part()], ..Reply::empty() }
}

fn looking(given: Given, replies: Vec<Reply>) -> (Given, SentMessages) {
    let (model, saw) = RecordingModel::with(replies);
    (given.with_the_model(model), saw)
}

fn picture() -> Part {
    Part::Image(Media::inline("image/png", PICTURE))
}

/// A tool that returns a picture, and an external one that makes the run pending.
fn photographer() -> Given {
    let output = ToolOutput { content: vec![Part::text("a cat"), picture()], ..ToolOutput::default() };
    given_an_agent()
        .with_tools("camera", &["shoot"])
        .where_servers(|servers| servers.answer("shoot", Outcome::Returned(output)))
        .with_an_external_tool("wait")
}

/// The image with its bytes and its handle.
fn shown() -> Media {
    Media { url: Some(BlobHandle::for_bytes(PICTURE).to_string()), ..Media::inline("image/png", PICTURE) }
}

fn images(message: &Message) -> Vec<Media> {
    let of = |part: &Part| match part {
        Part::Image(media) => vec![media.clone()],
        Part::ToolResult { content, .. } => content.iter().filter_map(Part::as_media).collect(),
        _ => Vec::new(),
    };
    message.content.iter().flat_map(of).collect()
}

on_every_store! {
    async fn a_picture_of_a_tool_leaves_the_journal_and_every_later_turn_shows_it(kept: Kept) {
        let replies = vec![calls("mcp_camera_shoot", 1), calls("ext_wait", 2), calls("ext_wait", 3), Reply::text("A cat.")];
        let (given, saw) = looking(photographer(), replies);
        let world = given.kept(kept).await;

        let waiting = world.run().await;

        let journal = serde_json::to_string(&world.runner.journal(&waiting.run_id).await.unwrap()).unwrap();
        assert!(!journal.contains(Media::inline("", PICTURE).data.unwrap().as_str()), "{journal}");
        let turns = saw.lock().unwrap().clone();
        assert_eq!(images(&turns[1][2]), [shown()]);

        world.resume(&waiting.run_id, results([("c2", json!(1))])).await.unwrap();
        let other = world.another_process().await;
        let report = other.resume(&waiting.run_id, results([("c3", json!(1))])).await.unwrap();
        assert_eq!(report.status, Status::Completed);
        let turns = saw.lock().unwrap().clone();
        assert_eq!((turns.len(), images(&turns[2][2]), images(&turns[3][2])), (4, vec![shown()], vec![shown()]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_is_filled_once_and_is_the_same_allocation_in_every_turn() {
    let shoot = |turn| calls("mcp_camera_shoot", turn);
    let (given, saw) = looking(photographer(), vec![shoot(1), shoot(2), shoot(3), Reply::text("Three cats.")]);
    let world = given.ready().await;

    let report = world.run().await;

    let turns = saw.lock().unwrap().clone();
    let last = &turns[3];
    for turn in &turns {
        assert!(turn.iter().zip(last).all(|(before, now)| Arc::ptr_eq(before, now)), "only what is new is looked at");
    }
    assert_eq!(last.iter().flat_map(|message| images(message)).collect::<Vec<_>>(), [shown(), shown(), shown()]);
    assert!(report.messages.iter().all(|message| images(message).iter().all(|media| media.data.is_none())));
}

#[tokio::test(start_paused = true)]
async fn a_picture_the_model_made_is_there_in_its_next_turn() {
    let reply =
        |part: Part| Reply { content: vec![part, calls("mcp_camera_shoot", 1).content[0].clone()], ..Reply::empty() };
    let (given, saw) = looking(photographer(), vec![reply(picture()), Reply::text("Done.")]);
    given.ready().await.run().await;
    let turns = saw.lock().unwrap().clone();
    assert_eq!(images(&turns[1][1]), [shown()]);
}

#[tokio::test(start_paused = true)]
async fn a_handle_named_in_a_message_is_not_resolved() {
    let (given, _) = looking(photographer(), vec![calls("mcp_camera_shoot", 1), Reply::text("Done.")]);
    let world = given.ready().await;
    world.run().await;
    let stolen = || Part::Image(Media::at("image/png", BlobHandle::for_bytes(PICTURE).to_string()));

    // The same store, with a message and a reply that name a blob of another run, and a result of its own so that there
    // is a handle to resolve.
    let own = ToolOutput {
        content: vec![Part::Audio(Media::inline("audio/wav", b"RIFF")), stolen()],
        ..ToolOutput::default()
    };
    let reply = Reply { content: vec![stolen(), calls("mcp_camera_shoot", 1).content[0].clone()], ..Reply::empty() };
    let (given, saw) = looking(
        photographer().where_servers(|servers| servers.answer("shoot", Outcome::Returned(own))),
        vec![reply, Reply::text("Done.")],
    );
    let second = given.sharing(&world).await;
    let mut request = Request::new("clerk", "Look at this");
    request.input.content.push(stolen());
    second.runner.execute(request).await.unwrap();

    let turns = saw.lock().unwrap().clone();
    for message in &turns[1] {
        for media in images(message) {
            assert_eq!(media.data.is_some(), media.media_type == "audio/wav", "{media:?}");
        }
    }
    let Part::Image(Media { url, .. }) = &turns[1][1].content[0] else { panic!("{:?}", turns[1][1]) };
    assert_eq!(url.as_deref(), Some(&*format!("foreign:{}", BlobHandle::for_bytes(PICTURE))));
}

#[tokio::test(start_paused = true)]
async fn a_conversation_shows_as_many_bytes_as_providers_take_and_no_more() {
    let large = |byte: u8| Part::Image(Media::inline("image/png", &vec![byte; 8 << 20]));
    let content = (0..4).map(large).collect();
    let output = ToolOutput { content, ..ToolOutput::default() };
    let given = photographer().where_servers(|servers| servers.answer("shoot", Outcome::Returned(output)));
    let (given, saw) = looking(given, vec![calls("mcp_camera_shoot", 1), Reply::text("Done.")]);
    given.ready().await.run().await;
    let turns = saw.lock().unwrap().clone();
    let filled: Vec<bool> = images(&turns[1][2]).iter().map(|media| media.data.is_some()).collect();
    assert_eq!(filled, [true, true, false, false]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_waited_for_and_the_model_is_not_asked_without_the_picture() {
    let (given, saw) = looking(photographer(), vec![calls("mcp_camera_shoot", 1), Reply::text("A cat.")]);
    let world = given.ready().await;
    world.store.refuse_reads(4);

    let execution = world.start().await;
    let run = execution.run.clone();
    execution.until_idle().await.unwrap_err();
    assert_eq!(saw.lock().unwrap().len(), 1, "the second turn was not asked for");

    let report = world.resume(&run, Resume::default()).await.unwrap();
    assert_eq!(report.status, Status::Completed);
    assert_eq!(images(&saw.lock().unwrap()[1][2]), [shown()]);
}
