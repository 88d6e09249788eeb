//! A stream that begins in the middle of a reply has every character of it, once.

use std::time::Duration;

use serde_json::Value;
use toolgate::core::id::RunId;
use toolgate::core::lifecycle::Delta;
use toolgate::core::run::Channel;
use toolgate::service::{FollowSettings, Operator, StreamItem, Tail};

use super::POLL;
use crate::fakes::{StreamControl, StreamingModel};
use crate::runner::world::{World, given_an_agent};

fn text(text: &str) -> Delta {
    Delta::Text { text: text.into() }
}

fn reasoning(text: &str) -> Delta {
    Delta::Reasoning { text: text.into() }
}

async fn streaming(attempts: Vec<Vec<Delta>>) -> (World, StreamControl) {
    let (model, control) = StreamingModel::with(attempts);
    (given_an_agent().with_the_model(model).ready().await, control)
}

/// A client of the stream. It concatenates the fragments as the documentation says.
struct Client {
    tail: Tail,
    events: Vec<Value>,
    reply: [String; 2],
    next: [u64; 2],
    fragments: usize,
}

impl Client {
    fn join(world: &World, run: &RunId) -> Self {
        let operator = Operator::new(world.runner.clone(), Channel::CommandLine);
        let tail = operator.follow(run, None, None, FollowSettings::polling_every(POLL));
        Self { tail, events: Vec::new(), reply: Default::default(), next: [0, 0], fragments: 0 }
    }

    /// Reads what there is.
    async fn read(&mut self) {
        while let Ok(item) = tokio::time::timeout(Duration::from_millis(5), self.tail.next()).await {
            let Some(StreamItem::Event(event)) = item.unwrap() else { return };
            let event = serde_json::to_value(&*event).unwrap();
            let kind = match event["type"].as_str().unwrap() {
                "llm.text.delta" => 0,
                "llm.reasoning.delta" => 1,
                _ => {
                    self.events.push(event);
                    continue;
                }
            };
            let (index, said) = (event["index"].as_u64().unwrap(), event["text"].as_str().unwrap());
            if index == 0 {
                (self.reply[kind], self.next[kind]) = (String::new(), 0);
            }
            assert_eq!(index, self.next[kind], "a gap or a repetition: {event}, after {:?}", self.reply);
            self.reply[kind].push_str(said);
            self.next[kind] = self.reply[kind].chars().count() as u64;
            assert_eq!(event["next_index"], self.next[kind], "{event}");
            self.fragments += 1;
        }
    }

    fn names(&self) -> Vec<&str> {
        self.events.iter().map(|event| event["type"].as_str().unwrap()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_joins_at_any_fragment_has_the_whole_reply() {
    let fragments = vec![
        reasoning("A gréeting"),
        text("Grüß "),
        text("Gott"),
        reasoning("… said"),
        text(" 🦀"),
        text(""),
        text("! "),
        text("日本"),
    ];
    let whole = ["Grüß Gott 🦀! 日本", "A gréeting… said"];
    let (world, mut control) = streaming(vec![fragments.clone()]).await;
    let run = world.start().await.run;
    // A client of each position that reads at once, and one that reads when the last fragment was streamed.
    let (mut eager, mut lazy) = (Vec::new(), Vec::new());
    for streamed in 0..=fragments.len() {
        control.step(usize::from(streamed > 0), streamed).await;
        for client in &mut eager {
            Client::read(client).await;
        }
        eager.push(Client::join(&world, &run));
        lazy.push(Client::join(&world, &run));
        let mut read_once = Client::join(&world, &run);
        read_once.read().await;
        lazy.push(read_once);
    }

    for client in eager.iter_mut().chain(&mut lazy) {
        client.read().await;
    }

    for (position, client) in eager.iter().chain(&lazy).enumerate() {
        assert_eq!(client.reply, whole, "client {position}");
    }
    assert_eq!(eager[0].fragments, fragments.len(), "the first client has each fragment as it came");
    assert_eq!(eager.last().unwrap().fragments, 2, "the last client has one fragment of each kind");
    control.step(1, fragments.len()).await;
    for client in eager.iter_mut().chain(&mut lazy) {
        client.read().await;
        assert_eq!(client.reply, whole);
        assert_eq!(client.names()[client.events.len() - 2..], ["llm.call.completed", "execution.completed"]);
        assert_eq!(client.events[client.events.len() - 2]["text"], whole[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_misses_fragments_receives_them_as_one() {
    let fragments: Vec<Delta> = (0..5000).map(|number| text(&format!("{number} "))).collect();
    let whole: String = (0..5000).map(|number| format!("{number} ")).collect();
    let (world, mut control) = streaming(vec![fragments]).await;
    let run = world.start().await.run;
    control.step(1, 1).await;
    let mut client = Client::join(&world, &run);
    client.read().await;
    control.step(4999, 5000).await;

    client.read().await;

    assert_eq!(client.reply[0], whole);
    assert!(client.fragments < 5000, "nothing was missed: {}", client.fragments);
}

#[tokio::test(start_paused = true)]
async fn the_text_of_a_failed_attempt_is_not_part_of_the_next_one() {
    let attempts = vec![vec![text("Hel")], vec![text("Good "), text("day.")]];
    let (world, mut control) = streaming(attempts).await;
    let run = world.start().await.run;
    control.step(1, 1).await;
    let mut first = Client::join(&world, &run);
    first.read().await;
    assert_eq!(first.reply[0], "Hel");

    control.step(2, 2).await;
    let mut second = Client::join(&world, &run);
    first.read().await;
    second.read().await;
    control.step(1, 3).await;
    for client in [&mut first, &mut second] {
        client.read().await;
        assert_eq!((client.reply[0].as_str(), client.next[0]), ("Good day.", 9));
    }
    assert_eq!((first.fragments, second.fragments), (3, 2));
    control.step(1, 3).await;
    second.read().await;
    assert_eq!(second.names().last(), Some(&"execution.completed"));
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_is_recorded_during_a_reply_hides_nothing_of_it() {
    let (world, mut control) = streaming(vec![vec![text("Good "), text("day."), text(" Bye.")]]).await;
    let run = world.start().await.run;
    control.step(1, 1).await;
    let mut early = Client::join(&world, &run);
    early.read().await;
    world.runner.pause(&run, None, "ann", Channel::Api, None).await.unwrap();
    control.step(1, 2).await;

    let mut late = Client::join(&world, &run);
    late.read().await;
    control.step(1, 3).await;
    for client in [&mut early, &mut late] {
        client.read().await;
        assert_eq!(client.reply[0], "Good day. Bye.");
    }
    assert_eq!(late.names().last(), Some(&"execution.paused"));
}
