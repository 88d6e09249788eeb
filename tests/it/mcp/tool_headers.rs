//! Argument headers for modern HTTP servers: the arguments that their tools annotate, and no tool with an invalid
//! annotation.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolgate::mcp::ServerSettings;

use super::support::*;

/// A modern HTTP server in process, which rejects a request whose headers and body disagree.
#[derive(Clone, Default)]
pub(super) struct Shop(Arc<Mutex<Books>>);

#[derive(Default)]
struct Books {
    streams: bool,
    is_legacy: bool,
    calls: Vec<HeaderMap>,
}

impl Shop {
    /// The settings of the server.
    pub(super) async fn settings(&self) -> ServerSettings {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let router = Router::new().route("/mcp", post(answer)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        ServerSettings::http(url)
    }

    /// Switches to the legacy era, and reports that as a modern server does.
    pub(super) fn downgrade(&self) {
        self.0.lock().unwrap().is_legacy = true;
    }
}

async fn answer(State(shop): State<Shop>, headers: HeaderMap, Json(request): Json<Value>) -> Response {
    let mut books = shop.0.lock().unwrap();
    let method = request["method"].as_str().expect("a method");
    let version = &request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    let said = match (books.is_legacy, version == "2026-07-28") {
        (true, true) => Err((-32022, "only 2025-11-25", json!({"supported": ["2025-11-25"]}))),
        (true, false) => Ok(match method {
            "initialize" => {
                json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
            }
            "tools/list" => json!({"tools": []}),
            "tools/call" => json!({"content": [{"type": "text", "text": "bought"}]}),
            _ => return StatusCode::ACCEPTED.into_response(),
        }),
        (false, false) => Err((-32602, "`_meta` lacks the revision", Value::Null)),
        (false, true) => books.modern(method, &headers),
    };
    let (status, message) = match said {
        Ok(result) => (StatusCode::OK, json!({"jsonrpc": "2.0", "id": request["id"], "result": result})),
        Err((code, message, data)) => {
            let error = json!({"code": code, "message": message, "data": data});
            (StatusCode::BAD_REQUEST, json!({"jsonrpc": "2.0", "id": request["id"], "error": error}))
        }
    };
    if books.streams && method == "tools/list" {
        let event = format!("event: message\ndata: {message}\n\n");
        return ([("content-type", "text/event-stream")], event).into_response();
    }
    (status, Json(message)).into_response()
}

impl Books {
    fn modern(&mut self, method: &str, headers: &HeaderMap) -> Result<Value, (i32, &'static str, Value)> {
        let header = |name: &str| headers.get(name).map(|value| value.to_str().expect("text"));
        if header("mcp-protocol-version") != Some("2026-07-28") || header("mcp-method") != Some(method) {
            return Err((-32020, "the headers are not those of the request", Value::Null));
        }
        let mut result = match method {
            "server/discover" => json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
            "tools/list" => json!({"tools": [
                {"name": "bad", "inputSchema": {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}},
                {"name": "broken"},
                {"name": "buy", "inputSchema": {"type": "object", "properties": {
                    "what": {"type": "string", "x-mcp-header": "What"},
                    "where": {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}},
                }}},
            ]}),
            _ => {
                self.calls.push(headers.clone());
                json!({"content": [{"type": "text", "text": "bought"}]})
            }
        };
        for (name, value) in [("resultType", json!("complete")), ("ttlMs", json!(0)), ("cacheScope", json!("private"))]
        {
            result[name] = value;
        }
        Ok(result)
    }
}

#[tokio::test]
async fn arguments_are_repeated_in_headers_also_when_another_tool_of_the_list_is_malformed() {
    for streams in [false, true] {
        let shop = Shop::default();
        shop.0.lock().unwrap().streams = streams;
        let servers = servers([("shop", shop.settings().await)]);
        let listed = list(&servers, &["shop"]).await.remove(0);
        assert_eq!(listed.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["buy"]);
        let mut left_out: Vec<_> =
            listed.left_out.into_iter().map(|left_out| (left_out.tool.expect("a tool"), left_out.reason)).collect();
        left_out.sort();
        assert!(left_out[0].1.contains("its `x-mcp-header` is not allowed") && left_out[0].0 == "bad", "{left_out:?}");
        assert!(left_out[1].1.contains("`inputSchema` is missing") && left_out[1].0 == "broken", "{left_out:?}");
        let arguments = json!({"what": "grüner tee", "where": {"city": "Graz"}});
        assert_eq!(text(call(&servers, "shop", "buy", arguments).await), "bought");
        let headers = shop.0.lock().unwrap().calls.remove(0);
        assert_eq!(headers["mcp-name"], "buy");
        assert_eq!(
            (&headers["mcp-param-what"], &headers["mcp-param-city"]),
            (&"=?base64?Z3LDvG5lciB0ZWU=?=".parse().unwrap(), &"Graz".parse().unwrap())
        );
        servers.close().await;
    }
}
