//! Servers of the legacy era, of the modern one, and of both: how the era is detected, the cost when a server handles
//! the probe badly, and the metadata of every request of the modern era.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolgate::mcp::{ProtocolVersionChoice, ServerSettings, ServerState, Servers};
use toolgate::ports::McpServers as _;

use super::faults::{Endpoint, Wire, fault, watched, within};
use super::support::*;

const ERAS: [(&str, &str); 3] = [("2025-11-25", "2025-11-25"), ("2026-07-28", "2026-07-28"), ("both", "2026-07-28")];

/// A fault server over both transports. The endpoint has to outlive its use.
async fn both_ways(faults: &[&str]) -> (Vec<(&'static str, ServerSettings)>, Wire, Endpoint) {
    let (child, wire) = watched(faults);
    let endpoint = Endpoint::with(faults).await;
    (vec![("stdio", child), ("http", endpoint.settings())], wire, endpoint)
}

async fn works(servers: &Servers, id: &str, revision: &str) {
    let listed = list(servers, &[id]).await.remove(0);
    assert_eq!((listed.tools.len(), listed.left_out), (6, vec![]), "{id}");
    assert_eq!(text(call(servers, id, "echo", json!({"text": "hello"})).await), "hello");
    assert_eq!(status(servers, id).protocol_version.as_deref(), Some(revision), "{id}");
}

#[tokio::test]
async fn every_server_is_spoken_to_in_the_newest_era_that_it_knows() {
    for (era, revision) in ERAS {
        let (settings, child, endpoint) = both_ways(&[&format!("protocol-version={era}")]).await;
        let servers = Servers::new(settings.into_iter().map(|(id, settings)| (id.into(), settings)));
        for (id, wire) in [("stdio", &child), ("http", &endpoint.wire)] {
            works(&servers, id, revision).await;
            let asked = (wire.received("server/discover").len(), wire.received("initialize").len());
            assert_eq!(asked, if era == "2025-11-25" { (1, 1) } else { (1, 0) }, "{era} over {id}");
        }
        servers.close().await;
    }
}

#[tokio::test]
async fn every_modern_request_carries_client_info_and_capabilities() {
    let (mut settings, wire) = watched(&["protocol-version=2026-07-28"]);
    settings.elicitation = false;
    let servers = servers([("server", settings)]);
    works(&servers, "server", "2026-07-28").await;
    for method in ["server/discover", "tools/list", "tools/call"] {
        let meta = wire.received(method).remove(0)["params"]["_meta"].take();
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{method}");
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "toolgate", "{method}");
        let capabilities = &meta["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(capabilities, &json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}), "{method}");
    }
    let meta = wire.received("tools/call").remove(0)["params"]["_meta"].take();
    assert_eq!(meta["traceparent"], trace().traceparent());
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_is_silent_to_the_question_costs_a_part_of_its_budget_and_not_all_of_it() {
    for (era, revision) in [("2025-11-25", "2025-11-25"), ("both", "2025-11-25")] {
        let faults = [&format!("protocol-version={era}"), "hang-at-discover"];
        let (settings, _wire, _endpoint) = both_ways(&faults.map(|fault| fault as &str)).await;
        for (id, settings) in settings {
            let servers = servers([(id, within(Duration::from_secs(4), settings))]);
            let started = Instant::now();
            works(&servers, id, revision).await;
            assert!(started.elapsed() < Duration::from_millis(2500), "{era} over {id}: {:?}", started.elapsed());
            servers.close().await;
        }
    }
}

#[tokio::test]
async fn a_server_that_starts_more_slowly_than_that_is_not_confused_by_two_questions() {
    for (era, revisions) in [
        ("2025-11-25", ["2025-11-25", "2025-11-25"]),
        ("2026-07-28", ["2026-07-28", "2026-07-28"]),
        ("both", ["2026-07-28", "2025-11-25"]),
    ] {
        let (settings, wire) = watched(&[&format!("protocol-version={era}"), "slow-start=1"]);
        let servers = servers([("slow", within(Duration::from_secs(2), settings))]);
        let listed = list(&servers, &["slow"]).await.remove(0);
        assert_eq!((listed.tools.len(), listed.left_out), (6, vec![]), "{era}");
        for _ in 0..3 {
            assert_eq!(text(call(&servers, "slow", "echo", json!({"text": "hello"})).await), "hello");
        }
        let revision = status(&servers, "slow").protocol_version.expect("connected");
        assert!(revisions.contains(&revision.as_str()), "{era}: {revision}");
        assert_eq!((wire.received("server/discover").len(), wire.received("initialize").len()), (1, 1), "{era}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_server_that_dies_of_the_question_is_started_again_and_never_asked_again() {
    let (settings, wire) = watched(&["die-at-discover"]);
    let servers = servers([("bad", settings)]);
    works(&servers, "bad", "2025-11-25").await;
    assert_eq!((wire.received("server/discover").len(), wire.received("initialize").len()), (1, 1));
    kill(&servers, "bad");
    eventually("it is back", async || {
        list(&servers, &["bad"]).await;
        wire.received("initialize").len() == 2 && status(&servers, "bad").state == ServerState::Ready
    })
    .await;
    assert_eq!(wire.received("server/discover").len(), 1);
    servers.close().await;
}

#[tokio::test]
async fn the_era_of_a_server_is_remembered_over_restarts() {
    for (era, _) in ERAS {
        let (settings, wire) = watched(&[&format!("protocol-version={era}")]);
        let servers = servers([("child", settings)]);
        list(&servers, &["child"]).await;
        let asked = wire.received("server/discover").len() + wire.received("initialize").len();
        kill(&servers, "child");
        eventually("it is back", async || {
            list(&servers, &["child"]).await;
            let asked_now = wire.received("server/discover").len() + wire.received("initialize").len();
            asked_now == asked + 1 && status(&servers, "child").state == ServerState::Ready
        })
        .await;
        servers.close().await;
    }
}

fn kill(servers: &Servers, id: &str) {
    let pid = status(servers, id).pid.expect("a process");
    kill_process(Pid::from_raw(pid.try_into().expect("a process id")).expect("not zero"), Signal::KILL)
        .expect("killed");
}

#[tokio::test]
async fn an_era_that_is_prescribed_is_the_only_one_that_is_tried() {
    for (choice, era, refusal) in [
        (
            ProtocolVersionChoice::Legacy,
            "2026-07-28",
            "refused the handshake: Unsupported protocol version (JSON-RPC error -32022)",
        ),
        (
            ProtocolVersionChoice::Modern,
            "2025-11-25",
            "refused the handshake: Method not found (JSON-RPC error -32601)",
        ),
    ] {
        let (settings, wire) = watched(&[&format!("protocol-version={era}")]);
        let servers = servers([("child", ServerSettings { protocol_version: choice, ..settings })]);
        let reason = missing(&servers, "child").await;
        assert!(reason.contains(refusal), "{reason}");
        assert_eq!(wire.received("server/discover").len() + wire.received("initialize").len(), 1);
        servers.close().await;
    }
    let servers = servers([(
        "server",
        ServerSettings { protocol_version: ProtocolVersionChoice::Legacy, ..fault(&["protocol-version=both"]) },
    )]);
    works(&servers, "server", "2025-11-25").await;
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_drops_the_agreed_revision_is_probed_again() {
    let shop = super::tool_headers::Shop::default();
    let servers = servers([("shop", shop.settings().await)]);
    let call = async || call(&servers, "shop", "buy", json!({"what": "tea"})).await;
    assert_eq!(text(call().await), "bought");
    shop.downgrade();
    let (kind, message) = failed(call().await);
    assert_eq!(kind, toolgate::core::tool::FailureKind::Unavailable, "{message}");
    assert!(message.contains("no longer speaks the revision agreed on: only 2025-11-25"), "{message}");
    assert_eq!(text(call().await), "bought");
    assert_eq!(status(&servers, "shop").protocol_version.as_deref(), Some("2025-11-25"));
    servers.close().await;
}

#[tokio::test]
async fn a_modern_server_says_on_its_own_stream_that_its_tools_changed() {
    let (settings, child, endpoint) = both_ways(&["protocol-version=2026-07-28", "tools-change"]).await;
    let servers = Servers::new(settings.into_iter().map(|(id, settings)| (id.into(), settings)));
    for (id, wire) in [("stdio", &child), ("http", &endpoint.wire)] {
        list(&servers, &[id]).await;
        eventually("the change stream is open", async || wire.received("subscriptions/listen").len() == 1).await;
        let (before, lists) = (servers.generation(&[id.into()]), wire.received("tools/list").len());
        assert_eq!(text(call(&servers, id, "echo", json!({"text": "hello"})).await), "hello");
        eventually("the change is noticed", async || servers.generation(&[id.into()]) != before).await;
        assert!(wire.received("tools/list").len() > lists, "{id}");
    }
    servers.close().await;
}

#[tokio::test]
async fn a_dropped_modern_call_is_cancelled_over_stdio_and_closed_over_http() {
    let (settings, child, endpoint) = both_ways(&["protocol-version=2026-07-28", "hang-at-call"]).await;
    let servers = Servers::new(settings.into_iter().map(|(id, settings)| (id.into(), settings)));
    for (id, wire) in [("stdio", &child), ("http", &endpoint.wire)] {
        list(&servers, &[id]).await;
        let waiting = async {
            while wire.received("tools/call").is_empty() {
                tokio::task::yield_now().await
            }
        };
        tokio::select! {
            outcome = call(&servers, id, "echo", json!({"text": "hello"})) => panic!("it ended: {outcome:?}"),
            () = soon("the call arrives", waiting) => {}
        }
        eventually("the server knows", async || match id {
            "stdio" => wire.received("notifications/cancelled").len() == 1,
            _ => !wire.noted("abandoned").is_empty(),
        })
        .await;
    }
    assert_eq!(endpoint.wire.received("notifications/cancelled"), Vec::<Value>::new());
    servers.close().await;
}
