//! Streamable HTTP of the flawed server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

use serde_json::{Value, json};

use super::Server;

/// Serves on a free port, and prints the address.
pub(super) fn http(server: &Arc<Server>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("http://{}/mcp", listener.local_addr().unwrap());
    for stream in listener.incoming().flatten() {
        let server = server.clone();
        spawn(move || while serve(&server, &stream).is_some() {});
    }
}

/// An HTTP request.
struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, headers, body })
}

fn respond(stream: &TcpStream, status: u16, headers: &str, body: &str) -> Option<()> {
    let length = body.len();
    let mut stream = stream;
    stream.write_all(format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\n\r\n{body}").as_bytes()).ok()
}

fn serve(server: &Server, stream: &TcpStream) -> Option<()> {
    let request = read(stream)?;
    let json = "Content-Type: application/json\r\n";
    if let Some(flaw) = server.flaws.iter().find(|flaw| flaw.starts_with("auth")) {
        return authorize(flaw, stream, &request);
    }
    if request.header("origin").is_some() && !server.has("any-origin") {
        return respond(stream, 403, "", "");
    }
    if request.header("host").is_some_and(|host| !host.starts_with("127.0.0.1")) && !server.has("any-host") {
        return respond(stream, 403, "", "");
    }
    match request.method.as_str() {
        "POST" => {}
        "DELETE" if server.has("delete-fails") => return respond(stream, 500, "", ""),
        "DELETE" => {
            if !server.has("session-survives") {
                server.sessions.lock().unwrap().remove(request.header("mcp-session-id").unwrap_or_default());
            }
            return respond(stream, 204, "", "");
        }
        "GET" if server.has("get-stream") || server.has("get-any-stream") => {
            return stream_of_get(server, stream, &request);
        }
        "GET" if server.has("get-html") => return respond(stream, 200, "Content-Type: text/html\r\n", "<html></html>"),
        "PUT" if server.has("put-succeeds") => return respond(stream, 200, json, "{}"),
        _ => return respond(stream, 405, "", ""),
    }
    let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
        let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "parse error"}});
        return respond(stream, if server.has("malformed-succeeds") { 200 } else { 400 }, json, &error.to_string());
    };
    post(server, stream, &request, &message)
}

/// Requires authorization, with metadata at the place that the flaw names: none, the root, below the path of the endpoint,
/// or at an address of the challenge.
fn authorize(flaw: &str, stream: &TcpStream, request: &Request) -> Option<()> {
    let json = "Content-Type: application/json\r\n";
    let place = match flaw {
        "auth-root" => "/.well-known/oauth-protected-resource",
        "auth-path" => "/.well-known/oauth-protected-resource/mcp",
        "auth-named" => "/metadata",
        _ => "",
    };
    if request.path == place {
        let servers = json!({"resource": "x", "authorization_servers": ["https://login.example"]});
        return respond(stream, 200, json, &servers.to_string());
    }
    if request.path != "/mcp" {
        return respond(stream, 404, "", "");
    }
    let host = request.header("host").unwrap_or_default();
    let named =
        if flaw == "auth-named" { format!(" resource_metadata=\"http://{host}{place}\"") } else { String::new() };
    let headers = format!("{json}WWW-Authenticate: Bearer{named}\r\n");
    respond(stream, 401, &headers, &json!({"error": "invalid_token", "error_description": "no token"}).to_string())
}

/// A stream without events, for a moment: to clients of a known session that accept it, or to all.
fn stream_of_get(server: &Server, mut stream: &TcpStream, request: &Request) -> Option<()> {
    let is_known = server.sessions.lock().unwrap().contains(request.header("mcp-session-id").unwrap_or_default());
    let is_accepted = request.header("accept").is_some_and(|accept| accept.contains("text/event-stream"));
    let is_open = server.has("get-any-stream") || (is_known && is_accepted);
    if !is_open {
        return respond(stream, if is_known { 406 } else { 404 }, "", "");
    }
    stream
        .write_all(b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n: hello\n\n")
        .ok()?;
    sleep(Duration::from_millis(50));
    None
}

/// Answers a request only when the client has answered a ping on the same stream.
fn ask_in_stream(server: &Server, mut stream: &TcpStream, message: &Value) -> Option<()> {
    let own = format!("own-{}", message["id"]);
    let ping = json!({"jsonrpc": "2.0", "id": own, "method": "ping"});
    stream.write_all(b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n").ok()?;
    stream.write_all(format!("data: {ping}\n\n").as_bytes()).ok()?;
    while !server.replies.lock().unwrap().contains(&json!(own).to_string()) {
        sleep(Duration::from_millis(5));
    }
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {}});
    stream.write_all(format!("data: {answer}\n\n").as_bytes()).ok()?;
    None
}

