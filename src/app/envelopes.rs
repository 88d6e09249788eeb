//! Envelope keys from the configuration.

use secrecy::ExposeSecret;

use super::error::AppError;
use crate::config::{EnvelopeKeySettings, EnvelopeSettings, KeyMaterial, Settings};
use crate::runner::envelope::{EnvelopeKey, EnvelopeKeys, KeyError};

/// Whether the envelope keys are valid. Opens nothing.
pub fn check_envelope_keys(settings: &Settings) -> Result<(), AppError> {
    settings.envelope.as_ref().map_or(Ok(()), |envelope| keys(envelope).map(drop))
}

pub(super) fn keys(settings: &EnvelopeSettings) -> Result<EnvelopeKeys, AppError> {
    let keys = settings.keys.iter().map(key).collect::<Result<Vec<_>, AppError>>()?;
    let keys = EnvelopeKeys::new(settings.sign_with.as_str(), keys).map_err(AppError::EnvelopeKeys)?;
    Ok(keys.lasting(settings.ttl))
}

fn key(settings: &EnvelopeKeySettings) -> Result<(String, EnvelopeKey), AppError> {
    let made = match &settings.material {
        KeyMaterial::Hmac(secret) => EnvelopeKey::hmac(secret.expose_secret().as_bytes()),
        KeyMaterial::Ed25519 { key, seal } => {
            EnvelopeKey::ed25519(key.expose_secret(), seal.expose_secret().as_bytes())
        }
    };
    let unusable = |reason: KeyError| AppError::EnvelopeKey { id: settings.id.clone(), reason };
    made.map(|key| (settings.id.clone(), key)).map_err(unusable)
}
