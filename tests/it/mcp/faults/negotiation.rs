//! Era detection with servers of either era, and of both.

use super::*;

#[tokio::test]
async fn servers_of_either_era_and_of_both_are_spoken_to_in_the_newest_they_know() {
    for (era, revision) in [("2025-11-25", "2025-11-25"), ("2026-07-28", "2026-07-28"), ("both", "2026-07-28")] {
        let (stdio, wire) = of_era(era, &[]);
        let endpoint = Endpoint::of_era(era, &[]).await;
        let servers = servers([("stdio", stdio), ("http", endpoint.settings())]);
        for (id, wire) in [("stdio", &wire), ("http", &endpoint.wire)] {
            assert_lists_its_tools(&servers, id).await;
            assert_eq!(echo(&servers, id, "hello").await, "hello");
            assert_eq!(executed(&servers, id).await, 1);
            assert_eq!(status(&servers, id).protocol_version.as_deref(), Some(revision), "{era} over {id}");
            let handshakes = wire.received("initialize").len();
            assert_eq!(handshakes, usize::from(era == "2025-11-25"), "{era} over {id}");
        }
        servers.close().await;
    }
}

#[tokio::test]
async fn every_request_of_the_newer_era_says_who_asks_in_which_revision() {
    let (settings, wire) = of_era("2026-07-28", &[]);
    let servers = servers([("server", settings)]);
    assert_eq!(echo(&servers, "server", "hello").await, "hello");
    assert_lists_its_tools(&servers, "server").await;
    let requests: Vec<Value> =
        wire.noted("received").into_iter().filter(|message| message.get("id").is_some()).collect();
    for request in &requests {
        let meta = &request["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{request}");
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "toolgate", "{request}");
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object(), "{request}");
    }
    assert!(requests.len() >= 3, "{requests:?}");
    servers.close().await;
}
