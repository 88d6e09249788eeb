//! Models that make images: OpenAI's Images API (`POST /images/generations`) and every server that speaks the same format.
//!
//! Such a model takes a prompt and gives images. It has no conversation, no tools and no schema, and what it cannot take is
//! refused before anything is sent, so that nobody pays for an image of half a request.

mod fold;
mod images;
mod prompt;

use images::Images;

use super::http::{Address, HttpModel, KeyHeader, Settings, SettingsError};

/// The name of this wire format.
pub const WIRE: &str = "openai_images";

/// An image model. Checks the settings; sends nothing. What an image is to be like (`size`, `quality`, `output_format`,
/// `background`, `n`, …) is said in [`Settings::extra`].
pub fn model(settings: &Settings) -> Result<HttpModel, SettingsError> {
    let address = Address { path: &["images", "generations"], query: None, key: KeyHeader::Bearer, headers: &[] };
    // An image comes whole or not at all; fragments of one are of no use to anybody here.
    let settings = Settings { stream: false, ..settings.clone() };
    HttpModel::new(&settings, "openai", &address, |provider| Images::new(&settings, provider))
}
