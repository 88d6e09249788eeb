//! Secret scrubbing: removes secrets from every failure on its way out, because servers echo keys in whole or in part.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use percent_encoding::percent_decode_str;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use toolgate_core::error::Failure;

use super::keys::Key;
use super::settings::{Proxy, Settings};

/// The length from which a piece identifies a credential. Shorter values are placeholders (`ollama`, `EMPTY`) and
/// flags; redacting those would only garble messages.
const TELLTALE_CHARS: usize = 8;

/// The names of headers and parameters that hold credentials contain one of these words.
const CREDENTIAL_WORDS: [&str; 6] = ["auth", "key", "token", "secret", "cookie", "credential"];

/// The key, the header values, and the secret parts of the addresses of server and proxy.
#[derive(Default)]
pub(super) struct Secrets {
    /// Even a piece of these must not be shown.
    credentials: Vec<SecretString>,
    /// These must not be shown as a whole; a piece of them may be any word.
    values: Vec<SecretString>,
}

impl Secrets {
    pub(super) fn of(settings: &Settings, url: &Url) -> Self {
        let mut secrets = Self::default();
        if let Some(Key::Fixed(key)) = &settings.api_key {
            secrets.credentials.push(key.clone());
        }
        for (name, value) in &settings.headers {
            secrets.add(name, value.expose_secret());
        }
        for (name, value) in url.query_pairs().filter(|(name, _)| name != "api-version") {
            secrets.add(&name, &value);
        }
        secrets.values.extend(of_user(url));
        if let Proxy::Url(proxy) = &settings.proxy {
            secrets.values.extend(of_proxy(proxy.expose_secret()));
        }
        secrets.credentials.retain(is_telltale);
        secrets.values.retain(is_telltale);
        secrets
    }

    /// Adds a header or a parameter.
    fn add(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_lowercase();
        if CREDENTIAL_WORDS.iter().any(|word| name.contains(word)) {
            self.credentials.push(without_scheme(value).into());
        } else {
            self.values.push(value.into());
        }
    }

    /// The failure without secrets and without the `key` that was sent: a whole secret is redacted, and a message with
    /// a piece of a credential is withheld.
    pub(super) fn scrub(&self, failure: Failure, key: Option<&SecretString>) -> Failure {
        let credentials = self.credentials.iter().chain(key.filter(|key| is_telltale(key)));
        let credentials: Vec<&str> = credentials.map(ExposeSecret::expose_secret).collect();
        let mut whole: Vec<&str> = self.values.iter().map(ExposeSecret::expose_secret).collect();
        whole.extend(&credentials);
        // One secret may be part of another.
        whole.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let mut message = failure.message.clone();
        for secret in whole {
            message = message.replace(secret, "[redacted]");
        }
        if credentials.iter().any(|secret| shares_a_piece(&message, secret)) {
            message = "the provider's message repeats a part of the credentials and is withheld".into();
        }
        Failure { message, ..failure }
    }
}

/// The user information of an address, in every form.
fn of_user(url: &Url) -> Vec<SecretString> {
    let (user, password) = (url.username(), url.password().unwrap_or_default());
    let [plain_user, plain_password] = [user, password].map(|text| percent_decode_str(text).decode_utf8_lossy());
    let basic = STANDARD_NO_PAD.encode(format!("{plain_user}:{plain_password}"));
    let is_given = !user.is_empty() || !password.is_empty();
    let forms = [user, password, &plain_user, &plain_password, &basic];
    forms.into_iter().filter(|_| is_given).map(SecretString::from).collect()
}

/// The user information of a proxy's address; its scheme may be missing.
fn of_proxy(address: &str) -> Vec<SecretString> {
    let readings = [Url::parse(address), Url::parse(&format!("http://{address}"))];
    readings.iter().flatten().flat_map(of_user).collect()
}

/// The credential of `Bearer …`, `Basic …`: the scheme is not secret.
fn without_scheme(value: &str) -> &str {
    match value.split_once(' ') {
        Some((scheme, credential)) if scheme.chars().all(|letter| letter.is_ascii_alphabetic()) => credential.trim(),
        Some(_) | None => value,
    }
}

fn is_telltale(secret: &SecretString) -> bool {
    secret.expose_secret().chars().count() >= TELLTALE_CHARS
}

fn shares_a_piece(message: &str, secret: &str) -> bool {
    let characters: Vec<char> = secret.chars().collect();
    let mut pieces = characters.windows(TELLTALE_CHARS).map(|piece| piece.iter().collect::<String>());
    // The start of an address occurs in every other address.
    pieces.any(|piece| !piece.contains("://") && message.contains(&piece))
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.credentials.len() + self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::error::ErrorCode;

    const WITHHELD: &str = "the provider's message repeats a part of the credentials and is withheld";

    fn scrubbed(settings: &Settings, text: &str) -> String {
        let url = Url::parse(&settings.base_url).unwrap();
        Secrets::of(settings, &url).scrub(Failure::new(ErrorCode::ProviderRejected, text), None).message
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
        assert_eq!(scrub("query-canar"), WITHHELD);
    }

    #[test]
    fn neither_a_key_nor_a_piece_of_it_is_shown() {
        let settings = Settings { api_key: Some("sk-canary-0123456789".into()), ..Settings::new("http://h", "m") };
        let scrub = |text: &str| scrubbed(&settings, text);
        assert_eq!(scrub("bad key sk-canary-0123456789!"), "bad key [redacted]!");
        assert_eq!(scrub("bad key sk-canary-***"), WITHHELD);
        assert_eq!(scrub("no such model"), "no such model");
    }

    #[test]
    fn user_and_password_of_an_address_are_secret_its_host_is_not() {
        let user = "account-1:pa%24s-canary@";
        let address = format!("https://{user}gateway.example:8443/v1");
        let of_server = Settings::new(address.clone(), "m");
        let proxy = |address: &str| Settings { proxy: Proxy::Url(address.into()), ..Settings::new("http://h", "m") };
        let basic = STANDARD_NO_PAD.encode("account-1:pa$s-canary");
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
            assert_eq!(scrubbed(&with_header(name, "abcdef-canary-012"), "bad: -canary-***"), WITHHELD, "{name}");
        }
    }

    #[test]
    fn the_scheme_of_a_credential_or_address_is_not_secret() {
        let bearer = with_header("authorization", "Bearer sk-canary-0123");
        assert_eq!(scrubbed(&bearer, "no Bearer scheme, but sk-canary-0123"), "no Bearer scheme, but [redacted]");
        let address = with_header("x-token-url", "https://login.corp/a");
        assert_eq!(scrubbed(&address, "see https://docs.example"), "see https://docs.example");
    }

    #[test]
    fn text_that_is_not_an_escape_stays_unchanged() {
        let address = Url::parse("http://u:a%2Fb%zz%+6%4%@h").unwrap();
        let forms = of_user(&address);
        assert!(forms.iter().any(|form| form.expose_secret() == "a/b%zz%+6%4%"), "{address}");
    }
}
