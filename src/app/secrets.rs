//! The secrets of a configuration, which redaction removes from outgoing data.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};

use crate::config::{KeyMaterial, KeySettings, ModelSettings, ProxySettings, Settings, TransportSettings};

/// Parts of the names of variables and headers whose values are secrets. Values of other names (`LOG_LEVEL`, `Accept`)
/// are ordinary words, and redacting those would garble text.
const TELLING: [&str; 8] = ["auth", "key", "token", "secret", "cookie", "credential", "pass", "pwd"];

/// Every secret.
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
    secrets.extend(settings.gateway.webhooks.iter().map(|webhook| webhook.secret.clone()));
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
    let secrets = |(name, value): (&String, &SecretString)| match is_telling(name) {
        true => vec![value.clone()],
        false => of_address(value.expose_secret()),
    };
    named.iter().flat_map(secrets).collect()
}

/// The user information of a URL (`postgres://ann:hunter2@host`), and the password in it.
fn of_address(value: &str) -> Vec<SecretString> {
    let authority = value.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    let Some((credentials, _)) = authority.and_then(|authority| authority.rsplit_once('@')) else { return Vec::new() };
    let password = credentials.split_once(':').map(|(_, password)| password);
    std::iter::once(credentials).chain(password).map(SecretString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_variable_with_any_name_the_credentials_in_an_address_are_secrets() {
        let secrets_of = |value: &str| {
            let named = BTreeMap::from([("DATABASE_URL".to_owned(), SecretString::from(value))]);
            of_headers(&named).iter().map(|secret| secret.expose_secret().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(secrets_of("postgres://ann:hunter22@db.example/shop?a=@"), ["ann:hunter22", "hunter22"]);
        assert_eq!(secrets_of("https://token@git.example"), ["token"]);
        assert_eq!(secrets_of("postgres://db.example/shop?to=a@b"), [""; 0]);
        assert_eq!(secrets_of("info"), [""; 0]);
    }
}
