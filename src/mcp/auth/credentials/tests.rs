//! Credential file under concurrent processes and foreign permissions.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

const SERVER: &str = "https://mcp.test/mcp";

fn credential(issuer: &str, token: &str, second: i64) -> Credential {
    Credential {
        server: SERVER.into(),
        issuer: issuer.into(),
        client: Client {
            id: "c".into(),
            secret: Some("client-s3cret".into()),
            redirect_uri: "http://127.0.0.1:1/".into(),
        },
        access_token: token.into(),
        refresh_token: Some("refresh-s3cret".into()),
        expires_at: None,
        scopes: vec!["read".into()],
        obtained_at: Timestamp::from_second(second).expect("a time"),
        unread_renewal_at: None,
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[tokio::test]
async fn the_file_and_its_folder_are_private_and_out_of_version_control() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = CredentialFile::new(folder.path().join("deep/credentials/tokens.json"));
    assert!(kept.newest(SERVER).expect("a missing file is not an error").is_none());
    kept.keep(credential("https://as.test", "access-s3cret", 1)).await.expect("kept");
    let found = kept.newest(SERVER).expect("readable").expect("kept");
    assert_eq!(found.access_token.expose_secret(), "access-s3cret");
    assert_eq!((mode(kept.path()), mode(kept.path().parent().expect("a folder"))), (0o600, 0o700));
    let ignored = kept.path().with_file_name(".gitignore");
    assert_eq!(fs::read_to_string(ignored).expect("written"), "*\n");
    let debug = format!("{found:?}{kept:?}");
    assert!(!debug.contains("s3cret"), "{debug}");
    let names: Vec<_> = fs::read_dir(kept.path().parent().expect("a folder")).expect("readable").collect();
    assert_eq!(names.len(), 3, "no temporary file remains: {names:?}");
}

#[tokio::test]
async fn a_file_that_others_can_read_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = CredentialFile::new(folder.path().join("tokens.json"));
    kept.keep(credential("https://as.test", "a", 1)).await.expect("kept");
    for exposed in [0o640, 0o604, 0o666] {
        fs::set_permissions(kept.path(), fs::Permissions::from_mode(exposed)).expect("it is ours");
        let path = kept.path().display();
        let expected =
            format!("the credentials in `{path}` can be read by others (mode {exposed:04o}); run `chmod 600 {path}`");
        assert_eq!(kept.newest(SERVER).expect_err("exposed").to_string(), expected);
        assert!(kept.keep(credential("https://as.test", "b", 2)).await.is_err(), "nor is it replaced unread");
    }
}

#[tokio::test]
async fn credentials_are_kept_by_server_and_issuer_and_the_newest_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = CredentialFile::new(folder.path().join("tokens.json"));
    for (issuer, token, second) in
        [("https://one.test", "a", 1), ("https://two.test", "b", 2), ("https://one.test", "c", 3)]
    {
        kept.keep(credential(issuer, token, second)).await.expect("kept");
    }
    let other = Credential { server: "https://other.test/mcp".into(), ..credential("https://one.test", "d", 9) };
    kept.keep(other).await.expect("kept");
    let token = |found: Option<Credential>| found.map(|found| found.access_token.expose_secret().to_owned());
    assert_eq!(token(kept.newest(SERVER).expect("readable")).as_deref(), Some("c"));
    assert_eq!(token(kept.of_issuer(SERVER, "https://two.test").expect("readable")).as_deref(), Some("b"));
    assert!(kept.of_issuer(SERVER, "https://three.test").expect("readable").is_none());
    assert_eq!(kept.forget(SERVER).await.expect("forgotten"), 2);
    assert_eq!(kept.forget(SERVER).await.expect("forgotten"), 0);
    assert!(kept.newest(SERVER).expect("readable").is_none());
    assert!(kept.newest("https://other.test/mcp").expect("readable").is_some());
}

#[tokio::test]
async fn many_writers_at_once_lose_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = CredentialFile::new(folder.path().join("tokens.json"));
    let writers = (0..12).map(|number| {
        let kept = kept.clone();
        async move { kept.keep(credential(&format!("https://as{number}.test"), "t", number)).await }
    });
    for written in futures::future::join_all(writers).await {
        written.expect("kept");
    }
    assert_eq!(file::read(kept.path()).expect("readable").len(), 12);
}

#[test]
fn a_file_with_other_content_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tokens.json");
    file::open_private(&path).expect("made");
    fs::write(&path, "{\"credentials\": [{\"access_token\": 7}]}").expect("written");
    let error = CredentialFile::new(&path).newest(SERVER).expect_err("malformed").to_string();
    assert!(error.contains("is no file of credentials") && error.ends_with("move it away and log in again"), "{error}");
}

#[test]
fn a_token_is_stale_half_a_minute_before_its_end() {
    let now = Timestamp::now();
    let at = |seconds: i64| Timestamp::from_second(now.as_second() + seconds).ok();
    assert_eq!([is_stale(None), is_stale(at(60)), is_stale(at(20)), is_stale(at(-1))], [false, false, true, true]);
}
