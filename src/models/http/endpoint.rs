//! Model endpoint: the server's address, request headers and connection pool.

use std::fmt;
use std::sync::Arc;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, RequestBuilder, Url, redirect};
use secrecy::{ExposeSecret, SecretString};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::trace::{Propagation, SpanContext};

use super::egress::guard;
use super::keys::Keys;
use super::secrets::Secrets;
use super::settings::SettingsError;
use toolgate_settings::model::Key;
use toolgate_settings::model::{Proxy, Settings, Timeouts};

/// The usual port of Ollama.
pub const OLLAMA_PORT: u16 = 11434;

/// The address of a wire's requests, below the base address.
pub(crate) struct Address<'a> {
    /// The path, by segment.
    pub(crate) path: &'a [&'a str],
    /// The query parameter, if there is one.
    pub(crate) query: Option<(&'a str, &'a str)>,
    pub(crate) key: KeyHeader,
    /// Headers of every request, unless the settings override them.
    pub(crate) headers: &'a [(&'static str, &'static str)],
}

/// The header that carries the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyHeader {
    /// `authorization: Bearer …`; Azure expects a fixed key in `api-key`.
    Bearer,
    /// This header, with only the key as its value.
    Named(&'static str),
}

/// One model server, with its connection pool.
pub(super) struct Endpoint {
    client: Client,
    url: Url,
    origin: String,
    provider: String,
    key_header: KeyHeader,
    keys: Keys,
    secrets: Secrets,
    timeouts: Timeouts,
    propagation: Propagation,
}

impl Endpoint {
    pub(super) fn new(settings: &Settings, address: &Address<'_>) -> Result<Self, SettingsError> {
        let url = request_url(&settings.base_url, address)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let origin = url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        let provider = provider(&host, url.port());
        let key_header = match (address.key, &settings.api_key) {
            // Azure's changing keys are tokens of Entra, its directory.
            (KeyHeader::Bearer, Some(Key::Fixed(_))) if provider == "azure" => KeyHeader::Named("api-key"),
            (KeyHeader::Bearer | KeyHeader::Named(_), _) => address.key,
        };
        if let Some(Key::Fixed(key)) = &settings.api_key {
            key_value(key_header, key).ok_or(SettingsError::ApiKey)?;
        }
        let guard = guard(&host, &settings.egress).map_err(|refused| SettingsError::Egress(refused.to_string()))?;
        let client = Client::builder()
            .dns_resolver(Arc::new(guard))
            .default_headers(headers(settings, address)?)
            .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(settings.timeouts.connect)
            // A redirect could carry the key to an address that is not configured.
            .redirect(redirect::Policy::none());
        let client = through(client, &settings.proxy)?
            .build()
            .map_err(|error| SettingsError::Client(error.without_url().to_string()))?;
        let secrets = Secrets::new(settings, &url);
        let keys = Keys::new(settings.api_key.as_ref());
        let (timeouts, propagation) = (settings.timeouts, settings.propagation);
        Ok(Self { client, url, origin, provider, key_header, keys, secrets, timeouts, propagation })
    }

    /// A request with this body and key, in this span's trace.
    pub(super) fn post(
        &self,
        body: Vec<u8>,
        trace: &SpanContext,
        key: Option<&SecretString>,
    ) -> Result<RequestBuilder, Failure> {
        let mut request = self.client.post(self.url.clone());
        for (name, value) in trace.fields(self.propagation) {
            if let Ok(value) = HeaderValue::from_str(&value) {
                request = request.header(name, value);
            }
        }
        Ok(self.authorized(request, key)?.body(body))
    }

    /// A request without a body, with this key and outside of any trace.
    pub(super) fn get(&self, key: Option<&SecretString>) -> Result<RequestBuilder, Failure> {
        self.authorized(self.client.get(self.url.clone()), key)
    }

    fn authorized(&self, request: RequestBuilder, key: Option<&SecretString>) -> Result<RequestBuilder, Failure> {
        let Some(key) = key else { return Ok(request) };
        let unusable = || Failure::new(ErrorCode::ProviderAuth, SettingsError::ApiKey.to_string());
        let (name, value) = key_value(self.key_header, key).ok_or_else(unusable)?;
        Ok(request.header(name, value))
    }

