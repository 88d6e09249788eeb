//! Findings of the doctor: one line each, with the remedy below.

use serde::Serialize;

use crate::cli::output::Output;
use crate::cli::paint::Paint;

/// The columns of the subject.
const SUBJECT: usize = 14;

/// A part of the installation. The variants are in the order of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Section {
    Configuration,
    Environment,
    Models,
    Servers,
    Store,
    Telemetry,
    Gateway,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Ok,
    /// A fact that is neither good nor bad.
    Note,
    /// The check could not be made, or its result says too little.
    Unknown,
    /// Runs work, and less well than they could.
    Warning,
    /// Something that is configured does not work.
    Failed,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) section: Section,
    pub(super) verdict: Verdict,
    /// The model, the server or the part that it is about.
    pub(super) subject: String,
    pub(super) message: String,
    pub(super) remedy: Option<String>,
}

impl Section {
    const fn title(self) -> &'static str {
        match self {
            Self::Configuration => "Configuration",
            Self::Environment => "Found here",
            Self::Models => "Models",
            Self::Servers => "MCP servers",
            Self::Store => "Store",
            Self::Telemetry => "Telemetry",
            Self::Gateway => "Gateway (`toolgate serve`)",
        }
    }

    /// A finding of this section.
    pub(super) fn finding(self, verdict: Verdict, subject: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding { section: self, verdict, subject: subject.into(), message: message.into(), remedy: None }
    }
}

impl Finding {
    pub(super) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// Adds a remedy, if there is one.
    pub(super) fn with_remedy_if(self, remedy: Option<impl Into<String>>) -> Self {
        Self { remedy: remedy.map(Into::into), ..self }
    }

    fn lines(&self, paint: Paint) -> impl Iterator<Item = String> {
        let mark = match self.verdict {
            Verdict::Ok => paint.green("✓"),
            Verdict::Note => paint.dim("·"),
            Verdict::Unknown => paint.yellow("?"),
            Verdict::Warning => paint.yellow("!"),
            Verdict::Failed => paint.red("✗"),
        };
        let line = format!("  {mark} {:<SUBJECT$} {}", self.subject, self.message);
        let remedy = self.remedy.as_ref().map(|remedy| format!("    {} {remedy}", paint.cyan("help:")));
        [line].into_iter().chain(remedy)
    }
}

/// Prints the findings below the titles of their sections.
pub(super) fn print(findings: &[Finding], out: &mut Output) {
    let paint = out.paint();
    for (index, section) in findings.chunk_by(|one, next| one.section == next.section).enumerate() {
        if index > 0 {
            out.line("");
        }
        out.line(section.first().map(|finding| paint.bold(finding.section.title())).unwrap_or_default());
        section.iter().flat_map(|finding| finding.lines(paint)).for_each(|line| out.line(line));
    }
}
