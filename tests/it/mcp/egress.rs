//! Egress guard: a server from outside the configuration must not lead into the operator's network.

use axum::Router;
use axum::http::StatusCode;
use serde_json::json;
use tokio::net::TcpListener;
use toolgate::core::address::{AllowedClasses, EgressPolicy};
use toolgate::core::tool::FailureKind;
use toolgate::mcp::{Egress, ServerSettings, Transport};

use super::support::*;

/// A server of a third party.
fn injected(url: String) -> ServerSettings {
    let mut settings = ServerSettings::http(url);
    if let Transport::Http(http) = &mut settings.transport {
        http.egress = Egress::Public;
    }
    settings
}

#[tokio::test]
async fn a_third_party_server_is_not_dialled_in_the_own_network() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let servers = servers([
        ("figures", injected(format!("http://127.0.0.1:{port}/mcp"))),
        ("disguised", injected(format!("http://[::ffff:7f00:1]:{port}/mcp"))),
        ("number", injected(format!("http://2130706433:{port}/mcp"))),
        ("named", injected(format!("http://localhost:{port}/mcp"))),
        ("metadata", injected("http://169.254.169.254/latest/meta-data/".into())),
    ]);
    for id in ["figures", "disguised", "number", "named", "metadata"] {
        let reason = missing(&servers, id).await;
        assert!(reason.starts_with(&format!("the MCP server `{id}` could not be reached: `")), "{reason}");
        assert!(
            reason.ends_with("which is not on the public internet; an address from there is not dialled"),
            "{reason}"
        );
        assert_eq!(failed(call(&servers, id, "x", json!({})).await).0, FailureKind::Unavailable);
    }
    servers.close().await;
    let dialled = tokio::time::timeout(std::time::Duration::from_millis(20), listener.accept()).await;
    assert!(dialled.is_err(), "toolgate connected");
}

#[tokio::test]
async fn row_3_48_a_server_of_the_operator_is_dialled_where_the_policy_allows_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let within = |hosts: Vec<String>| {
        let mut settings = ServerSettings::http(format!("http://127.0.0.1:{port}/mcp"));
        if let Transport::Http(http) = &mut settings.transport {
            http.egress = Egress::Within(EgressPolicy { classes: AllowedClasses::default(), hosts });
        }
        settings
    };
    let servers = servers([("refused", within(vec![])), ("named", within(vec!["127.0.0.1".into()]))]);
    let reason = missing(&servers, "refused").await;
    assert!(reason.ends_with("which is not on the public internet; an address from there is not dialled"), "{reason}");
    let early = tokio::time::timeout(std::time::Duration::from_millis(20), listener.accept()).await;
    assert!(early.is_err(), "toolgate connected");
    drop(listener);
    let reason = missing(&servers, "named").await;
    assert!(!reason.contains("not dialled"), "{reason}");
    servers.close().await;
}

#[tokio::test]
async fn a_server_of_the_operator_may_be_anywhere_and_redirects_stay_with_it() {
    let (elsewhere, here) = (TcpListener::bind("127.0.0.1:0").await, TcpListener::bind("127.0.0.1:0").await);
    let (elsewhere, here) = (elsewhere.expect("a port"), here.expect("a port"));
    let address = elsewhere.local_addr().expect("an address");
    let url = format!("http://{}/mcp", here.local_addr().expect("an address"));
    let away = move || async move { (StatusCode::TEMPORARY_REDIRECT, [("location", format!("http://{address}/mcp"))]) };
    tokio::spawn(async move { axum::serve(here, Router::new().fallback(away)).await });
    let servers = servers([("own", ServerSettings::http(url))]);
    let reason = missing(&servers, "own").await;
    assert!(reason.contains("307"), "{reason}");
    servers.close().await;
    let dialled = tokio::time::timeout(std::time::Duration::from_millis(20), elsewhere.accept()).await;
    assert!(dialled.is_err(), "the redirect was followed");
}
