//! Reasons for missing access, in words for people. They contain no credentials, and no address with the secrets it
//! may hold.

use std::borrow::Cow;
use std::error::Error;

use reqwest::Url;
use rmcp::transport::auth::AuthError;
use secrecy::{ExposeSecret as _, SecretString};
use toolgate_core::id::ServerId;
use toolgate_core::redact::{Secrets, SecretsBuilder, Style};
use toolgate_core::tool::AuthorizationStatus;

use super::credentials::CredentialError;
use super::token_answer;

/// Why access is not available. Messages follow "the MCP server `x` could not be reached: ".
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccessError {
    /// A person has to grant access, or more of it.
    #[error("{why}; run `{}`", login_command(.server, .scopes))]
    LoginNeeded {
        server: ServerId,
        why: String,
        /// The scopes to request, if they differ from the configured ones.
        scopes: Vec<String>,
    },
    /// The credentials cannot be read or stored.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// The authorization server, or the way to it, is misconfigured.
    #[error("access could not be obtained: {0}")]
    Failed(String),
    /// The granted access does not suffice, and requesting more is of no use.
    #[error("it answered HTTP 403: the access that was granted does not suffice{0}")]
    Insufficient(String),
    /// The server refuses a new token.
    #[error("it answered HTTP 401 also to a token that was just obtained; its author has to look into that")]
    Distrusted,
}

impl AccessError {
    /// The authorization status of the server that this error shows.
    pub(super) fn status(&self) -> AuthorizationStatus {
        match self {
            Self::LoginNeeded { .. } => AuthorizationStatus::Required,
            Self::Credentials(_) | Self::Failed(_) | Self::Insufficient(_) | Self::Distrusted => {
                AuthorizationStatus::Failed
            }
        }
    }

    /// Whether the token is valid and lacks scopes, so that other requests may succeed with it.
    pub(super) fn is_about_scopes(&self) -> bool {
        match self {
            Self::LoginNeeded { scopes, .. } => !scopes.is_empty(),
            Self::Insufficient(_) => true,
            Self::Credentials(_) | Self::Failed(_) | Self::Distrusted => false,
        }
    }
}

/// The longest quote of an authorization server.
const LONGEST: usize = 300;
const UNREADABLE: &str = "its answer cannot be read";

/// The reason for an error of the authorization exchange.
pub(super) fn failed(error: AuthError) -> AccessError {
    failed_after(error, &Secrets::default())
}

/// The same after a request with these secrets, which an authorization server may repeat.
pub(super) fn failed_after(error: AuthError, sent: &Secrets) -> AccessError {
    AccessError::Failed(words(&error, sent))
}

/// The secrets of a token request.
pub(super) fn sent<'a>(credentials: impl IntoIterator<Item = &'a SecretString>) -> Secrets {
    let mut secrets = SecretsBuilder::default();
    credentials.into_iter().for_each(|credential| secrets.credential(credential.expose_secret()));
    secrets.build(Style::MESSAGE)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "an open enum of the SDK; the others explain themselves")]
fn words(error: &AuthError, sent: &Secrets) -> String {
    let text = match error {
        AuthError::DiscoveryRequestFailed { url, source } => {
            format!("its metadata at {} cannot be read: {}", masked_url(url), root_cause(source.as_ref()))
        }
        AuthError::ProtectedResourceMetadataInvalid { url, reason } => {
            format!("its metadata at {} cannot be used: {reason}", masked_url(url))
        }
        AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } => format!(
            "the authorization server should be {expected_issuer} and calls itself {received_issuer}; a third party may be in between"
        ),
        AuthError::AuthorizationServerMissingIssuer { expected_issuer } => {
            format!("the authorization server {expected_issuer} does not say who it is, as it has to")
        }
        AuthError::PkceUnsupported => {
            "its authorization server does not support PKCE with S256, without which a stolen code can be used".into()
        }
        AuthError::RegistrationFailed(why) => {
            // The parser quotes the text that it could not read, which may be a secret of the new client.
            let why = if why.starts_with("analyze response error: ") { UNREADABLE } else { why };
            format!(
                "its authorization server does not let toolgate register ({why}); register a client there and set `client_id`"
            )
        }
        AuthError::TokenExchangeFailed(why)
        | AuthError::TokenRefreshFailed(why)
        | AuthError::ClientCredentialsError(why) => {
            let why = why.trim_start_matches("Token exchange failed: ");
            format!("its authorization server gave no token; {}", answer(why))
        }
        other => other.to_string(),
    };
    harmless(&sent.redacted(&text))
}

