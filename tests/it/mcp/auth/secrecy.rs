//! Secrets in logs, errors and debug views: there are none, whatever the log level.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::super::support::*;
use super::*;

/// Set in the process that looks for secrets.
const ALONE: &str = "TOOLGATE_TEST_ALONE";

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Other tests of this process influence the log level, so this test runs in its own process.
#[test]
fn nothing_secret_is_said_however_much_is_logged() {
    let mut alone = std::process::Command::new(std::env::current_exe().expect("the test binary"));
    let name = "mcp::auth::secrecy::no_token_code_or_secret_is_in_a_log_an_error_or_a_debug_view";
    let output = alone.args(["--exact", name]).env(ALONE, "1").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// The body of the test above, in its own process. Among other tests it does nothing.
#[tokio::test]
async fn no_token_code_or_secret_is_in_a_log_an_error_or_a_debug_view() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let log = Log::default();
    let everything = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    let listening = tracing::subscriber::set_default(everything);
    let world = World::new(Manner { gives_secrets: true, expires_in: Some(10), ..Manner::default() }).await;
    let login = world.login(&[]).await.expect("logged in");
    let process = world.process();
    names(&process, "crm").await;
    let needs_more = failed(call(&process, "crm", "change", json!({})).await).1;
    world.vault.authority().revoke();
    world.vault.authority().expire_access();
    let needs_login = failed(call(&process, "crm", "look", json!({})).await).1;
    let settings = world.vault.settings(access(&world.credentials));
    let views = format!("{login:?} {settings:?} {needs_more} {needs_login} {:?}", process.status());
    process.close().await;
    drop(listening);
    assert!(world.kept().contains("s3cret"), "there was a secret to leak");
    assert!(!views.contains("s3cret"), "{views}");
    let log = String::from_utf8(log.0.lock().expect("no panic").clone()).expect("text");
    assert!(log.contains("DEBUG") && log.contains("rmcp"), "something was logged: {log}");
    let leaks: Vec<&str> = log.lines().filter(|line| line.contains("s3cret")).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}
