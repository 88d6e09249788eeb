//! Collection of secrets from values, credentials, named values and addresses.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use percent_encoding::percent_decode_str;

use super::forms::{self, split_scheme};
use super::{Known, SHORTEST, Secrets, Style};

/// The parts of names whose values are credentials.
const TELLING: [&str; 13] = [
    "auth",
    "bearer",
    "cookie",
    "credential",
    "dsn",
    "jwt",
    "key",
    "pass",
    "private",
    "pwd",
    "secret",
    "signature",
    "token",
];
/// Parts of ordinary names that contain one of them.
const ORDINARY: [&str; 4] = ["author_", "bypass", "compass", "keyboard"];

/// The ends of names whose values are paths, and the directories in which paths begin. A secret may begin with `/`, too.
const PATH_NAMES: [&str; 5] = ["_dir", "_file", "_home", "_path", "_sock"];
const DIRECTORIES: [&str; 14] = [
    "~/", "../", "/app/", "/etc/", "/home/", "/mnt/", "/opt/", "/root/", "/run/", "/srv/", "/tmp/", "/usr/", "/var/",
    "/Users/",
];

/// Whether a header, variable or parameter with this name has a credential as its value.
pub fn is_telling(name: &str) -> bool {
    let name = ORDINARY.iter().fold(name.to_ascii_lowercase(), |name, part| name.replace(part, ""));
    // The variables `PWD` and `OLDPWD` hold the working directory, the parameter `sig` holds a signature.
    name == "sig" || !matches!(name.as_str(), "pwd" | "oldpwd") && TELLING.iter().any(|part| name.contains(part))
}

/// Whether a value begins with the scheme of an address. A cookie or JSON may contain an address.
fn is_address(value: &str) -> bool {
    let is_scheme = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.');
    value.split_once("://").is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(is_scheme))
}

fn is_path(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_named = PATH_NAMES.iter().any(|end| name.ends_with(end)) && value.starts_with(['/', '~', '.']);
    is_named || DIRECTORIES.iter().any(|directory| value.starts_with(directory))
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
        self.values.extend(forms::all(text));
    }

    /// Adds a text of which no piece may be shown. The authorization scheme before it is not secret. Of `Basic`, user and
    /// password are added as well.
    pub fn credential(&mut self, text: &str) {
        match split_scheme(text.trim()) {
            Some((scheme, credential)) if credential.len() >= SHORTEST => {
                self.credentials.extend(forms::all(credential));
                if scheme.eq_ignore_ascii_case("basic") {
                    self.basic(credential);
                }
            }
            // Its pieces would contain the scheme.
            Some(_) => self.value(text),
            None => self.credentials.extend(forms::all(text)),
        }
    }

    /// Adds a header, a variable or a parameter: as a credential if its name is telling, otherwise as a value. Pieces of
    /// paths and addresses are no secrets. Of an address in it, its own secrets are added as well.
    pub fn named(&mut self, name: &str, value: &str) {
        if is_telling(name) && !is_address(value) && !is_path(name, value) {
            self.credential(value);
        } else {
            self.value(value);
        }
        if value.contains("://") {
            self.address(value);
        }
    }

    /// Adds the user information and the parameters of an address. Its scheme may be missing. Its host and its path are
    /// not secret; a server with a token in its path is an exception that has to be added as a value.
    pub fn address(&mut self, address: &str) {
        let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
        let (user_info, rest) = rest.split_at(length_of_user(rest));
        self.user_info(user_info);
        let query = rest.split('#').next().and_then(|rest| rest.split_once('?'));
        let parameters = query.into_iter().flat_map(|(_, query)| query.split('&'));
        let parameters = parameters.map(|parameter| parameter.split_once('=').unwrap_or(("", parameter)));
        let may_be_secret = |name: &str, value: &str| is_telling(name) || !(name.contains("version") || is_word(value));
        for (name, value) in parameters.filter(|(name, value)| may_be_secret(name, value)) {
            self.named(name, value);
            self.named(name, &decoded(value));
        }
    }

    fn user_info(&mut self, user_info: &str) {
        self.value(user_info);
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        self.user(user, password);
        self.user(&decoded(user), &decoded(password));
    }

    /// Adds user and password of the scheme `Basic`.
    fn basic(&mut self, encoded: &str) {
        let decoded = STANDARD_NO_PAD.decode(encoded.trim_end_matches('=')).ok();
        let pair = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some((user, password)) = pair.as_deref().and_then(|pair| pair.split_once(':')) {
            self.value(&format!("{user}:{password}"));
            self.user(user, password);
        }
    }

    fn user(&mut self, user: &str, password: &str) {
        self.credentials.extend(forms::all(&STANDARD_NO_PAD.encode(format!("{user}:{password}"))));
        self.credential(password);
        if password.is_empty() {
            self.credential(user);
        } else if !is_word(user) {
            self.value(user);
        }
    }

    /// The finished secrets.
    pub fn build(self, style: Style) -> Secrets {
        // A text that is redacted twice stays the same.
        let is_shown = |form: &&str| !style.hidden.contains(form);
        let wholes = self.values.iter().chain(&self.credentials).map(String::as_str);
        let wholes: BTreeSet<&str> = wholes.filter(is_shown).collect();
        let pieces = self.credentials.iter().filter(|_| style.pieces).flat_map(|form| forms::pieces(form));
        let needles: BTreeSet<&str> = pieces.filter(is_shown).chain(wholes.iter().copied()).collect();
        let owned = |texts: BTreeSet<&str>| texts.into_iter().map(str::to_owned).collect();
        Secrets(Arc::new(Known::new(owned(needles), owned(wholes), style)))
    }
}

/// The length of the user information before `@`. With an unescaped delimiter in the password, it ends at the last `@`.
pub(super) fn length_of_user(address: &str) -> usize {
    let authority = address.split(['/', '?', '#']).next().unwrap_or_default();
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = authority.starts_with('[') || authority.rsplit_once(':').is_none_or(|(_, port)| is_port(port));
    let end = authority.rfind('@').or_else(|| address.rfind('@').filter(|_| !is_host));
    end.unwrap_or_default()
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
