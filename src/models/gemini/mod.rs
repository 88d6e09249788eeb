//! Models behind Google's Gemini API (`generateContent`).

mod answer;
mod fold;
mod generate;
mod media;
mod names;
mod part;
mod references;
mod replay;
mod results;
mod schema;
mod settings;
mod turns;

pub use replay::WIRE;

use super::http::{Address, HttpModel, KeyHeader, Settings, SettingsError};

/// A model of the Gemini API. Validates the settings; sends no request.
pub fn model(settings: &Settings) -> Result<HttpModel, SettingsError> {
    let resource = names::resource(&settings.model, settings.stream);
    let path: Vec<&str> = resource.split('/').collect();
    let address = Address {
        path: &path,
        query: settings.stream.then_some(("alt", "sse")),
        key: KeyHeader::Named("x-goog-api-key"),
        headers: &[],
    };
    HttpModel::new(settings, "gemini", &address, |settings, _| generate::Generate::new(settings))
}
