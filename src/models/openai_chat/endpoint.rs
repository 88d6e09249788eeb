//! The server's address, the headers that go along, and the connection pool.

use std::fmt;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Url, redirect};
use secrecy::{ExposeSecret, SecretString};

use super::secrets::Secrets;
use super::settings::{Settings, SettingsError, Timeouts};
use crate::core::trace::SpanContext;

const OLLAMA_PORT: u16 = 11434;

/// One model server, ready to be sent to.
pub(super) struct Endpoint {
    client: Client,
    url: Url,
    host: String,
    provider: String,
    secrets: Secrets,
    timeouts: Timeouts,
}

impl Endpoint {
    pub(super) fn new(settings: &Settings) -> Result<Self, SettingsError> {
        let url = chat_url(&settings.base_url)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let client = Client::builder()
            .default_headers(headers(settings)?)
            .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(settings.timeouts.connect)
            // A redirect would carry the key to an address nobody configured.
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|error| SettingsError::Client(error.without_url().to_string()))?;
        let provider = provider(&host, url.port());
        let secrets = Secrets::of(settings, &url);
        Ok(Self { client, url, host, provider, secrets, timeouts: settings.timeouts })
    }

    /// A request with this body, under this span.
    pub(super) fn post(&self, body: Vec<u8>, trace: &SpanContext) -> RequestBuilder {
        let request = self.client.post(self.url.clone()).header("traceparent", trace.traceparent());
        let request = match trace.state.as_deref().and_then(|state| HeaderValue::from_str(state).ok()) {
            Some(state) => request.header("tracestate", state),
            None => request,
        };
        request.body(body)
    }

    /// The host, for people.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Who serves the model, as far as the address tells.
    pub(super) fn provider(&self) -> &str {
        &self.provider
    }

    /// What must never be shown.
    pub(super) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// How long to wait for what.
    pub(super) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }
}

impl fmt::Debug for Endpoint {
    /// The host alone: address and headers hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("host", &self.host).finish_non_exhaustive()
    }
}

/// `base_url` and `chat/completions`; a query (`?api-version=`) stays.
fn chat_url(base_url: &str) -> Result<Url, SettingsError> {
    let mut url = Url::parse(base_url).map_err(|error| SettingsError::BaseUrl(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(SettingsError::BaseUrl(format!("the scheme is {}", url.scheme())));
    }
    match url.path_segments_mut() {
        Ok(mut segments) => segments.pop_if_empty().extend(["chat", "completions"]),
        Err(()) => return Err(SettingsError::BaseUrl("it has no path".into())),
    };
    Ok(url)
}

fn headers(settings: &Settings) -> Result<HeaderMap, SettingsError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = &settings.api_key {
        let bearer = SecretString::from(format!("Bearer {}", key.expose_secret()));
        headers.insert(AUTHORIZATION, sensitive(&bearer).ok_or(SettingsError::ApiKey)?);
    }
    for (name, value) in &settings.headers {
        let refused = || SettingsError::Header(name.clone());
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
        headers.insert(key, sensitive(value).ok_or_else(refused)?);
    }
    Ok(headers)
}

fn sensitive(secret: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(secret.expose_secret()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn provider(host: &str, port: Option<u16>) -> String {
    let within = |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if within("openai.com") {
        "openai".into()
    } else if within("azure.com") {
        "azure".into()
    } else if within("openrouter.ai") {
        "openrouter".into()
    } else if port == Some(OLLAMA_PORT) {
        "ollama".into()
    } else {
        host.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_appended_and_a_query_stays() {
        for (base, expected) in [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            ("http://localhost:11434/v1/", "http://localhost:11434/v1/chat/completions"),
            ("http://h", "http://h/chat/completions"),
            (
                "https://x.openai.azure.com/d?api-version=1",
                "https://x.openai.azure.com/d/chat/completions?api-version=1",
            ),
        ] {
            assert_eq!(chat_url(base).unwrap().as_str(), expected);
        }
        assert!(chat_url("ftp://h/v1").is_err() && chat_url("api.openai.com").is_err());
    }

    #[test]
    fn the_provider_follows_from_the_address() {
        for (host, port, expected) in [
            ("api.openai.com", None, "openai"),
            ("x.openai.azure.com", None, "azure"),
            ("openrouter.ai", None, "openrouter"),
            ("localhost", Some(11434), "ollama"),
            ("localhost", Some(8000), "localhost"),
            ("notopenai.com", None, "notopenai.com"),
        ] {
            assert_eq!(provider(host, port), expected, "{host}");
        }
    }
}
