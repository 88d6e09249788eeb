//! The door that tokens of an OpenID Connect issuer open: access tokens in the form of JWTs, checked against the issuer's
//! published keys. Opaque tokens are not asked about anywhere, and nobody is sent to log in.

mod claims;
mod issuer;
mod key;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::request::Parts;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};

pub use claims::Claims;
use issuer::Issuer;

use super::credentials::{bearer, unauthorized};
use super::{Caller, Door};
use crate::core::error::ErrorCode;
use crate::gateway::problem::Problem;

/// How far the clocks of issuer and server may be apart.
const LEEWAY_SECONDS: u64 = 60;

/// Longer tokens are not looked at.
const LONGEST_TOKEN: usize = 16 * 1024;

/// Whose tokens are believed, and what they mean here.
#[derive(Clone, Debug)]
pub struct OidcSettings {
    /// The issuer, exactly as its tokens write it.
    pub issuer: String,
    /// For whom a token has to be: one of these.
    pub audience: Vec<String>,
    /// What its claims mean.
    pub claims: Claims,
    /// How long published keys are used before they are asked for again.
    pub fresh: Duration,
    /// How often they are asked for at most, whatever tokens come.
    pub pause: Duration,
}

impl OidcSettings {
    /// Tokens of an issuer for an audience.
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

/// Why there can be no such door.
#[derive(Debug, thiserror::Error)]
#[error("the issuer's keys cannot be fetched by this program: {0}")]
pub struct OidcError(#[from] reqwest::Error);

/// Lets in whoever shows a token of the issuer.
pub struct OidcDoor {
    settings: OidcSettings,
    issuer: Arc<Issuer>,
}

impl OidcDoor {
    /// A door for the tokens of an issuer. Nothing is fetched before the first token comes.
    pub fn new(settings: OidcSettings) -> Result<Self, OidcError> {
        let issuer = Issuer::new(&settings.issuer, settings.fresh, settings.pause)?;
        Ok(Self { settings, issuer: Arc::new(issuer) })
    }

    async fn caller(&self, token: &str) -> Result<Caller, Refused> {
        let header = decode_header(token).map_err(|error| Refused::token(error.to_string()))?;
        if header.crit.is_some() {
            return Err(Refused::token("it wants something understood that is not"));
        }
        let key = self.issuer.key(header.kid.as_deref()).await?;
        let mut validation = Validation::new(key.algorithm);
        validation.leeway = LEEWAY_SECONDS;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_audience(&self.settings.audience);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let decoded = decode::<Map<String, Value>>(token, &key.decoding, &validation);
        let decoded = decoded.map_err(|error| Refused::token(error.to_string()))?;
        self.settings.claims.caller(&decoded.claims).map_err(Refused::token)
    }
}

#[async_trait]
impl Door for OidcDoor {
    async fn opened_by(&self, request: &Parts) -> Result<Option<Caller>, Problem> {
        let is_jwt = |token: &&str| token.len() <= LONGEST_TOKEN && token.split('.').count() == 3;
        let Some(token) = bearer(&request.headers).filter(is_jwt) else { return Ok(None) };
        match self.caller(token).await {
            Ok(caller) => Ok(Some(caller)),
            Err(Refused::Token(why)) => {
                tracing::info!(issuer = self.settings.issuer, why, "a token was shown that does not hold");
                Err(unauthorized(true))
            }
            Err(Refused::NoKeys(retry)) => {
                let detail = "the issuer's keys cannot be had, so nobody can be recognised by its tokens";
                Err(Problem::new(ErrorCode::Unavailable, detail).after(retry))
            }
        }
    }
}

/// Why a token lets nobody in.
pub(super) enum Refused {
    /// It does not hold; why is for the log.
    Token(String),
    /// Nobody can say: the keys were never had.
    NoKeys(Duration),
}

impl Refused {
    fn token(why: impl Into<String>) -> Self {
        Self::Token(why.into())
    }
}
