//! `toolgate mcp test`: scenarios of agents that use a server, as files.

use std::path::{Path, PathBuf};

use clap::Args;

use super::test_watch::Changes;
use super::wire_proxy;
use crate::app::testing::{self, CaseOutcome, CaseReport, ServerHook, TestOptions, TestReport, read_cases};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::interrupt::Interrupts;
use crate::cli::output::Output;
use crate::cli::report;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::{count, duration};
use crate::lab::scenario::{Counts, junit, markdown, waterfall};

const EXAMPLES: &str = "\
Examples:
  toolgate mcp test scenarios/*.yaml
  toolgate mcp test scenarios/*.yaml --jobs 4 --junit report.xml --markdown report.md
  toolgate mcp test scenarios/orders.yaml --live --runs 5 --pass-rate 0.8
  toolgate mcp test scenarios/orders.yaml --watch src --watch scenarios

A scenario has a task in words, a model (scripted, recorded or real), a server, and expectations on the
calls, their arguments and results, the turns, tokens and the answer: docs/mcp-tests.md. Each case runs
with servers that were started for it.

A case with a real model is skipped without --live, and the summary counts it as skipped.

Exit codes: 0 every case that ran passed, 1 a case failed, had an error, or no case ran, 2 wrong usage,
file or configuration.";

/// Test agents against a server: scenarios with expectations on calls, results, turns, tokens and answers
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Test {
    /// Scenario files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Runs cases with real models too
    #[arg(long)]
    live: bool,

    /// How often a case with a real model runs, in place of `live: { runs }`
    #[arg(long, value_name = "N", requires = "live", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,

    /// The part of these runs that has to pass, in place of `live: { pass_rate }`
    #[arg(long, value_name = "0–1", requires = "live", value_parser = rate)]
    pass_rate: Option<f64>,

    /// Uses this configured model in place of those of the files (repeatable: a matrix)
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,

    /// Runs only cases whose title contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// The number of cases that run at the same time
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,

    /// Runs again when a file changes: the scenario files, and these files or folders (repeatable; without --live)
    #[arg(long, value_name = "PATH", conflicts_with = "json", num_args = 0..=1, default_missing_value = ".")]
    watch: Vec<PathBuf>,

    /// Writes a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Writes a Markdown report, with a waterfall of each case
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Writes every line between the agents and their servers with its time to this file, as JSON lines
    #[arg(long, value_name = "FILE", conflicts_with = "jobs")]
    wire: Option<PathBuf>,

    /// Prints one JSON object: each case with its findings and its waterfall
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    config: ConfigFlag,
}

impl Test {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        setup::log(setup::REPORTED_RUN_LOG)?;
        if self.watch.is_empty() {
            return self.test(out).await;
        }
        if self.live {
            return Err(CliError::usage("--watch would call real models again after each change, which costs")
                .with_remedy("leave --watch or --live out"));
        }
        let reports = [&self.junit, &self.markdown].into_iter().flatten();
        let mut changes = Changes::new(&self.files, &self.watch, reports);
        let mut interrupts = Interrupts::listen();
        loop {
            let tested = tokio::select! {
                tested = self.test(out) => tested,
                _ = interrupts.next() => return Ok(Exit::Cancelled),
            };
            if let Err(error) = tested {
                report::error(&error, out);
            }
            changes.skip_changes_of_run();
            out.note("waiting for a change; Ctrl-C ends the command");
            tokio::select! {
                () = changes.next() => {}
                _ = interrupts.next() => return Ok(Exit::Cancelled),
            }
        }
    }

    async fn test(&self, out: &mut Output) -> Result<Exit, CliError> {
        let settings = setup::settings(&self.config)?;
        let options = TestOptions {
            live: self.live,
            runs: self.runs,
            pass_rate: self.pass_rate,
            jobs: usize::from(self.jobs),
            models: self.model.clone(),
            filter: self.only.clone(),
            before_start: self.wire.clone().map(wire_hook).transpose()?,
        };
        let cases = read_cases(&self.files, &options)?;
        let report = testing::run_cases(&cases, &settings, &options).await;
        if self.json {
            out.json(&JsonReport {
                r#type: "result",
                passed: report.passed(),
                counts: report.counts(),
                report: &report,
            });
        } else {
            report.cases.iter().for_each(|case| print_case(case, out));
            print_summary(&report, out);
        }
        if let Some(path) = &self.junit {
            write(path, &junit(&report))?;
        }
        if let Some(path) = &self.markdown {
            write(path, &markdown(&report))?;
        }
        Ok(if report.passed() { Exit::Done } else { Exit::Failed })
    }
}

/// Puts a proxy that writes the wire before each server.
fn wire_hook(file: PathBuf) -> Result<ServerHook, CliError> {
    wire_proxy::create(&file)?;
    Ok(ServerHook::new(move |id, server| {
        wire_proxy::insert_proxy(id, server, &file).map_err(|error| error.to_string())
    }))
}

/// The report of `--json`.
#[derive(serde::Serialize)]
struct JsonReport<'a> {
    r#type: &'static str,
    passed: bool,
    counts: Counts,
    #[serde(flatten)]
    report: &'a TestReport,
}

fn print_case(case: &CaseReport, out: &mut Output) {
    let word = match case.outcome {
        CaseOutcome::Passed => "passed ",
        CaseOutcome::Failed => "FAILED ",
        CaseOutcome::Skipped => "skipped",
        CaseOutcome::Error => "ERROR  ",
    };
    let numbers = case.attempts.first().map(|attempt| {
        let (turns, calls) = (count(attempt.turns, "turn"), count(attempt.calls, "call"));
        format!(", {turns}, {calls}, {}", duration(case.duration_ms))
    });
    out.line(format!("{word} {}{}", case.title, numbers.unwrap_or_default()));
    if let Some(reason) = &case.reason {
        out.line(format!("        {reason}"));
    }
    for line in case.findings().iter().flat_map(|finding| finding.lines()) {
        out.line(format!("        {line}"));
    }
    let failed = case.attempts.iter().find(|attempt| !attempt.passed);
    for line in failed.iter().flat_map(|attempt| waterfall(&attempt.steps)) {
        out.line(format!("        {line}"));
    }
}

fn print_summary(report: &TestReport, out: &mut Output) {
    let Counts { passed, failed, skipped, errors } = report.counts();
    out.line(format!("{passed} passed, {failed} failed, {skipped} skipped, {}", count(errors, "error")));
    if passed + failed + errors == 0 {
        out.note("no case ran: each of them needs a real model; --live runs them");
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= 1.0);
    rate.ok_or_else(|| "write a number above 0 and up to 1, for example 0.8".to_owned())
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    std::fs::write(path, text).map_err(|error| CliError::file("the report", path, &error))
}
