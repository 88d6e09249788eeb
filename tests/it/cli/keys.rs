//! API keys on the command line, and authentication with them at `toolgate serve`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use super::desk::{Desk, person};

/// A server that is stopped at the end of a test.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn at(desk: &Desk) -> Self {
        let mut command = desk.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let url = loop {
            let mut line = String::new();
            assert!(told.read_line(&mut line).unwrap() > 0, "the server ended");
            if let Some((_, address)) = line.trim().split_once("http://") {
                break format!("http://{}", address.split_whitespace().next().unwrap());
            }
        };
        // The test reads no more output, and a full pipe must not stop the server.
        std::thread::spawn(move || drop(told.read_to_string(&mut String::new())));
        Self { child, url }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The status of a request.
async fn status(url: &str, key: Option<&str>, headers: &[(&str, &str)]) -> u16 {
    let request = reqwest::Client::new().get(format!("{url}/v1/runs"));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let request = match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    };
    request.send().await.unwrap().status().as_u16()
}

#[test]
fn a_rotated_key_has_a_successor_and_expires_after_the_overlap() {
    let desk = Desk::playing("turns: []");
    let first = desk.toolgate(&["keys", "create", "ci", "--scope", "runs:read"]).expect(0).out;
    let id = desk.toolgate(&["keys", "list", "--json"]).expect(0).json_lines()[0]["id"].as_str().unwrap().to_owned();

    let rotated = desk.toolgate(&["keys", "rotate", &id, "--overlap", "8h"]).expect(0);

    assert!(rotated.out.starts_with("tg_") && rotated.out != first, "{}", rotated.out);
    assert!(rotated.err.contains(&format!("`ci` replaces {id}, which is valid until ")), "{}", rotated.err);
    let keys = desk.toolgate(&["keys", "list", "--json"]).expect(0).json_lines();
    let [new, old] = &keys[..] else { panic!("{keys:?}") };
    assert_eq!((&new["name"], &new["scopes"], new.get("expires_at")), (&old["name"], &old["scopes"], None));
    assert!(old["id"] == id.as_str() && old["overlaps_until"].is_string(), "{old}");
    desk.toolgate(&["keys", "revoke", &id]).expect(0);
    let refused = desk.toolgate(&["keys", "rotate", &id]).expect(2).err;
    assert!(refused.contains("is revoked or has expired"), "{refused}");
}

#[test]
fn a_key_is_created_listed_without_its_secret_and_revoked() {
    let desk = Desk::playing("turns: []");

    let made = desk.toolgate(&["keys", "create", "ci", "--scope", "runs:read", "--expires", "90d"]).expect(0);

    let secret = made.out.trim();
    assert_eq!((made.out.lines().count(), secret.len(), &secret[..3]), (1, 46, "tg_"), "{}", made.out);
    assert!(made.err.contains("not shown again") && !made.err.contains(secret), "{}", made.err);
    let listed = desk.toolgate(&["keys", "list", "--json"]).expect(0);
    let [key] = &listed.json_lines()[..] else { panic!("one key: {}", listed.out) };
    assert_eq!((key["name"].as_str(), key["created_by"].as_str()), (Some("ci"), Some(person().as_str())));
    assert_eq!((&key["scopes"], &key["tenant"]), (&serde_json::json!(["runs:read"]), &"default".into()));
    assert!(!listed.out.contains(&secret[3..]) && !listed.out.contains("hash"), "{}", listed.out);
    let id = key["id"].as_str().unwrap();
    let revoked = desk.toolgate(&["keys", "revoke", &id[..id.len() - 1]]).expect(0);
    assert!(revoked.out.contains(&format!("revoked by {}", person())), "{}", revoked.out);
    assert_eq!(desk.toolgate(&["keys", "list", "--json"]).expect(0).json_lines()[0]["active"], false);
    assert!(desk.toolgate(&["keys", "list"]).expect(0).out.contains(&format!("revoked by {}", person())));
    assert_eq!(desk.toolgate(&["keys", "revoke", "key_of_unknown"]).code, 2);
}

