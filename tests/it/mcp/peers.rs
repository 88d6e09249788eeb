//! Third-party servers, and one written with a third-party framework. `scripts/test` installs them into the directory
//! named by `TOOLGATE_PEERS` (`node_modules/.bin` and `venv/bin`); without it these tests report that they were
//! skipped.
//!
//! Each test lists a server completely, compares its schemas with the raw messages, calls it for something real, and
//! ends it.

mod watched;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use toolgate::mcp::{ServerSettings, Servers};

use super::support::*;
use watched::Watched;

/// The directory of the installed servers.
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
        let remedy = "install what is pinned with `scripts/test --only peers`";
        assert!(path.exists(), "TOOLGATE_PEERS is set, but there is no {}; {remedy}", path.display());
        std::path::absolute(path).expect("a path").to_str().expect("UTF-8").to_owned()
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a directory");
    let path = folder.path().canonicalize().expect("a path");
    (folder, path)
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[tokio::test]
async fn server_everything_over_stdio_lists_answers_and_ends() {
    let Some(peers) = Peers::installed() else { return };
    let server = peers.node("mcp-server-everything");
    // Its one tool that has to be a task of the older kind.
    let peer = Watched::start_with(&server, &["stdio"], &[], &["simulate-research-query"]).await;
    // It offers two of them because toolgate supports elicitation.
    assert_eq!(peer.tools().len(), 14, "{:?}", peer.tools());
    assert_eq!(text(peer.call("echo", json!({"message": "hello"})).await), "Echo: hello");
    let weather = returned(peer.call("get-structured-content", json!({"location": "New York"})).await);
    assert!(weather.structured.is_some_and(|weather| weather["temperature"].is_number()));
    let image = returned(peer.call("get-tiny-image", json!({})).await);
    assert!(image.content.iter().any(|part| part.as_media().is_some()), "{image:?}");
    let wrong = returned(peer.call("no-such-tool", json!({})).await);
    assert!(wrong.is_error, "{wrong:?}");
    peer.end().await;
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
    let servers: Servers = servers([("peer", ServerSettings::http(format!("http://127.0.0.1:{port}/mcp")))]);
    let listed = list(&servers, &["peer"]).await.remove(0);
    assert!(listed.tools.iter().any(|tool| tool.name == "get-sum"), "{listed:?}");
    let left_out: Vec<Option<&str>> = listed.left_out.iter().map(|left| left.tool.as_deref()).collect();
    assert_eq!(left_out, [Some("simulate-research-query")]);
    assert!(text(call(&servers, "peer", "get-sum", json!({"a": 2, "b": 3})).await).contains('5'));
    servers.close().await;
    process.kill().await.expect("it is killed");
}

#[tokio::test]
async fn server_filesystem_writes_and_reads_where_it_may_and_nowhere_else() {
    let Some(peers) = Peers::installed() else { return };
    let (_folder, root) = folder();
    let path = |name: &str| utf8(&root.join(name)).to_owned();
    let peer = Watched::start(&peers.node("mcp-server-filesystem"), &[utf8(&root)]).await;
    assert_eq!(peer.tools().len(), 14, "{:?}", peer.tools());
    let write = json!({"path": path("note.txt"), "content": "seen by toolgate"});
    assert!(!returned(peer.call("write_file", write).await).is_error);
    assert_eq!(std::fs::read_to_string(root.join("note.txt")).expect("written"), "seen by toolgate");
    let read = peer.call("read_text_file", json!({"path": path("note.txt")})).await;
    assert!(text(read).contains("seen by toolgate"));
    let outside = returned(peer.call("read_text_file", json!({"path": "/etc/hostname"})).await);
    assert!(outside.is_error, "{outside:?}");
    peer.end().await;
}

#[tokio::test]
async fn server_memory_remembers_in_its_file() {
    let Some(peers) = Peers::installed() else { return };
    let (_folder, root) = folder();
    let memory = root.join("memory.jsonl");
    let env = [("MEMORY_FILE_PATH", utf8(&memory))];
    let peer = Watched::start_with(&peers.node("mcp-server-memory"), &[], &env, &[]).await;
    assert_eq!(peer.tools().len(), 9, "{:?}", peer.tools());
    let ada = json!({"name": "Ada", "entityType": "person", "observations": ["likes engines"]});
    assert!(!returned(peer.call("create_entities", json!({"entities": [ada]})).await).is_error);
    let graph = returned(peer.call("read_graph", json!({})).await).structured.expect("structured");
    assert_eq!(graph["entities"][0]["observations"], json!(["likes engines"]));
    peer.end().await;
    assert!(std::fs::read_to_string(memory).expect("its file").contains("likes engines"));
}

#[tokio::test]
async fn server_sequential_thinking_counts_thoughts() {
    let Some(peers) = Peers::installed() else { return };
    let peer = Watched::start(&peers.node("mcp-server-sequential-thinking"), &[]).await;
    assert_eq!(peer.tools(), ["sequentialthinking"]);
    let thought = json!({"thought": "hm", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1});
    let counted = returned(peer.call("sequentialthinking", thought).await).structured.expect("structured");
    assert_eq!(counted["thoughtHistoryLength"], 1);
    peer.end().await;
}

