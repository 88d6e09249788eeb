//! Output of a child besides the protocol, as error messages quote it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use toolgate_core::redact::{Secrets, SecretsBuilder, Style};

use super::environment;
use super::noise::{Noise, StdoutNoise};
use super::stderr::StderrTail;
use crate::settings::StdioSettings;

/// How many lines of stderr a message quotes.
const QUOTED_LINES: usize = 12;
/// How far stderr may lag behind stdout.
const SETTLES: Duration = Duration::from_millis(5);

/// The output of a child, kept after its exit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    stderr: StderrTail,
    noise: Noise,
}

/// A position in the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(u64);

impl Output {
    /// The output of a new child with these settings.
    pub(super) fn new(settings: &StdioSettings) -> Self {
        let secrets = secrets_of(settings, std::env::vars_os());
        Self { stderr: StderrTail::without(secrets.clone()), noise: Noise::without(secrets) }
    }

    /// Its last lines on stderr.
    pub(crate) fn stderr(&self) -> &StderrTail {
        &self.stderr
    }

    /// The recorder of stdout lines that are not messages.
    pub(crate) fn noise(&self) -> &Noise {
        &self.noise
    }

    /// The stdout lines that are not messages.
    pub(crate) fn stdout_noise(&self) -> StdoutNoise {
        self.noise.lines()
    }

    /// The current position.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.stderr.finished())
    }

    /// The end of a message about a failed child: a cut-off message and noise on stdout, and the last lines of stderr.
    pub(crate) fn quoted(&self) -> String {
        let mut quote = String::new();
        if let Some(beginning) = self.noise.cut_off() {
            let _ = write!(quote, "; its stdout ended in the middle of a message: `{beginning}`");
        }
        if let Some(description) = self.noise.lines().describe() {
            let _ = write!(quote, "; {description}");
        }
        let lines = self.stderr.lines();
        quote.push_str(if lines.is_empty() { "; it wrote nothing to stderr" } else { "; last on its stderr:" });
        for line in lines.iter().skip(lines.len().saturating_sub(QUOTED_LINES)) {
            let _ = write!(quote, "\n  {line}");
        }
        quote
    }

    /// The last lines on stderr, after the same moment.
    pub(crate) async fn stderr_so_far(&self) -> Vec<String> {
        self.stderr_since(Mark(0)).await
    }

    /// The lines on stderr since the mark. Answers arrive through another pipe, so stderr gets a moment to catch up.
    pub(crate) async fn stderr_since(&self, mark: Mark) -> Vec<String> {
        tokio::time::sleep(SETTLES).await;
        self.stderr.since(mark.0)
    }
}

/// The secrets of a child with these settings, including the inherited variables of `own`.
fn secrets_of(settings: &StdioSettings, own: impl IntoIterator<Item = (OsString, OsString)>) -> Secrets {
    let inherited = if settings.inherit_env { environment::confidential(own) } else { Vec::new() };
    let mut secrets = SecretsBuilder::default();
    for (name, value) in settings.env.iter().chain(inherited.iter().map(|(name, value)| (name, value))) {
        secrets.named(name, value.expose_secret());
    }
    secrets.build(Style::MESSAGE)
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    #[test]
    fn inherited_and_configured_secrets_are_redacted_alike() {
        let settings = |inherit_env| StdioSettings {
            env: [("A".to_owned(), SecretString::from("given-0123456789"))].into(),
            inherit_env,
            ..StdioSettings::default()
        };
        let shown = |inherit_env| {
            let own = [("SLACK_TOKEN".into(), "own-0123456789".into())];
            secrets_of(&settings(inherit_env), own).redacted("given-0123456789 own-0123456789")
        };
        assert_eq!(shown(true), "[redacted] [redacted]");
        assert_eq!(shown(false), "[redacted] own-0123456789", "it does not know it");
    }
}
