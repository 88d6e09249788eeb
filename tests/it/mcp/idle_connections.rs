//! HTTP servers that close a keep-alive connection: idle, with and without an announcement, and under a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::tool::{CallReply, FailureKind, Outcome};
use toolgate::mcp::{ServerSettings, Servers};
use toolgate::ports::{McpCall, McpServers as _};

use super::support::*;

/// When the server closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closes {
    /// After each answer, which announces it.
    Announced,
    /// After each answer, without an announcement.
    AtOnce,
    /// When the test requests it.
    WhenTold,
    /// When the next request arrives, without reading it.
    OnReuse,
    /// When a request arrives on a connection that answered a call, without reading it.
    OnReuseAfterCall,
    /// When it has read a request with this method, instead of answering it.
    Unanswered(&'static str),
}

#[derive(Clone)]
struct Till {
    closes: Closes,
    told: Arc<Notify>,
    /// The number of opened connections, of closed ones, of executed calls, and of answered lists.
    opened: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
    lists: Arc<AtomicUsize>,
}

impl Till {
    async fn open(closes: Closes) -> (Self, ServerSettings) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let count = || Arc::new(AtomicUsize::new(0));
        let till =
            Self { closes, told: Arc::default(), opened: count(), closed: count(), calls: count(), lists: count() };
        let served = till.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let till = served.clone();
                tokio::spawn(async move {
                    till.opened.fetch_add(1, Ordering::SeqCst);
                    till.serve(stream).await;
                    till.closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        (till, ServerSettings::http(format!("http://{address}/mcp")))
    }

    /// Answers the requests on one connection, until it is closed.
    async fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let (mut first, mut length) = (String::new(), 0);
            let read = tokio::select! {
                read = stream.read_line(&mut first) => read.ok()?,
                () = self.told.notified() => return None,
            };
            (read > 0).then_some(())?;
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).await.ok()?;
                let header = line.trim().to_ascii_lowercase();
                if header.is_empty() {
                    break;
                }
                length =
                    header.strip_prefix("content-length:").map_or(length, |length| length.trim().parse().unwrap_or(0));
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.ok()?;
            let message: Value = serde_json::from_slice(&body).unwrap_or_default();
            let (status, answer) = self.answer(&first, &message);
            if matches!(self.closes, Closes::Unanswered(method) if message["method"] == method) {
                return None;
            }
            let word = if self.closes == Closes::Announced { "connection: close\r\n" } else { "" };
            let kind = if answer.is_empty() { "" } else { "content-type: application/json\r\n" };
            let head = format!("HTTP/1.1 {status}\r\n{kind}{word}content-length: {}\r\n\r\n", answer.len());
            stream.write_all((head + &answer).as_bytes()).await.ok()?;
            match self.closes {
                Closes::Announced | Closes::AtOnce => return None,
                Closes::OnReuseAfterCall if message["method"] != "tools/call" => {}
                Closes::WhenTold | Closes::Unanswered(_) => {}
                Closes::OnReuse | Closes::OnReuseAfterCall => {
                    stream.get_ref().peek(&mut [0]).await.ok()?;
                    return None;
                }
            }
        }
    }

    fn answer(&self, first: &str, message: &Value) -> (&'static str, String) {
        if !first.starts_with("POST") {
            return ("405 Method Not Allowed", String::new());
        }
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "till", "version": "1"},
            }),
            Some("tools/list") => {
                self.lists.fetch_add(1, Ordering::SeqCst);
                json!({"tools": [{"name": "pay", "inputSchema": {"type": "object"}}]})
            }
            Some("tools/call") => {
                self.calls.fetch_add(1, Ordering::SeqCst);
                json!({"content": [{"type": "text", "text": "paid"}]})
            }
            Some(method) if !method.starts_with("notifications/") => {
                let error = json!({"code": -32601, "message": "Method not found"});
                return ("200 OK", json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string());
            }
            _ => return ("202 Accepted", String::new()),
        };
        ("200 OK", json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn connections_that_close_behind_each_answer_cost_no_call() {
    for closes in [Closes::Announced, Closes::AtOnce, Closes::OnReuse] {
        let (till, settings) = Till::open(closes).await;
        let servers = servers([("till", settings)]);
        for _ in 0..50 {
            let paid = text(call(&servers, "till", "pay", json!({})).await);
            assert_eq!(paid, "paid", "{closes:?} after {} calls", till.calls());
        }
        assert_eq!(till.calls(), 50, "{closes:?}: each was made once");
        assert!(till.opened.load(Ordering::SeqCst) > 50, "{closes:?}: each on a connection of its own");
        servers.close().await;
    }
}

#[tokio::test]
async fn calls_share_the_connections_of_a_server_that_keeps_them_open() {
    let (till, settings) = Till::open(Closes::WhenTold).await;
    let servers = servers([("till", settings)]);
    names(&servers, "till").await;
    servers.refresh(&ServerId::from("till")).await;
    let before = till.opened.load(Ordering::SeqCst);
    for _ in 0..50 {
        assert_eq!(text(call(&servers, "till", "pay", json!({})).await), "paid");
    }
    assert_eq!(till.calls(), 50, "each was made once");
    let opened = till.opened.load(Ordering::SeqCst) - before;
    assert!(opened < 25, "a slow machine lets a few connections become too old: {opened}");
    servers.close().await;
}

#[tokio::test]
async fn a_call_that_is_lost_with_a_kept_connection_is_reported_and_the_only_one() {
    let (till, settings) = Till::open(Closes::OnReuseAfterCall).await;
    let servers = servers([("till", settings)]);
    names(&servers, "till").await;
    servers.refresh(&ServerId::from("till")).await;
    let mut lost = 0;
    for _ in 0..50 {
        match call(&servers, "till", "pay", json!({})).await {
            Outcome::Failed(failure) => {
                assert_eq!(failure.kind, FailureKind::Disconnected, "{}", failure.message);
                lost += 1;
            }
            outcome => assert_eq!(text(outcome), "paid"),
        }
    }
    assert!(lost <= 1, "{lost} calls were lost");
    assert_eq!(till.calls(), 50 - lost, "none was made twice");
    servers.close().await;
}

#[tokio::test]
async fn a_connection_that_closed_while_it_was_idle_is_not_used_again() {
    let (till, settings) = Till::open(Closes::WhenTold).await;
    let servers = servers([("till", settings)]);
    for round in 1..=50 {
        assert_eq!(text(call(&servers, "till", "pay", json!({})).await), "paid", "call {round}");
        till.told.notify_waiters();
        let all_closed = async || till.closed.load(Ordering::SeqCst) == till.opened.load(Ordering::SeqCst);
        eventually("the idle connections are closed", all_closed).await;
    }
    assert_eq!(till.calls(), 50, "each was made once");
    servers.close().await;
}

#[tokio::test]
async fn a_list_whose_connection_closed_is_requested_once_more() {
    let (till, settings) = Till::open(Closes::OnReuse).await;
    let servers = servers([("till", settings)]);
    assert_eq!(names(&servers, "till").await, ["pay"]);
    for _ in 0..20 {
        let refreshed = servers.refresh(&ServerId::from("till")).await;
        assert_eq!(refreshed, Some(Ok(())));
    }
    assert_eq!(till.lists.load(Ordering::SeqCst), 21, "each list was answered once");
    servers.close().await;
}

#[tokio::test]
async fn a_list_that_is_never_answered_is_requested_twice() {
    let (till, settings) = Till::open(Closes::Unanswered("tools/list")).await;
    let servers = servers([("till", settings)]);
    let reason = missing(&servers, "till").await;
    assert!(reason.contains("broke off the connection"), "{reason}");
    assert_eq!(till.lists.load(Ordering::SeqCst), 2);
    servers.close().await;
}

#[tokio::test]
async fn a_call_whose_connection_closed_is_not_repeated() {
    let (till, settings) = Till::open(Closes::Unanswered("tools/call")).await;
    let servers = servers([("till", settings)]);
    for round in 1..=20 {
        let (kind, why) = failed(call(&servers, "till", "pay", json!({})).await);
        assert_eq!((kind, till.calls()), (FailureKind::Disconnected, round), "{why}");
    }
    servers.close().await;
}

/// The answer of a call that may arrive twice.
async fn repeatable(servers: &Servers) -> String {
    let (run, call, server, trace) = (RunId::from("run_1"), CallId::from("call_1"), ServerId::from("till"), trace());
    let call = McpCall {
        run: &run,
        call: &call,
        server: &server,
        tool: "pay",
        arguments: &Map::new(),
        is_repeatable: true,
        trace: &trace,
        deadline: None,
        answered: None,
        elicitation: None,
    };
    match servers.call(call, &|_| {}).await.reply {
        CallReply::Ended { outcome, .. } => text(outcome),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn calls_that_may_be_repeated_share_connections() {
    let (till, settings) = Till::open(Closes::WhenTold).await;
    let servers = servers([("till", settings)]);
    for _ in 0..50 {
        assert_eq!(repeatable(&servers).await, "paid");
    }
    let opened = till.opened.load(Ordering::SeqCst);
    assert!(opened < 10, "{opened} connections");
    servers.close().await;
}

#[tokio::test]
async fn a_call_that_may_be_repeated_is_sent_again_after_its_connection_closed() {
    let (till, settings) = Till::open(Closes::OnReuse).await;
    let servers = servers([("till", settings)]);
    for round in 1..=20 {
        assert_eq!((repeatable(&servers).await.as_str(), till.calls()), ("paid", round));
    }
    servers.close().await;
}
