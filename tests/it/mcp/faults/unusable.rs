//! Unusable tools and answers of a server, and the reported reasons.

use toolgate::core::tool::{FailureKind, LeftOut};

use super::*;

#[tokio::test]
async fn a_tool_that_has_to_be_a_task_is_left_out_in_the_era_whose_tasks_toolgate_does_not_know() {
    for (era, tools) in [("2025-11-25", 6), ("2026-07-28", 7)] {
        let (child, _wire) = of_era(era, &["task-only-tool"]);
        // Two messages do not fit into a JSON body, so the answer is a stream.
        let endpoint = Endpoint::of_era(era, &["task-only-tool", "duplicate-replies"]).await;
        for settings in [child, endpoint.settings()] {
            let servers = servers([("bad", settings)]);
            let listed = list(&servers, &["bad"]).await.remove(0);
            assert_eq!((listed.tools.len(), listed.left_out.len()), (tools, 7 - tools), "{era}");
            for LeftOut { tool, reason, .. } in listed.left_out {
                assert_eq!(tool.as_deref(), Some("long"));
                assert!(reason.starts_with("it can only be called as a task of the revision 2025-11-25"), "{reason}");
            }
            servers.close().await;
        }
    }
}

#[tokio::test]
async fn a_start_timeout_reports_the_failure_before_it() {
    let endpoint = Endpoint::of_era("both", &["http-500=start", "hang-at-initialize"]).await;
    let servers = servers([("bad", within(Duration::from_secs(1), endpoint.settings()))]);
    let reason = missing(&servers, "bad").await;
    let told = "the MCP server `bad` did not answer the handshake within 1 s; before that it could not be reached: ";
    assert!(reason.starts_with(told) && reason.contains("HTTP 500"), "{reason}");
    let outcome = call(&servers, "bad", "echo", json!({"text": "hello"})).await;
    let (kind, message) = failed(outcome);
    assert!(kind == FailureKind::Unavailable && message.contains("HTTP 500"), "{message}");
    servers.close().await;
}

#[tokio::test]
async fn a_server_whose_connection_broke_at_the_first_question_is_reached_in_an_era_that_it_speaks() {
    // The question is sent twice. Only if both connections break, it is asked in the other era.
    for (era, fault, revision) in [
        ("2026-07-28", "discover-breaks=1", "2026-07-28"),
        ("both", "discover-breaks=1", "2026-07-28"),
        ("2026-07-28", "discover-breaks=2", "2026-07-28"),
        ("both", "discover-breaks=2", "2025-11-25"),
    ] {
        let endpoint = Endpoint::of_era(era, &[fault]).await;
        let servers = servers([("good", endpoint.settings())]);
        assert_lists_its_tools(&servers, "good").await;
        assert_eq!(status(&servers, "good").protocol_version.as_deref(), Some(revision));
        servers.close().await;
    }
}

#[tokio::test]
async fn a_start_timeout_without_a_failure_reports_the_silence() {
    let (settings, _wire) = of_era("2025-11-25", &["hang-at-initialize"]);
    let servers = servers([("bad", within(Duration::from_secs(1), settings))]);
    let reason = missing(&servers, "bad").await;
    assert!(
        reason.contains("did not answer the handshake within 1 s; does it speak MCP on its stdin and stdout?"),
        "{reason}"
    );
    servers.close().await;
}
