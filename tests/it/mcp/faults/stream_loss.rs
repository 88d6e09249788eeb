//! Change streams that a server of the modern era closes or refuses. No change is missed, and the server is not asked
//! in quick succession.

use toolgate::core::id::ServerId;
use toolgate::ports::McpServers as _;

use super::*;

#[tokio::test]
async fn an_unannounced_change_is_found_when_the_stream_is_reopened() {
    for fault in ["listen-ends", "listen-breaks"] {
        let endpoint = Endpoint::of_era("2026-07-28", &[fault, "tools-change"]).await;
        let servers = servers([("bad", endpoint.settings())]);
        list(&servers, &["bad"]).await;
        let wire = &endpoint.wire;
        let streams = wire.received("subscriptions/listen").len();
        assert_eq!(echo(&servers, "bad", "hello").await, "hello");
        let lists = wire.received("tools/list").len();
        eventually("the change stream is open again", async || wire.received("subscriptions/listen").len() > streams)
            .await;
        eventually("the tools are asked for", async || wire.received("tools/list").len() > lists).await;
        let told =
            wire.noted("sent").iter().filter(|sent| sent["method"] == "notifications/tools/list_changed").count();
        assert_eq!(told, 0, "{fault}: no notification was sent");
        assert_eq!(echo(&servers, "bad", "still there").await, "still there", "{fault}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_stream_that_never_begins_takes_the_place_of_no_call() {
    let endpoint = Endpoint::of_era("2026-07-28", &["hang-at-listen"]).await;
    let settings = ServerSettings { max_concurrency: 1, ..endpoint.settings() };
    let servers = servers([("bad", settings)]);
    list(&servers, &["bad"]).await;
    eventually("it is asked", async || endpoint.wire.received("subscriptions/listen").len() == 1).await;
    assert_eq!(echo(&servers, "bad", "hello").await, "hello");
    servers.close().await;
}

#[tokio::test]
async fn a_change_is_noticed_without_a_request() {
    let endpoint = Endpoint::of_era("2026-07-28", &["tools-change"]).await;
    let servers = servers([("good", endpoint.settings())]);
    list(&servers, &["good"]).await;
    eventually("the change stream is open", async || endpoint.wire.received("subscriptions/listen").len() == 1).await;
    let (before, lists) = (servers.generation(&[ServerId::from("good")]), endpoint.wire.received("tools/list").len());
    assert_eq!(echo(&servers, "good", "hello").await, "hello");
    eventually("the tools are asked for", async || endpoint.wire.received("tools/list").len() > lists).await;
    eventually("the change is known", async || servers.generation(&[ServerId::from("good")]) != before).await;
    servers.close().await;
}
