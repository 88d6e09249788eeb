//! The values a child was given in confidence, to be taken out of what it writes.

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

/// Values shorter than this (`1`, `debug`) are no secrets, and are shown.
const SHORTEST: usize = 8;

/// What must not be repeated.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets(Arc<[SecretString]>);

impl Secrets {
    /// Those among the values that can be secrets.
    pub(super) fn among<'a>(values: impl IntoIterator<Item = &'a SecretString>) -> Self {
        let is_secret = |value: &&SecretString| value.expose_secret().len() >= SHORTEST;
        Self(values.into_iter().filter(is_secret).cloned().collect())
    }

    /// The line without them.
    pub(super) fn redacted(&self, line: String) -> String {
        self.0.iter().fold(line, |line, secret| line.replace(secret.expose_secret(), "[redacted]"))
    }
}
