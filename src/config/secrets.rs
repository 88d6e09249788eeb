//! The secrets of a configuration, which redaction removes from outgoing data, and which instructions must not contain.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};
use toolgate_core::redact::{SecretsBuilder, is_telling};

use toolgate_settings::mcp::{PinnedValue, StdioSettings};
use toolgate_settings::model::{Key, Proxy};

use crate::settings::{KeyMaterial, ModelSettings, Settings, TransportSettings};

impl Settings {
    /// Every secret.
    pub fn secrets(&self) -> SecretsBuilder {
        let mut secrets = SecretsBuilder::default();
        add_named(&mut secrets, &self.telemetry.headers);
        for model in self.models.values() {
            if let ModelSettings::Http(model) = model {
                let model = &model.settings;
                if let Some(Key::Fixed(key)) = &model.api_key {
                    secrets.value(key.expose_secret());
                }
                add_named(&mut secrets, &model.headers);
                secrets.address(&model.base_url);
                if let Proxy::Url(proxy) = &model.proxy {
                    secrets.value(proxy.expose_secret());
                    secrets.address(proxy.expose_secret());
                }
            }
        }
        for server in self.servers.values() {
            match &server.transport {
                TransportSettings::Stdio(StdioSettings { env, .. }) => add_named(&mut secrets, env),
                TransportSettings::Http { url, headers, .. } => {
                    secrets.address(url);
                    add_named(&mut secrets, headers);
                }
                TransportSettings::Unavailable { .. } => {}
            }
            for value in server.pinned.values().flat_map(BTreeMap::values) {
                if let PinnedValue::Secret(secret) = value {
                    secrets.value(secret.expose_secret());
                }
            }
        }
        for key in self.envelope.iter().flat_map(|envelope| &envelope.keys) {
            match &key.material {
                KeyMaterial::Hmac(secret) => secrets.value(secret.expose_secret()),
                KeyMaterial::Ed25519 { key, seal } => {
                    secrets.value(key.expose_secret());
                    secrets.value(seal.expose_secret());
                }
            }
        }
        self.gateway.webhooks.iter().for_each(|webhook| secrets.value(webhook.secret.expose_secret()));
        secrets
    }
}

/// Adds variables or headers. A value whose name is not telling (`LOG_LEVEL`, `Accept`) is an ordinary word, and redacting
/// it would garble text. The credentials in an address are secrets under any name.
fn add_named(secrets: &mut SecretsBuilder, named: &BTreeMap<String, SecretString>) {
    for (name, value) in named {
        let value = value.expose_secret();
        if is_telling(name) {
            secrets.value(value);
        }
        if value.contains("://") {
            secrets.address(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use toolgate_core::redact::Style;

    use super::*;

    #[test]
    fn of_a_variable_with_any_name_the_credentials_in_an_address_are_secrets() {
        let named = |name: &str, value: &str, text: &str| {
            let mut secrets = SecretsBuilder::default();
            add_named(&mut secrets, &[(name.to_owned(), SecretString::from(value))].into());
            secrets.build(Style::MESSAGE).redacted(text).into_owned()
        };
        let redacted = |value: &str, text: &str| named("DATABASE_URL", value, text);
        let address = "postgres://ann:hunter22@db.example/shop?a=@";
        assert_eq!(redacted(address, "ann:hunter22@db.example, hunter22"), "[redacted]@db.example, [redacted]");
        assert_eq!(redacted("https://token-12@git.example", "token-12@git.example"), "[redacted]@git.example");
        let url = "https://ann:hunter22@id.example/token";
        assert_eq!(named("TOKEN_URL", url, &format!("hunter22, {url}")), "[redacted], [redacted]");
        for plain in ["postgres://db.example/shop?to=a@b", "info"] {
            assert_eq!(redacted(plain, plain), plain);
        }
    }
}
