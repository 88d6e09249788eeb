//! Servers that send without measure and read nothing. They cost a bounded amount of memory, and end with a reason.

use toolgate::core::tool::FailureKind;

use super::*;

#[tokio::test]
async fn a_server_that_asks_without_end_and_reads_nothing_is_cut_with_a_reason() {
    for flood in ["ping-flood", "request-flood"] {
        let servers = servers([("bad", fault(&[flood]))]);
        list(&servers, &["bad"]).await;
        let first = status(&servers, "bad").pid.expect("a process");
        let (kind, message) = failed(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
        assert_eq!(kind, FailureKind::Disconnected, "{flood}: {message}");
        assert!(message.contains("it does not read what it is sent"), "{flood}: {message}");
        eventually("the process is gone", async || !is_running(first)).await;
        servers.close().await;
    }
}
