//! Not there yet.

use super::http::{HttpModel, Settings, SettingsError};

/// A model.
pub fn model(_settings: &Settings) -> Result<HttpModel, SettingsError> {
    Err(SettingsError::Unusable("this API is not supported yet".into()))
}
