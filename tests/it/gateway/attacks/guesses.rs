//! A client without a key, and a server as `toolgate serve` runs it.

use std::num::NonZeroU32;
use std::sync::Arc;

use reqwest::StatusCode;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolgate::gateway::{Gateway, GatewaySettings, Limits, Rate, ServeSettings, serve};
use toolgate::stores::MemoryStore;

use crate::runner::world::{Kept, given_an_agent, say};

#[tokio::test]
async fn guesses_are_counted_by_the_address_they_come_from() {
    let world = given_an_agent().whose_model_says(json!([say("Hi.")])).kept(Kept::InMemory).await;
    let few = |count: u32| NonZeroU32::new(count).unwrap();
    let limits = Limits { failures: Some(Rate { per_minute: few(1), burst: few(3) }), ..Limits::default() };
    let settings = GatewaySettings { limits, ..GatewaySettings::default() };
    let gateway = Gateway::builder(world.runner.clone()).settings(settings).keys(Arc::new(MemoryStore::new())).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = format!("http://{}/v1/runs", listener.local_addr().unwrap());
    let mut serving = JoinSet::new();
    serving.spawn(serve(listener, gateway.router(), ServeSettings::default(), CancellationToken::new()));

    let mut told = Vec::new();
    for number in 0..5 {
        let guess = reqwest::Client::new().get(&place).bearer_auth(format!("tg_{number}"));
        told.push(guess.send().await.unwrap().status());
    }

    let (no, wait) = (StatusCode::UNAUTHORIZED, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(told, [no, no, no, wait, wait]);
}
