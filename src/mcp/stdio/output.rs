//! Everything a child says besides the protocol, as it is quoted when something goes wrong.

use std::fmt::Write as _;
use std::time::Duration;

use super::noise::Noise;
use super::secrets::Secrets;
use super::stderr::StderrTail;
use crate::mcp::settings::StdioSettings;
use crate::mcp::status::StdoutNoise;

/// How much of stderr is quoted in a message.
const QUOTED_LINES: usize = 12;
/// How long stderr may lag behind stdout.
const SETTLES: Duration = Duration::from_millis(5);

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
        let secrets = Secrets::of(settings, std::env::vars_os());
        Self { stderr: StderrTail::without(secrets.clone()), noise: Noise::without(secrets) }
    }

    /// What it wrote to stderr last.
    pub(in crate::mcp) fn stderr(&self) -> &StderrTail {
        &self.stderr
    }

    /// Where what is no message on its stdout is noted.
    pub(in crate::mcp) fn noise(&self) -> &Noise {
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

    /// The end of a message about a child that failed: half a message and noise on stdout, and the last of stderr.
    pub(in crate::mcp) fn quoted(&self) -> String {
        let mut quote = String::new();
        if let Some(beginning) = self.noise.cut_off() {
            let _ = write!(quote, "; its stdout ended in the middle of a message: `{beginning}`");
        }
        if let Some(told) = self.noise.heard().told() {
            let _ = write!(quote, "; {told}");
        }
        let lines = self.stderr.lines();
        quote.push_str(if lines.is_empty() { "; it wrote nothing to stderr" } else { "; last on its stderr:" });
        for line in lines.iter().skip(lines.len().saturating_sub(QUOTED_LINES)) {
            let _ = write!(quote, "\n  {line}");
        }
        quote
    }

    /// What it wrote to stderr since the mark. Answers come by another pipe, so it is given a moment to catch up.
    pub(in crate::mcp) async fn stderr_since(&self, mark: Mark) -> Vec<String> {
        tokio::time::sleep(SETTLES).await;
        self.stderr.since(mark.0)
    }
}
