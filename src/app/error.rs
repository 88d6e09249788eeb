//! Errors of the composition, each with a code of the closed set.

use std::net::SocketAddr;

use crate::config::ConfigError;
use crate::core::error::ErrorCode;
use crate::core::id::{AgentName, ModelName};
use crate::gateway::OidcError;
use crate::ports::{StoreError, WebhookKind};
use crate::runner::RunnerError;
use crate::runner::envelope::KeyError;
use crate::service::Scope;

/// Errors of the composition.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The store cannot be opened.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A configuration file, or a file that it names, cannot be used.
    #[error("{}", .0.plain())]
    Config(#[from] ConfigError),
    /// A model of an agent is not configured.
    #[error("agent `{agent}` refers to the model `{model}`, which is not configured")]
    NoModel { agent: AgentName, model: ModelName },
    /// An envelope key is invalid.
    #[error("envelope key `{id}`: {reason}")]
    EnvelopeKey { id: String, reason: KeyError },
    /// The envelope keys cannot be used together.
    #[error("envelope: {0}")]
    EnvelopeKeys(KeyError),
    /// Spans cannot be exported as configured.
    #[error("{0}")]
    Telemetry(String),
    /// The authentication settings would reject or accept every request.
    #[error("{0}")]
    Gateway(#[from] GatewayError),
    /// The operating system provides no random bytes.
    #[error("the operating system provides no random bytes for a key")]
    NoRandomness,
    /// The runner cannot be built.
    #[error(transparent)]
    Runner(#[from] RunnerError),
}

impl AppError {
    /// The closed code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Store(_) => ErrorCode::StoreUnavailable,
            Self::Config(_)
            | Self::NoModel { .. }
            | Self::EnvelopeKey { .. }
            | Self::EnvelopeKeys(_)
            | Self::Telemetry(_)
            | Self::Gateway(_) => ErrorCode::Configuration,
            Self::NoRandomness => ErrorCode::Internal,
            Self::Runner(error) => error.code(),
        }
    }

    /// Telemetry that cannot be used as configured.
    pub(super) fn telemetry(error: &dyn std::fmt::Display) -> Self {
        Self::Telemetry(error.to_string())
    }
}

/// Errors of the construction of a gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// There is no API key and no issuer, and anonymous access is disabled.
    #[error(
        "no credentials are configured: create a key with `toolgate keys create NAME --all`, or name an issuer in `gateway.oidc`; \
         for this machine alone, `gateway.anonymous: true` allows requests without credentials"
    )]
    NoAuthentication,
    /// Anonymous access on a non-loopback address.
    #[error(
        "anonymous access on {0} would give everyone on the network full access: listen on the loopback address, or remove `gateway.anonymous` and \
         authenticate callers with `toolgate keys create` or `gateway.oidc`"
    )]
    Everybody(SocketAddr),
    /// The scope table of an issuer contains an unknown scope.
    #[error("gateway.oidc.scopes_of: there is no scope `{name}`; expected one of: {}", names())]
    NoSuchScope {
        /// The unknown scope.
        name: String,
    },
    /// A webhook subscribes to an unknown event.
    #[error("gateway.webhooks: there is no event `{name}`; expected one of: {}", events())]
    NoSuchEvent {
        /// The unknown event.
        name: String,
    },
    /// The settings of a webhook are invalid.
    #[error("gateway.webhooks: {0}")]
    Webhook(String),
    /// The issuer's keys cannot be fetched.
    #[error(transparent)]
    Oidc(#[from] OidcError),
}

fn events() -> String {
    WebhookKind::OF_RUNS.map(WebhookKind::as_str).join(", ")
}

fn names() -> String {
    Scope::ALL.map(Scope::as_str).join(", ")
}
