//! Flawed MCP server for the tests of the check: each argument is a mistake that it makes. Without any it is clean.
//!
//! It uses no MCP library and writes each message as text, so that it can break every rule. `--http` serves streamable
//! HTTP on a free port and prints its address; `--modern` also speaks the stateless revision, and `--modern-only` nothing
//! else. `--fixture` adds two tools under the names that the official conformance suite calls, and with `--long` a slow
//! answer is slow for the limits of the command as well.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod http;
mod tasks;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

use serde_json::{Value, json};

use tools::tools;

/// A pixel as PNG.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

struct Server {
    flaws: BTreeSet<String>,
    lists: Mutex<usize>,
    sessions: Mutex<BTreeSet<String>>,
    /// The ids of answers to its own requests.
    replies: Mutex<BTreeSet<String>>,
    tasks: Mutex<BTreeMap<String, tasks::Task>>,
    calls: AtomicUsize,
    /// The calls that run now.
    busy: AtomicUsize,
}

type Out<'a> = &'a (dyn Fn(&str) + Sync);

fn main() {
    let flaws: BTreeSet<String> = std::env::args().skip(1).collect();
    let server = Arc::new(Server {
        flaws,
        lists: Mutex::default(),
        sessions: Mutex::default(),
        replies: Mutex::default(),
        tasks: Mutex::default(),
        calls: AtomicUsize::default(),
        busy: AtomicUsize::default(),
    });
    if let Some(path) = server.flaws.iter().find_map(|flaw| flaw.strip_prefix("lock="))
        && std::fs::OpenOptions::new().create_new(true).write(true).open(path).is_err()
    {
        eprintln!("another instance is running");
        std::process::exit(1);
    }
    if server.has("dies-at-start") {
        eprintln!("Error: DATABASE_URL is not set");
        std::process::exit(3);
    }
    if server.has("--http") { http::http(&server) } else { stdio(&server) }
}

fn stdio(server: &Arc<Server>) {
    let print = |line: &str| {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}");
        let _ = out.flush();
    };
    if server.has("banner") {
        print("Demo MCP server running on stdio");
    }
    if server.has("memory") {
        let big = vec![1u8; 500 << 20];
        std::mem::forget(big);
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if message["params"]["name"] == "slow" || server.has("not-concurrent") {
            let server = server.clone();
            spawn(move || server.handle(&message, &print));
        } else {
            server.handle(&message, &print);
        }
    }
    if server.has("never-exits") {
        sleep(Duration::from_secs(60));
    }
}

impl Server {
    fn has(&self, flaw: &str) -> bool {
        self.flaws.contains(flaw)
    }

    /// Handles a message; `out` sends a line.
    fn handle(&self, message: &Value, out: Out<'_>) {
        let method = message["method"].as_str().unwrap_or_default();
        let Some(id) = message.get("id") else {
            if self.has("notification-answered") {
                out(&json!({"jsonrpc": "2.0", "id": null, "result": {}}).to_string());
            }
            if method == "notifications/initialized" {
                self.after_initialized(out);
            }
            return;
        };
        let is_modern = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string();
        if is_modern
            && message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] != "2026-07-28"
            && !self.has("version-code")
        {
            let error = json!({"code": -32022, "message": "unsupported", "data": {"supported": ["2026-07-28"], "requested": "x"}});
            out(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
            return;
        }
        let Some(answer) = self.answer(method, &message["params"], out) else { return };
        self.send(method, id, is_modern, answer, out);
    }

