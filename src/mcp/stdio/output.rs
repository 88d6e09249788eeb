//! Everything a child says besides the protocol, as it is quoted when something goes wrong.

use std::fmt::Write as _;

use super::noise::Noise;
use super::secrets::Secrets;
use super::stderr::StderrTail;
use crate::mcp::settings::StdioSettings;
use crate::mcp::status::StdoutNoise;

/// How much of stderr is quoted in a message.
const QUOTED_LINES: usize = 12;

/// What a child said, kept beyond its end.
#[derive(Clone, Debug, Default)]
pub(in crate::mcp) struct Output {
    stderr: StderrTail,
    noise: Noise,
}

/// A position in what a child says.
#[derive(Clone, Copy, Debug)]
pub(in crate::mcp) struct Mark(u64);

impl Output {
    /// Of a child with these settings that said nothing yet.
    pub(super) fn of(settings: &StdioSettings) -> Self {
        let secrets = Secrets::among(settings.env.values());
        Self { stderr: StderrTail::without(secrets.clone()), noise: Noise::without(secrets) }
    }

    /// What it wrote to stderr last.
    pub(in crate::mcp) fn stderr(&self) -> &StderrTail {
        &self.stderr
    }

    /// Where what is no message on its stdout is noted.
    pub(super) fn noise(&self) -> &Noise {
        &self.noise
    }

    /// What it wrote to stdout that is no message.
    pub(in crate::mcp) fn stdout_noise(&self) -> StdoutNoise {
        self.noise.heard()
    }

    /// Where it is now.
    pub(in crate::mcp) fn mark(&self) -> Mark {
        Mark(self.stderr.finished())
    }

    /// What it wrote to stderr since the mark, as far as it is kept.
    pub(in crate::mcp) fn stderr_since(&self, mark: Mark) -> Vec<String> {
        self.stderr.since(mark.0)
    }

    /// The end of a message about a child that failed: noise on stdout, and the last of stderr.
    pub(in crate::mcp) fn quoted(&self) -> String {
        let stderr = match self.stderr.lines() {
            lines if lines.is_empty() => "; it wrote nothing to stderr".into(),
            lines => format!("; last on its stderr:{}", listed(&lines)),
        };
        self.noise_told() + &stderr
    }

    /// The end of a message about what failed since the mark. Nothing, if it was quiet.
    pub(in crate::mcp) fn quoted_since(&self, mark: Mark) -> String {
        let stderr = match self.stderr.since(mark.0) {
            lines if lines.is_empty() => String::new(),
            lines => format!("; meanwhile on its stderr:{}", listed(&lines)),
        };
        self.noise_told() + &stderr
    }

    fn noise_told(&self) -> String {
        match self.noise.heard().told() {
            Some(told) => format!("; {told}"),
            None => String::new(),
        }
    }
}

fn listed(lines: &[String]) -> String {
    let mut quote = String::new();
    for line in lines.iter().skip(lines.len().saturating_sub(QUOTED_LINES)) {
        let _ = write!(quote, "\n  {line}");
    }
    quote
}
