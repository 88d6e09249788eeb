//! Streamable HTTP transport for MCP servers, and the meaning of its errors.

mod authorized_client;
mod client;
mod confidential;
pub(crate) mod egress;
mod elsewhere;
mod non_mcp_response;
mod post;
mod reader;
mod replies;
mod resumable;
mod resume;
mod seen;
mod session;
mod session_stream;
mod traced_client;
mod transport_error;
mod verdict;
mod worker;

use std::collections::HashMap;

use ::http::{HeaderName, HeaderValue};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use secrecy::ExposeSecret;

use authorized_client::AuthorizedClient;
use client::Client;
pub(super) use client::Delivery;
pub(super) use seen::Seen;
use traced_client::TracedClient;
pub(super) use transport_error::{
    answered_without_mcp, explain, is_broken_off, is_json_without_mcp, is_locked, is_unreachable, send_fault,
    without_remedy,
};
pub(super) use verdict::{session_is_over, was_answered, was_too_long};
use worker::HttpWorker;

use super::auth::Access;
use super::settings::HttpSettings;
use super::transport::MAX_TEXT;
use egress::AllowedAddresses;
use toolgate_egress::RejectedAddress;

/// An error in the settings of a server, found before it is dialled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("{} is no http or https address; correct the server's `url`", describe_address(.0))]
    Url(String),
    #[error("the header `{0}` has a name or value that HTTP does not allow; correct the server's `headers`")]
    Header(String),
    #[error("{0}")]
    Refused(#[from] RejectedAddress),
    #[error("there is no HTTP client: {0}")]
    Client(#[from] reqwest::Error),
}

/// Concurrent requests besides calls: a tool list, and a change stream that is not acknowledged.
const BESIDES_CALLS: usize = 2;

/// An address without its secrets. An invalid address may be anything, including a secret, and is not shown.
fn describe_address(address: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(address) else { return "what is given".into() };
    if url.cannot_be_a_base() || url.set_username("").is_err() || url.set_password(None).is_err() {
        return format!("an address that begins with `{}:`", url.scheme());
    }
    url.set_query(None);
    url.set_fragment(None);
    format!("`{url}`")
}

/// A transport to the endpoint with room for that many concurrent calls. Connects later.
pub(super) fn transport(
    settings: &HttpSettings,
    max_concurrency: usize,
    seen: Seen,
) -> Result<HttpWorker, SettingsError> {
    let url = reqwest::Url::parse(&settings.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| SettingsError::Url(settings.url.clone()))?;
    let reach = AllowedAddresses::of_server(&settings.egress);
    reach.check(&url)?;
    let config = StreamableHttpClientTransportConfig::with_uri(settings.url.as_str())
        .max_concurrent_requests(max_concurrency.saturating_add(BESIDES_CALLS))
        // The SDK would end every call that is still in flight in the old session. The supervisor dials again instead.
        .reinit_on_expired_session(false)
        .max_sse_event_size(MAX_TEXT)
        .custom_headers(headers(settings)?);
    let access = settings.oauth.clone().map(|oauth| Access::new(oauth, url, &settings.egress));
    let client = AuthorizedClient::new(TracedClient::over(Client::within(reach)?, seen), access);
    Ok(HttpWorker::new(client, config))
}

fn headers(settings: &HttpSettings) -> Result<HashMap<HeaderName, HeaderValue>, SettingsError> {
    let mut headers = HashMap::new();
    for (name, secret) in &settings.headers {
        let wrong = || SettingsError::Header(name.clone());
        let key = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(secret.expose_secret()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::SettingsError;

    #[test]
    fn an_invalid_address_is_reported_without_its_secrets() {
        for (address, expected) in [
            ("ftp://ann:hunter2@example.com/mcp?key=hunter3#hunter4", "`ftp://example.com/mcp` is no"),
            ("ann:hunter2@example.com", "an address that begins with `ann:` is no"),
            ("file:///ann:hunter2@example.com", "an address that begins with `file:` is no"),
            ("hunter2", "what is given is no"),
        ] {
            let message = SettingsError::Url(address.into()).to_string();
            assert!(message.starts_with(expected) && !message.contains("hunter"), "{message}");
        }
    }
}
