//! Models behind the OpenAI Chat Completions API: OpenAI itself and every server with the same API.

mod api_types;
mod calls;
mod chat;
mod fold;
mod message;
mod vendor_fields;

pub(crate) use chat::Chat;

use super::http::{Address, HttpModel, KeyHeader, Settings, SettingsError};

/// The name of this wire format.
pub const WIRE: &str = "openai_chat";

/// A model on a server with the Chat Completions API. Validates the settings; sends no request.
pub fn model(settings: &Settings) -> Result<HttpModel, SettingsError> {
    let address = Address { path: &["chat", "completions"], query: None, key: KeyHeader::Bearer, headers: &[] };
    HttpModel::new(settings, "openai", &address, Chat::new)
}
