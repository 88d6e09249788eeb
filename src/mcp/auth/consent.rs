//! Authorization-code flow with PKCE: a person grants access.

use rmcp::transport::auth::OAuthClientConfig;
use secrecy::{ExposeSecret, SecretString};

use super::browser::Browser;
use super::callback::{Callback, InvalidCallback, state_of};
use super::credentials::{Client, Credential, CredentialFile};
use super::discovery::{AuthorizationServer, Target};
use super::fault::{AccessError, failed, failed_after, harmless, sent};
use super::settings::ClientIdentity;
use super::tokens::CapturedCredentials;

/// An authorization request.
pub(super) struct Consent<'a> {
    pub(super) target: &'a Target,
    pub(super) client: &'a ClientIdentity,
    /// The scopes to request; empty: those that the server names.
    pub(super) scopes: &'a [String],
    pub(super) credentials: &'a CredentialFile,
    pub(super) browser: &'a dyn Browser,
}

impl Consent<'_> {
    /// Requests access, and stores the credential.
    pub(super) async fn ask(&self, challenge: Option<&str>) -> Result<Credential, AccessError> {
        let mut from = self.target.discover(challenge).await?;
        if from.metadata.code_challenge_methods_supported.is_none() {
            let why = format!(
                "the authorization server {} does not say that it supports PKCE, which MCP demands",
                from.issuer
            );
            return Err(AccessError::Failed(why));
        }
        let captured = CapturedCredentials::new(&mut from.manager);
        let scopes = self.wanted(&from).await;
        let client = self.identify(&mut from, &scopes).await?;
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let page = from.manager.get_authorization_url(&scopes).await.map_err(failed)?;
        let (code, state, issuer) = self.visit(&page, &from).await?;
        let exchanged =
            from.manager.exchange_code_for_token_with_issuer(code.expose_secret(), &state, issuer.as_deref());
        let sent = sent([Some(&code), client.secret.as_ref()].into_iter().flatten());
        exchanged.await.map_err(|error| failed_after(error, &sent))?;
        let credential = captured.take(&from, self.target.url.as_str(), client).await?;
        self.credentials.keep(credential.clone()).await?;
        Ok(credential)
    }

    /// The scopes to request, and the scope for refresh tokens where the server has one.
    async fn wanted(&self, from: &AuthorizationServer) -> Vec<String> {
        if self.scopes.is_empty() {
            return from.manager.select_initial_scopes(&[]).await;
        }
        let mut scopes = self.scopes.to_vec();
        if from.knows_scope("offline_access") && !scopes.iter().any(|scope| scope == "offline_access") {
            scopes.push("offline_access".into());
        }
        scopes
    }

    /// Identifies toolgate as a client: as configured, as registered there before, or by registering now.
    async fn identify(&self, from: &mut AuthorizationServer, scopes: &[String]) -> Result<Client, AccessError> {
        let redirect_uri = self.browser.redirect_uri();
        let known = match self.client {
            ClientIdentity::Registered { id, secret } => Some((id.clone(), secret.clone())),
            ClientIdentity::Document { url } if from.says("client_id_metadata_document_supported") => {
                Some((url.clone(), None))
            }
            ClientIdentity::Document { .. } | ClientIdentity::Registering => {
                let before = self.credentials.of_issuer(self.target.url.as_str(), &from.issuer)?;
                let same = before.filter(|before| before.client.redirect_uri == redirect_uri);
                same.map(|before| (before.client.id, before.client.secret))
            }
        };
        if let Some((id, secret)) = known {
            let client = Client { id, secret, redirect_uri };
            from.manager.configure_client(client.config()).map_err(failed)?;
            return Ok(client);
        }
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let registered = from.manager.register_client("toolgate", &redirect_uri, &scopes).await.map_err(failed)?;
        let OAuthClientConfig { client_id, client_secret, .. } = registered;
        Ok(Client { id: client_id, secret: client_secret.map(SecretString::from), redirect_uri })
    }

    /// Shows the page and waits for the code of its redirect.
    async fn visit(
        &self,
        page: &str,
        from: &AuthorizationServer,
    ) -> Result<(SecretString, String, Option<String>), AccessError> {
        let refused = |why: String| AccessError::Failed(harmless(&why));
        let state = state_of(page).ok_or_else(|| refused("the authorization page asks without a state".into()))?;
        let back = self.browser.visit(page).await.map_err(refused)?;
        match Callback::read(&back, &state) {
            Ok(Callback::Granted { code, issuer }) => Ok((code, state, issuer)),
            Ok(Callback::Denied(why)) => Err(refused(format!("{} did not grant it: {why}", from.issuer))),
            Err(InvalidCallback::State) => Err(refused(
                "the browser came back with an answer to another question (its `state` is not ours)".into(),
            )),
            Err(InvalidCallback::Empty) => Err(refused(format!("{} led the browser back without a code", from.issuer))),
        }
    }
}
