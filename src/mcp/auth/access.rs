//! Access token of one connected server: the current token, and the source of the next one.
//!
//! However many requests get a refusal at once, the token is renewed once, and the others use the new token; the same
//! holds between processes that share a credential file. Renewal does not belong to a request: a request that is
//! cancelled meanwhile must not lose the only valid refresh token.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use reqwest::Url;
use rmcp::transport::auth::WWWAuthenticateParams;
use secrecy::{ExposeSecret, SecretString};
use tracing::Dispatch;
use tracing::instrument::WithSubscriber;

use super::consent::Consent;
use super::credentials::{Credential, CredentialFile, is_stale};
use super::discovery::Target;
use super::fault::{AccessError, harmless};
use super::settings::{ClientProof, Grant, OAuthSettings};
use super::token_refresh::{self, RenewalOutcome};
use crate::http::egress::{AllowedAddresses, Egress};

/// The error when no credentials are stored.
const NOT_LOGGED_IN: &str = "it answered HTTP 401, and no user has logged in";

/// The access to one server.
#[derive(Debug)]
pub(crate) struct Access {
    settings: OAuthSettings,
    target: Target,
    held: Mutex<TokenState>,
    /// Held while a token is obtained. It contains the scopes requested during this connection.
    obtaining: tokio::sync::Mutex<RequestedScopes>,
}

#[derive(Clone, Debug)]
enum TokenState {
    /// Not read yet.
    Unread,
    /// There is no token.
    None,
    Token(Token),
}

/// A token to send.
#[derive(Clone, Debug)]
struct Token {
    secret: SecretString,
    expires_at: Option<Timestamp>,
    scopes: Vec<String>,
}

/// Scopes that were already requested.
type RequestedScopes = BTreeSet<String>;

/// Why another token is needed.
#[derive(Clone, Debug)]
pub(crate) enum TokenRefusal {
    /// The server refused the token, if any was sent, with this challenge.
    Unauthorized { challenge: String },
    /// The scopes do not suffice, according to this challenge.
    Insufficient { challenge: String },
}

/// The requirements for another token.
struct TokenRequest<'a> {
    /// The token that was refused.
    sent: Option<&'a SecretString>,
    /// The required scopes, if they are the reason.
    wanted: Option<Vec<String>>,
    challenge: Option<&'a str>,
}

impl Access {
    /// Access to the server at that address. Sends nothing yet.
    pub(crate) fn new(settings: OAuthSettings, url: Url, egress: &Egress) -> Arc<Self> {
        let reach = AllowedAddresses::from_server(egress, &url, settings.allow_private);
        Arc::new(Self {
            settings,
            target: Target { url, reach },
            held: Mutex::new(TokenState::Unread),
            obtaining: tokio::sync::Mutex::default(),
        })
    }

    /// The token to send with a request. Without a token the request is sent without one: the server may not require
    /// it.
    pub(crate) async fn token(self: &Arc<Self>) -> Result<Option<SecretString>, AccessError> {
        let held = self.held();
        match (held, &self.settings.grant) {
            (TokenState::Token(token), _) if !is_stale(token.expires_at) => Ok(Some(token.secret)),
            (TokenState::Token(token), _) => self.obtain(Some(token.secret), None).await.map(Some),
            (TokenState::Unread | TokenState::None, Grant::Client { .. }) => self.obtain(None, None).await.map(Some),
            (TokenState::None, Grant::Person { .. }) => Ok(None),
            (TokenState::Unread, Grant::Person { credentials, .. }) => match credentials.newest(self.server()) {
                Ok(Some(found)) if !found.is_stale() => Ok(Some(self.cache_token(&found))),
                Ok(Some(found)) => self.obtain(Some(found.access_token), None).await.map(Some),
                // A server that may not require a token gets the request without one. If it does require one, the
                // error is reported then.
                Ok(None) | Err(_) => {
                    *self.state() = TokenState::None;
                    Ok(None)
                }
            },
        }
    }

    /// A token other than the one that was sent, according to the server's answer.
    pub(crate) async fn after(
        self: &Arc<Self>,
        sent: Option<SecretString>,
        refused: TokenRefusal,
    ) -> Result<SecretString, AccessError> {
        self.obtain(sent, Some(refused)).await
    }

    /// Obtains a token in a task of its own, which completes even if the request is cancelled.
    async fn obtain(
        self: &Arc<Self>,
        sent: Option<SecretString>,
        refused: Option<TokenRefusal>,
    ) -> Result<SecretString, AccessError> {
        let access = self.clone();
        // The SDK logs authorization codes and token responses.
        let obtaining = async move { access.obtained(sent, refused).await }.with_subscriber(Dispatch::none());
        match tokio::spawn(obtaining).await {
            Ok(outcome) => outcome,
            Err(_) => Err(AccessError::Failed("obtaining it panicked".into())),
        }
    }

