//! Authentication to MCP servers: login and logout.

use std::time::Duration;

use super::server_settings::server_settings;
use crate::config::Settings;
use crate::core::error::ErrorCode;
use crate::core::id::ServerId;
use crate::core::trace::Propagation;
use crate::mcp::auth::{self, CredentialFile, Grant, Loopback};
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
        error: auth::LoginError,
    },
    /// The redirect port cannot be opened.
    #[error("cannot listen on the redirect port {port}: {error}")]
    Port {
        /// The port; 0 means any.
        port: u16,
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

fn http(settings: &Settings, server: &ServerId) -> Result<HttpSettings, AccessError> {
    let configured = settings.servers.get(server).ok_or_else(|| AccessError::Unknown(server.clone()))?;
    match server_settings(server, configured, &settings.credentials, Propagation::NOTHING).transport {
        Transport::Http(http) => Ok(http),
        Transport::Stdio(_) | Transport::InProcess(_) | Transport::Unavailable(_) => {
            Err(AccessError::Program(server.clone()))
        }
    }
}
