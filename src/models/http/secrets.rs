//! Secrets of an endpoint, redacted from every failure on its way out, because servers echo keys in whole or in part.

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use toolgate_core::error::{Failure, MalformedReply};
use toolgate_core::redact::{SecretsBuilder, Style};

use toolgate_settings::model::Key;
use toolgate_settings::model::{Proxy, Settings};

/// The key, the header values, and the secret parts of the addresses of server and proxy.
#[derive(Debug)]
pub(super) struct Secrets(SecretsBuilder);

impl Secrets {
    pub(super) fn new(settings: &Settings, url: &Url) -> Self {
        let mut secrets = SecretsBuilder::default();
        if let Some(Key::Fixed(key)) = &settings.api_key {
            secrets.credential(key.expose_secret());
        }
        for (name, value) in &settings.headers {
            secrets.named(name, value.expose_secret());
        }
        secrets.address(url.as_str());
        if let Proxy::Url(proxy) = &settings.proxy {
            secrets.address(proxy.expose_secret());
        }
        Self(secrets)
    }

    /// The failure without secrets, and without the `key` that was sent.
    pub(super) fn scrub(&self, failure: Failure, key: Option<&SecretString>) -> Failure {
        let mut secrets = self.0.clone();
        key.iter().for_each(|key| secrets.credential(key.expose_secret()));
        let secrets = secrets.build(Style::MESSAGE);
        let message = secrets.redacted(&failure.message).into_owned();
        let details = failure.details.map(|details| {
            let raw = secrets.redacted(&details.raw).into_owned();
            Box::new(MalformedReply { raw, ..*details })
        });
        Failure { message, details, ..failure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::error::ErrorCode;

    fn scrubbed(settings: &Settings, text: &str) -> String {
        let url = Url::parse(&settings.base_url).unwrap();
        Secrets::new(settings, &url).scrub(Failure::new(ErrorCode::ProviderRejected, text), None).message
    }

    fn with_header(name: &str, value: &str) -> Settings {
        Settings { headers: [(name.to_owned(), value.into())].into(), ..Settings::new("http://h", "m") }
    }

    #[test]
    fn placeholders_are_not_secret_but_address_passwords_are() {
        let address = "http://u:pass-canary@h/v1?api-version=2024-10-21&key=query-canary";
        let settings = Settings { api_key: Some("ollama".into()), ..Settings::new(address, "m") };
        let scrub = |text: &str| scrubbed(&settings, text);
        assert_eq!(scrub("ollama has no api-version 2024-10-21"), "ollama has no api-version 2024-10-21");
        assert_eq!(scrub("pass-canary, query-canary"), "[redacted], [redacted]");
        assert_eq!(scrub("query-canar"), "[redacted]");
    }

    #[test]
    fn neither_a_key_nor_a_piece_of_it_is_shown() {
        let settings = Settings { api_key: Some("sk-canary-0123456789".into()), ..Settings::new("http://h", "m") };
        let scrub = |text: &str| scrubbed(&settings, text);
        assert_eq!(scrub("bad key sk-canary-0123456789!"), "bad key [redacted]!");
        assert_eq!(scrub("bad key sk-canary-***"), "bad key [redacted]***");
        assert_eq!(scrub("no such model"), "no such model");
    }

    #[test]
    fn user_and_password_of_an_address_are_secret_its_host_is_not() {
        let user = "account-1:pa%24s-canary@";
        let address = format!("https://{user}gateway.example:8443/v1");
        let of_server = Settings::new(address.clone(), "m");
        let proxy = |address: &str| Settings { proxy: Proxy::Url(address.into()), ..Settings::new("http://h", "m") };
        let basic = "YWNjb3VudC0xOnBhJHMtY2FuYXJ5";
        let said = format!("gateway.example: account-1, pa%24s-canary, pa$s-canary, Basic {basic}==");
        let shown = "gateway.example: [redacted], [redacted], [redacted], Basic [redacted]==";
        for settings in [of_server, proxy(&address), proxy(&format!("{user}gateway.example:8443"))] {
            assert_eq!(scrubbed(&settings, &said), shown);
            let help = "see https://docs.example/errors and https://gateway.example";
            assert_eq!(scrubbed(&settings, help), help);
        }
    }

    #[test]
    fn pieces_are_matched_only_for_credential_headers() {
        let team = with_header("x-team", "platform-engineering");
        assert_eq!(scrubbed(&team, "platform-engineering is over quota"), "[redacted] is over quota");
        assert_eq!(scrubbed(&team, "no platform-independent engineering"), "no platform-independent engineering");
        for name in ["X-Auth", "ocp-apim-subscription-key", "x-token", "client-secret", "Cookie", "x-credentials"] {
            assert_eq!(
                scrubbed(&with_header(name, "abcdef-canary-012"), "bad: -canary-***"),
                "bad: [redacted]***",
                "{name}"
            );
        }
    }

    #[test]
    fn the_scheme_of_a_credential_or_address_is_not_secret() {
        let bearer = with_header("authorization", "Bearer sk-canary-0123");
        assert_eq!(scrubbed(&bearer, "no Bearer scheme, but sk-canary-0123"), "no Bearer scheme, but [redacted]");
        let address = with_header("x-token-url", "https://login.corp/a");
        assert_eq!(scrubbed(&address, "see https://docs.example"), "see https://docs.example");
    }
}
