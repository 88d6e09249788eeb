//! Collection of secrets from values, credentials, named values and addresses.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use percent_encoding::percent_decode_str;

use super::forms::{self, without_scheme};
use super::{Known, Secrets, Style};

/// The parts of names whose values are credentials.
const TELLING: [&str; 10] =
    ["auth", "bearer", "cookie", "credential", "key", "pass", "private", "pwd", "secret", "token"];

/// Whether a header, variable or parameter with this name has a credential as its value.
pub fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // The variables `PWD` and `OLDPWD` hold the working directory.
    !matches!(name.as_str(), "pwd" | "oldpwd") && TELLING.iter().any(|part| name.contains(part))
}

/// Secrets that are being collected.
#[derive(Clone, Default)]
pub struct SecretsBuilder {
    values: BTreeSet<String>,
    credentials: BTreeSet<String>,
}

impl SecretsBuilder {
    /// These values.
    pub fn of_values<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut secrets = Self::default();
        values.into_iter().for_each(|value| secrets.value(value));
        secrets
    }

    /// Adds a text that must not be shown as a whole.
    pub fn value(&mut self, text: &str) {
        self.values.extend(forms::of(text));
    }

    /// Adds a text of which no piece may be shown. The authorization scheme before it is not secret.
    pub fn credential(&mut self, text: &str) {
        self.credentials.extend(forms::of(without_scheme(text.trim())));
    }

    /// Adds a header, a variable or a parameter: as a credential if its name is telling, otherwise as a value. Pieces of
    /// paths and addresses are no secrets. Of an address, its own secrets are added as well.
    pub fn named(&mut self, name: &str, value: &str) {
        let is_address = value.contains("://");
        let is_path = ["/", "~", "./", "../"].iter().any(|start| value.starts_with(start));
        if is_telling(name) && !is_address && !is_path {
            self.credential(value);
        } else {
            self.value(value);
        }
        if is_address {
            self.address(value);
        }
    }

    /// Adds the user information and the parameters of an address. Its scheme may be missing, and its host is not secret.
    pub fn address(&mut self, address: &str) {
        let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if let Some((user_info, _)) = authority.rsplit_once('@') {
            self.user_info(user_info);
        }
        let query = rest.split('#').next().and_then(|rest| rest.split_once('?'));
        let parameters = query.into_iter().flat_map(|(_, query)| query.split('&'));
        let parameters = parameters.filter_map(|parameter| parameter.split_once('='));
        let may_be_secret = |name: &str, value: &str| is_telling(name) || !(name.contains("version") || is_word(value));
        for (name, value) in parameters.filter(|(name, value)| may_be_secret(name, value)) {
            self.named(name, value);
            self.named(name, &decoded(value));
        }
    }

    fn user_info(&mut self, user_info: &str) {
        self.value(user_info);
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        let (plain_user, plain_password) = (decoded(user), decoded(password));
        self.credential(&STANDARD_NO_PAD.encode(format!("{plain_user}:{plain_password}")));
        self.credential(password);
        self.credential(&plain_password);
        for user in [user, &plain_user] {
            if password.is_empty() {
                self.credential(user);
            } else if !is_word(user) {
                self.value(user);
            }
        }
    }

    /// The finished secrets.
    pub fn build(self, style: Style) -> Secrets {
        let pieces = self.credentials.iter().filter(|_| style.pieces).flat_map(|form| forms::pieces(form));
        let pieces: Vec<String> = pieces.map(str::to_owned).collect();
        let wholes: BTreeSet<String> = self.values.into_iter().chain(self.credentials).collect();
        let needles: BTreeSet<String> = wholes.iter().cloned().chain(pieces).collect();
        Secrets(Arc::new(Known::of(needles.into_iter().collect(), wholes.into_iter().collect(), style)))
    }
}

fn is_word(text: &str) -> bool {
    text.chars().all(char::is_alphabetic)
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

impl fmt::Debug for SecretsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.values.len() + self.credentials.len())
    }
}
