//! Messages of a session that got no reply: the next run reads them with its own (issue 39, row 23).

use serde_json::{Value, json};
use toolgate::core::chat::Message;
use toolgate::core::chat::Part;
use toolgate::core::run::{Input, Status};
use toolgate::runner::{AgentRunner, Report, Request};

use super::world::{Kept, World, given_an_agent, on_every_store, say};

const STOPPED: &str = "[toolgate] The run was stopped before the model had answered.";

fn in_chat(request: Request) -> Request {
    Request { session: Some("chat".into()), ..request }
}

async fn say_to(runner: &AgentRunner, text: &str) -> Report {
    runner.execute(in_chat(Request::new("clerk", text))).await.unwrap()
}

fn failing(code: &str) -> Value {
    json!({"fail": {"code": code}})
}

/// The text parts of each message.
fn parts(report: &Report) -> Vec<Vec<&str>> {
    let contents = report.messages.iter().map(|message| &message.content);
    contents.map(|content| content.iter().filter_map(Part::as_text).collect()).collect()
}

async fn repaired(world: &World, answers: &[&str]) -> World {
    given_an_agent().whose_model_says(answers.iter().map(|text| say(text)).collect()).sharing(world).await
}

on_every_store! {
    async fn a_message_without_a_reply_is_read_with_the_next_one(kept: Kept) {
        let world = given_an_agent().whose_model_says(json!([failing("provider_unavailable")])).kept(kept).await;
        assert_eq!(say_to(&world.runner, "Book the table").await.status, Status::Failed);
        assert_eq!(say_to(&world.runner, "For two").await.status, Status::Failed);

        let world = repaired(&world, &["Booked."]).await;
        let third = say_to(&world.runner, "And hurry").await;

        assert_eq!(parts(&third), [vec!["Book the table", "For two", "And hurry"], vec!["Booked."]]);
        let messages = world.runner.session_messages(&Default::default(), &"chat".into()).await.unwrap();
        assert_eq!(messages.iter().map(|of| of.message.text()).collect::<Vec<_>>(),
            ["Book the table", "For two", "And hurry", "Booked."]);
    }

    async fn a_message_that_was_refused_is_replaced_by_a_note(kept: Kept) {
        let world = given_an_agent().whose_model_says(json!([failing("content_filter")])).kept(kept).await;
        assert_eq!(say_to(&world.runner, "something forbidden").await.status, Status::Failed);

        let world = repaired(&world, &["Hello."]).await;
        let second = say_to(&world.runner, "Hello").await;

        let note = "[toolgate] A message of the user stood here. It has no reply, because it was refused: content_filter";
        assert_eq!(parts(&second), [vec![note, "Hello"], vec!["Hello."]]);
    }

    async fn the_reply_that_a_cancellation_stops_is_read_by_the_next_run(kept: Kept) {
        let streaming = json!([{"say": "It is forty", "stream": {"fragments": 2}, "hang": true}]);
        let world = given_an_agent().whose_model_says(streaming).kept(kept).await;
        let execution = world.runner.start(in_chat(Request::new("clerk", "How much?"))).await.unwrap();
        let watch = world.runner.watch(&execution.run);
        while watch.reply_so_far().is_none_or(|reply| reply.text != "It is forty") {
            tokio::task::yield_now().await;
        }
        world.runner.cancel(&execution.run.clone(), Some("Esc".into()), None).await.unwrap();
        let first = execution.until_idle().await.unwrap();
        assert_eq!(parts(&first), [vec!["How much?"], vec!["It is forty"]]);

        let world = repaired(&world, &["Not asked.", "Sure."]).await;
        let second = say_to(&world.runner, "Shorter").await;

        let note = "[toolgate] The reply above was stopped before it was complete. The reason: Esc";
        assert_eq!(parts(&second), [vec!["How much?"], vec!["It is forty"], vec![note, "Shorter"], vec!["Sure."]]);
    }

    async fn a_message_to_a_run_that_was_cancelled_is_read_by_the_next_one(kept: Kept) {
        let turns = json!([{"calls": [{"name": "ext_order"}]}]);
        let world = given_an_agent().with_an_external_tool("order").whose_model_says(turns).kept(kept).await;
        let pending = world.runner.execute(in_chat(world.request())).await.unwrap();
        world.runner.message(&pending.run_id, Message::user("Make it tea")).await.unwrap();
        world.runner.cancel(&pending.run_id, None, None).await.unwrap();

        let world = repaired(&world, &["One.", "Tea it is."]).await;
        let second = say_to(&world.runner, "Now").await;

        assert_eq!(parts(&second).iter().rev().nth(1), Some(&vec!["Make it tea", STOPPED, "Now"]), "{second:?}");
        assert!(world.runner.resume_run(&second.run_id, Input::Resume(Default::default()), None).await.is_ok());
    }
}
