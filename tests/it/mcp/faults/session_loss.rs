//! Sessions that are lost while calls are in flight. Such a call gets its answer if that is possible, and otherwise an
//! unknown outcome; it is not repeated.

use futures::future::join_all;
use toolgate::core::tool::{FailureKind, Outcome};

use super::*;

/// Three calls of `slow` with progress, whose answers are streams, and a fourth that finds the session lost.
async fn four_calls(servers: &Servers) -> (Vec<Outcome>, Outcome) {
    list(servers, &["bad"]).await;
    let slow = join_all((0..3).map(|_| call(servers, "bad", "slow", json!({"ms": 1500}))));
    let fourth = async {
        eventually("all are under way", async || executed(servers, "bad").await == 3).await;
        call(servers, "bad", "echo", json!({"text": "hello"})).await
    };
    tokio::join!(slow, fourth)
}

#[tokio::test]
async fn calls_under_way_are_answered_in_the_session_that_is_over_for_new_ones() {
    let endpoint = Endpoint::with(&["lost-session=3", "progress-every=50"]).await;
    let servers = servers([("bad", endpoint.settings())]);
    let (slow, fourth) = four_calls(&servers).await;
    for outcome in slow {
        assert_eq!(text(outcome), "that took 1500 ms");
    }
    assert_eq!(text(fourth), "hello");
    assert_eq!(executed(&servers, "bad").await, 4);
    assert_eq!(endpoint.wire.received("initialize").len(), 2);
    servers.close().await;
}

#[tokio::test]
async fn calls_whose_answers_broke_off_with_the_session_have_an_unknown_outcome_and_are_not_made_again() {
    for faults in [&["lost-streams=3", "progress-every=50"][..], &["lost-streams=3"]] {
        let endpoint = Endpoint::with(faults).await;
        let servers = servers([("bad", endpoint.settings())]);
        let (slow, fourth) = four_calls(&servers).await;
        for outcome in slow {
            let (kind, message) = failed(outcome);
            assert_eq!(kind, FailureKind::Disconnected, "{faults:?}: {message}");
        }
        assert_eq!(text(fourth), "hello", "{faults:?}: that one was turned away unseen");
        assert_eq!(executed(&servers, "bad").await, 4, "{faults:?}");
        let made = |name: &str| endpoint.wire.calls().iter().filter(|call| *call == name).count();
        assert_eq!((made("slow"), made("echo")), (3, 2), "{faults:?}");
        servers.close().await;
    }
}

#[tokio::test]
async fn the_tools_are_listed_again_in_a_new_session() {
    let endpoint = Endpoint::with(&["lost-session=1", "tools-change"]).await;
    let servers = servers([("bad", endpoint.settings())]);
    list(&servers, &["bad"]).await;
    for word in ["one", "two"] {
        assert_eq!(echo(&servers, "bad", word).await, word);
    }
    let listed = list(&servers, &["bad"]).await.remove(0);
    assert_eq!((listed.stale, sorted(&listed.tools)), (None, TOOLS.to_vec()));
    let mutant = listed.tools.iter().find(|tool| tool.name == "mutant").expect("it is listed");
    assert!(mutant.description.contains("password"), "{mutant:?}");
    let error = status(&servers, "bad").last_error.expect("it is remembered");
    assert_eq!(error.message, "the MCP server `bad` lost its connection: it ended the session");
    servers.close().await;
}

#[tokio::test]
async fn a_session_that_is_lost_before_the_list_is_renewed_for_it() {
    for faults in [
        &["lost-session-at-list"][..],
        &["lost-session-at-list", "error-id-null"],
        &["lost-session-at-list", "sessions-end-with-400"],
    ] {
        let endpoint = Endpoint::with(faults).await;
        let servers = servers([("bad", endpoint.settings())]);
        assert_lists_its_tools(&servers, "bad").await;
        assert_eq!(endpoint.wire.received("initialize").len(), 2, "{faults:?}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_session_that_is_lost_with_a_success_is_told_and_renewed_for_the_next_call() {
    let endpoint = Endpoint::with(&["lost-session-with-200=1"]).await;
    let servers = servers([("bad", endpoint.settings())]);
    assert_eq!(echo(&servers, "bad", "one").await, "one");
    let (kind, message) = failed(call(&servers, "bad", "echo", json!({"text": "two"})).await);
    assert_eq!(kind, FailureKind::Disconnected, "{message}");
    let told = r#"it answered with an event that is no MCP message, `{"error":"Session not found"}`, and nothing more"#;
    assert!(message.contains(told), "{message}");
    assert_eq!(echo(&servers, "bad", "three").await, "three");
    assert_eq!(endpoint.wire.calls(), ["echo", "echo", "echo"], "none was made again");
    assert_eq!(endpoint.wire.received("initialize").len(), 2);
    servers.close().await;
}

#[tokio::test]
async fn a_session_that_the_next_instance_does_not_know_is_opened_again() {
    for fault in ["initialized-refused", "initialized-refused=500", "initialized-refused=400"] {
        let endpoint = Endpoint::with(&[fault]).await;
        let servers = servers([("bad", endpoint.settings())]);
        assert_lists_its_tools(&servers, "bad").await;
        assert_eq!(endpoint.wire.received("initialize").len(), 2, "{fault}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_server_that_was_restarted_behind_its_command_gets_a_new_session() {
    let (stdio, wire) = watched(&["restarts-inside=1"]);
    let endpoint = Endpoint::with(&["restarts-inside=1"]).await;
    for (way, settings, wire) in [("stdio", stdio, &wire), ("http", endpoint.settings(), &endpoint.wire)] {
        let servers = servers([("bad", settings)]);
        assert_eq!(echo(&servers, "bad", "one").await, "one", "{way}");
        assert_eq!(echo(&servers, "bad", "two").await, "two", "{way}: refused, and made in the new session");
        assert_eq!(wire.calls(), ["echo", "echo", "echo"], "{way}");
        assert_eq!(wire.received("initialize").len(), 2, "{way}");
        servers.close().await;
    }
}
