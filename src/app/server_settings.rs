//! Adapter settings of MCP servers, from the configuration.

use std::path::Path;

use crate::config::{self, AuthSettings, TransportSettings};
use crate::core::id::ServerId;
use crate::core::trace::Propagation;
use crate::mcp;
use crate::mcp::auth::{ClientIdentity, CredentialFile, Grant, OAuthSettings};

/// The settings with which the adapter reaches a server. Credentials are read from and refreshed in the folder
/// `credentials`; `propagation` limits the trace context that the server receives.
pub(super) fn server_settings(
    id: &ServerId,
    server: &config::ServerSettings,
    credentials: &Path,
    propagation: Propagation,
) -> mcp::ServerSettings {
    let transport = match &server.transport {
        TransportSettings::Stdio(stdio) => mcp::Transport::Stdio(stdio.clone()),
        TransportSettings::Http { url, headers, auth } => mcp::Transport::Http(mcp::HttpSettings {
            url: url.clone(),
            headers: headers.clone(),
            oauth: oauth(id, auth, credentials),
            egress: server.egress.clone().map_or(mcp::Egress::Operator, mcp::Egress::Within),
        }),
        TransportSettings::Unavailable { reason } => mcp::Transport::Unavailable(reason.clone()),
    };
    mcp::ServerSettings {
        transport,
        start_timeout: server.start_timeout,
        call_timeout: server.call_timeout,
        total_timeout: server.total_timeout,
        trusted: server.trusted,
        max_concurrency: server.max_concurrency,
        max_tools: server.max_tools,
        start: server.start,
        protocol_version: server.protocol_version,
        elicitation: server.elicitation,
        recheck: server.recheck,
        propagation: propagation.and(server.trace_context.propagation()),
        pinned: server.pinned.clone().into(),
    }
}

/// The OAuth settings of a server; `None` if headers are its only authentication.
fn oauth(server: &ServerId, auth: &AuthSettings, credentials: &Path) -> Option<OAuthSettings> {
    let (grant, scopes, allow_private) = match auth {
        AuthSettings::Headers => return None,
        AuthSettings::Person { client, scopes, redirect_port, allow_private } => {
            let client = match client {
                None => ClientIdentity::Registering,
                Some(client) if client.secret.is_none() && client.id.starts_with("https://") => {
                    ClientIdentity::Document { url: client.id.clone() }
                }
                Some(client) => ClientIdentity::Registered { id: client.id.clone(), secret: client.secret.clone() },
            };
            let credentials = CredentialFile::new(credentials);
            (Grant::Person { client, redirect_port: *redirect_port, credentials, browser: None }, scopes, allow_private)
        }
        AuthSettings::Client { id, proof, scopes, allow_private } => {
            (Grant::Client { id: id.clone(), proof: proof.clone() }, scopes, allow_private)
        }
    };
    Some(OAuthSettings { server: server.clone(), grant, scopes: scopes.clone(), allow_private: *allow_private })
}
