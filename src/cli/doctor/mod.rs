//! `toolgate doctor`: checks everything that a run needs, and says how to fix what is missing.
//!
//! The doctor changes nothing: it creates no store, resumes no run, and sends no request that costs money.

mod environment;
mod finding;
mod models;
mod receivers;
mod servers;
mod store;

use clap::Args;
use futures::future::join;
use serde_json::json;

use self::finding::{Finding, Section, Verdict};
use super::config::checked;
use super::error::CliError;
use super::exit::Exit;
use super::output::Output;
use super::setup::{self, ConfigFlag};
use super::text::{block, count};
use crate::app;
use crate::config::Settings;
use crate::core::error::ErrorCode;

const EXAMPLES: &str = "\
Examples:
  toolgate doctor
  toolgate doctor --json | jq -r '.findings[] | select(.verdict == \"failed\") | .message'

The command starts the MCP servers and lists their tools, and asks model servers for their list of
models, which costs nothing. `toolgate models check NAME` tests answers and tool calls.

Exit codes: 0 nothing failed, 1 a check failed, 2 wrong usage or configuration, 130 interrupted.";

/// Check what is configured, reachable and missing, with the remedy of each problem
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Doctor {
    #[command(flatten)]
    config: ConfigFlag,

    /// Prints JSON
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        setup::log(setup::QUIET_LOG)?;
        let settings = setup::settings(&self.config);
        let has_file = settings.as_ref().map_or(true, |settings| settings.file.is_some());
        let (findings, exit) = match settings {
            Ok(settings) => match examine(&settings, out).await? {
                Some(findings) => {
                    let has_failed = findings.iter().any(|finding| finding.verdict == Verdict::Failed);
                    (findings, if has_failed { Exit::Failed } else { Exit::Done })
                }
                None => return Ok(Exit::Cancelled),
            },
            Err(error) => (unreadable(&error).await, Exit::Code(error.code().exit_code())),
        };
        if self.json {
            let is_ok = !findings.iter().any(|finding| finding.verdict == Verdict::Failed);
            out.pretty(&json!({ "ok": is_ok, "findings": findings }));
        } else {
            finding::print(&findings, out);
            out.line(summary(&findings, out));
            if !has_file {
                out.line("Next: toolgate init");
            }
        }
        Ok(exit)
    }
}

/// The findings for these settings. `None` if the user interrupted the check.
async fn examine(settings: &Settings, out: &mut Output) -> Result<Option<Vec<Finding>>, CliError> {
    let mut findings = configuration(settings);
    if settings.file.is_none() || models::lack_one(settings) {
        findings.extend(environment::found().await);
    }
    let (models, receivers) = join(models::findings(settings), receivers::findings(settings)).await;
    findings.extend(models);
    let Some(servers) = servers::findings(settings, out).await? else { return Ok(None) };
    findings.extend(servers);
    let (store, keys) = store::findings(settings).await;
    findings.extend(store);
    findings.extend(receivers);
    findings.extend(keys);
    Ok(Some(findings))
}

fn configuration(settings: &Settings) -> Vec<Finding> {
    let section = Section::Configuration;
    let mut findings = vec![match &settings.file {
        Some(file) => section.finding(Verdict::Ok, "file", file.display().to_string()),
        None => section
            .finding(Verdict::Note, "file", "there is no toolgate.yaml here; built-in defaults apply")
            .with_remedy("`toolgate init` writes one from what it finds here"),
    }];
    match checked(settings) {
        Ok(models) => {
            let warnings = app::configuration_warnings(settings, &models);
            findings.extend(warnings.iter().map(|warning| section.finding(Verdict::Warning, "setting", warning)));
        }
        Err(error) => findings.push(
            section.finding(Verdict::Failed, "setting", block(&error.to_string())).with_remedy_if(error.remedy()),
        ),
    }
    findings
}

/// The findings without usable settings.
async fn unreadable(error: &CliError) -> Vec<Finding> {
    let section = Section::Configuration;
    let failed = section.finding(Verdict::Failed, "file", block(&error.to_string())).with_remedy_if(
        (error.code() == ErrorCode::Configuration).then_some("`toolgate config check` shows the lines"),
    );
    let message = "models, MCP servers, store, telemetry and gateway: the configuration cannot be used";
    let rest = section.finding(Verdict::Unknown, "not checked", message);
    [failed, rest].into_iter().chain(environment::found().await).collect()
}

fn summary(findings: &[Finding], out: &Output) -> String {
    let number = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let paint = out.paint();
    let warnings = match number(Verdict::Warning) {
        0 => String::new(),
        warnings => format!(", {}", count(warnings, "warning")),
    };
    match number(Verdict::Failed) {
        0 => format!("\n{}{warnings}", paint.green("no check failed")),
        failed => format!("\n{}{warnings}", paint.red(format!("{} failed", count(failed, "check")))),
    }
}
