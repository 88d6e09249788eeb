//! Environment of a child process. A child cannot leak a variable that it did not get: only a few harmless variables
//! are passed on unless the operator configures otherwise. Proxy variables are not among them, because their addresses
//! contain credentials.

use std::ffi::OsString;

use secrecy::{ExposeSecret, SecretString};
use tokio::process::Command;
use toolgate_core::redact::is_telling;

use crate::settings::StdioSettings;

/// Variables that every program may have.
const HARMLESS: &[&str] = &["PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "SHELL"];

/// Sets the configured environment of the command.
pub(super) fn apply(command: &mut Command, settings: &StdioSettings) {
    if !settings.inherit_env {
        command.env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_harmless)));
    }
    for (name, value) in &settings.env {
        command.env(name, value.expose_secret());
    }
}

/// The variables among these whose values may be secrets. Nothing marks a secret, so every value counts that is not
/// plainly something else.
pub(super) fn confidential(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(String, SecretString)> {
    let lossy = |text: OsString| text.to_string_lossy().into_owned();
    let variables: Vec<(String, String)> =
        variables.into_iter().map(|(name, value)| (lossy(name), lossy(value))).collect();
    let is_known = |value: &str| variables.iter().any(|(name, harmless)| is_harmless(name) && harmless == value);
    let secrets = variables.iter().filter(|(name, value)| !is_known(value) && (is_telling(name) || !is_plain(value)));
    secrets.map(|(name, value)| (name.clone(), SecretString::from(value.as_str()))).collect()
}

fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || name.starts_with("LC_")
}

/// Whether a value is a path, a list of paths, or a word. Redacting these would leave little of a child's output.
fn is_plain(value: &str) -> bool {
    value.starts_with('/') || value.chars().all(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_every_program_needs_is_passed_on() {
        for name in ["PATH", "HOME", "LC_ALL", "LC_CTYPE", "TMPDIR"] {
            assert!(is_harmless(name), "{name}");
        }
        for name in ["OPENAI_API_KEY", "HTTPS_PROXY", "AWS_SECRET_ACCESS_KEY", "LD_PRELOAD", "PATHEXTRA", "path"] {
            assert!(!is_harmless(name), "{name}");
        }
    }

    #[test]
    fn an_inherited_value_is_a_secret_unless_it_is_plain() {
        let variables = [
            ("HOME", "/home/j.doe1"),
            ("USER", "j.doe1-from-sales"),
            ("LOGNAME", "j.doe1-from-sales"),
            ("PWD", "/srv/shop"),
            ("NODE_ENV", "production"),
            ("AWS_SECRET_ACCESS_KEY", "/wJalrXUtnFEMI"),
            ("DB_PASSWORD", "correcthorse"),
            ("DATABASE_URL", "postgres://u:p@db/shop"),
            ("SLACK", "xoxb-0123456789"),
        ];
        let secrets = confidential(variables.map(|(name, value)| (name.into(), value.into())));
        let secrets: Vec<&str> = secrets.iter().map(|(_, value)| value.expose_secret()).collect();
        assert_eq!(secrets, ["/wJalrXUtnFEMI", "correcthorse", "postgres://u:p@db/shop", "xoxb-0123456789"]);
    }
}