#[tokio::test]
async fn server_git_reports_the_status_of_a_repository() {
    let Some(peers) = Peers::installed() else { return };
    let (_folder, root) = folder();
    let made = std::process::Command::new("git").args(["init", "--quiet", utf8(&root)]).status();
    assert!(made.expect("git is installed").success());
    std::fs::write(root.join("new.txt"), "new").expect("written");
    let peer = Watched::start(&peers.venv("mcp-server-git"), &["--repository", utf8(&root)]).await;
    assert_eq!(peer.tools().len(), 12, "{:?}", peer.tools());
    let status = text(peer.call("git_status", json!({"repo_path": utf8(&root)})).await);
    assert!(status.contains("new.txt"), "{status}");
    peer.end().await;
}

#[tokio::test]
async fn server_time_tells_the_time_and_takes_no_wrong_zone() {
    let Some(peers) = Peers::installed() else { return };
    let peer = Watched::start(&peers.venv("mcp-server-time"), &[]).await;
    assert_eq!(peer.tools(), ["convert_time", "get_current_time"]);
    let utc = text(peer.call("get_current_time", json!({"timezone": "Etc/UTC"})).await);
    assert!(utc.contains("Etc/UTC"), "{utc}");
    let nowhere = returned(peer.call("get_current_time", json!({"timezone": "Nowhere/Land"})).await);
    assert!(nowhere.is_error, "{nowhere:?}");
    peer.end().await;
}

#[tokio::test]
async fn server_fetch_fetches_a_page() {
    let Some(peers) = Peers::installed() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let page = format!("http://{}/page", listener.local_addr().expect("an address"));
    let serving = tokio::spawn(plain_text(listener));
    let peer = Watched::start(&peers.venv("mcp-server-fetch"), &["--ignore-robots-txt", "--allow-private-ips"]).await;
    assert_eq!(peer.tools(), ["fetch"]);
    let fetched = text(peer.call("fetch", json!({"url": page, "raw": true})).await);
    assert!(fetched.contains("read by a server"), "{fetched}");
    peer.end().await;
    serving.abort();
}

#[tokio::test]
async fn a_fastmcp_server_with_hard_schemas_is_offered_and_called_whole() {
    let Some(peers) = Peers::installed() else { return };
    let peer = Watched::start(&peers.venv("python"), &["-B", &script_path("fastmcp_nested.py")]).await;
    let expected = ["fail", "greet", "large", "noisy", "pay", "total", "undescribed", "weird.name/with-slash"];
    assert_eq!(peer.tools(), expected);
    let home = json!({"street": "Main", "zip": "12345"});
    let friend = json!({"name": "Bob", "address": home, "friends": [{"name": "Cyd", "address": home}]});
    let ada = json!({"name": "Ada", "address": home, "friends": [friend]});
    assert_eq!(text(peer.call("greet", json!({"person": ada})).await), "Hello Ada of Main, friend of 2");
    let paid = returned(peer.call("pay", json!({"with_": {"kind": "invoice"}})).await);
    assert_eq!(paid.structured, Some(json!({"paid": "invoice", "note": null})));
    let tree = json!({"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]});
    let total = returned(peer.call("total", json!({"tree": tree})).await);
    assert_eq!(total.structured, Some(json!({"result": 6})), "the framework wraps a number");
    let odd = returned(peer.call("weird.name/with-slash", json!({})).await);
    assert_eq!(odd.structured, Some(json!({"result": [1, 2, 3]})));
    assert_eq!(text(peer.call("noisy", json!({})).await), "quiet", "its output on stdout is skipped");
    let raised = returned(peer.call("fail", json!({})).await);
    assert!(raised.is_error, "{raised:?}");
    peer.end().await;
}

#[tokio::test]
async fn twenty_megabytes_that_are_sent_twice_arrive_whole() {
    let Some(peers) = Peers::installed() else { return };
    let script = script_path("fastmcp_nested.py");
    let servers = servers([("peer", ServerSettings::stdio(peers.venv("python"), ["-B", &script]))]);
    let large = returned(call(&servers, "peer", "large", json!({"megabytes": 20})).await);
    let text: String = large.content.iter().filter_map(|part| part.as_text()).collect();
    assert_eq!(text.len(), 20_000_000);
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_fit_its_framework_any_more_says_so_when_it_dies_at_start() {
    let Some(peers) = Peers::installed() else { return };
    let (_folder, root) = folder();
    let database = root.join("a.db");
    let arguments = ["--db-path", utf8(&database)];
    let servers = servers([("sqlite", ServerSettings::stdio(peers.venv("mcp-server-sqlite"), arguments))]);
    let reason = missing(&servers, "sqlite").await;
    assert!(
        reason.starts_with("the MCP server `sqlite` ended before it was ready: its process ended with"),
        "{reason}"
    );
    assert!(reason.contains("AttributeError: 'Server' object has no attribute 'list_resources'"), "{reason}");
    servers.close().await;
}

async fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Answers every request with the same text.
async fn plain_text(listener: TcpListener) {
    const PAGE: &str = "read by a server";
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await;
        let length = PAGE.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        let _ = stream.write_all(format!("{head}{PAGE}").as_bytes()).await;
    }
}
