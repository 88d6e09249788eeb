//! Image models: OpenAI's Images API (`POST /images/generations`) and every server with the same API.
//!
//! Such a model takes a prompt and returns images. It has no conversation, no tools and no schema. A request with
//! unsupported content is rejected before it is sent, so that the user does not pay for an image of half a request.

mod fold;
mod images;

use images::Images;

pub use images::WIRE;

use super::http::{Address, HttpModel, KeyHeader, Settings, SettingsError};

/// An image model. Validates the settings; sends no request. The options of an image (`size`, `quality`,
/// `output_format`, `background`, `n`, …) are fields of [`Settings::extra`].
pub fn model(settings: &Settings) -> Result<HttpModel, SettingsError> {
    let address = Address { path: &["images", "generations"], query: None, key: KeyHeader::Bearer, headers: &[] };
    // Images arrive complete; partial images are not used.
    let settings = Settings { stream: false, ..settings.clone() };
    HttpModel::new(&settings, "openai", &address, Images::new)
}