fn post(server: &Server, stream: &TcpStream, request: &Request, message: &Value) -> Option<()> {
    let json = "Content-Type: application/json\r\n";
    let method = message["method"].as_str().unwrap_or_default();
    let stated = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let is_modern = stated.is_some();
    let refuse = |status: u16, code: i64| {
        let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": "refused"}});
        respond(stream, status, json, &error.to_string())
    };
    let requested = message["params"]["protocolVersion"].as_str();
    let is_unknown = requested == Some("2099-01-01") && server.has("unknown-version-400");
    if method == "initialize" && (is_unknown || server.has("initialize-400")) {
        return respond(stream, 400, "Content-Type: text/plain\r\n", "Bad Request: unsupported protocol version");
    }
    let version = request.header("mcp-protocol-version");
    let is_known = |version: &str| version.starts_with("2025") || version.starts_with("2026");
    if !is_modern && version.is_some_and(|version| !is_known(version)) && !server.has("any-version") {
        return refuse(400, -32000);
    }
    let is_repeated = version == stated && request.header("mcp-method") == Some(method);
    if is_modern && !is_repeated && !server.has("any-header") {
        return refuse(400, -32020);
    }
    let param = request.header("mcp-param-text").filter(|text| !text.starts_with("=?base64?"));
    let argument = message["params"]["arguments"]["text"].as_str();
    if server.has("--mirrored") && !server.has("any-param-header") && param.is_some_and(|text| Some(text) != argument) {
        return refuse(400, -32020);
    }
    let mut headers = json.to_owned();
    if method == "initialize" && !server.has("--modern-only") {
        let id = format!("session-{}", server.sessions.lock().unwrap().len() + 1);
        server.sessions.lock().unwrap().insert(id.clone());
        headers = format!("{json}Mcp-Session-Id: {id}\r\n");
    } else if !is_modern && !server.has("--modern-only") {
        let known = server.sessions.lock().unwrap().contains(request.header("mcp-session-id").unwrap_or_default());
        if !known && !server.has("any-session") {
            return if server.has("session-400") { refuse(400, -32000) } else { refuse(404, -32001) };
        }
    }
    if method.is_empty() {
        server.replies.lock().unwrap().insert(message["id"].to_string());
    }
    if message.get("id").is_none() || method.is_empty() {
        return respond(stream, if server.has("notification-200") { 200 } else { 202 }, "", "");
    }
    if server.has("http-500") && method == "tools/list" {
        return respond(stream, 500, "Content-Type: text/plain\r\n", "Internal Server Error");
    }
    if server.has("asks-in-stream") && method == "ping" {
        return ask_in_stream(server, stream, message);
    }
    let lines = Mutex::new(Vec::new());
    server.handle(message, &|line| lines.lock().unwrap().push(line.to_owned()));
    let lines = lines.into_inner().unwrap();
    let last = lines.last().cloned().unwrap_or_default();
    let is_unknown = last.contains("-32601") && is_modern && !server.has("unknown-method-200");
    let status = if is_unknown { 404 } else { 200 };
    if server.has("event-streams") {
        let events: String = lines.iter().map(|line| format!("data: {line}\n\n")).collect();
        return respond(stream, status, &headers.replace("application/json", "text/event-stream"), &events);
    }
    if server.has("text-plain") {
        headers = headers.replace("application/json", "text/plain");
    }
    respond(stream, status, &headers, &last)
}
