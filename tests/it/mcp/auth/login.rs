//! Login of a user, and its failures.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use tokio::sync::mpsc;
use toolgate::mcp::auth::{ClientIdentity, Loopback};

use super::super::support::*;
use super::browser_user::{access_of, led_back};
use super::*;

#[tokio::test]
async fn one_login_gives_runs_access() {
    let world = World::new(Manner::default()).await;
    let (pages, mut shown) = mpsc::unbounded_channel();
    let show = move |page: &str| pages.send(page.to_owned()).expect("the test listens");
    let browser = Loopback::bind(None, Duration::from_secs(30), show).await.expect("a port");
    let settings = http(&world.vault.settings(access(&world.credentials)));
    let person = async {
        let page = shown.recv().await.expect("a page");
        let back = led_back(&page).await.expect("agreed");
        reqwest::get(&back).await.expect("toolgate listens").text().await.expect("text")
    };
    let (login, seen) = tokio::join!(toolgate::mcp::auth::login(&settings, &[], &browser), person);
    let login = login.expect("logged in");
    assert_eq!((login.issuer, login.scopes), (world.vault.authority().issuer, vec!["read".to_owned()]));
    assert!(login.renewable && seen.contains("You can close this page"), "{seen}");

    let mode = |path: &std::path::Path| path.metadata().expect("there").permissions().mode() & 0o777;
    let file = world.credentials.path();
    assert_eq!((mode(file), mode(file.parent().expect("a folder"))), (0o600, 0o700));

    let process = world.process();
    assert_eq!(names(&process, "crm").await, ["change", "look"]);
    assert_eq!(text(call(&process, "crm", "look", serde_json::json!({})).await), "done");
    process.close().await;
}

#[tokio::test]
async fn without_a_login_the_server_is_missing_and_the_command_is_named() {
    let world = World::new(Manner::default()).await;
    let process = world.process();
    assert_eq!(
        missing(&process, "crm").await,
        "the MCP server `crm` could not be reached: it answered HTTP 401, and no user has logged in; run `toolgate mcp \
         login crm`"
    );
    assert!(world.vault.authority().books().asked.is_empty(), "a run never opens a login page");
    assert!(!world.credentials.path().exists(), "and nothing is written");
    process.close().await;
}

#[tokio::test]
async fn an_unrelated_answer_is_ignored_and_does_not_end_the_login() {
    let world = World::new(Manner::default()).await;
    let (pages, mut shown) = mpsc::unbounded_channel();
    let show = move |page: &str| pages.send(page.to_owned()).expect("the test listens");
    let browser = Loopback::bind(None, Duration::from_secs(30), show).await.expect("a port");
    let settings = http(&world.vault.settings(access(&world.credentials)));
    let person = async {
        let page = shown.recv().await.expect("a page");
        let back = led_back(&page).await.expect("agreed");
        let base = back.split_once("/callback").expect("the callback").0;
        for stray in ["/", "/favicon.ico", "/callback", "/callback?code=x&state=<b>forged</b>", "/callbacks?a"] {
            let answer = reqwest::get(format!("{base}{stray}")).await.expect("an answer");
            assert_eq!(answer.status(), 404, "{stray}");
            assert!(!answer.text().await.expect("text").contains("forged"), "{stray} comes back");
        }
        let mute = tokio::net::TcpStream::connect(base.trim_start_matches("http://")).await.expect("connected");
        let page = reqwest::get(&back).await.expect("an answer").text().await.expect("text");
        drop(mute);
        page
    };
    let (login, seen) = tokio::join!(toolgate::mcp::auth::login(&settings, &[], &browser), person);
    login.expect("the right answer counts");
    assert!(!seen.contains("code") && !seen.contains("s3cret"), "{seen}");
    assert_eq!(world.vault.authority().asked("token").len(), 1, "only one code was exchanged");
}

#[tokio::test]
async fn a_login_without_an_answer_times_out() {
    let world = World::new(Manner::default()).await;
    let browser = Loopback::bind(None, Duration::from_millis(20), |_| {}).await.expect("a port");
    let settings = http(&world.vault.settings(access(&world.credentials)));
    let told =
        toolgate::mcp::auth::login(&settings, &[], &browser).await.expect_err("the page was not completed").to_string();
    assert_eq!(told, "access could not be obtained: the page was not completed within 0 s");
}

