//! Envelopes of runs that wait for an elicitation, a task, or an injected server.

use std::sync::Arc;

use serde_json::json;
use toolgate::core::run::{Channel, ElicitationAnswer, Event, PendingItem, Status};
use toolgate::core::tool::{
    CallReply, ElicitationRequest, ElicitationResponse, Outcome, Question, TaskHandle, ToolOutput,
};
use toolgate::runner::{Resume, RunServers, RunnerError};

use super::super::world::{answer_to, given_an_agent, results, say};
use super::nodes::{HOUR, World, keys, order, sent};
use crate::fakes::{FakeServers, tool};

fn done(text: &str) -> CallReply {
    Outcome::Returned(ToolOutput::text(text)).into()
}

fn a_print(replies: impl IntoIterator<Item = CallReply>) -> World {
    let given = given_an_agent().with_tools("shop", &["print"]);
    let given = given.where_servers(|servers| servers.reply("print", replies));
    World::of(given.whose_model_says(json!([{"calls": [{"name": "mcp_shop_print"}]}, say("Done.")])))
}

#[tokio::test(start_paused = true)]
async fn a_servers_question_is_answered_on_a_node_that_has_never_seen_the_run() {
    let form = Question::Form { message: "Which size?".into(), schema: json!({"type": "object"}) };
    let questions = [("size".to_owned(), form)].into();
    let asks =
        ElicitationRequest { questions, state: Some("s1".into()), task: None, restarts: false, interrupted: false };
    let world = a_print([CallReply::NeedsInput(asks), done("printed")]);
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    let envelope = sent(&world.handed_out(&here).await);
    assert!(matches!(&envelope.pending[..], [PendingItem::Input(_)]), "{:?}", envelope.pending);

    let reactions =
        [("size".to_owned(), ElicitationResponse::accept(json!({"size": 7}).as_object().unwrap().clone()))].into();
    let given = ElicitationAnswer { reactions, by: "ann".into(), via: Channel::Api, repeat: false };
    let answers = || Resume::default().with("call_1_1", given.clone());
    let report = elsewhere.resume(&envelope, answers()).await;
    let again = elsewhere.resume(&envelope, answers()).await;

    assert_eq!((report.status, answer_to(&report, "call_1_1")), (Status::Completed, "printed".into()));
    assert_eq!(again.version, report.version, "the very same answers once more");
    let [told] = &world.servers.told()[..] else { panic!("told once: {:?}", world.servers.told()) };
    assert_eq!((told.needed.state.as_deref(), told.given.via), (Some("s1"), Channel::Api));
}

#[tokio::test(start_paused = true)]
async fn a_task_is_asked_about_by_the_node_that_takes_the_run() {
    let task = TaskHandle { id: "task_7".into(), message: None, poll_ms: None, ttl_ms: None };
    let world = a_print([CallReply::Task(task)]);
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    let under_way = TaskHandle { id: "task_7".into(), message: Some("half".into()), poll_ms: None, ttl_ms: None };
    world.servers.say_of_task("task_7", [Ok(CallReply::Task(under_way)), Ok(done("printed"))]);
    let envelope = sent(&world.handed_out(&here).await);
    assert!(matches!(&envelope.pending[..], [PendingItem::Task(_)]), "{:?}", envelope.pending);
    tokio::time::advance(HOUR).await;

    let still = elsewhere.resume(&envelope, Resume::default()).await;
    assert!(matches!(&still.pending[..], [PendingItem::Task(_)]), "{:?}", still.pending);
    let report = elsewhere.resume(&envelope, Resume::default()).await;

    assert_eq!((report.status, answer_to(&report, "call_1_1")), (Status::Completed, "printed".into()));
    assert_eq!(world.servers.calls(), ["call_1_1"], "the call is not made again");
}

#[tokio::test(start_paused = true)]
async fn a_run_with_a_server_of_its_own_is_taken_where_that_server_is_brought() {
    let own = Arc::new(FakeServers::default());
    own.tool_access("desk", tool("look"));
    let turns = json!([{"calls": [{"name": "ext_order"}]}, {"calls": [{"name": "mcp_desk_look"}]}, say("Done.")]);
    let world = World::of(given_an_agent().whose_model_says(turns)).with(order());
    let (here, elsewhere) = (world.node(keys(&["k1"])), world.node(keys(&["k1"])));
    let request = world.request().inject("desk", own.clone());
    let waiting = here.runner.execute(request).await.unwrap();
    let envelope = sent(&here.runner.export(&waiting.run_id).await.unwrap());
    let tea = || results([("call_1_1", json!("ordered"))]);

    let refused = elsewhere.runner.resume_from(&envelope, tea()).await.unwrap_err();
    let missing = RunnerError::InjectionMissing { run: waiting.run_id.clone(), server: "desk".into() };
    assert_eq!(refused, missing);
    assert!(elsewhere.has_never_seen(&envelope).await);

    elsewhere.runner.inject(&envelope.run_id, RunServers::new().and("desk", own.clone()));
    let report = elsewhere.resume(&envelope, tea()).await;
    assert_eq!((report.status, own.calls().len()), (Status::Completed, 1));
    assert!(elsewhere.facts(&envelope).await.iter().any(|fact| matches!(fact, Event::CallsStarted { .. })));
}
