//! `toolgate mcp login` and `logout`, as users run them.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::browser_user::led_back;
use super::*;

/// The program in that folder.
fn toolgate(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    command.args(arguments).current_dir(folder).env_remove("TOOLGATE_CONFIG").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

async fn said(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = toolgate(folder, arguments).output().await.expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

fn configured(world: &World) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let url = &world.vault.url;
    let yaml = format!(
        "servers:\n  crm: {{ http: {{ url: \"{url}\" }} }}\n  fixed: {{ http: {{ url: \"{url}\", auth: {{ bearer: t }} }} }}\n  \
         local: {{ stdio: {{ command: cat }} }}\n"
    );
    std::fs::write(folder.path().join("toolgate.yaml"), yaml).expect("written");
    folder
}

#[tokio::test]
async fn the_command_shows_the_page_and_stores_the_credential() {
    let world = World::new(Manner::default()).await;
    let folder = configured(&world);
    let arguments = ["mcp", "login", "crm", "--scope", "read write", "--json"];
    let mut running = toolgate(folder.path(), &arguments).spawn().expect("it runs");
    let mut stderr = BufReader::new(running.stderr.take().expect("piped")).lines();
    let page = loop {
        let line = stderr.next_line().await.expect("readable").expect("a page before the end");
        if let Some(page) = line.trim().strip_prefix("http").map(|rest| format!("http{rest}")) {
            break page;
        }
    };
    reqwest::get(led_back(&page).await.expect("agreed")).await.expect("it listens");
    let output = running.wait_with_output().await.expect("it ends");
    assert!(output.status.success());
    let result: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    assert_eq!(result["server"], "crm");
    assert_eq!(result["scopes"], serde_json::json!(["read", "write"]));
    assert_eq!(result["renewable"], true);
    let kept = folder.path().join(".toolgate/credentials/tokens.json");
    assert!(std::fs::read_to_string(&kept).expect("kept").contains("access-s3cret"));

    let logout = ["mcp", "logout", "crm"];
    assert_eq!(said(folder.path(), &logout).await, (0, "logged out of crm\n".into(), String::new()));
    assert!(!std::fs::read_to_string(&kept).expect("kept").contains("s3cret"));
    assert_eq!(said(folder.path(), &logout).await.1, "not logged in to crm\n");
}

#[tokio::test]
async fn a_login_that_makes_no_sense_is_refused_with_the_reason() {
    let world = World::new(Manner::default()).await;
    let folder = configured(&world);
    for (server, code, expected) in [
        ("crn", 2, "there is no MCP server `crn`"),
        ("local", 2, "the MCP server `local` is a program that toolgate starts; it needs no login"),
        ("fixed", 2, "login to the MCP server `fixed` failed: its credentials are in the configuration"),
    ] {
        let (exit, stdout, stderr) = said(folder.path(), &["mcp", "login", server]).await;
        assert_eq!((exit, stdout.as_str()), (code, ""), "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
}
