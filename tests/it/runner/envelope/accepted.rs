//! Accepted envelopes: elsewhere, later, once.

use serde_json::{Value, json};
use toolgate::core::chat::Message;
use toolgate::core::run::{Channel, Event, ResumeError, Status};
use toolgate::core::tool::{FailureKind, McpTool, Outcome};
use toolgate::runner::envelope::{EnvelopeError, EnvelopeKeys};
use toolgate::runner::{Fork, Report, Request, Resume, Retry, RunnerError};

use super::super::world::{answer_to, decisions, no, results, said, say, yes};
use super::nodes::{HOUR, PRIVATE, PUBLIC, World, a_clerk, ed25519, keys, sent};
use crate::fakes::tool;

fn orders() -> World {
    World::of(a_clerk().whose_model_says(json!([
        {"calls": [{"name": "ext_order", "arguments": {"item": "tea"}}]},
        {"say": "It says: {{last_result}}."},
    ])))
}

fn deletes() -> World {
    World::of(a_clerk().whose_model_says(json!([deletion("a"), say("Done.")])))
}

fn deletion(path: &str) -> Value {
    json!({"calls": [{"name": "mcp_files_delete", "arguments": {"path": path}}]})
}

fn tea() -> Resume {
    results([("call_1_1", json!("ordered"))])
}

#[tokio::test(start_paused = true)]
async fn a_node_that_never_stored_the_run_resumes_it_hours_later() {
    let world = orders();
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    let envelope = sent(&world.handed_out(&here).await);
    tokio::time::advance(HOUR * 5).await;

    let report = elsewhere.resume(&envelope, tea()).await;

    assert_eq!((report.status, report.output.unwrap().text.as_str()), (Status::Completed, "It says: ordered."));
    assert_eq!(report.run_id, envelope.run_id);
    let (before, after) = (here.facts(&envelope).await, elsewhere.facts(&envelope).await);
    assert_eq!(after[..before.len()], before, "the past is the same, and stands there once");
    let later = toolgate::ports::RunStore::load(&*elsewhere.store, &envelope.run_id, 0).await.unwrap();
    let times: Vec<_> = later.iter().map(|recorded| recorded.at).collect();
    assert!(times[before.len()].duration_since(times[0]).as_hours() >= 5, "facts keep the time at which they happened");
}

#[tokio::test(start_paused = true)]
async fn an_envelope_shows_the_pending_items() {
    let world = orders();
    let node = world.node(keys(&["k1"]));
    let envelope = world.handed_out(&node).await;

    let report = node.runner.report(&envelope.run_id).await.unwrap();

    assert_eq!(envelope.messages, report.messages);
    assert_eq!((envelope.pending, envelope.tool_interactions), (report.pending, 1));
}

