//! Adapter settings of MCP servers, from the configuration.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::{self, AuthSettings, ClientProof, PinnedValue, SigningAlgorithm, TransportSettings};
use crate::core::id::ServerId;
use crate::core::trace::Propagation;
use crate::mcp;
use crate::mcp::auth::{self, ClientIdentity, CredentialFile, Grant, OAuthSettings};

/// The settings with which the adapter reaches a server. Credentials are read from and refreshed in the folder
/// `credentials`; `propagation` limits the trace context that the server receives.
pub(super) fn server_settings(
    id: &ServerId,
    server: &config::ServerSettings,
    credentials: &Path,
    propagation: Propagation,
) -> mcp::ServerSettings {
    let transport = match &server.transport {
        TransportSettings::Stdio { command, args, env, inherit_env, cwd } => {
            mcp::Transport::Stdio(mcp::StdioSettings {
                command: command.clone(),
                args: args.clone(),
                env: env.clone(),
                inherit_env: *inherit_env,
                cwd: cwd.clone(),
            })
        }
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
        start: match server.start {
            config::McpStart::Eager => mcp::Start::Eager,
            config::McpStart::Lazy => mcp::Start::Lazy,
        },
        protocol_version: match server.protocol_version {
            config::McpProtocolVersion::Auto => mcp::ProtocolVersionChoice::Auto,
            config::McpProtocolVersion::Sessions => mcp::ProtocolVersionChoice::Legacy,
            config::McpProtocolVersion::Stateless => mcp::ProtocolVersionChoice::Modern,
        },
        elicitation: server.elicitation,
        recheck: match server.recheck_tools {
            config::RecheckTools::Approved => mcp::Recheck::Approved,
            config::RecheckTools::Always => mcp::Recheck::Always,
            config::RecheckTools::Never => mcp::Recheck::Never,
        },
        propagation: propagation.and(server.trace_context.propagation()),
        pinned: pinned(server),
    }
}

fn pinned(server: &config::ServerSettings) -> mcp::PinnedTools {
    let value = |value: &PinnedValue| match value {
        PinnedValue::Plain(value) => mcp::PinnedValue::Plain(value.clone()),
        PinnedValue::Secret(secret) => mcp::PinnedValue::Secret(secret.clone()),
    };
    let of_tool = |arguments: &BTreeMap<String, PinnedValue>| {
        arguments.iter().map(|(name, argument)| (name.clone(), value(argument))).collect()
    };
    let tools = server.pinned.iter().map(|(tool, arguments)| (tool.clone(), of_tool(arguments)));
    tools.collect::<BTreeMap<_, _>>().into()
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
            (Grant::Client { id: id.clone(), proof: proof_of(proof) }, scopes, allow_private)
        }
    };
    Some(OAuthSettings { server: server.clone(), grant, scopes: scopes.clone(), allow_private: *allow_private })
}

fn proof_of(proof: &ClientProof) -> auth::ClientProof {
    match proof {
        ClientProof::Secret(secret) => auth::ClientProof::Secret(secret.clone()),
        ClientProof::PrivateKey { pem, algorithm } => {
            let algorithm = match algorithm {
                SigningAlgorithm::Rs256 => auth::SigningAlgorithm::Rs256,
                SigningAlgorithm::Rs384 => auth::SigningAlgorithm::Rs384,
                SigningAlgorithm::Rs512 => auth::SigningAlgorithm::Rs512,
                SigningAlgorithm::Es256 => auth::SigningAlgorithm::Es256,
                SigningAlgorithm::Es384 => auth::SigningAlgorithm::Es384,
            };
            auth::ClientProof::PrivateKey { pem: pem.clone(), algorithm }
        }
    }
}
