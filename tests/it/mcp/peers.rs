//! Other people's servers. They are installed by `scripts/test` into the directory named by `TOOLGATE_PEERS`
//! (`node_modules/.bin` and `venv/bin`); without it these tests say that they were skipped.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::Command;
use toolgate::mcp::{ServerSettings, Servers};

use super::support::*;

/// Where the servers are installed.
struct Peers(PathBuf);

impl Peers {
    fn installed() -> Option<Self> {
        let peers = std::env::var_os("TOOLGATE_PEERS").map(|path| Self(path.into()));
        if peers.is_none() {
            println!("skipped: TOOLGATE_PEERS is not set");
        }
        peers
    }

    fn node(&self, command: &str) -> String {
        self.program(&self.0.join("node_modules/.bin").join(command))
    }

    fn venv(&self, command: &str) -> String {
        self.program(&self.0.join("venv/bin").join(command))
    }

    fn program(&self, path: &Path) -> String {
        assert!(path.exists(), "TOOLGATE_PEERS is set, but there is no {}", path.display());
        std::path::absolute(path).expect("a path").to_str().expect("UTF-8").to_owned()
    }
}

fn one(settings: ServerSettings) -> Servers {
    servers([("peer", settings)])
}

async fn assert_lists(servers: &Servers, tool: &str) {
    let names = names(servers, "peer").await;
    assert!(names.iter().any(|name| name == tool), "{tool} is not among {names:?}");
}

#[tokio::test]
async fn server_everything_over_stdio_lists_answers_and_ends() {
    let Some(peers) = Peers::installed() else { return };
    let servers = one(ServerSettings::stdio(peers.node("mcp-server-everything"), ["stdio"]));
    assert_lists(&servers, "echo").await;
    assert_eq!(text(call(&servers, "peer", "echo", json!({"message": "hello"})).await), "Echo: hello");
    let wrong = returned(call(&servers, "peer", "no-such-tool", json!({})).await);
    assert!(wrong.is_error, "{wrong:?}");
    let pid = status(&servers, "peer").pid.expect("a process");
    servers.close().await;
    assert!(!is_running(pid));
}

#[tokio::test]
async fn server_everything_over_http_lists_and_answers() {
    let Some(peers) = Peers::installed() else { return };
    let port = free_port().await;
    let mut process = Command::new(peers.node("mcp-server-everything"))
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert!(process.try_wait().expect("a child").is_none(), "it ended before it accepted connections");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let servers = one(ServerSettings::http(format!("http://127.0.0.1:{port}/mcp")));
    assert_lists(&servers, "get-sum").await;
    assert!(text(call(&servers, "peer", "get-sum", json!({"a": 2, "b": 3})).await).contains('5'));
    servers.close().await;
    process.kill().await.expect("it is killed");
}

#[tokio::test]
async fn server_filesystem_writes_and_reads_where_it_may_and_nowhere_else() {
    let Some(peers) = Peers::installed() else { return };
    let directory = TempDir::new().expect("a directory");
    let root = directory.path().canonicalize().expect("a path");
    let path = |name: &str| root.join(name).to_str().expect("UTF-8").to_owned();
    let servers = one(ServerSettings::stdio(peers.node("mcp-server-filesystem"), [path("")]));
    assert_lists(&servers, "write_file").await;
    let write = json!({"path": path("note.txt"), "content": "seen by toolgate"});
    assert!(!returned(call(&servers, "peer", "write_file", write).await).is_error);
    assert_eq!(std::fs::read_to_string(root.join("note.txt")).expect("written"), "seen by toolgate");
    let read = call(&servers, "peer", "read_text_file", json!({"path": path("note.txt")})).await;
    assert!(text(read).contains("seen by toolgate"));
    let outside = returned(call(&servers, "peer", "read_text_file", json!({"path": "/etc/hostname"})).await);
    assert!(outside.is_error, "{outside:?}");
    servers.close().await;
}

#[tokio::test]
async fn server_git_reports_the_status_of_a_repository() {
    let Some(peers) = Peers::installed() else { return };
    let repository = TempDir::new().expect("a directory");
    let root = repository.path().to_str().expect("UTF-8");
    let made = std::process::Command::new("git").args(["init", "--quiet", root]).status();
    assert!(made.expect("git is installed").success());
    std::fs::write(repository.path().join("new.txt"), "new").expect("written");
    let servers = one(ServerSettings::stdio(peers.venv("mcp-server-git"), ["--repository", root]));
    assert_lists(&servers, "git_status").await;
    let status = text(call(&servers, "peer", "git_status", json!({"repo_path": root})).await);
    assert!(status.contains("new.txt"), "{status}");
    servers.close().await;
}

#[tokio::test]
async fn server_time_tells_the_time_and_takes_no_wrong_zone() {
    let Some(peers) = Peers::installed() else { return };
    let servers = one(ServerSettings::stdio(peers.venv("mcp-server-time"), Vec::<String>::new()));
    assert_lists(&servers, "get_current_time").await;
    let utc = text(call(&servers, "peer", "get_current_time", json!({"timezone": "Etc/UTC"})).await);
    assert!(utc.contains("Etc/UTC"), "{utc}");
    let nowhere = returned(call(&servers, "peer", "get_current_time", json!({"timezone": "Nowhere/Land"})).await);
    assert!(nowhere.is_error, "{nowhere:?}");
    servers.close().await;
}

async fn free_port() -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address").port()
}
