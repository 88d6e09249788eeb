//! Step-up authorization: a server requires more scopes than were granted.

use serde_json::json;

use super::super::support::*;
use super::*;

#[tokio::test]
async fn a_call_without_the_scope_names_it_and_works_after_a_login() {
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
async fn granted_scopes_that_do_not_suffice_are_not_requested_again() {
    let world = World::new(Manner::default()).await;
    world.login(&["read", "write"]).await.expect("logged in");
    world.vault.authority().books().access.values_mut().for_each(|scopes| *scopes = "read".into());
    let process = world.process();
    let (_, message) = failed(call(&process, "crm", "change", json!({})).await);
    assert!(message.ends_with("the access that was granted does not suffice (it wants write)"), "{message}");
    process.close().await;
}