#[tokio::test(start_paused = true)]
async fn an_envelope_hides_the_operators_data() {
    use base64::Engine;
    let world = orders();
    let node =
        world.node_where(Default::default(), keys(&["k1"]), |agent| agent.instructions = "Keep it secret.".into());
    let envelope = world.handed_out(&node).await;

    let parts: Vec<Vec<u8>> = envelope.token.split('.').skip(2).map(decoded).collect();

    assert_eq!(parts.len(), 3);
    let shows = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(shows(&parts[0], "expires_at"), "the claims are readable");
    for part in &parts {
        assert!(!shows(part, "Keep it secret.") && !shows(part, "mcp_files_delete"));
    }

    fn decoded(part: &str) -> Vec<u8> {
        base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(part).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_not_pending_is_not_handed_out() {
    let world = orders();
    let node = world.node(keys(&["k1"]));
    let envelope = world.handed_out(&node).await;
    node.resume(&envelope, tea()).await;

    let refused = node.runner.export(&envelope.run_id).await.unwrap_err();

    let status = "completed";
    assert_eq!(refused, RunnerError::Envelope(EnvelopeError::NotPending { run: envelope.run_id, status }));
}

#[tokio::test(start_paused = true)]
async fn a_run_may_come_back_to_a_node_that_knows_its_beginning() {
    let two = json!([deletion("a"), deletion("b"), say("Done.")]);
    let world = World::of(a_clerk().whose_model_says(two));
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    let first = world.handed_out(&here).await;
    let waiting = elsewhere.resume(&first, decisions([("call_1_1", yes())])).await;
    let second = elsewhere.runner.export(&waiting.run_id).await.unwrap();

    let done = here.resume(&second, decisions([("call_2_1", yes())])).await;

    assert_eq!((done.status, world.servers.calls()), (Status::Completed, vec!["call_1_1".into(), "call_2_1".into()]));
}

#[tokio::test(start_paused = true)]
async fn keys_are_rotated_without_losing_what_was_signed_before() {
    let world = deletes();
    let (before, after) = (world.node(keys(&["k1"])), world.node(keys(&["k2", "k1"])));
    let envelope = world.handed_out(&before).await;

    let report = after.resume(&envelope, decisions([("call_1_1", yes())])).await;

    assert_eq!(report.status, Status::Completed);
    let fresh = world.handed_out(&after).await;
    assert!(fresh.token.starts_with("tge1.k2."), "what is handed out now is signed with the new key");
    world.servers.forgive_repeats_of("delete");
    let refused = before.refusal(&fresh, decisions([("call_1_1", yes())])).await;
    assert_eq!(refused, EnvelopeError::UnknownKey);
}

#[tokio::test(start_paused = true)]
async fn a_node_with_the_public_key_resumes_but_cannot_export() {
    let world = orders();
    let private = EnvelopeKeys::new("ed", [("ed".to_owned(), ed25519(PRIVATE))]).unwrap();
    let own = [("own".to_owned(), super::nodes::secret("own")), ("ed".to_owned(), ed25519(PUBLIC))];
    let public = EnvelopeKeys::new("own", own).unwrap();
    let (signs, verifies) = (world.node(private), world.node(public));
    let envelope = world.handed_out(&signs).await;

    let report = verifies.resume(&envelope, tea()).await;

    assert_eq!(report.status, Status::Completed);
    let refused = EnvelopeKeys::new("ed", [("ed".to_owned(), ed25519(PUBLIC))]).unwrap_err();
    assert!(refused.to_string().contains("public key"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn the_same_resume_repeated_changes_nothing_and_reports_the_run() {
    let world = deletes();
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    let envelope = world.handed_out(&here).await;
    let once = elsewhere.resume(&envelope, decisions([("call_1_1", yes())])).await;

    let twice = elsewhere.resume(&envelope, decisions([("call_1_1", yes())])).await;

    assert_eq!((once.version, once.messages), (twice.version, twice.messages));
    assert_eq!(world.servers.calls(), ["call_1_1"]);
}

#[tokio::test(start_paused = true)]
async fn an_envelope_that_was_used_is_spent_for_anything_else() {
    let world = deletes();
    let node = world.node(keys(&["k1"]));
    let envelope = world.handed_out(&node).await;
    let done = node.resume(&envelope, decisions([("call_1_1", no("not today"))])).await;

    for other in [decisions([("call_1_1", yes())]), Resume::default()] {
        let refused = node.refusal(&envelope, other).await;
        assert_eq!(refused, EnvelopeError::Spent { run: envelope.run_id.clone() });
    }

    let after = node.runner.report(&envelope.run_id).await.unwrap();
    assert_eq!((after.version, world.servers.calls()), (done.version, vec![]));
}

#[tokio::test(start_paused = true)]
async fn partial_answers_spend_it_and_the_rest_needs_a_new_one() {
    let two = json!([{"calls": [{"name": "ext_order"}, {"name": "ext_order"}]}, say("Done.")]);
    let world = World::of(a_clerk().whose_model_says(two));
    let node = world.node(keys(&["k1"]));
    let envelope = world.handed_out(&node).await;
    let half = node.resume(&envelope, tea().partial()).await;
    let rest = || results([("call_1_2", json!("ordered"))]);

    let refused = node.refusal(&envelope, rest()).await;

    assert_eq!(refused, EnvelopeError::Spent { run: envelope.run_id.clone() });
    let fresh = node.runner.export(&half.run_id).await.unwrap();
    assert_eq!(node.resume(&fresh, rest()).await.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn two_nodes_with_a_common_store_spend_it_once() {
    let world = deletes();
    let here = world.node(keys(&["k1"]));
    let envelope = world.handed_out(&here).await;
    let one = world.node(keys(&["k1"]));
    let other = world.node_on(one.store.clone(), keys(&["k1"]));

    let (yes, no) = tokio::join!(
        one.runner.resume_from(&envelope, decisions([("call_1_1", yes())])),
        other.runner.resume_from(&envelope, decisions([("call_1_1", no("not today"))])),
    );

    let (won, lost) = match (yes, no) {
        (Ok(report), Err(error)) | (Err(error), Ok(report)) => (report, error),
        other => panic!("one of the two is taken: {other:?}"),
    };
    assert_eq!(lost, RunnerError::Envelope(EnvelopeError::Spent { run: envelope.run_id.clone() }));
    let facts = one.facts(&envelope).await;
    let decided = facts.iter().filter(|fact| matches!(fact, Event::ApprovalDecided { .. })).count();
    assert_eq!((won.status, decided), (Status::Completed, 1));
    assert_eq!(facts.iter().filter(|fact| matches!(fact, Event::Started(_))).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn two_nodes_with_the_same_input_both_receive_the_report() {
    let world = deletes();
    let here = world.node(keys(&["k1"]));
    let envelope = world.handed_out(&here).await;
    let one = world.node(keys(&["k1"]));
    let other = world.node_on(one.store.clone(), keys(&["k1"]));

    let (first, second) = tokio::join!(
        one.resume(&envelope, decisions([("call_1_1", yes())])),
        other.resume(&envelope, decisions([("call_1_1", yes())])),
    );

    assert_eq!((first.status, second.status), (Status::Completed, Status::Completed));
    assert_eq!(world.servers.calls(), ["call_1_1"]);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_answer_leaves_no_trace_on_a_new_node() {
    let world = orders();
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    let envelope = world.handed_out(&here).await;

    let refused = elsewhere.runner.resume_from(&envelope, decisions([("call_1_1", yes())])).await.unwrap_err();

    assert!(
        matches!(&refused, RunnerError::Refused(refusals) if matches!(&refusals[..], [ResumeError::WrongKind { .. }]))
    );
    assert!(elsewhere.has_never_seen(&envelope).await);
    assert_eq!(elsewhere.resume(&envelope, tea()).await.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_the_agent_takes_nothing() {
    let world = orders();
    let here = world.node(keys(&["k1"]));
    let envelope = world.handed_out(&here).await;
    let elsewhere = world.node_where(Default::default(), keys(&["k1"]), |agent| agent.name = "porter".into());

    let refused = elsewhere.runner.resume_from(&envelope, tea()).await.unwrap_err();

    assert!(matches!(refused, RunnerError::NoSuchAgent { .. }), "{refused}");
    assert!(elsewhere.has_never_seen(&envelope).await);
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_bound_to_the_tool_that_the_envelope_showed() {
    let world = deletes();
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    let envelope = world.handed_out(&here).await;
    world.servers.tool_access("files", McpTool { description: "sends it away".into(), ..tool("delete") });

    let again = elsewhere.resume(&envelope, decisions([("call_1_1", yes())])).await;

    assert_eq!((again.status, world.servers.calls()), (Status::Pending, vec![]));
    let fresh = elsewhere.runner.export(&again.run_id).await.unwrap();
    let done = elsewhere.resume(&fresh, decisions([("call_1_1", yes())])).await;
    assert_eq!((done.status, world.servers.calls()), (Status::Completed, vec!["call_1_1".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_rejected_and_does_not_spend_the_envelope() {
    let world = orders().with(serde_json::from_value(json!({"name": "order", "deadline_s": 60})).unwrap());
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    let envelope = world.handed_out(&here).await;
    tokio::time::advance(HOUR).await;

    let refused = elsewhere.runner.resume_from(&envelope, tea()).await.unwrap_err();

    assert_eq!(refused, RunnerError::Refused(vec![ResumeError::TooLate { call_id: "call_1_1".into() }]));
    assert!(elsewhere.has_never_seen(&envelope).await, "nothing goes on here that may still wait elsewhere");
    let report = elsewhere.resume(&envelope, Resume::default()).await;
    assert_eq!(report.status, Status::Completed);
    assert!(answer_to(&report, "call_1_1").contains("in time"), "{}", answer_to(&report, "call_1_1"));
}

#[tokio::test(start_paused = true)]
async fn an_extended_deadline_does_not_spend_it() {
    let world = orders().with(serde_json::from_value(json!({"name": "order", "deadline_s": 60})).unwrap());
    let node = world.node(keys(&["k1"]));
    let envelope = world.handed_out(&node).await;
    let until = envelope.pending[0].expires_at().unwrap() + HOUR;
    node.runner.extend(&envelope.run_id, "call_1_1".into(), until, "ann", Channel::Api).await.unwrap();
    tokio::time::advance(HOUR / 2).await;

    let report = node.resume(&envelope, tea()).await;

    assert_eq!(report.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_stored_result_can_be_read_on_the_next_node() {
    let long = "long ".repeat(40_000);
    let world = World::of(a_clerk().whose_model_says(json!([
        {"calls": [{"name": "mcp_files_read"}]},
        deletion("a"),
        say("Done."),
    ])));
    let output = toolgate::core::tool::ToolOutput::text(long.clone());
    world.servers.answer("read", Outcome::Returned(output));
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    let envelope = world.handed_out(&here).await;
    let kept = here.runner.load(&envelope.run_id).await.unwrap().blobs().iter().next().copied().unwrap();

    elsewhere.resume(&envelope, decisions([("call_2_1", yes())])).await;

    let blob = elsewhere.runner.blobs().unwrap().get(&kept).await.unwrap().unwrap();
    assert_eq!(String::from_utf8(blob.into_bytes()).unwrap(), long);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_on_the_next_node_is_an_answer_like_any_other() {
    let world = deletes();
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    let envelope = world.handed_out(&here).await;
    world.servers.answer("delete", Outcome::failed(FailureKind::Unavailable, "gone"));

    let report = elsewhere.resume(&envelope, decisions([("call_1_1", yes())])).await;

    assert_eq!(report.status, Status::Completed);
    assert!(answer_to(&report, "call_1_1").contains("gone"));
}

/// A conversation whose second run waits for an order.
fn talks() -> World {
    World::of(a_clerk().whose_model_says(json!([
        say("One."),
        {"calls": [{"name": "ext_order"}]},
        {"say": "It says: {{last_result}}."},
        say("Four."),
    ])))
}

/// A message of that conversation.
fn in_chat(world: &World, text: &str) -> Request {
    Request { session: Some("chat".into()), input: Message::user(text), ..world.request() }
}

fn spoken(report: &Report) -> Vec<String> {
    said(report).into_iter().filter(|line| !line.contains("call")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_of_a_session_brings_its_conversation_to_the_next_node() {
    let world = talks();
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    here.runner.execute(in_chat(&world, "First")).await.unwrap();
    let second = here.runner.execute(in_chat(&world, "Second")).await.unwrap();
    let envelope = here.runner.export(&second.run_id).await.unwrap();

    let done = elsewhere.resume(&envelope, results([("call_2_1", json!("tea"))])).await;
    let third = elsewhere.runner.execute(in_chat(&world, "Third")).await.unwrap();

    assert_eq!(done.status, Status::Completed, "{:?}", done.error);
    assert_eq!(spoken(&done)[..3], ["user: First", "model: One.", "user: Second"]);
    assert_eq!(third.messages[..done.messages.len()], done.messages);
    assert_eq!(spoken(&third).last().map(String::as_str), Some("model: Four."));
}

#[tokio::test(start_paused = true)]
async fn a_retry_takes_the_place_of_its_source_on_the_next_node() {
    let world = talks();
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    here.runner.execute(in_chat(&world, "First")).await.unwrap();
    let second = here.runner.execute(in_chat(&world, "Second")).await.unwrap();
    let envelope = here.runner.export(&second.run_id).await.unwrap();
    elsewhere.resume(&envelope, results([("call_2_1", json!("tea"))])).await;
    here.runner.cancel(&second.run_id, None, None).await.unwrap();
    let retried = here.runner.retry(&second.run_id, Retry::default()).await.unwrap().until_idle().await.unwrap();
    let envelope = here.runner.export(&retried.run_id).await.unwrap();

    let done = elsewhere.resume(&envelope, results([("call_2_1", json!("coffee"))])).await;
    let third = elsewhere.runner.execute(in_chat(&world, "Third")).await.unwrap();

    assert_eq!(done.output.as_ref().unwrap().text, "It says: coffee.");
    assert_eq!(third.messages[..done.messages.len()], done.messages);
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_of_a_session_brings_its_conversation_too() {
    let world = talks();
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    here.runner.execute(in_chat(&world, "First")).await.unwrap();
    let second = here.runner.execute(in_chat(&world, "Second")).await.unwrap();
    let fork = here.runner.fork(&second.run_id, Fork::default()).await.unwrap().until_idle().await.unwrap();
    let envelope = here.runner.export(&fork.run_id).await.unwrap();

    let done = elsewhere.resume(&envelope, results([("call_2_1", json!("tea"))])).await;

    assert_eq!(spoken(&done)[..3], ["user: First", "model: One.", "user: Second"]);
    let again = elsewhere.runner.report(&fork.run_id).await.unwrap();
    assert_eq!(again.messages, done.messages);
}

#[tokio::test(start_paused = true)]
async fn row_4_23_an_envelope_of_a_paused_run_is_continued_elsewhere() {
    let world = orders();
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    let run = world.handed_out(&here).await.run_id;
    here.runner.pause(&run, None, "ann", Channel::Api, None).await.unwrap();
    let envelope = sent(&here.runner.export(&run).await.unwrap());

    let answered = tea().and_continue("ann", Channel::Api);
    let report = elsewhere.resume(&envelope, answered.clone()).await;

    assert_eq!((report.status, report.output.unwrap().text.as_str()), (Status::Completed, "It says: ordered."));
    let again = elsewhere.resume(&envelope, answered).await;
    assert_eq!(again.version, report.version, "the same envelope is accepted once");
}
