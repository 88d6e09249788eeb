//! Models behind the OpenAI Responses API: OpenAI itself, Azure, and the servers that speak the same format. Stateless:
//! nothing is stored there, and each request carries the whole conversation, reasoning in encrypted form included.

mod fold;
mod items;
mod output;
mod responses;
mod wire;

use responses::Responses;

use super::http::{Address, HttpModel, KeyHeader, Settings, SettingsError};

/// The name of this wire format.
pub const WIRE: &str = "openai_responses";

/// A model on a server that speaks Responses. Checks the settings; sends nothing.
pub fn model(settings: &Settings) -> Result<HttpModel, SettingsError> {
    let address = Address { path: &["responses"], query: None, key: KeyHeader::Bearer, headers: &[] };
    HttpModel::new(settings, "openai", &address, |provider| Responses::new(settings, provider))
}
