//! Authentication to MCP servers: adapter settings, login and logout.

use std::path::Path;
use std::time::Duration;

use super::reached;
use crate::config::{AuthSettings, ClientProof, Settings, SigningAlgorithm};
use crate::core::error::ErrorCode;
use crate::core::id::ServerId;
use crate::core::trace::Propagation;
use crate::mcp::auth::{self, ClientIdentity, CredentialFile, Grant, Loopback, OAuthSettings};
use crate::mcp::{HttpSettings, Transport};

pub use crate::mcp::auth::Login;

/// Errors of login and logout.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// No such server.
    #[error("there is no MCP server `{0}`")]
    Unknown(ServerId),
    /// A stdio server.
    #[error("the MCP server `{0}` is a program that toolgate starts; it needs no login")]
    Program(ServerId),
    /// No login is needed, or the login failed.
    #[error("login to the MCP server `{server}` failed: {error}")]
    Login {
        /// The server's id.
        server: ServerId,
        /// The reason.
        error: auth::LoginError,
    },
    /// The redirect port cannot be opened.
    #[error("cannot listen on the redirect port {port}: {error}")]
    Port {
        /// The port; 0 means any.
        port: u16,
        /// The reason.
        error: std::io::Error,
    },
}

impl AccessError {
    /// The closed code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unknown(_) => ErrorCode::NotFound,
            Self::Program(_) => ErrorCode::InvalidRequest,
            Self::Login { error: auth::LoginError::NotNeeded(_), .. } => ErrorCode::InvalidRequest,
            Self::Login { error: auth::LoginError::Failed(_), .. } | Self::Port { .. } => ErrorCode::ToolUnavailable,
        }
    }
}

/// Asks the user for access to a server with its configured scopes and the additional ones. `show` receives the URL
/// that the user must open, and `timeout` limits the time.
pub async fn login(
    settings: &Settings,
    server: &ServerId,
    scopes: &[String],
    timeout: Duration,
    show: impl Fn(&str) + Send + Sync + 'static,
) -> Result<Login, AccessError> {
    let http = http(settings, server)?;
    let port = match http.oauth.as_ref().map(|oauth| &oauth.grant) {
        Some(Grant::Person { redirect_port, .. }) => *redirect_port,
        Some(Grant::Client { .. }) | None => None,
    };
    let cannot_listen = |error| AccessError::Port { port: port.unwrap_or_default(), error };
    let browser = Loopback::bind(port, timeout, show).await.map_err(cannot_listen)?;
    let granted = auth::login(&http, scopes, &browser).await;
    granted.map_err(|error| AccessError::Login { server: server.clone(), error })
}

/// Deletes the credentials for a server; returns whether there were any.
pub async fn logout(settings: &Settings, server: &ServerId) -> Result<bool, AccessError> {
    let http = http(settings, server)?;
    let forgotten = auth::logout(&http, &CredentialFile::new(&settings.credentials)).await;
    forgotten.map_err(|error| AccessError::Login { server: server.clone(), error })
}

/// The OAuth settings of a server; `None` if headers are its only authentication.
pub(super) fn oauth(server: &ServerId, auth: &AuthSettings, credentials: &Path) -> Option<OAuthSettings> {
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

fn http(settings: &Settings, server: &ServerId) -> Result<HttpSettings, AccessError> {
    let configured = settings.servers.get(server).ok_or_else(|| AccessError::Unknown(server.clone()))?;
    match reached(server, configured, &settings.credentials, Propagation::NOTHING).transport {
        Transport::Http(http) => Ok(http),
        Transport::Stdio(_) | Transport::InProcess(_) => Err(AccessError::Program(server.clone())),
    }
}