    fn send(&self, method: &str, id: &Value, is_modern: bool, answer: Result<Value, (i64, String)>, out: Out<'_>) {
        let id = if self.has("text-id") { json!(id.to_string()) } else { id.clone() };
        let mut message = match answer {
            Ok(mut result) => {
                if is_modern {
                    if result.get("resultType").is_none() {
                        result["resultType"] = json!("complete");
                    }
                    if method.ends_with("/list") || method == "server/discover" {
                        result["ttlMs"] = json!(1000);
                        result["cacheScope"] = json!("public");
                    }
                }
                json!({"jsonrpc": "2.0", "id": id, "result": result})
            }
            Err((code, text)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}),
        };
        if self.has("wrong-id") && method == "ping" {
            message["id"] = json!(777_777);
        }
        if self.has("result-and-error") && method == "ping" {
            message["error"] = json!({"code": -1, "message": "both"});
        }
        if self.has("no-jsonrpc") {
            message.as_object_mut().unwrap().remove("jsonrpc");
        }
        if self.has("huge-line") && message["result"]["content"][0]["text"] == "text" {
            out(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":\"{}", "x".repeat(65 << 20)));
            return;
        }
        let mut text = message.to_string();
        if method == "tools/list" {
            text = match () {
                () if self.has("indented") => serde_json::to_string_pretty(&message).unwrap(),
                () if self.has("malformed") => text[..text.len() - 2].to_owned(),
                () if self.has("byte-order-mark") => format!("\u{feff}{text}"),
                () if self.has("duplicate-key") => text.replacen('{', "{\"jsonrpc\":\"2.0\",", 1),
                () => text,
            };
        }
        text = text.replace("\"@nan@\"", "NaN").replace("@surrogate@", "\\ud83d");
        if self.has("latin-1") && method == "tools/list" {
            let mut bytes: Vec<u8> = text.replace("Echoes", "\u{1}choes").into_bytes();
            bytes.iter_mut().filter(|byte| **byte == 1).for_each(|byte| *byte = 0xc9);
            bytes.push(b'\n');
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(&bytes).unwrap();
            stdout.flush().unwrap();
            return;
        }
        out(&text);
        if self.has("duplicate-reply") && method == "ping" {
            out(&text);
        }
    }

    fn after_initialized(&self, out: Out<'_>) {
        let note = |method: &str, params: Value| {
            out(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
        };
        if self.has("list-changed-undeclared") {
            note("notifications/tools/list_changed", json!({}));
        }
        if self.has("log-undeclared") {
            note("notifications/message", json!({"level": "info", "data": "hello"}));
        }
        if self.has("notification-unknown") {
            note("notifications/weather", json!({}));
        }
        if self.has("asks-roots") {
            out(&json!({"jsonrpc": "2.0", "id": "roots-1", "method": "roots/list"}).to_string());
        }
    }

    /// The answer to a request; `None` for silence.
    fn answer(&self, method: &str, params: &Value, out: Out<'_>) -> Option<Result<Value, (i64, String)>> {
        let unknown = || Err((-32601, format!("unknown method {method}")));
        Some(match method {
            "initialize" if self.has("--modern-only") => Err((-32022, "unsupported".into())),
            "initialize" => self.initialize(params)?,
            "server/discover" if self.has("discover-dies") => std::process::exit(1),
            "server/discover" if self.has("discover-silent") => return None,
            "server/discover" if self.has("--modern") || self.has("--modern-only") => {
                let mut capabilities = json!({"tools": {}});
                tasks::declare(self, &mut capabilities, true);
                Ok(json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities}))
            }
            _ if method.starts_with("tasks/") && self.has("--tasks") => {
                tasks::request(self, method, params, params["_meta"].is_object())
            }
            "ping" if self.has("ping-silent") => return None,
            "ping" => Ok(json!({})),
            "tools/list" => self.list(params, out)?,
            "tools/call" => return self.call(params, out),
            "prompts/list" if self.has("prompts-undeclared") => Ok(json!({"prompts": [{"name": "hello"}]})),
            _ if self.has("unknown-method-dies") && method.starts_with("toolgate/") => std::process::exit(1),
            _ if self.has("unknown-method-silent") && method.starts_with("toolgate/") => return None,
            _ if self.has("unknown-method-succeeds") && method.starts_with("toolgate/") => Ok(json!({})),
            _ if self.has("unknown-method-code") && method.starts_with("toolgate/") => Err((-32603, "what?".into())),
            _ => unknown(),
        })
    }

    fn initialize(&self, params: &Value) -> Option<Result<Value, (i64, String)>> {
        if self.has("slow-initialize") {
            sleep(Duration::from_millis(if self.has("--long") { 9000 } else { 1500 }));
        }
        let requested = params["protocolVersion"].as_str().unwrap_or_default();
        let known = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
        if self.has("version-refused") && !known.contains(&requested) {
            return Some(Err((-32602, "Unsupported protocol version".into())));
        }
        let version = if known.contains(&requested) || self.has("version-echoed") { requested } else { "2025-11-25" };
        let version = if self.has("version-unsupported") { "2.0" } else { version };
        let mut capabilities = json!({"tools": {}});
        if self.has("tools-undeclared") {
            capabilities = json!({});
        }
        tasks::declare(self, &mut capabilities, false);
        if self.has("prompts-missing") {
            capabilities["prompts"] = json!({});
        }
        let mut result = json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "flawed", "version": "1.0.0"}});
        if self.has("no-server-info") {
            result.as_object_mut().unwrap().remove("serverInfo");
        }
        Some(Ok(result))
    }

    fn list(&self, params: &Value, out: Out<'_>) -> Option<Result<Value, (i64, String)>> {
        if self.has("noise") {
            out("INFO listing tools");
        }
        if self.has("slow-list") {
            sleep(Duration::from_millis(if self.has("--long") { 3000 } else { 700 }));
        }
        if self.has("list-dies") {
            std::process::exit(1);
        }
        if self.has("list-fails") {
            return Some(Err((-32603, "database is down".into())));
        }
        let cursor = params["cursor"].as_str();
        if self.has("endless-cursor") {
            return Some(Ok(json!({"tools": tools(self), "nextCursor": "again"})));
        }
        if cursor.is_some() && !self.has("cursor-unchecked") {
            return Some(Err((-32602, "unknown cursor".into())));
        }
        let mut tools = tools(self);
        let mut lists = self.lists.lock().unwrap();
        *lists += 1;
        if self.has("unstable") && lists.is_multiple_of(2) {
            tools.reverse();
        }
        Some(Ok(json!({"tools": tools})))
    }

    fn call(&self, params: &Value, out: Out<'_>) -> Option<Result<Value, (i64, String)>> {
        let (name, arguments) = (params["name"].as_str().unwrap_or_default(), &params["arguments"]);
        let failed = |text: &str| Ok(json!({"content": [{"type": "text", "text": text}], "isError": true}));
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        if name.starts_with("dies_") {
            std::process::exit(1);
        }
        if self.has("--fixture") && name == "test_error_handling" {
            let words = "Error: this tool intentionally returns an error for testing";
            return Some(if self.has("error-as-success") { Ok(text(words)) } else { failed(words) });
        }
        if self.has("--fixture") && name == "test_simple_text" {
            return Some(Ok(self.echo("This is a simple text response for testing.")));
        }
        if name == "report" && self.has("--tasks") {
            return Some(tasks::call(self, params));
        }
        if name == "echo" && self.has("denied") {
            let mut denied = json!({"content": [{"type": "text", "text": "it was not executed"}], "isError": true});
            denied["_meta"] = tasks::envelope(self, "unavailable");
            return Some(Ok(denied));
        }
        if !["echo", "add", "slow"].contains(&name) {
            return Some(match () {
                () if self.has("unknown-tool-succeeds") => Ok(text("done")),
                () => Err((-32602, format!("unknown tool {name}"))),
            });
        }
        let is_valid = match name {
            "echo" => arguments["text"].is_string(),
            "add" => arguments["a"].is_i64() && arguments["b"].is_i64() && arguments["a"].as_i64() >= Some(0),
            _ => true,
        };
        if !is_valid {
            return Some(match () {
                () if self.has("bad-input-dies") => std::process::exit(1),
                () if self.has("bad-input-succeeds") => Ok(text("done")),
                () if self.has("error-as-success") => Ok(text("Error: text is required")),
                () => failed("text is required"),
            });
        }
        if self.has("call-dies") && name == "echo" {
            std::process::exit(1);
        }
        if self.has("call-silent") && name == "echo" {
            return None;
        }
        if self.has("call-fails") && name == "echo" {
            return Some(failed("it does not work"));
        }
        if self.has("call-hangs") && name == "add" {
            sleep(Duration::from_secs(60));
        }
        if self.has("asks-input") && name != "slow" {
            return Some(Ok(json!({"content": [], "resultType": "input_required", "inputRequests": {}})));
        }
        if self.has("rate-limited") && name != "slow" && self.calls.fetch_add(1, Ordering::SeqCst) > 40 {
            return Some(failed("too many calls"));
        }
        if self.has("not-concurrent") && name != "slow" {
            let others = self.busy.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_millis(5));
            self.busy.fetch_sub(1, Ordering::SeqCst);
            if others > 0 {
                return Some(failed("the database is locked"));
            }
        }
        self.progress(&params["_meta"]["progressToken"], out);
        Some(Ok(match name {
            "echo" => self.echo(arguments["text"].as_str().unwrap_or_default()),
            "add" => self.add(arguments),
            _ => {
                sleep(Duration::from_millis(400));
                text("done")
            }
        }))
    }

    fn progress(&self, token: &Value, out: Out<'_>) {
        let report = |token: &Value, progress: u32| {
            out(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": progress}}).to_string());
        };
        if self.has("progress-stands") {
            report(token, 2);
            report(token, 1);
        }
        if self.has("progress-stray") {
            report(&json!("stray"), 1);
        }
    }

    fn echo(&self, text: &str) -> Value {
        let block = |block: Value| json!({"content": [block]});
        match () {
            () if self.has("nan") => block(json!({"type": "text", "text": "x", "_meta": {"score": "@nan@"}})),
            () if self.has("surrogate") => block(json!({"type": "text", "text": "cut @surrogate@"})),
            () if self.has("broken-image") => {
                block(json!({"type": "image", "data": "not base64!", "mimeType": "image/png"}))
            }
            () if self.has("wrong-image") => block(json!({"type": "image", "data": PNG, "mimeType": "image/jpeg"})),
            () if self.has("unknown-content") => block(json!({"type": "video", "data": "AAAA"})),
            () if self.has("content-without-text") => block(json!({"type": "text"})),
            () if self.has("huge-result") => block(json!({"type": "text", "text": "x".repeat(12 << 20)})),
            () if self.has("secret") => block(json!({"type": "text", "text": "key AKIAIOSFODNN7EXAMPLE"})),
            () => {
                json!({"content": [{"type": "text", "text": text}, {"type": "image", "data": PNG, "mimeType": "image/png"}]})
            }
        }
    }

    fn add(&self, arguments: &Value) -> Value {
        let sum = arguments["a"].as_i64().unwrap() + arguments["b"].as_i64().unwrap();
        let structured = json!({"sum": sum});
        let content = json!([{"type": "text", "text": structured.to_string()}]);
        match () {
            () if self.has("output-mismatch") => json!({"content": content, "structuredContent": {"sum": "three"}}),
            () if self.has("structured-missing") => json!({"content": content}),
            () if self.has("mirror-missing") => json!({"content": [], "structuredContent": structured}),
            () => json!({"content": content, "structuredContent": structured}),
        }
    }
}
