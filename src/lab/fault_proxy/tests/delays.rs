//! Answers that wait over stdio: they end with the proxy, and their bytes are bounded.

use super::client::{ARRIVAL, SILENCE, StdioClient, call, cancelled, initialize, plan};
use crate::fault_proxy::FaultTransport;

#[tokio::test]
async fn a_late_answer_without_a_cancellation_ends_with_the_proxy() {
    let mut client = StdioClient::start(plan(&["late-reply#all"], FaultTransport::Stdio), &[]);
    client.answer(&initialize(1)).await;
    client.send(&call(2)).await;
    assert!(client.read(SILENCE).await.messages.is_empty());
    // It fails if a task still has the stream of the client.
    client.close().await;
}

#[tokio::test]
async fn the_answers_that_wait_are_bounded() {
    let plan = plan(&["late-reply#1", "slow=0.1#2"], FaultTransport::Stdio);
    let mut client = StdioClient::start_within(10, plan, &[]);
    client.answer(&initialize(1)).await;
    client.send(&call(2)).await;
    assert!(client.read(SILENCE).await.messages.is_empty());
    client.send(&cancelled(2)).await;
    assert!(client.read(SILENCE).await.messages.is_empty());
    client.send(&call(3)).await;
    assert_eq!(client.read(ARRIVAL).await.ids(), [3]);
    client.close().await;
}
