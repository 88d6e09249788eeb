//! OpenID Connect authenticator: verifies access tokens in the form of JWTs with the issuer's published keys. It does
//! no token introspection for opaque tokens, and no login redirect.

mod claims;
mod issuer;
mod jwks;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::request::Parts;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};

pub use claims::Claims;
use toolgate_core::error::ErrorCode;
use toolgate_service::{Caller, ServiceError};

use issuer::Issuer;

use super::authenticator::{Authenticator, bearer, unauthorized};
use crate::problem::Problem;

/// The clock skew that is allowed between issuer and server.
const LEEWAY_SECONDS: u64 = 60;

/// Longer tokens are rejected unread.
const LONGEST_TOKEN: usize = 16 * 1024;

/// The trusted issuer, and the meaning of its tokens.
#[derive(Clone, Debug)]
pub struct OidcSettings {
    /// The issuer, exactly as its tokens write it.
    pub issuer: String,
    /// The accepted audiences: a token needs one of them.
    pub audience: Vec<String>,
    /// The meaning of its claims.
    pub claims: Claims,
    /// How long published keys are used before they are fetched again.
    pub fresh: Duration,
    /// The shortest pause between two fetches, whatever tokens arrive.
    pub pause: Duration,
}

impl OidcSettings {
    /// Settings for the tokens of an issuer and an audience.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            audience: vec![audience.into()],
            claims: Claims::default(),
            fresh: Duration::from_secs(60 * 60),
            pause: Duration::from_secs(30),
        }
    }
}

/// The authenticator could not be created.
#[derive(Debug, thiserror::Error)]
#[error("failed to create the HTTP client for the issuer's keys: {0}")]
pub struct OidcError(#[from] reqwest::Error);

/// Authenticates requests by tokens of the issuer.
pub struct OidcAuthenticator {
    settings: OidcSettings,
    issuer: Arc<Issuer>,
}

impl OidcAuthenticator {
    /// An authenticator for the tokens of an issuer. It fetches nothing before the first token arrives.
    pub fn new(settings: OidcSettings) -> Result<Self, OidcError> {
        let issuer = Issuer::new(&settings.issuer, settings.fresh, settings.pause)?;
        Ok(Self { settings, issuer: Arc::new(issuer) })
    }

    async fn caller(&self, token: &str) -> Result<Caller, TokenRejection> {
        let header = decode_header(token).map_err(|error| TokenRejection::token(error.to_string()))?;
        if header.crit.is_some() {
            return Err(TokenRejection::token("it has a critical header that is not supported"));
        }
        let key = self.issuer.key(header.kid.as_deref()).await?;
        let mut validation = Validation::new(key.algorithm);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_audience(&self.settings.audience);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let decoded = decode::<Map<String, Value>>(token, &key.decoding, &validation);
        let decoded = decoded.map_err(|error| TokenRejection::token(error.to_string()))?;
        self.settings.claims.caller(&decoded.claims).map_err(TokenRejection::token)
    }
}

#[async_trait]
impl Authenticator for OidcAuthenticator {
    async fn authenticate(&self, request: &Parts) -> Result<Option<Caller>, Problem> {
        let is_jwt = |token: &&str| token.len() <= LONGEST_TOKEN && token.split('.').count() == 3;
        let Some(token) = bearer(&request.headers).filter(is_jwt) else { return Ok(None) };
        match self.caller(token).await {
            Ok(caller) => Ok(Some(caller)),
            Err(TokenRejection::Token(why)) => {
                tracing::info!(issuer = self.settings.issuer, why, "token rejected");
                Err(unauthorized(true))
            }
            Err(TokenRejection::NoKeys(retry)) => {
                let detail = "the issuer's keys are not available, so its tokens cannot be verified";
                Err(ServiceError::new(ErrorCode::Unavailable, detail).after(retry).into())
            }
        }
    }
}

/// Why a token is refused.
pub(super) enum TokenRejection {
    /// The token is not valid; the reason is for the log.
    Token(String),
    /// The token cannot be verified: the keys were never fetched.
    NoKeys(Duration),
}

impl TokenRejection {
    fn token(why: impl Into<String>) -> Self {
        Self::Token(why.into())
    }
}
