//! Servers that want to know something in the middle of a call.

use super::*;

#[tokio::test]
async fn a_server_of_the_older_era_that_asks_a_person_is_told_that_nobody_answers() {
    let (settings, wire) = watched(&["elicits"]);
    let servers = servers([("bad", settings)]);
    let answer = returned(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
    let said: Vec<_> = answer.content.iter().filter_map(|part| part.as_text()).collect();
    assert_eq!((answer.is_error, said), (true, vec!["nobody said who is asking: decline"]));
    assert_eq!(executed(&servers, "bad").await, 1);
    assert_eq!(wire.calls(), ["echo", "count"]);
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_wants_a_completion_is_refused_one() {
    let servers = servers([("bad", fault(&["asks-sampling"]))]);
    let answer = returned(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
    let said = answer.content[0].as_text().expect("text");
    assert!(answer.is_error && said.starts_with("the client cannot be asked: {\"code\":-32601"), "{answer:?}");
    servers.close().await;
}