    /// The source of keys.
    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The server, as `host` or `host:port`, without credentials.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// The address of requests, which may hold credentials.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// The provider, according to the address.
    pub(super) fn provider(&self) -> &str {
        &self.provider
    }

    /// The secrets that must never be shown.
    pub(super) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The deadlines.
    pub(super) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }
}

impl fmt::Debug for Endpoint {
    /// Only the server: address and headers hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("server", &self.origin).finish_non_exhaustive()
    }
}

/// The base address with the wire's path and query; its own query (`?api-version=`) is kept.
fn request_url(base_url: &str, address: &Address<'_>) -> Result<Url, SettingsError> {
    let mut url = Url::parse(base_url).map_err(|error| SettingsError::BaseUrl(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(SettingsError::BaseUrl(format!("the scheme is {}", url.scheme())));
    }
    match url.path_segments_mut() {
        Ok(mut segments) => segments.pop_if_empty().extend(address.path),
        Err(()) => return Err(SettingsError::BaseUrl("it has no path".into())),
    };
    if let Some((name, value)) = address.query {
        url.query_pairs_mut().append_pair(name, value);
    }
    Ok(url)
}

fn through(client: ClientBuilder, proxy: &Proxy) -> Result<ClientBuilder, SettingsError> {
    Ok(match proxy {
        Proxy::Environment => client,
        Proxy::Direct => client.no_proxy(),
        Proxy::Url(url) => client.proxy(reqwest::Proxy::all(url.expose_secret()).map_err(|_| SettingsError::Proxy)?),
    })
}

fn headers(settings: &Settings, address: &Address<'_>) -> Result<HeaderMap, SettingsError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in address.headers {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    for (name, value) in &settings.headers {
        let refused = || SettingsError::Header(name.clone());
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
        headers.insert(key, sensitive(value).ok_or_else(refused)?);
    }
    Ok(headers)
}

fn key_value(header: KeyHeader, key: &SecretString) -> Option<(&'static str, HeaderValue)> {
    Some(match header {
        KeyHeader::Bearer => ("authorization", sensitive(&format!("Bearer {}", key.expose_secret()).into())?),
        KeyHeader::Named(name) => (name, sensitive(key)?),
    })
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
    } else if within("anthropic.com") {
        "anthropic".into()
    } else if within("googleapis.com") {
        "google".into()
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
        let chat = Address { path: &["chat", "completions"], query: None, key: KeyHeader::Bearer, headers: &[] };
        for (base, expected) in [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            ("http://localhost:11434/v1/", "http://localhost:11434/v1/chat/completions"),
            ("http://h", "http://h/chat/completions"),
            (
                "https://x.openai.azure.com/d?api-version=1",
                "https://x.openai.azure.com/d/chat/completions?api-version=1",
            ),
        ] {
            assert_eq!(request_url(base, &chat).unwrap().as_str(), expected);
        }
        assert!(request_url("ftp://h/v1", &chat).is_err() && request_url("api.openai.com", &chat).is_err());
        let streaming = Address { query: Some(("alt", "sse")), ..chat };
        let url = request_url("http://h/v1?key=k", &streaming).unwrap();
        assert_eq!(url.as_str(), "http://h/v1/chat/completions?key=k&alt=sse");
    }

    #[test]
    fn the_provider_follows_from_the_address() {
        for (host, port, expected) in [
            ("api.openai.com", None, "openai"),
            ("x.openai.azure.com", None, "azure"),
            ("openrouter.ai", None, "openrouter"),
            ("api.anthropic.com", None, "anthropic"),
            ("generativelanguage.googleapis.com", None, "google"),
            ("localhost", Some(11434), "ollama"),
            ("localhost", Some(8000), "localhost"),
            ("notopenai.com", None, "notopenai.com"),
        ] {
            assert_eq!(provider(host, port), expected, "{host}");
        }
    }
}
