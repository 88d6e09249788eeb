//! The secrets that a configuration holds, so that whatever leaves the process can be searched for them.

use std::collections::BTreeMap;

use secrecy::SecretString;

use crate::config::{KeyMaterial, KeySettings, ModelSettings, ProxySettings, Settings, TransportSettings};

/// What names of variables and headers have in them whose values are secrets. Of the others (`LOG_LEVEL`, `Accept`) the
/// values are words like any other, and to blot those out would garble what they stand in.
const TELLING: [&str; 8] = ["auth", "key", "token", "secret", "cookie", "credential", "pass", "pwd"];

/// All of them.
pub(super) fn known(settings: &Settings) -> Vec<SecretString> {
    let mut secrets = of_headers(&settings.telemetry.headers);
    for model in settings.models.values() {
        if let ModelSettings::Http(model) = model {
            secrets.extend(model.key.iter().filter_map(fixed).cloned());
            secrets.extend(of_headers(&model.headers));
            if let ProxySettings::Url(proxy) = &model.proxy {
                secrets.push(proxy.clone());
            }
        }
    }
    for server in settings.servers.values() {
        secrets.extend(match &server.transport {
            TransportSettings::Stdio { env, .. } => of_headers(env),
            TransportSettings::Http { headers, .. } => of_headers(headers),
        });
    }
    for key in settings.envelope.iter().flat_map(|envelope| &envelope.keys) {
        match &key.material {
            KeyMaterial::Hmac(secret) => secrets.push(secret.clone()),
            KeyMaterial::Ed25519 { key, seal } => secrets.extend([key.clone(), seal.clone()]),
        }
    }
    secrets
}

fn fixed(key: &KeySettings) -> Option<&SecretString> {
    match key {
        KeySettings::Fixed(key) => Some(key),
        KeySettings::Command { .. } => None,
    }
}

fn of_headers(named: &BTreeMap<String, SecretString>) -> Vec<SecretString> {
    let is_telling = |name: &str| TELLING.iter().any(|word| name.to_ascii_lowercase().contains(word));
    named.iter().filter(|(name, _)| is_telling(name)).map(|(_, value)| value.clone()).collect()
}
