//! Conversion of SDK tokens to credentials. The SDK's token types are converted through JSON, which both sides know.

use jiff::{SignedDuration, Timestamp};
use rmcp::transport::auth::{
    AuthorizationManager, CredentialStore, InMemoryCredentialStore, OAuthClientConfig, StoredCredentials,
};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;

use super::credentials::{Client, Credential};
use super::discovery::AuthorizationServer;
use super::fault::{AccessError, failed};

/// The SDK's store during a token request; credentials that are to be kept are taken out of it.
pub(super) struct CapturedCredentials(InMemoryCredentialStore);

/// The used members of a token response.
#[derive(Deserialize)]
struct Answer {
    access_token: SecretString,
    token_type: String,
    expires_in: Option<u64>,
    refresh_token: Option<SecretString>,
}

impl CapturedCredentials {
    /// An empty store for that manager.
    pub(super) fn new(manager: &mut AuthorizationManager) -> Self {
        let store = InMemoryCredentialStore::new();
        manager.set_credential_store(store.clone());
        Self(store)
    }

    /// Loads the credential that is to be renewed.
    pub(super) async fn insert(&self, credential: &Credential) -> Result<(), AccessError> {
        let tokens = json!({
            "access_token": credential.access_token.expose_secret(),
            "token_type": "bearer",
            "refresh_token": credential.refresh_token.as_ref().map(ExposeSecret::expose_secret),
        });
        let tokens = serde_json::from_value(tokens).map_err(|_| unreadable())?;
        let stored =
            StoredCredentials::new(credential.client.id.clone(), Some(tokens), credential.scopes.clone(), None);
        self.0.save(stored.with_issuer(Some(credential.issuer.clone()))).await.map_err(failed)
    }

    /// Takes the granted credential.
    pub(super) async fn take(
        &self,
        from: &AuthorizationServer,
        server: &str,
        client: Client,
    ) -> Result<Credential, AccessError> {
        let granted = self.0.load().await.map_err(failed)?;
        let (Some(tokens), scopes) =
            granted.map(|stored| (stored.token_response, stored.granted_scopes)).unwrap_or_default()
        else {
            return Err(unreadable());
        };
        let answer =
            serde_json::to_value(tokens).and_then(serde_json::from_value::<Answer>).map_err(|_| unreadable())?;
        if !answer.token_type.eq_ignore_ascii_case("bearer") {
            let why = format!("the authorization server {} gave no bearer token", from.issuer);
            return Err(AccessError::Failed(why));
        }
        let now = Timestamp::now();
        let lifetime = answer.expires_in.and_then(|seconds| i64::try_from(seconds).ok()).map(SignedDuration::from_secs);
        Ok(Credential {
            server: server.to_owned(),
            issuer: from.issuer.clone(),
            client,
            access_token: answer.access_token,
            refresh_token: answer.refresh_token,
            expires_at: lifetime.and_then(|lifetime| now.checked_add(lifetime).ok()),
            scopes: scopes.into_iter().filter(|scope| !scope.is_empty()).collect(),
            obtained_at: now,
            unread_renewal_at: None,
        })
    }
}

impl Client {
    /// The client configuration for the SDK.
    pub(super) fn config(&self) -> OAuthClientConfig {
        let config = OAuthClientConfig::new(self.id.as_str(), self.redirect_uri.as_str());
        match &self.secret {
            Some(secret) => config.with_client_secret(secret.expose_secret()),
            None => config,
        }
    }
}

fn unreadable() -> AccessError {
    AccessError::Failed("the answer of its authorization server cannot be read".into())
}
