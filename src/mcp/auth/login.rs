//! Login and logout: a person grants access beforehand, so that a run never has to ask.

use jiff::Timestamp;
use reqwest::Url;
use serde::Serialize;
use tracing::Dispatch;
use tracing::instrument::WithSubscriber;

use super::browser::Browser;
use super::consent::Consent;
use super::credentials::{Credential, CredentialFile};
use super::discovery::Target;
use super::settings::{Grant, OAuthSettings};
use crate::http::egress::AllowedAddresses;
use crate::settings::HttpSettings;

/// The access that a person granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Login {
    /// The authorization server.
    pub issuer: String,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// The expiry of the token, if the server stated one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Whether it is renewed without a person.
    pub renewable: bool,
}

/// Why a login failed.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// A login is not needed.
    #[error("{0}")]
    NotNeeded(&'static str),
    /// The login failed.
    #[error("{0}")]
    Failed(String),
}

/// Requests access to a server in that browser, with its configured and these further scopes, and stores the
/// credential.
pub async fn login(settings: &HttpSettings, further: &[String], browser: &dyn Browser) -> Result<Login, LoginError> {
    let oauth = oauth(settings)?;
    let Grant::Person { client, credentials, .. } = &oauth.grant else {
        return Err(LoginError::NotNeeded("toolgate has access in its own name, by `client_credentials`"));
    };
    let target = target(settings, oauth)?;
    let mut scopes = oauth.scopes.clone();
    scopes.extend(further.iter().filter(|scope| !oauth.scopes.contains(scope)).cloned());
    let consent = Consent { target: &target, client, scopes: &scopes, credentials, browser };
    // The SDK logs authorization codes and token responses.
    let asking = async { consent.ask(target.challenge().await?.as_deref()).await };
    let granted = asking.with_subscriber(Dispatch::none()).await;
    granted.map(Login::from).map_err(|error| LoginError::Failed(error.to_string()))
}

/// Deletes the credentials of a server; returns whether there were any.
pub async fn logout(settings: &HttpSettings, credentials: &CredentialFile) -> Result<bool, LoginError> {
    let forgotten = credentials.forget(url(settings)?.as_str()).await;
    forgotten.map(|count| count > 0).map_err(|error| LoginError::Failed(error.to_string()))
}

impl From<Credential> for Login {
    fn from(granted: Credential) -> Self {
        let Credential { issuer, scopes, expires_at, refresh_token, .. } = granted;
        Self { issuer, scopes, expires_at, renewable: refresh_token.is_some() }
    }
}

fn oauth(settings: &HttpSettings) -> Result<&OAuthSettings, LoginError> {
    settings.oauth.as_ref().ok_or(LoginError::NotNeeded("its credentials are in the configuration"))
}

fn target(settings: &HttpSettings, oauth: &OAuthSettings) -> Result<Target, LoginError> {
    let url = url(settings)?;
    let reach = AllowedAddresses::from_server(&settings.egress, &url, oauth.allow_private);
    Ok(Target { url, reach })
}

fn url(settings: &HttpSettings) -> Result<Url, LoginError> {
    Url::parse(&settings.url).map_err(|_| LoginError::Failed("its `url` is no http or https address".into()))
}
