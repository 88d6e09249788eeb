//! What must never be shown, and the gate every failure passes on its way out: servers echo keys, whole or in part.

use std::fmt;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use super::settings::{Key, Proxy, Settings};
use crate::core::error::Failure;

/// A piece of a secret that is this long tells it from anything else. Values that are shorter as a whole are
/// placeholders (`ollama`, `EMPTY`) and flags; blotting those out would only garble messages.
const TELLTALE_CHARS: usize = 8;

/// The key, the header values, and what the address carries besides the address.
pub(super) struct Secrets(Vec<SecretString>);

impl Secrets {
    pub(super) fn of(settings: &Settings, url: &Url) -> Self {
        let key = settings.api_key.iter().filter_map(|key| match key {
            Key::Fixed(key) => Some(key),
            Key::From(_) => None,
        });
        let proxy = match &settings.proxy {
            Proxy::Url(url) => Some(url),
            Proxy::Environment | Proxy::Direct => None,
        };
        let mut secrets: Vec<SecretString> = key.chain(settings.headers.values()).chain(proxy).cloned().collect();
        secrets.extend(url.password().map(SecretString::from));
        let in_query = url.query_pairs().filter(|(name, _)| name != "api-version");
        secrets.extend(in_query.map(|(_, value)| SecretString::from(value.into_owned())));
        secrets.retain(is_telltale);
        Self(secrets)
    }

    /// The failure without any secret, nor the `key` that was sent: a whole one is blotted out, and where a piece is left
    /// the message is withheld.
    pub(super) fn scrub(&self, failure: Failure, key: Option<&SecretString>) -> Failure {
        let mut message = failure.message.clone();
        let key = key.filter(|key| is_telltale(key));
        for secret in self.0.iter().chain(key) {
            message = message.replace(secret.expose_secret(), "[redacted]");
        }
        if self.0.iter().chain(key).any(|secret| shares_a_piece(&message, secret.expose_secret())) {
            message = "the provider's message repeats a part of the credentials and is withheld".into();
        }
        Failure { message, ..failure }
    }
}

fn is_telltale(secret: &SecretString) -> bool {
    secret.expose_secret().chars().count() >= TELLTALE_CHARS
}

fn shares_a_piece(message: &str, secret: &str) -> bool {
    let characters: Vec<char> = secret.chars().collect();
    characters.windows(TELLTALE_CHARS).any(|piece| message.contains(&piece.iter().collect::<String>()))
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::error::ErrorCode;

    #[test]
    fn placeholders_are_no_secrets_and_passwords_in_the_address_are() {
        let settings = Settings { api_key: Some("ollama".into()), ..Settings::new("http://h", "m") };
        let url = Url::parse("http://u:pass-canary@h/v1?api-version=2024-10-21&key=query-canary").unwrap();
        let scrub = |text: &str| {
            Secrets::of(&settings, &url).scrub(Failure::new(ErrorCode::ProviderRejected, text), None).message
        };
        assert_eq!(scrub("ollama has no api-version 2024-10-21"), "ollama has no api-version 2024-10-21");
        assert_eq!(scrub("pass-canary, query-canary"), "[redacted], [redacted]");
    }

    #[test]
    fn neither_a_whole_secret_nor_a_piece_of_one_gets_through() {
        let secrets = Secrets(vec!["sk-canary-0123456789".into()]);
        let scrub = |text: &str| secrets.scrub(Failure::new(ErrorCode::ProviderRejected, text), None).message;
        assert_eq!(scrub("bad key sk-canary-0123456789!"), "bad key [redacted]!");
        assert!(!scrub("bad key sk-canary-***").contains("canary"));
        assert_eq!(scrub("no such model"), "no such model");
    }
}