#[tokio::test]
async fn an_answer_from_another_issuer_is_not_exchanged() {
    let evil = "https://evil.test";
    for (manner, expected) in [
        (Manner { state: Some("forged".into()), ..Manner::default() }, "(its `state` is not ours)"),
        (
            Manner { iss: Some(evil.into()), ..Manner::default() },
            "and calls itself https://evil.test; a third party may be",
        ),
        (Manner { omits_iss: true, ..Manner::default() }, "does not say who it is, as it has to"),
        (Manner { denies: true, ..Manner::default() }, "did not grant it: access_denied: ask your boss"),
    ] {
        let world = World::new(manner).await;
        let told = world.refused().await;
        assert!(told.contains(expected), "{told}");
        let authority = world.vault.authority();
        assert_eq!((authority.asked("authorize").len(), authority.asked("token").len()), (1, 0), "{told}");
        assert!(world.kept().is_empty(), "{told}");
    }
}

#[tokio::test]
async fn an_authorization_server_that_cannot_be_trusted_is_not_asked() {
    let world = World::new(Manner { omits_pkce: true, ..Manner::default() }).await;
    let told = world.refused().await;
    assert!(told.ends_with("does not say that it supports PKCE, which MCP demands"), "{told}");
    for (endpoint, expected) in [
        (
            "http://169.254.169.254/token",
            "`169.254.169.254` is at the address 169.254.169.254, which is not on the public",
        ),
        ("http://[::ffff:10.0.0.1]/token", "which is not on the public internet"),
        ("file:///etc/passwd", "its metadata has an endpoint that is no web address"),
    ] {
        let world = World::new(Manner { token_endpoint: Some(endpoint.into()), ..Manner::default() }).await;
        let told = world.refused().await;
        assert!(told.contains(expected), "{told}");
        assert!(world.vault.authority().books().asked.is_empty(), "{endpoint}");
    }
    let world = World::new(Manner::default()).await;
    world.vault.lead_to("http://10.0.0.1/");
    let told = world.refused().await;
    assert!(told.contains("http://10.0.0.1/") && told.contains("none published usable metadata"), "{told}");
}

#[tokio::test]
async fn a_client_is_registered_once_and_known_again_with_its_secret() {
    let world = World::new(Manner { gives_secrets: true, ..Manner::default() }).await;
    world.login(&[]).await.expect("logged in");
    world.login(&["write"]).await.expect("logged in again");
    let authority = world.vault.authority();
    assert_eq!(authority.asked("register").len(), 1);
    let scopes: Vec<_> = authority.asked("authorize").into_iter().map(|asked| asked["scope"].clone()).collect();
    assert_eq!(scopes, ["read", "write"]);
}

#[tokio::test]
async fn a_client_that_was_registered_beforehand_is_used_as_it_is() {
    let manner = Manner { client: Some(("desk".into(), "desk-s3cret".into())), ..Manner::default() };
    let world = World::new(manner).await;
    let desk = ClientIdentity::Registered { id: "desk".into(), secret: Some("desk-s3cret".into()) };
    let settings = world.vault.settings(access_of(desk, &world.credentials));
    toolgate::mcp::auth::login(&http(&settings), &[], &Headless).await.expect("logged in");
    let authority = world.vault.authority();
    assert_eq!(authority.asked("register").len(), 0);
    assert_eq!(authority.asked("authorize")[0]["client_id"], "desk");
}

#[tokio::test]
async fn a_server_without_metadata_says_that_a_token_may_be_wanted() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, axum::Router::new()).await });
    let world = World::new(Manner::default()).await;
    let settings = world.vault.settings(access(&world.credentials));
    let settings = toolgate::mcp::HttpSettings { url, ..http(&settings) };
    let told = toolgate::mcp::auth::login(&settings, &[], &Headless).await.expect_err("no metadata").to_string();
    assert!(
        told.contains("publishes no OAuth metadata; if it takes a token, give it in the server's `auth`"),
        "{told}"
    );
}
