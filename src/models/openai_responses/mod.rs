//! Models behind the OpenAI Responses API: OpenAI itself, Azure, and servers with the same API. Stateless: the server
//! stores no conversation, and each request carries all of it, including encrypted reasoning.

mod api_types;
mod fold;
mod items;
mod output;
mod responses;

use responses::Responses;

pub use output::WIRE;

use super::http::{Address, HttpModel, KeyHeader, Settings, SettingsError};

/// A model on a server with the Responses API. Validates the settings; sends no request.
pub fn model(settings: &Settings) -> Result<HttpModel, SettingsError> {
    let address = Address { path: &["responses"], query: None, key: KeyHeader::Bearer, headers: &[] };
    HttpModel::new(settings, "openai", &address, Responses::new)
}
