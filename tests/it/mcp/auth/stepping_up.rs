//! Step-up authorization: a server requires more scopes than were granted.

use serde_json::json;

use super::super::support::*;
use super::*;

#[tokio::test]
async fn a_call_that_needs_more_says_what_to_ask_for_and_works_after_that() {
    let world = World::new(Manner::default()).await;
    world.login(&[]).await.expect("logged in");
    let process = world.process();
    for _ in 0..2 {
        let (_, message) = failed(call(&process, "crm", "change", json!({})).await);
        assert_eq!(
            message,
            "the MCP server `crm` could not be used: it answered HTTP 403: the access that was granted does not suffice; \
             run `toolgate mcp login crm --scope read --scope write`"
        );
    }
    world.login(&["read", "write"]).await.expect("logged in with more");
    assert_eq!(text(call(&process, "crm", "change", json!({})).await), "done", "without connecting again");
    process.close().await;
}

#[tokio::test]
async fn what_was_granted_and_still_does_not_suffice_is_not_asked_for_again() {
    let world = World::new(Manner::default()).await;
    world.login(&["read", "write"]).await.expect("logged in");
    world.vault.authority().books().access.values_mut().for_each(|scopes| *scopes = "read".into());
    let process = world.process();
    let (_, message) = failed(call(&process, "crm", "change", json!({})).await);
    assert!(message.ends_with("the access that was granted does not suffice (it wants write)"), "{message}");
    process.close().await;
}
