//! Models behind the Anthropic Messages API: Anthropic itself and servers with the same API.
//!
//! Choices that the API leaves open:
//!
//! - **Version.** `anthropic-version: 2023-06-01`. The newer `2026-10-21` has no sampling settings; no other field that
//!   is sent differs between the two. A header in the settings overrides it.
//! - **Output limit.** The API requires one: 16,384 tokens unless the settings say otherwise, plus the thinking budget,
//!   which counts towards it.
//! - **Thinking.** `reasoning.budget_tokens` requests manual thinking, which models from Claude 4.7 on reject; it is
//!   omitted where another model started the turn. `reasoning.show: true` alone requests adaptive thinking, `false`
//!   alone adds no field. `reasoning.effort` is the effort of the whole answer.
//! - **Prompt cache.** Anthropic caches only marked content, and a loop sends its conversation again every turn. So
//!   `automatic` marks the end of the request on anthropic.com; for other servers only explicit settings are sent.
//! - **Output schema.** Sent if it is in the subset that the API can enforce, on anthropic.com by default.
//! - **Strict tools.** The same subset. The API accepts at most 20 of them in a request.
//! - **Unsupported.** `seed`, and audio.

mod block;
mod content_block;
mod event;
mod fold;
mod message;
mod messages;
mod names;
mod replay;
mod root;
mod subset;
mod tools;
mod usage;

use messages::Messages;

pub use replay::WIRE;

use super::http::{Address, HttpModel, KeyHeader, Settings, SettingsError};

/// A model on a server with the Messages API. Validates the settings; sends no request.
pub fn model(settings: &Settings) -> Result<HttpModel, SettingsError> {
    // Anthropic's own clients omit the version from the base address, other providers include it.
    let has_version = settings.base_url.trim_end_matches('/').ends_with("/v1");
    let address = Address {
        path: if has_version { &["messages"] } else { &["v1", "messages"] },
        query: None,
        key: KeyHeader::Named("x-api-key"),
        headers: &[("anthropic-version", "2023-06-01")],
    };
    HttpModel::new(settings, "anthropic", &address, Messages::new)
}
