//! Model list: a request that costs nothing, and shows whether a server answers, accepts the key and has the model.

use std::time::Duration;

use reqwest::Response;
use serde::Deserialize;
use tokio::time::timeout;
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_settings::model::{Settings, Timeouts};

use super::conversation::not_sent;
use super::endpoint::{Address, Endpoint, KeyHeader};

/// The most bytes of a list.
const MAX_BYTES: usize = 4 << 20;

/// The API of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListApi {
    OpenAi,
    Anthropic,
    Gemini,
}

/// The answer to a request for the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelList {
    /// The models of the server. It accepted the key, or needs none.
    Models(Vec<String>),
    /// The server answers and gives no list, so whether it accepts the key is not known.
    NoList {
        /// The HTTP status.
        status: u16,
    },
}

/// A page of the list: `data` of OpenAI and Anthropic, `models` of Gemini.
#[derive(Deserialize)]
struct Page {
    #[serde(alias = "models")]
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(alias = "name")]
    id: String,
}

/// Requests the models of a server, with its key and within this time.
///
/// # Errors
/// The server cannot be reached, fails, or rejects the key.
pub async fn list_models(settings: &Settings, api: ListApi, within: Duration) -> Result<ModelList, Failure> {
    let settings = Settings { timeouts: Timeouts { connect: within, ..settings.timeouts }, ..settings.clone() };
    let endpoint =
        endpoint(&settings, api).map_err(|error| Failure::new(ErrorCode::Configuration, error.to_string()))?;
    let late = |_| {
        let message = format!("{} did not answer within {within:?}", endpoint.origin());
        Failure::new(ErrorCode::ProviderTimeout, message)
    };
    timeout(within, request(&endpoint)).await.map_err(late)?
}

async fn request(endpoint: &Endpoint) -> Result<ModelList, Failure> {
    let key = endpoint.keys().current().await?;
    let response = endpoint.get(key.as_ref())?.send().await.map_err(|error| not_sent(endpoint, &error))?;
    let status = response.status().as_u16();
    let failed = |code, what: &str| Err(Failure::new(code, format!("{} {what} (HTTP {status})", endpoint.origin())));
    match status {
        200..300 => Ok(read(response).await.map_or(ModelList::NoList { status }, ModelList::Models)),
        401 | 403 if key.is_some() => failed(ErrorCode::ProviderAuth, "rejects the key"),
        401 | 403 => failed(ErrorCode::ProviderAuth, "requires a key"),
        407 => failed(ErrorCode::ProviderAuth, "is behind a proxy that requires authentication"),
        500.. => failed(ErrorCode::ProviderUnavailable, "fails"),
        _ => Ok(ModelList::NoList { status }),
    }
}

/// The listed models; `None` if the body is no list.
async fn read(mut response: Response) -> Option<Vec<String>> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.ok()? {
        body.extend_from_slice(&piece);
        if body.len() > MAX_BYTES {
            return None;
        }
    }
    let page: Page = serde_json::from_slice(&body).ok()?;
    Some(page.data.into_iter().map(|entry| entry.id).collect())
}

fn endpoint(settings: &Settings, api: ListApi) -> Result<Endpoint, super::SettingsError> {
    let address = match api {
        ListApi::OpenAi => Address { path: &["models"], query: None, key: KeyHeader::Bearer, headers: &[] },
        ListApi::Anthropic => Address {
            path: if settings.base_url.trim_end_matches('/').ends_with("/v1") {
                &["models"]
            } else {
                &["v1", "models"]
            },
            query: Some(("limit", "1000")),
            key: KeyHeader::Named("x-api-key"),
            headers: &[("anthropic-version", "2023-06-01")],
        },
        ListApi::Gemini => Address {
            path: &["models"],
            query: Some(("pageSize", "1000")),
            key: KeyHeader::Named("x-goog-api-key"),
            headers: &[],
        },
    };
    Endpoint::new(settings, &address)
}