    async fn obtained(
        &self,
        sent: Option<SecretString>,
        refused: Option<TokenRefusal>,
    ) -> Result<SecretString, AccessError> {
        let mut requested = self.obtaining.lock().await;
        if let TokenState::Token(token) = self.held()
            && is_another(&token.secret, sent.as_ref())
        {
            return Ok(token.secret);
        }
        if let Grant::Person { credentials, .. } = &self.settings.grant
            && let Some(newer) = credentials.newest(self.server())?.filter(|stored| is_of_use(stored, sent.as_ref()))
        {
            return Ok(self.cache_token(&newer));
        }
        let wanted = match &refused {
            Some(TokenRefusal::Insufficient { challenge }) => Some(self.wider(challenge, &requested)?),
            Some(TokenRefusal::Unauthorized { .. }) | None => None,
        };
        let challenge = refused.as_ref().map(TokenRefusal::challenge).filter(|challenge| !challenge.is_empty());
        let request = TokenRequest { sent: sent.as_ref(), wanted, challenge };
        let granted = match &self.settings.grant {
            Grant::Client { id, proof } => {
                requested.extend(request.wanted.iter().flatten().cloned());
                self.by_itself(id, proof, request).await?
            }
            Grant::Person { credentials, browser: None, .. } => {
                if credentials.newest(self.server())?.is_none() {
                    return Err(self.login_needed(NOT_LOGGED_IN.into(), request));
                }
                let _lock = credentials.renewing(self.server()).await?;
                match self.stored_credential(credentials, &request).await? {
                    RenewalOutcome::Granted(credential) => *credential,
                    RenewalOutcome::Ended(why) => return Err(self.login_needed(why, request)),
                }
            }
            Grant::Person { client, credentials, browser: Some(browser), .. } => {
                requested.extend(request.wanted.iter().flatten().cloned());
                // Held while the page is open, too: the user must not see the same page twice at once.
                let _lock = credentials.renewing(self.server()).await?;
                match self.stored_credential(credentials, &request).await? {
                    RenewalOutcome::Granted(credential) => *credential,
                    RenewalOutcome::Ended(_) => {
                        let scopes = request.wanted.as_ref().unwrap_or(&self.settings.scopes);
                        let (target, browser) = (&self.target, browser.as_ref());
                        Consent { target, client, scopes, credentials, browser }.ask(request.challenge).await?
                    }
                }
            }
        };
        Ok(self.cache_token(&granted))
    }

    async fn by_itself(
        &self,
        id: &str,
        proof: &ClientProof,
        request: TokenRequest<'_>,
    ) -> Result<Credential, AccessError> {
        let held = match self.held() {
            TokenState::Token(token) => token.scopes,
            TokenState::Unread | TokenState::None => Vec::new(),
        };
        let as_before = if held.is_empty() { self.settings.scopes.clone() } else { held };
        let scopes = request.wanted.unwrap_or(as_before);
        token_refresh::request(&self.target, id, proof, &scopes, request.challenge).await
    }

    /// The stored credential, if its token differs from the one that was sent, or can be renewed. The caller holds the
    /// lock of the server.
    async fn stored_credential(
        &self,
        credentials: &CredentialFile,
        request: &TokenRequest<'_>,
    ) -> Result<RenewalOutcome, AccessError> {
        let Some(stored) = credentials.newest(self.server())? else {
            return Ok(RenewalOutcome::Ended(NOT_LOGGED_IN.into()));
        };
        if is_of_use(&stored, request.sent) {
            return Ok(RenewalOutcome::Granted(Box::new(stored)));
        }
        if request.wanted.is_some() {
            return Ok(RenewalOutcome::Ended(
                "it answered HTTP 403: the access that was granted does not suffice".into(),
            ));
        }
        token_refresh::renew(&self.target, credentials, stored).await
    }

    fn login_needed(&self, why: String, request: TokenRequest<'_>) -> AccessError {
        let (server, scopes) = (self.settings.server.clone(), request.wanted.unwrap_or_default());
        AccessError::LoginNeeded { server, why, scopes }
    }

    /// The scopes to request when some are missing: the current and the missing ones. Requesting the same scopes again
    /// would never end.
    fn wider(&self, challenge: &str, requested: &RequestedScopes) -> Result<Vec<String>, AccessError> {
        let params = WWWAuthenticateParams::parse(challenge, &self.target.url);
        let missing: Vec<String> =
            params.scope.iter().flat_map(|scope| scope.split_whitespace()).filter_map(scope).collect();
        let mut scopes = match self.held() {
            TokenState::Token(token) => token.scopes,
            TokenState::Unread | TokenState::None => self.settings.scopes.clone(),
        };
        let is_new = |scope: &String| !requested.contains(scope) && !scopes.contains(scope);
        if !params.is_insufficient_scope() || !missing.iter().any(is_new) {
            let named = if missing.is_empty() { String::new() } else { format!(" (it wants {})", missing.join(" ")) };
            return Err(AccessError::Insufficient(harmless(&named)));
        }
        let more: Vec<String> = missing.into_iter().filter(|scope| !scopes.contains(scope)).collect();
        scopes.extend(more);
        Ok(scopes)
    }

    fn cache_token(&self, credential: &Credential) -> SecretString {
        let token = Token {
            secret: credential.access_token.clone(),
            expires_at: credential.expires_at,
            scopes: credential.scopes.clone(),
        };
        *self.state() = TokenState::Token(token);
        credential.access_token.clone()
    }

    fn server(&self) -> &str {
        self.target.url.as_str()
    }

    fn held(&self) -> TokenState {
        self.state().clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, TokenState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenRefusal {
    fn challenge(&self) -> &str {
        match self {
            Self::Unauthorized { challenge } | Self::Insufficient { challenge } => challenge,
        }
    }
}

/// Whether a stored token is worth sending after another one was refused.
fn is_of_use(stored: &Credential, sent: Option<&SecretString>) -> bool {
    is_another(&stored.access_token, sent) && !stored.is_stale()
}

fn is_another(token: &SecretString, sent: Option<&SecretString>) -> bool {
    sent.is_none_or(|sent| sent.expose_secret() != token.expose_secret())
}

/// A scope in the syntax of RFC 6749.
fn scope(text: &str) -> Option<String> {
    let is_allowed = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    text.chars().all(is_allowed).then(|| text.to_owned())
}