/// The answer of the token endpoint. A parser quotes the text that it could not read, which may be a token.
fn answer(why: &str) -> Cow<'_, str> {
    match why.strip_prefix("Server returned error response: ") {
        Some(answer) => match unreadable_answer(answer) {
            Some(why) => format!("{UNREADABLE}: {why}").into(),
            None => answer.into(),
        },
        None if ["invalid type", "invalid value", "parse error", "unknown variant", "line "]
            .iter()
            .any(|quoting| why.contains(quoting)) =>
        {
            UNREADABLE.into()
        }
        None => why.into(),
    }
}

/// Why an answer cannot be read, according to its conversion.
fn unreadable_answer(answer: &str) -> Option<&str> {
    answer.strip_prefix(token_answer::UNREADABLE).map(|why| why.trim_start_matches(": "))
}

/// Whether a token was granted in an answer that cannot be read, perhaps.
pub(super) fn is_unreadable(error: &AuthError) -> bool {
    matches!(error, AuthError::TokenRefreshFailed(why) if why.contains(token_answer::UNREADABLE))
}

/// A quote without control characters, shortened.
pub(super) fn harmless(text: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(printable).take(LONGEST).collect()
}

/// An address without the parts that may be secret.
pub(super) fn masked_url(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// The command that requests access. The server chose the scopes and users paste commands, so the scopes are quoted
/// for the shell.
fn login_command(server: &ServerId, scopes: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":._/-".contains(c);
    let quoted = |scope: &String| match scope.chars().all(is_plain) {
        true => format!(" --scope {scope}"),
        false => format!(" --scope '{}'", scope.replace('\'', r"'\''")),
    };
    let scopes: String = scopes.iter().map(quoted).collect();
    format!("toolgate mcp login {server}{scopes}")
}

pub(super) fn root_cause(error: &(dyn Error + 'static)) -> String {
    if let Some(refused) = toolgate_egress::rejection(error) {
        return refused.to_string();
    }
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_error_is_quoted_and_an_unreadable_answer_is_not() {
        let message_for = |why: &str| words(&AuthError::TokenExchangeFailed(why.into()), &Secrets::default());
        assert_eq!(
            message_for("Server returned error response: invalid_grant: the code is used\u{1b}[2J"),
            "its authorization server gave no token; invalid_grant: the code is used [2J"
        );
        let quoting = "invalid type: string \"s3cret-token\", expected u64 at line 1 column 9";
        assert_eq!(message_for(quoting), "its authorization server gave no token; its answer cannot be read");
    }

    #[test]
    fn an_answer_that_repeats_a_credential_is_quoted_without_it() {
        let error =
            AuthError::TokenExchangeFailed("Server returned error response: no grant for rt-01234567, rt-01***".into());
        assert_eq!(
            words(&error, &sent([&"rt-0123456789".into()])),
            "its authorization server gave no token; no grant for [redacted], [redacted]***"
        );
        let error = AuthError::RegistrationFailed("analyze response error: invalid type: string \"s3cret\"".into());
        assert!(!words(&error, &Secrets::default()).contains("s3cret"), "{error}");
    }

    #[test]
    fn scopes_in_a_login_command_are_quoted_for_the_shell() {
        let command = |scopes: &[&str]| {
            login_command(&"crm".into(), &scopes.iter().map(|scope| (*scope).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(command(&[]), "toolgate mcp login crm");
        assert_eq!(
            command(&["crm:read", "x;$(rm)'"]),
            r"toolgate mcp login crm --scope crm:read --scope 'x;$(rm)'\'''"
        );
    }

    #[test]
    fn an_address_is_shown_without_user_and_query() {
        let url = Url::parse("https://user:pw@as.test:8443/a/b?key=s3cret#x").expect("a URL");
        assert_eq!(masked_url(&url), "https://as.test:8443/a/b");
    }
}