#[test]
fn an_invalid_key_request_is_rejected() {
    let desk = Desk::playing("turns: []");
    for wrong in [
        &["keys", "create", "ci"][..],
        &["keys", "create", "ci", "--all", "--scope", "admin"],
        &["keys", "create", "ci", "--scope", "everything"],
        &["keys", "create", "a b", "--all"],
        &["keys", "create", "ci", "--all", "--principal", ""],
        &["keys", "create", "ci", "--all", "--tenant", ""],
        &["keys", "create", "ci", "--all", "--tenant", "a\nb"],
        &["keys", "create", "ci", "--all", "--expires", "2020-01-01T00:00:00Z"],
    ] {
        let refused = desk.toolgate(wrong).expect(2);
        assert_eq!(refused.out, "", "{wrong:?}");
    }
    desk.write("toolgate.yaml", "store: { memory: {} }\n");
    let forgotten = desk.toolgate(&["keys", "create", "ci", "--all"]).expect(2);
    assert!(forgotten.err.contains("sqlite"), "{}", forgotten.err);
}

#[test]
fn a_server_without_credentials_does_not_start() {
    let desk = Desk::playing("turns: []");
    let refused = desk.toolgate(&["serve", "--listen", "127.0.0.1:0"]).expect(2);
    for help in ["toolgate keys create", "gateway.oidc", "gateway.anonymous"] {
        assert!(refused.err.contains(help), "{help}: {}", refused.err);
    }
}

#[test]
fn an_anonymous_server_on_a_public_address_does_not_start() {
    let desk = Desk::playing("turns: []");
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &format!("{config}gateway: {{ anonymous: true }}\n"));
    let refused = desk.toolgate(&["serve", "--listen", "0.0.0.0:0"]).expect(2);
    assert!(refused.err.contains("anonymous access on 0.0.0.0"), "{}", refused.err);
    assert!(refused.err.contains("toolgate keys create") && refused.err.contains("gateway.oidc"), "{}", refused.err);
}

#[tokio::test]
async fn a_server_accepts_a_key_until_it_is_revoked() {
    let desk = Desk::playing("turns: []");
    let key = desk.toolgate(&["keys", "create", "ci", "--all"]).expect(0).out.trim().to_owned();
    let serving = Serving::at(&desk);

    assert_eq!(status(&serving.url, Some(&key), &[]).await, 200);
    assert_eq!(status(&serving.url, None, &[]).await, 401);
    assert_eq!(status(&serving.url, Some(&key), &[("origin", "https://evil.example")]).await, 403);
    // A key that is created while the server runs is valid at once.
    let second = desk.toolgate(&["keys", "create", "second", "--all"]).expect(0).out.trim().to_owned();
    assert_eq!(status(&serving.url, Some(&second), &[]).await, 200);
    let id = desk.toolgate(&["keys", "list", "--json"]).expect(0).json_lines()[1]["id"].as_str().unwrap().to_owned();
    desk.toolgate(&["keys", "revoke", &id]).expect(0);
    let heard = async {
        while status(&serving.url, Some(&key), &[]).await == 200 {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(15), heard).await.expect("the server learns of the revocation");
    assert_eq!(status(&serving.url, Some(&second), &[]).await, 200);
}

#[tokio::test]
async fn an_anonymous_server_answers_to_names_of_this_machine_only() {
    let desk = Desk::playing("turns: []");
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &format!("{config}gateway: {{ anonymous: true, hosts: [gate.test] }}\n"));
    let serving = Serving::at(&desk);
    assert_eq!(status(&serving.url, None, &[]).await, 200);
    assert_eq!(status(&serving.url, None, &[("host", "gate.test")]).await, 200);
    assert_eq!(status(&serving.url, None, &[("host", "evil.example")]).await, 403);
    assert_eq!(status(&serving.url, Some("tg_wrong"), &[]).await, 401, "invalid credentials are rejected");
}
