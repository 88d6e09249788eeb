//! Servers that want to know something in the middle of a call.

use super::*;

#[tokio::test]
async fn a_server_that_wants_a_completion_is_refused_one() {
    let servers = servers([("bad", fault(&["asks-sampling"]))]);
    let answer = returned(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
    let said = answer.content[0].as_text().expect("text");
    assert!(answer.is_error && said.starts_with("the client cannot be asked: {\"code\":-32601"), "{answer:?}");
    servers.close().await;
}
