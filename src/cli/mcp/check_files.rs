//! Files of `toolgate mcp check`: reports for continuous integration, the baseline, and the saved list of tools.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::cli::error::CliError;
use crate::lab::check::output::{self, Baseline};
use crate::lab::check::{Report, Severity, compare};

/// Paths of the files.
#[derive(Args, Debug)]
pub(super) struct Files {
    /// Writes a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Writes a SARIF report, for code scanning
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,

    /// The file of the repository to which the SARIF report attaches findings
    #[arg(long, value_name = "PATH", default_value = "README.md", requires = "sarif")]
    sarif_source: String,

    /// Writes a Markdown report, for a comment in a pull request
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Reports only findings that this file does not accept
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,

    /// Writes a file that accepts all findings of this check
    #[arg(long, value_name = "FILE")]
    save_baseline: Option<PathBuf>,

    /// Compares the tools with a list that --save-tools wrote: what breaks callers, approvals and prompt caches
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,

    /// Writes the list of tools, for a later --against
    #[arg(long, value_name = "FILE")]
    save_tools: Option<PathBuf>,
}

/// Contents of the files that a check reads.
pub(super) struct Inputs {
    baseline: Option<Baseline>,
    earlier: Option<Vec<Value>>,
}

impl Files {
    /// Reads the baseline and the earlier list of tools.
    pub(super) fn read(&self) -> Result<Inputs, CliError> {
        let baseline = self.baseline.as_deref().map(|path| {
            let text = read(path)?;
            serde_json::from_str(&text).map_err(|error| unreadable(path, &error, "write it with --save-baseline"))
        });
        let earlier = self.against.as_deref().map(|path| {
            let value: Value = serde_json::from_str(&read(path)?)
                .map_err(|error| unreadable(path, &error, "write it with --save-tools"))?;
            // The result of tools/list is as good.
            let tools = value.get("tools").or_else(|| value.pointer("/result/tools")).unwrap_or(&value);
            tools.as_array().cloned().ok_or_else(|| {
                CliError::usage(format!("{} has no list `tools`", path.display()))
                    .with_remedy("write it with --save-tools")
            })
        });
        Ok(Inputs { baseline: baseline.transpose()?, earlier: earlier.transpose()? })
    }

    /// Writes the reports and the saved files. `all` accepts every finding of the check, also those that the report leaves out.
    pub(super) fn write(&self, report: &Report, all: &Baseline, severity: Severity) -> Result<(), CliError> {
        let files = [
            (&self.junit, output::junit(report, severity)),
            (&self.sarif, pretty(&output::sarif(report, &self.sarif_source))),
            (&self.markdown, output::markdown(report)),
            (&self.save_baseline, pretty(&json!(all))),
        ];
        for (path, text) in files.iter().filter_map(|(path, text)| Some((path.as_deref()?, text))) {
            fs::write(path, text).map_err(|error| CliError::file("the report", path, &error))?;
        }
        // A server that failed has no list, and an empty one would report every tool as removed.
        if let Some(path) = self.save_tools.as_deref().filter(|_| report.failure.is_none()) {
            let text = pretty(&json!({ "tools": report.definitions }));
            fs::write(path, text).map_err(|error| CliError::file("the list of tools", path, &error))?;
        }
        Ok(())
    }
}

impl Inputs {
    /// Adds the changes of the tools to a report.
    pub(super) fn add_changes(&self, report: &mut Report) {
        if let Some(earlier) = self.earlier.as_ref().filter(|_| report.failure.is_none()) {
            report.findings.extend(compare(earlier, &report.definitions));
        }
    }

    /// Removes accepted findings from a report, and counts the others.
    pub(super) fn accept(&self, report: &mut Report) {
        let accepted = self.baseline.as_ref().map_or(0, |baseline| baseline.apply(report));
        report.recount(accepted);
    }
}

fn read(path: &Path) -> Result<String, CliError> {
    fs::read_to_string(path).map_err(|error| CliError::file("the file", path, &error))
}

fn unreadable(path: &Path, error: &serde_json::Error, remedy: &str) -> CliError {
    CliError::usage(format!("{} cannot be read: {error}", path.display())).with_remedy(remedy)
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
