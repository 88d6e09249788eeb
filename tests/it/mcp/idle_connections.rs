//! HTTP servers that close an idle keep-alive connection, with and without an announcement.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use toolgate::mcp::ServerSettings;

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
}

#[derive(Clone)]
struct Till {
    closes: Closes,
    told: Arc<Notify>,
    /// The number of opened connections, of closed ones, and of executed calls.
    opened: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
}

impl Till {
    async fn open(closes: Closes) -> (Self, ServerSettings) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let count = || Arc::new(AtomicUsize::new(0));
        let till = Self { closes, told: Arc::default(), opened: count(), closed: count(), calls: count() };
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
            let (status, answer) = self.answer(&first, &serde_json::from_slice(&body).unwrap_or_default());
            let word = if self.closes == Closes::Announced { "connection: close\r\n" } else { "" };
            let kind = if answer.is_empty() { "" } else { "content-type: application/json\r\n" };
            let head = format!("HTTP/1.1 {status}\r\n{kind}{word}content-length: {}\r\n\r\n", answer.len());
            stream.write_all((head + &answer).as_bytes()).await.ok()?;
            if self.closes != Closes::WhenTold {
                return None;
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
            Some("tools/list") => json!({"tools": [{"name": "pay", "inputSchema": {"type": "object"}}]}),
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
    for closes in [Closes::Announced, Closes::AtOnce] {
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
