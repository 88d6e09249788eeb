//! Limits of callers: requests per minute, concurrent requests, body size, and failed authentications per address.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolgate::gateway::{GatewaySettings, Limits, Rate};
use toolgate::service::Caller;
use toolgate::stores::MemoryStore;

use super::served::{HttpAnswer, Served};
use crate::runner::world::{Kept, given_an_agent, say};

fn rate(per_minute: u32, burst: u32) -> Option<Rate> {
    Some(Rate { per_minute: NonZeroU32::new(per_minute)?, burst: NonZeroU32::new(burst)? })
}

async fn limited(settings: GatewaySettings) -> Served {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.hang_in("read"))
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]))
        .kept(Kept::InMemory)
        .await;
    Served::with(world, |builder| builder.settings(settings).anonymous(Caller::local())).await
}

#[tokio::test]
async fn a_caller_over_the_rate_is_refused_with_a_delay() {
    let limits = Limits { requests: rate(6, 2), ..Limits::default() };
    let served = limited(GatewaySettings { limits, ..GatewaySettings::default() }).await;

    let first = served.get("/v1/runs").await;
    let second = served.get("/v1/runs/run_unknown").await;
    let third = served.get("/v1/runs").await;

    assert_eq!(first.header("ratelimit-policy"), r#""requests";q=2;w=20"#);
    assert_eq!(first.header("ratelimit"), r#""requests";r=1;t=10"#);
    assert_eq!((second.problem(), second.header("ratelimit")), ("not_found", r#""requests";r=0;t=20"#));
    assert_eq!((third.status.as_u16(), third.problem()), (429, "rate_limited"));
    assert_eq!((third.header("retry-after"), third.body["retryable"].as_bool()), ("10", Some(true)));
    assert_eq!(third.header("ratelimit"), r#""requests";r=0;t=20"#);
    assert_eq!(served.get("/openapi.json").await.status, 200, "a public page counts for no caller");
}

#[tokio::test]
async fn a_caller_with_too_many_requests_is_refused_until_one_ends() {
    for accepted in ["*/*", "application/json, text/event-stream"] {
        is_refused_until_one_ends(accepted).await;
    }
}

async fn is_refused_until_one_ends(accepted: &str) {
    let limits = Limits { concurrent_requests: Some(1), ..Limits::default() };
    let served = limited(GatewaySettings { limits, ..GatewaySettings::default() }).await;
    let waiting = served.request(Method::POST, "/v1/runs").header("accept", accepted).json(&json!({"input": "Read"}));
    let waiting = waiting.send();
    let meanwhile = async {
        loop {
            let answer = served.get("/v1/runs").await;
            if answer.status == 429 {
                break answer;
            }
        }
    };
    tokio::select! {
        done = waiting => panic!("a call that hangs returned: {done:?}"),
        refused = tokio::time::timeout(Duration::from_secs(10), meanwhile) => {
            let refused = refused.expect("the permit is taken");
            assert_eq!((refused.problem(), refused.header("retry-after")), ("rate_limited", "1"));
        }
    }
    // The client that waited has disconnected, and its permit is free.
    let free = async { while served.get("/v1/runs").await.status != 200 {} };
    tokio::time::timeout(Duration::from_secs(10), free).await.expect("the permit is free again");
}

#[tokio::test]
async fn an_open_stream_has_a_permit_of_its_own() {
    let limits = Limits { concurrent_requests: Some(1), concurrent_streams: Some(1), ..Limits::default() };
    let served = limited(GatewaySettings { limits, ..GatewaySettings::default() }).await;
    let begun = served.request(Method::POST, "/v1/runs").header("prefer", "respond-async");
    let begun = begun.json(&json!({"input": "Read"})).send().await.unwrap();
    assert_eq!(begun.headers()["preference-applied"], "respond-async");
    let begun = HttpAnswer::of(begun).await;
    let events = format!("/v1/runs/{}/events", begun.text("id"));
    let open = served.request(Method::GET, &events).header("accept", "*/*").send().await.unwrap();
    assert_eq!(open.headers()["content-type"], "text/event-stream");

    assert_eq!(served.get("/v1/runs").await.status, 200, "a stream does not count as a request");
    for accepted in ["*/*", "text/event-stream"] {
        let refused = served.request(Method::GET, &events).header("accept", accepted).send().await.unwrap();
        assert_eq!(HttpAnswer::of(refused).await.problem(), "rate_limited", "{accepted}");
    }
    let begins = served.request(Method::POST, "/v1/runs").header("accept", "text/event-stream");
    let begins = HttpAnswer::of(begins.json(&json!({"input": "Read"})).send().await.unwrap()).await;
    assert_eq!(begins.problem(), "rate_limited");
    assert_eq!(served.get("/v1/runs").await.body["data"].as_array().unwrap().len(), 1, "no run was started for it");
    drop(open);
    let free = async { while served.request(Method::GET, &events).send().await.unwrap().status() != 200 {} };
    tokio::time::timeout(Duration::from_secs(10), free).await.expect("the permit is free again");
}

#[tokio::test]
async fn guesses_are_limited_and_valid_credentials_still_work() {
    let limits = Limits { failures: rate(1, 3), ..Limits::default() };
    let world = given_an_agent().kept(Kept::InMemory).await;
    let settings = GatewaySettings { limits, ..GatewaySettings::default() };
    let keys = Arc::new(MemoryStore::new());
    let served = Served::with(world, |builder| builder.settings(settings).keys(keys).anonymous(Caller::local())).await;
    let guess = async |number: usize| {
        let request = served.request(Method::GET, "/v1/runs").bearer_auth(format!("tg_{number}"));
        HttpAnswer::of(request.send().await.unwrap()).await.status.as_u16()
    };

    let guesses = join_all((0..5).map(guess)).await;

    assert_eq!(guesses.iter().filter(|status| **status == 401).count(), 3, "{guesses:?}");
    assert_eq!(guesses.iter().filter(|status| **status == 429).count(), 2, "{guesses:?}");
    assert_eq!(served.get("/v1/runs").await.status, 200);
}

#[tokio::test]
async fn a_body_that_is_too_large_too_slow_or_too_deep_is_refused() {
    let settings =
        GatewaySettings { body_bytes: 2000, body_timeout: Duration::from_millis(200), ..GatewaySettings::default() };
    let served = limited(settings).await;

    let large = served.post("/v1/runs", json!({"input": "x".repeat(2000)})).await;
    assert_eq!((large.status.as_u16(), large.problem()), (413, "payload_too_large"));
    let deep = format!("{{\"input\": \"x\", \"metadata\": {{\"a\": {}1{}}}}}", "[".repeat(500), "]".repeat(500));
    let request = served.request(Method::POST, "/v1/runs").header("content-type", "application/json").body(deep);
    let deep = HttpAnswer::of(request.send().await.unwrap()).await;
    assert_eq!((deep.status.as_u16(), deep.problem()), (400, "invalid_request"), "{deep:?}");

    let mut slow = TcpStream::connect(served.address).await.unwrap();
    let head =
        "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n{";
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(Duration::from_secs(10), slow.read(&mut answer)).await.expect("it is answered");
    let answer = String::from_utf8_lossy(&answer[..read.unwrap()]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}
