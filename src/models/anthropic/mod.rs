//! Models behind the Anthropic Messages API: Anthropic itself and servers that speak the same format.
//!
//! Decisions that the API leaves open:
//!
//! - **Version.** `anthropic-version: 2023-06-01`. The newer `2026-10-21` has no sampling settings; nothing else that is
//!   sent differs between the two. A header of the settings overrules it.
//! - **Output limit.** The API wants one: 16,384 tokens unless the settings say otherwise, plus the thinking budget,
//!   which counts towards it.
//! - **Thinking.** `reasoning.budget_tokens` asks for manual thinking, which models from Claude 4.7 on refuse,
//!   and is left away where another model began the turn; `reasoning.show: true` alone asks for adaptive thinking,
//!   `false` alone for nothing.
//!   `reasoning.effort` is the effort of the whole answer.
//! - **Prompt cache.** Anthropic caches nothing that is not marked, and a loop sends its conversation again every turn.
//!   So `automatic` marks the end of the request on anthropic.com; elsewhere only what is asked for is sent.
//! - **Output schema.** Sent where it lies in the subset that the API can enforce, on anthropic.com by default.
//! - **Strict tools.** The same subset. The API takes at most 20 of them in a request.
//! - **What it does not have.** `seed`, and audio.

mod block;
mod errors;
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

use super::http::{Address, HttpModel, KeyHeader, Settings, SettingsError};

/// The name of this wire format.
pub const WIRE: &str = "anthropic";

/// A model on a server that speaks the Messages API. Checks the settings; sends nothing.
pub fn model(settings: &Settings) -> Result<HttpModel, SettingsError> {
    // Anthropic's own tools leave the version out of the address, other providers' have it in.
    let has_version = settings.base_url.trim_end_matches('/').ends_with("/v1");
    let address = Address {
        path: if has_version { &["messages"] } else { &["v1", "messages"] },
        query: None,
        key: KeyHeader::Named("x-api-key"),
        headers: &[("anthropic-version", "2023-06-01")],
    };
    HttpModel::new(settings, "anthropic", &address, |provider| Messages::new(settings, provider))
}
