//! Authorization server discovery: the server's metadata (RFC 9728) names an authorization server, whose metadata (RFC
//! 8414, OpenID Connect) names endpoints. The SDK finds them; this module checks the addresses, which the SDK leaves
//! to its caller.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, WWW_AUTHENTICATE};
use reqwest::{Client, StatusCode, Url, redirect};
use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata, OAuthClientConfig};

use super::fault::{AccessError, failed, masked_url, root_cause};
use super::guarded::GuardedClient;
use crate::http::egress::AllowedAddresses;

const DIAL: Duration = Duration::from_secs(10);
const EXCHANGE: Duration = Duration::from_secs(30);

/// A server that requires authorization, and the addresses that its metadata may name.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) url: Url,
    pub(super) reach: AllowedAddresses,
}

/// A discovered authorization server.
pub(super) struct AuthorizationServer {
    pub(super) manager: AuthorizationManager,
    pub(super) issuer: String,
    pub(super) metadata: AuthorizationMetadata,
}

impl Target {
    /// Finds the authorization server, starting with the server's challenge if there was one.
    pub(super) async fn discover(&self, challenge: Option<&str>) -> Result<AuthorizationServer, AccessError> {
        let mut manager = self.manager().await?;
        let found = manager.resolve_metadata_from_challenge(challenge).await.map_err(failed)?;
        let metadata = found.metadata;
        let (true, Some(issuer)) = (found.source.is_discovered(), metadata.issuer.clone()) else {
            let why = "it publishes no OAuth metadata; if it takes a token, give it in the server's `auth` as `bearer`";
            return Err(AccessError::Failed(why.into()));
        };
        self.dialled(&metadata.token_endpoint)?;
        metadata.registration_endpoint.iter().try_for_each(|endpoint| self.dialled(endpoint))?;
        // A person opens it, in their own browser.
        self.endpoint(&metadata.authorization_endpoint)?;
        manager.set_metadata(metadata.clone());
        Ok(AuthorizationServer { manager, issuer, metadata })
    }

    /// The server's challenge to a client without access: it may name scopes and a metadata address. A ping triggers
    /// it in every server that requires access, and changes nothing.
    pub(super) async fn challenge(&self) -> Result<Option<String>, AccessError> {
        let ping = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let request = self.client()?.post(self.url.clone()).header(ACCEPT, "application/json, text/event-stream");
        let answer = request.json(&ping).send().await.map_err(|error| {
            AccessError::Failed(format!("{} cannot be reached: {}", masked_url(&self.url), root_cause(&error)))
        })?;
        let challenge = answer.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        Ok(challenge.filter(|_| answer.status() == StatusCode::UNAUTHORIZED).map(str::to_owned))
    }

    async fn manager(&self) -> Result<AuthorizationManager, AccessError> {
        let (url, client) = (self.url.clone(), self.client()?);
        // The SDK has its own rule for private addresses; only its own client type is exempt from that rule.
        if self.reach.admits_private() && url.domain().is_some() {
            let mut manager = AuthorizationManager::new_allowing_private_addresses(url).await.map_err(failed)?;
            manager.with_client(client).map_err(failed)?;
            return Ok(manager);
        }
        let guarded = Arc::new(GuardedClient::over(client, self.reach.clone()));
        AuthorizationManager::new_with_oauth_http_client(url, guarded).await.map_err(failed)
    }

    /// A client that connects only to allowed addresses, and follows no redirects.
    fn client(&self) -> Result<Client, AccessError> {
        let mut client = Client::builder().connect_timeout(DIAL).timeout(EXCHANGE).redirect(redirect::Policy::none());
        if let Some(guard) = self.reach.resolver() {
            client = client.dns_resolver(guard);
        }
        client.build().map_err(|error| AccessError::Failed(format!("there is no HTTP client: {error}")))
    }

    /// Checks an endpoint that toolgate connects to.
    fn dialled(&self, endpoint: &str) -> Result<(), AccessError> {
        let url = self.endpoint(endpoint)?;
        self.reach.check(&url).map_err(|refused| AccessError::Failed(format!("its metadata cannot be used: {refused}")))
    }

    /// Checks that an endpoint is as safe for secrets as the server itself.
    fn endpoint(&self, endpoint: &str) -> Result<Url, AccessError> {
        let url = Url::parse(endpoint).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url =
            url.ok_or_else(|| AccessError::Failed("its metadata has an endpoint that is no web address".into()))?;
        match (self.url.scheme(), url.scheme()) {
            ("https", "http") => {
                let why = format!("its metadata leads to {}, which is not encrypted", masked_url(&url));
                Err(AccessError::Failed(why))
            }
            _ => Ok(url),
        }
    }
}

impl AuthorizationServer {
    /// Whether a boolean member of its metadata is true.
    pub(super) fn says(&self, member: &str) -> bool {
        self.metadata.additional_fields.get(member).and_then(serde_json::Value::as_bool) == Some(true)
    }

    /// Whether it supports the scope.
    pub(super) fn knows_scope(&self, scope: &str) -> bool {
        self.metadata.scopes_supported.iter().flatten().any(|known| known == scope)
    }

    /// The resource identifier from the server's own metadata, for which tokens are requested. The SDK exposes it only
    /// in the address of an authorization page.
    pub(super) async fn resource(&mut self, target: &Target) -> String {
        let stranger = OAuthClientConfig::new("unregistered", "http://127.0.0.1/");
        let page = match self.manager.configure_client(stranger) {
            Ok(()) => self.manager.get_authorization_url(&[]).await.ok().and_then(|page| Url::parse(&page).ok()),
            Err(_) => None,
        };
        let named = page.and_then(|page| {
            page.query_pairs().find(|(key, _)| key == "resource").map(|(_, value)| value.into_owned())
        });
        named.unwrap_or_else(|| target.url.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::egress::Egress;

    fn target(url: &str) -> Target {
        let url = Url::parse(url).expect("a URL");
        Target { reach: AllowedAddresses::from_server(&Egress::Operator, &url, false), url }
    }

    #[test]
    fn a_server_that_is_dialled_encrypted_does_not_lead_to_an_endpoint_that_is_not() {
        let encrypted = target("https://mcp.test/mcp");
        let error = encrypted.dialled("http://as.test/token?key=s3cret").expect_err("not encrypted").to_string();
        assert_eq!(
            error,
            "access could not be obtained: its metadata leads to http://as.test/token, which is not encrypted"
        );
        assert!(encrypted.dialled("https://as.test/token").is_ok());
        assert!(target("http://127.0.0.1:1/mcp").dialled("http://127.0.0.1:2/token").is_ok());
    }

    #[test]
    fn an_endpoint_is_a_web_address_and_not_in_the_network_of_the_operator() {
        let public = target("https://mcp.test/mcp");
        for refused in
            ["javascript:alert(1)", "file:///etc/passwd", "/token", "https://10.0.0.1/", "https://[fd00::1]/"]
        {
            assert!(public.dialled(refused).is_err(), "{refused}");
        }
        assert!(target("https://10.0.0.4/mcp").dialled("https://10.0.0.9/token").is_ok(), "beside the server");
        // A page that a person opens in their browser is not a connection of toolgate.
        assert!(public.endpoint("https://10.0.0.1/authorize").is_ok());
        assert!(public.endpoint("javascript:alert(1)").is_err());
    }
}
