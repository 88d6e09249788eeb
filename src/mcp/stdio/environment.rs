//! Environment of a child process. A child cannot leak a variable that it did not get: only a few harmless variables
//! are passed on unless the operator configures otherwise, among them the paths of certificate bundles. Proxy variables
//! are not among them, because their addresses contain credentials; the error of a server that does not start names
//! them.

use std::ffi::OsString;

use secrecy::{ExposeSecret, SecretString};
use tokio::process::Command;
use toolgate_core::redact::is_telling;
use toolgate_settings::mcp::is_harmless;

use crate::settings::StdioSettings;

/// The addresses of proxies.
const PROXIES: &[&str] = &["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

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

/// The proxy variables of toolgate that a child did not get, as the end of a message about its failed start; empty
/// without any.
pub(crate) fn kept_back(settings: &StdioSettings) -> String {
    kept_back_of(settings, |name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

fn kept_back_of(settings: &StdioSettings, is_set: impl Fn(&str) -> bool) -> String {
    let kept_back = |name: &&&str| !settings.inherit_env && !settings.env.contains_key(**name) && is_set(name);
    let names: Vec<&str> = PROXIES.iter().filter(kept_back).copied().collect();
    if names.is_empty() {
        return String::new();
    }
    let listed: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let written: Vec<String> = names.iter().map(|name| format!("{name}: \"${{{name}}}\"")).collect();
    format!(
        "; toolgate does not pass on {}, which may contain credentials; if the server needs a proxy, add `env: {{ {} }}`",
        listed.join(", "),
        written.join(", ")
    )
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
        for name in ["PATH", "HOME", "LC_ALL", "LC_CTYPE", "TMPDIR", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "NO_PROXY"]
        {
            assert!(is_harmless(name), "{name}");
        }
        for name in ["OPENAI_API_KEY", "HTTPS_PROXY", "AWS_SECRET_ACCESS_KEY", "LD_PRELOAD", "PATHEXTRA", "path"] {
            assert!(!is_harmless(name), "{name}");
        }
    }

    #[test]
    fn proxy_variables_that_were_kept_back_are_named_with_the_remedy() {
        let set = |name: &str| ["HTTPS_PROXY", "http_proxy"].contains(&name);
        let mut settings = StdioSettings::default();
        assert_eq!(
            kept_back_of(&settings, set),
            "; toolgate does not pass on `HTTPS_PROXY`, `http_proxy`, which may contain credentials; if the server needs a \
             proxy, add `env: { HTTPS_PROXY: \"${HTTPS_PROXY}\", http_proxy: \"${http_proxy}\" }`"
        );
        settings.env = [("HTTPS_PROXY".to_owned(), "x".into()), ("http_proxy".to_owned(), "x".into())].into();
        assert_eq!(kept_back_of(&settings, set), "");
        assert_eq!(kept_back_of(&StdioSettings { inherit_env: true, ..StdioSettings::default() }, set), "");
        assert_eq!(kept_back_of(&StdioSettings::default(), |_| false), "");
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
