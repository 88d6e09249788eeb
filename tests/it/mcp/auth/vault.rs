//! MCP server that requires a token: reading takes the scope `read`, changes take `write`.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolgate::mcp::{ServerSettings, Transport};

use super::authority::{Authority, Manner};

/// The server, with its authorization server.
#[derive(Clone)]
pub(super) struct Vault {
    pub(super) url: String,
    authority: Arc<Mutex<Option<Authority>>>,
    /// The authorization server that the metadata names: `None` for the right one.
    leads_to: Arc<Mutex<Option<String>>>,
}

impl Vault {
    /// Starts the server, with an authorization server of that behaviour.
    pub(super) async fn serve(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let vault = Self { url, authority: Arc::default(), leads_to: Arc::default() };
        vault.entrust(Authority::serve(&vault.url, manner).await);
        let router = Router::new()
            .route("/mcp", post(answer))
            .route("/.well-known/oauth-protected-resource/mcp", get(metadata))
            .with_state(vault.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        vault
    }

    /// The current authorization server.
    pub(super) fn authority(&self) -> Authority {
        self.authority.lock().expect("no panic").clone().expect("served")
    }

    /// Replaces the authorization server.
    pub(super) fn entrust(&self, authority: Authority) {
        *self.authority.lock().expect("no panic") = Some(authority);
    }

    /// Makes the metadata name another address.
    pub(super) fn lead_to(&self, address: &str) {
        *self.leads_to.lock().expect("no panic") = Some(address.into());
    }

    /// The settings of the server with that access.
    pub(super) fn settings(&self, oauth: toolgate::mcp::auth::OAuthSettings) -> ServerSettings {
        let mut settings = ServerSettings::http(self.url.as_str());
        if let Transport::Http(http) = &mut settings.transport {
            http.oauth = Some(oauth);
        }
        settings
    }

    fn metadata_url(&self) -> String {
        self.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
    }
}

async fn metadata(State(vault): State<Vault>) -> Response {
    let issuer = vault.leads_to.lock().expect("no panic").clone().unwrap_or_else(|| vault.authority().issuer);
    axum::Json(json!({"resource": vault.url, "authorization_servers": [issuer]})).into_response()
}

async fn answer(State(vault): State<Vault>, headers: HeaderMap, axum::Json(request): axum::Json<Value>) -> Response {
    let bearer = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let scopes = bearer.and_then(|token| vault.authority().books().access.get(token).cloned());
    let metadata = vault.metadata_url();
    let Some(scopes) = scopes else {
        let challenge = format!("Bearer scope=\"read\", resource_metadata=\"{metadata}\"");
        return (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]).into_response();
    };
    let needed = if request["params"]["name"] == "change" { "write" } else { "read" };
    if !scopes.split(' ').any(|scope| scope == needed) {
        let challenge =
            format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\", resource_metadata=\"{metadata}\"");
        return (StatusCode::FORBIDDEN, [("www-authenticate", challenge)]).into_response();
    }
    let result = match request["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "vault", "version": "1"},
        }),
        Some("tools/list") => {
            let tools = ["look", "change"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
            json!({"tools": tools})
        }
        Some("tools/call") => json!({"content": [{"type": "text", "text": "done"}]}),
        _ if request["id"].is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "unknown method"});
            return axum::Json(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).into_response();
        }
    };
    axum::Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).into_response()
}
