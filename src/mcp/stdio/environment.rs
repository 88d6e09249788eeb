//! The environment of a child. What it was not given it cannot leak: only a few harmless variables are passed on unless
//! the operator says otherwise. Proxies are not among them, their addresses hold credentials.

use tokio::process::Command;

use secrecy::ExposeSecret;

use crate::mcp::settings::StdioSettings;

/// What every program may know.
const HARMLESS: &[&str] = &["PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "SHELL"];

/// Gives the command the environment its settings ask for.
pub(super) fn apply(command: &mut Command, settings: &StdioSettings) {
    if !settings.inherit_env {
        command.env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_harmless)));
    }
    for (name, value) in &settings.env {
        command.env(name, value.expose_secret());
    }
}

fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || name.starts_with("LC_")
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn only_what_every_program_needs_is_passed_on() {
        for name in ["PATH", "HOME", "LC_ALL", "LC_CTYPE", "TMPDIR"] {
            assert!(is_harmless(name), "{name}");
        }
        for name in ["OPENAI_API_KEY", "HTTPS_PROXY", "AWS_SECRET_ACCESS_KEY", "LD_PRELOAD", "PATHEXTRA", "path"] {
            assert!(!is_harmless(name), "{name}");
        }
    }
}
