//! Token renewal: tokens expire, and only their issuer renews them.

use futures::future::join_all;
use serde_json::json;

use super::super::support::*;
use super::authority::Authority;
use super::*;

fn refreshes(world: &World) -> usize {
    let asked = world.vault.authority().asked("token");
    asked.iter().filter(|fields| fields["grant_type"] == "refresh_token").count()
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_for_all_calls() {
    let world = World::new(Manner::default()).await;
    world.login(&[]).await.expect("logged in");
    let process = world.process();
    names(&process, "crm").await;
    let before = world.kept();
    world.vault.authority().expire_access();
    let calls = (0..8).map(|_| call(&process, "crm", "look", json!({})));
    for outcome in join_all(calls).await {
        assert_eq!(text(outcome), "done");
    }
    assert_eq!(refreshes(&world), 1);
    let after = world.kept();
    assert!(before != after && after.contains("refresh-s3cret"), "what was renewed is kept");
    process.close().await;
}

#[tokio::test]
async fn a_token_that_is_about_to_end_is_renewed_before_it_is_sent() {
    let world = World::new(Manner { expires_in: Some(10), ..Manner::default() }).await;
    world.login(&[]).await.expect("logged in");
    world.vault.authority().books().manner.expires_in = Some(3600);
    let process = world.process();
    names(&process, "crm").await;
    names(&process, "crm").await;
    assert_eq!(refreshes(&world), 1);
    process.close().await;
}

#[tokio::test]
async fn two_processes_that_renew_at_once_do_not_lose_the_refresh_token() {
    let world = World::new(Manner { gives_secrets: true, ..Manner::default() }).await;
    world.login(&[]).await.expect("logged in");
    let (one, two) = (world.process(), world.process());
    for round in 1..=3 {
        names(&one, "crm").await;
        names(&two, "crm").await;
        world.vault.authority().expire_access();
        // The server refuses a refresh token that is used twice, and revokes the access of its client.
        let both = tokio::join!(call(&one, "crm", "look", json!({})), call(&two, "crm", "look", json!({})));
        assert_eq!((text(both.0), text(both.1)), ("done".into(), "done".into()));
        assert_eq!(refreshes(&world), round, "the second process uses what the first was given");
    }
    one.close().await;
    two.close().await;
}

#[tokio::test]
async fn a_cancelled_call_does_not_cancel_the_renewal() {
    let world = World::new(Manner::default()).await;
    world.login(&[]).await.expect("logged in");
    let process = world.process();
    names(&process, "crm").await;
    let before = world.kept();
    world.vault.authority().expire_access();
    let locked = world.credentials.path().with_extension("lock");
    let lock = std::fs::File::open(locked).expect("the lock of the file");
    lock.lock().expect("ours");
    tokio::select! {
        outcome = call(&process, "crm", "look", json!({})) => panic!("the file is locked, and yet: {outcome:?}"),
        () = soon("the token is renewed", async {
            while refreshes(&world) == 0 {
                tokio::task::yield_now().await;
            }
        }) => {}
    }
    lock.unlock().expect("ours");
    soon("what was renewed is kept", async {
        while world.kept() == before {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(text(call(&process, "crm", "look", json!({})).await), "done");
    assert_eq!(refreshes(&world), 1);
    process.close().await;
}

#[tokio::test]
async fn a_token_that_cannot_be_renewed_requires_a_login() {
    let world = World::new(Manner::default()).await;
    world.login(&[]).await.expect("logged in");
    let process = world.process();
    names(&process, "crm").await;
    world.vault.authority().expire_access();
    world.vault.authority().revoke();
    let (kind, message) = failed(call(&process, "crm", "look", json!({})).await);
    assert_eq!(kind, toolgate::core::tool::FailureKind::Unavailable);
    assert_eq!(
        message,
        "the MCP server `crm` could not be used: the access that was granted has expired, or was revoked; run `toolgate mcp login \
         crm`"
    );
    assert_eq!(refreshes(&world), 1);
    let (_, message) = failed(call(&process, "crm", "look", json!({})).await);
    assert!(message.contains("has expired, and cannot be renewed"), "{message}");
    assert_eq!(refreshes(&world), 1, "a refused refresh token is not sent again");
    world.login(&[]).await.expect("logged in again");
    assert_eq!(text(call(&process, "crm", "look", json!({})).await), "done", "without connecting again");
    process.close().await;

    let world = World::new(Manner { withholds_refresh: true, ..Manner::default() }).await;
    world.login(&[]).await.expect("logged in");
    world.vault.authority().expire_access();
    let process = world.process();
    let reason = missing(&process, "crm").await;
    assert!(reason.contains("has expired, and cannot be renewed; run `toolgate mcp login crm`"), "{reason}");
    process.close().await;
}

#[tokio::test]
async fn credentials_go_only_to_their_authorization_server() {
    let world = World::new(Manner { gives_secrets: true, ..Manner::default() }).await;
    world.login(&[]).await.expect("logged in");
    let (old, new) = (world.vault.authority(), Authority::serve(&world.vault.url, Manner::default()).await);
    world.vault.entrust(new.clone());
    let process = world.process();
    let reason = missing(&process, "crm").await;
    let expected = format!("it is now {} that grants access, which {} did before", new.issuer, old.issuer);
    assert!(reason.contains(&expected), "{reason}");
    assert!(new.books().asked.is_empty(), "the new one received no request");
    world.login(&[]).await.expect("logged in at the new one");
    assert_eq!(new.asked("register").len(), 1, "as a client of its own");
    assert_eq!(names(&process, "crm").await, ["change", "look"]);
    process.close().await;
}

#[tokio::test]
async fn a_file_that_others_can_read_is_not_used_and_the_error_has_a_remedy() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(Manner::default()).await;
    world.login(&[]).await.expect("logged in");
    let path = world.credentials.path();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).expect("ours");
    let process = world.process();
    let reason = missing(&process, "crm").await;
    assert!(reason.contains(&format!("(mode 0644); run `chmod 600 {}`", path.display())), "{reason}");
    process.close().await;
}

#[tokio::test]
async fn two_connections_with_a_browser_ask_once() {
    use toolgate::mcp::auth::{Grant, OAuthSettings};
    let world = World::new(Manner::default()).await;
    let asking = || {
        let mut settings: OAuthSettings = access(&world.credentials);
        if let Grant::Person { browser, .. } = &mut settings.grant {
            *browser = Some(std::sync::Arc::new(Headless));
        }
        servers([("crm", world.vault.settings(settings))])
    };
    let (one, two) = (asking(), asking());
    let both = tokio::join!(names(&one, "crm"), names(&two, "crm"));
    assert_eq!(both.0, both.1);
    let authority = world.vault.authority();
    assert_eq!((authority.asked("authorize").len(), authority.asked("register").len()), (1, 1));
    one.close().await;
    two.close().await;
}

#[tokio::test]
async fn a_renewal_is_repeated_once_without_the_resource_that_its_server_refuses() {
    let world = World::new(Manner { refuses_resource: true, ..Manner::default() }).await;
    world.login(&[]).await.expect("logged in");
    let process = world.process();
    names(&process, "crm").await;
    world.vault.authority().expire_access();
    assert_eq!(text(call(&process, "crm", "look", json!({})).await), "done");
    assert_eq!(refreshes(&world), 2, "with and without the resource");
    process.close().await;
}

#[tokio::test]
async fn answers_with_text_as_lifetime_and_without_a_token_type_are_read() {
    let answers: [fn(&mut serde_json::Value); 2] = [
        |answer| {
            answer["expires_in"] = "5287".into();
            answer["ext_expires_in"] = "5287".into();
        },
        |answer| drop(answer.as_object_mut().expect("an object").remove("token_type")),
    ];
    for change in answers {
        let world = World::new(Manner { answers: Some(change), ..Manner::default() }).await;
        world.login(&[]).await.expect("logged in");
        let process = world.process();
        names(&process, "crm").await;
        world.vault.authority().expire_access();
        assert_eq!(text(call(&process, "crm", "look", json!({})).await), "done");
        assert_eq!(refreshes(&world), 1);
        process.close().await;
    }
}

#[tokio::test]
async fn a_refresh_token_is_not_sent_again_at_once_after_an_answer_that_cannot_be_read() {
    let world = World::new(Manner::default()).await;
    world.login(&[]).await.expect("logged in");
    let process = world.process();
    names(&process, "crm").await;
    world.vault.authority().books().manner.answers = Some(|answer| answer["expires_in"] = "soon".into());
    world.vault.authority().expire_access();
    let (_, message) = failed(call(&process, "crm", "look", json!({})).await);
    let told = "gave no token; its answer cannot be read: `expires_in` is not a number of seconds";
    assert!(message.contains(told) && !message.contains("s3cret"), "{message}");
    let (_, message) = failed(call(&process, "crm", "look", json!({})).await);
    assert!(message.contains("the refresh token is not sent again yet"), "{message}");
    assert_eq!(refreshes(&world), 1);
    process.close().await;
}
