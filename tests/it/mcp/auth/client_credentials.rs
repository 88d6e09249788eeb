//! Client credentials: toolgate has access in its own name.

use serde_json::{Value, json};
use toolgate::mcp::auth::{ClientProof, Grant, OAuthSettings, SigningAlgorithm};

use super::super::support::*;
use super::*;

/// A key that was made for this test and protects nothing.
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHFZQynP/4iDLQvYu
HEU/SvmCM/6V0hCsqiSN+H9EjdqhRANCAAQr7Tp2PDXUlJREuTeF8nVLZ6/fWE1D
Moui44xntN3K4WlEpdptyMFF2Z1rzsYEr381lCBJoQV/XZiPbU0GIPiG
-----END PRIVATE KEY-----
";

fn access_by(id: &str, proof: ClientProof, scopes: &[&str]) -> OAuthSettings {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    let grant = Grant::Client { id: id.into(), proof };
    OAuthSettings { server: "crm".into(), grant, scopes, allow_private: false }
}

fn known() -> Manner {
    Manner { client: Some(("desk".into(), "desk-s3cret".into())), ..Manner::default() }
}

fn secret() -> ClientProof {
    ClientProof::Secret("desk-s3cret".into())
}

#[tokio::test]
async fn a_client_with_a_secret_has_access_and_renews_it_by_itself() {
    let world = World::new(known()).await;
    let process = servers([("crm", world.vault.settings(access_by("desk", secret(), &["read"])))]);
    assert_eq!(names(&process, "crm").await, ["change", "look"]);
    world.vault.authority().expire_access();
    assert_eq!(text(call(&process, "crm", "look", json!({})).await), "done");
    assert_eq!(world.vault.authority().asked("token").len(), 2);
    assert!(!world.credentials.path().exists(), "these tokens are not stored");
    process.close().await;
}

#[tokio::test]
async fn a_client_requests_more_scopes_and_keeps_the_current_ones() {
    let world = World::new(known()).await;
    let process = servers([("crm", world.vault.settings(access_by("desk", secret(), &["read"])))]);
    assert_eq!(text(call(&process, "crm", "change", json!({})).await), "done");
    assert_eq!(text(call(&process, "crm", "look", json!({})).await), "done");
    let scopes: Vec<_> = world.vault.authority().asked("token").iter().map(|asked| asked["scope"].clone()).collect();
    assert_eq!(scopes, ["read", "read write"]);
    process.close().await;
}

#[tokio::test]
async fn the_error_of_a_refused_client_names_the_authorization_server() {
    let world = World::new(known()).await;
    let wrong = access_by("desk", ClientProof::Secret("wrong-s3cret".into()), &["read"]);
    let process = servers([("crm", world.vault.settings(wrong))]);
    let reason = missing(&process, "crm").await;
    assert!(reason.ends_with("its authorization server gave no token; invalid_client: no"), "{reason}");
    process.close().await;
}

#[tokio::test]
async fn a_client_with_a_key_signs_who_it_is() {
    let world = World::new(known()).await;
    let key = ClientProof::PrivateKey { pem: KEY.into(), algorithm: SigningAlgorithm::Es256 };
    let process = servers([("crm", world.vault.settings(access_by("desk", key, &["read"])))]);
    assert_eq!(names(&process, "crm").await, ["change", "look"]);
    let assertion = world.vault.authority().asked("token")[0]["client_assertion"].clone();
    let parts: Vec<&str> = assertion.split('.').collect();
    let decoded = |part: &str| -> Value {
        use base64::Engine;
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(part).expect("base64");
        serde_json::from_slice(&bytes).expect("JSON")
    };
    let (header, claims) = (decoded(parts[0]), decoded(parts[1]));
    assert_eq!(header["alg"], "ES256");
    assert_eq!((&claims["iss"], &claims["sub"]), (&json!("desk"), &json!("desk")));
    assert_eq!(claims["aud"], world.vault.authority().issuer.as_str());
    process.close().await;
}

#[tokio::test]
async fn an_invalid_key_is_reported_without_being_shown() {
    let world = World::new(known()).await;
    let key = ClientProof::PrivateKey { pem: "no-key-s3cret".into(), algorithm: SigningAlgorithm::Rs256 };
    let process = servers([("crm", world.vault.settings(access_by("desk", key, &["read"])))]);
    let reason = missing(&process, "crm").await;
    assert!(reason.contains("signing key") && !reason.contains("s3cret"), "{reason}");
    process.close().await;
}
