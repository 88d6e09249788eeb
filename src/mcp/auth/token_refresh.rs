//! Token requests without a person: renewed with a refresh token, or requested in toolgate's own name.

use jiff::Timestamp;
use rmcp::transport::auth::{AuthError, ClientCredentialsConfig, JwtSigningAlgorithm};
use secrecy::ExposeSecret;
use tokio::runtime::Handle;
use toolgate_core::redact::Secrets;
use tracing::{Dispatch, dispatcher};

use super::credentials::{Client, Credential, CredentialFile};
use super::discovery::{AuthorizationServer, Target};
use super::fault::{AccessError, failed, failed_after, is_unreadable, sent};
use super::settings::{ClientProof, SigningAlgorithm};
use super::tokens::CapturedCredentials;

/// The refresh token is not sent twice in a short time.
const UNREAD: &str = "its authorization server answered the renewal a moment ago with something that cannot be read, so the \
                      refresh token is not sent again yet; try again in a minute, or log in again with `toolgate mcp login`";

/// The result of a renewal.
pub(super) enum RenewalOutcome {
    /// A new token, and perhaps a new refresh token; the old one must not be used again.
    Granted(Box<Credential>),
    /// No token: a person has to grant access again, for that reason.
    Ended(String),
}

/// Renews a credential, and stores the result. Only the issuer receives the refresh token, and a refused refresh token
/// is never sent again.
pub(super) async fn renew(
    target: &Target,
    credentials: &CredentialFile,
    mut old: Credential,
) -> Result<RenewalOutcome, AccessError> {
    if old.refresh_token.is_none() {
        return Ok(RenewalOutcome::Ended("the access that was granted has expired, and cannot be renewed".into()));
    }
    if old.was_just_renewed_unread() {
        return Err(AccessError::Failed(UNREAD.into()));
    }
    let mut from = target.discover(None).await?;
    if from.issuer != old.issuer {
        let why = format!("it is now {} that grants access, which {} did before", from.issuer, old.issuer);
        return Ok(RenewalOutcome::Ended(why));
    }
    let captured = CapturedCredentials::new(&mut from.manager);
    captured.insert(&old).await?;
    from.manager.configure_client(old.client.config()).map_err(failed)?;
    let sent =
        sent([Some(&old.access_token), old.refresh_token.as_ref(), old.client.secret.as_ref()].into_iter().flatten());
    match from.manager.refresh_token().await {
        Ok(_) => {
            let new = captured.take(&from, &old.server, old.client).await?;
            credentials.keep(new.clone()).await?;
            Ok(RenewalOutcome::Granted(Box::new(new)))
        }
        Err(AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired) => {
            old.refresh_token = None;
            credentials.keep(old).await?;
            Ok(RenewalOutcome::Ended("the access that was granted has expired, or was revoked".into()))
        }
        Err(error) => {
            if is_unreadable(&error) {
                old.unread_renewal_at = Some(Timestamp::now());
                credentials.keep(old).await?;
            }
            Err(failed_after(error, &sent))
        }
    }
}

/// Requests a token in toolgate's own name.
pub(super) async fn request(
    target: &Target,
    id: &str,
    proof: &ClientProof,
    scopes: &[String],
    challenge: Option<&str>,
) -> Result<Credential, AccessError> {
    let mut from = target.discover(challenge).await?;
    let scopes = match scopes {
        [] => from.manager.select_initial_scopes(&[]).await,
        some => some.to_vec(),
    };
    let resource = from.resource(target).await;
    let config = config(id, proof, scopes, resource)?;
    let captured = CapturedCredentials::new(&mut from.manager);
    let (ClientProof::Secret(secret) | ClientProof::PrivateKey { pem: secret, .. }) = proof;
    let from = exchange(from, config, &sent([secret])).await?;
    let client = Client { id: id.to_owned(), secret: None, redirect_uri: String::new() };
    captured.take(&from, target.url.as_str(), client).await
}

/// Exchanges the proof for a token. The SDK's future cannot move between threads, so it runs on a thread of its own.
async fn exchange(
    mut from: AuthorizationServer,
    config: ClientCredentialsConfig,
    sent: &Secrets,
) -> Result<AuthorizationServer, AccessError> {
    from.manager.validate_client_credentials_metadata(&config).map_err(failed)?;
    from.manager.configure_client_credentials(&config).map_err(failed)?;
    let runtime = Handle::current();
    let exchanging = tokio::task::spawn_blocking(move || {
        let exchanged = dispatcher::with_default(&Dispatch::none(), || {
            runtime.block_on(from.manager.exchange_client_credentials(&config))
        });
        exchanged.map(|_| from)
    });
    match exchanging.await {
        Ok(exchanged) => exchanged.map_err(|error| failed_after(error, sent)),
        Err(_) => Err(AccessError::Failed("obtaining it panicked".into())),
    }
}

/// The client configuration for the SDK.
fn config(
    id: &str,
    proof: &ClientProof,
    scopes: Vec<String>,
    resource: String,
) -> Result<ClientCredentialsConfig, AccessError> {
    let (client_id, resource) = (id.to_owned(), Some(resource));
    Ok(match proof {
        ClientProof::Secret(secret) => ClientCredentialsConfig::ClientSecret {
            client_id,
            client_secret: secret.expose_secret().to_owned(),
            scopes,
            resource,
        },
        ClientProof::PrivateKey { pem, algorithm } => ClientCredentialsConfig::PrivateKeyJwt {
            client_id,
            signing_key: pem.expose_secret().as_bytes().to_vec(),
            signing_algorithm: sdk_algorithm(*algorithm),
            token_endpoint_audience: None,
            scopes,
            resource,
        },
    })
}

fn sdk_algorithm(algorithm: SigningAlgorithm) -> JwtSigningAlgorithm {
    match algorithm {
        SigningAlgorithm::Rs256 => JwtSigningAlgorithm::RS256,
        SigningAlgorithm::Rs384 => JwtSigningAlgorithm::RS384,
        SigningAlgorithm::Rs512 => JwtSigningAlgorithm::RS512,
        SigningAlgorithm::Es256 => JwtSigningAlgorithm::ES256,
        SigningAlgorithm::Es384 => JwtSigningAlgorithm::ES384,
    }
}
