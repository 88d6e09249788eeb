//! `toolgate mcp check`: a report about a server on which its author can gate a release.

use std::fs::File;

use clap::Args;

use super::check_files::Files;
use super::check_report;
use super::target::{NAMELESS, TargetFlags};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup;
use crate::cli::waiting::{Wait, WaitOutcome};
use crate::config::{AuthSettings, ServerSettings, StdioSettings, TransportSettings};
use crate::core::error::ErrorCode;
use crate::core::id::ServerId;
use crate::lab::check::output::Baseline;
use crate::lab::check::{self, Calls, CheckOptions, CheckTarget, Report, Severity, rules};

const EXAMPLES: &str = "\
Examples:
  toolgate mcp check -- node server.js                           a command
  toolgate mcp check --url http://localhost:3000/mcp             a URL
  toolgate mcp check --call -- uvx my-server                     also calls tools marked read-only
  toolgate mcp check --severity warning --sarif check.sarif -- node server.js
  toolgate mcp check --save-tools tools.json -- node server.js   later: --against tools.json
  toolgate mcp check --fixture                                   a green run, without a server

The check starts the server several times and reads the wire itself: every protocol version, stdout,
lists, schemas, names, and what OpenAI, Anthropic and Gemini accept. It calls no tool without --call.
Each rule has a page: docs/rules/<id>.md. Token counts are estimates. --protocol-version limits the
check to these versions, and --name names the server in the JUnit and JSON reports.

Exit codes: 0 no finding of at least --severity, 2 wrong usage or configuration, 5 the server could
not be started or reached, 9 there are such findings, 130 interrupted.";

/// Check a server for mistakes: wire, protocol versions, schemas, providers, and with --call its tools
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(override_usage = "toolgate mcp check [OPTIONS] SERVER\n       toolgate mcp check [OPTIONS] URL\n       \
                            toolgate mcp check [OPTIONS] -- COMMAND…")]
pub(super) struct Check {
    /// A configured server, by its id, or a URL
    #[arg(value_name = "SERVER")]
    word: Option<String>,

    /// Checks the bundled demo server
    #[arg(long, conflicts_with_all = ["word", "server", "url", "command", "program"])]
    fixture: bool,

    /// Calls tools that declare readOnlyHint: valid arguments, bad ones, and up to 32 calls at the same time
    #[arg(long)]
    call: bool,

    /// Calls all tools, whatever they do; for a server with test data
    #[arg(long, requires = "call")]
    all: bool,

    /// Calls only this tool, whatever it does (repeatable)
    #[arg(long, value_name = "TOOL", requires = "call", conflicts_with = "all")]
    only: Vec<String>,

    /// Reports only this rule (repeatable)
    #[arg(long, value_name = "RULE")]
    only_rule: Vec<String>,

    /// Leaves this rule out (repeatable)
    #[arg(long, value_name = "RULE")]
    skip: Vec<String>,

    /// The least severity of a finding that fails the check
    #[arg(long, value_name = "error|warning|note", default_value = "error", value_parser = severity)]
    severity: Severity,

    /// Prints JSON
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    files: Files,

    #[command(flatten)]
    reach: TargetFlags,
}

impl Check {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        setup::log(setup::QUIET_LOG)?;
        self.only_rule.iter().chain(&self.skip).try_for_each(|id| known_rule(id))?;
        let options = self.options()?;
        // Files are read before the server starts: a wrong path costs no time.
        let inputs = self.files.read()?;
        let mut wait = Wait::new();
        let speaker = wait.speaker();
        let progress = move |doing: &str| {
            if !doing.starts_with("calling ") {
                let _ = speaker.send(format!("{doing}…"));
            }
        };
        let checked = wait.until("checking", check::check(options, &progress), out).await;
        let mut report = match checked {
            WaitOutcome::Done(report) => report,
            WaitOutcome::Interrupted(_) => return Ok(Exit::Cancelled),
        };
        inputs.add_changes(&mut report);
        let all = Baseline::of(&report);
        self.select(&mut report);
        inputs.accept(&mut report);
        self.files.write(&report, &all, self.severity)?;
        if self.json {
            out.pretty(&report);
        } else {
            check_report::print(&report, out);
        }
        Ok(self.exit(&report))
    }

    fn options(&self) -> Result<CheckOptions, CliError> {
        let mut options = match self.fixture {
            true => CheckOptions::new(fixture()?),
            false => {
                let target = self.reach.target(self.word.as_deref())?;
                let mut options = CheckOptions::new(check_target(&target.id, &target.settings, "the check")?);
                options.limits.start = target.settings.start_timeout;
                options.versions = target.settings.protocol_version;
                options.name = Some(target.id.to_string()).filter(|id| id != NAMELESS);
                options
            }
        };
        options.calls = match (self.call, self.all, self.only.is_empty()) {
            (false, _, _) => Calls::Never,
            (true, true, _) => Calls::All,
            (true, false, true) => Calls::ReadOnly,
            (true, false, false) => Calls::Only(self.only.clone()),
        };
        if let Some(path) = self.reach.wire() {
            options.wire = Some(File::create(path).map_err(|error| CliError::file("the wire file", path, &error))?);
        }
        Ok(options)
    }

    fn select(&self, report: &mut Report) {
        report.findings.retain(|finding| {
            let is_named = |ids: &[String]| ids.iter().any(|id| id == finding.rule);
            (self.only_rule.is_empty() || is_named(&self.only_rule)) && !is_named(&self.skip)
        });
    }

    fn exit(&self, report: &Report) -> Exit {
        match report.failure {
            Some(_) => Exit::ServerFailed,
            None if report.has(self.severity) => Exit::Findings,
            None => Exit::Done,
        }
    }
}

/// The demo server of this program.
fn fixture() -> Result<CheckTarget, CliError> {
    let program = std::env::current_exe().map_err(|error| CliError::new(ErrorCode::Internal, error.to_string()))?;
    Ok(CheckTarget::Stdio(StdioSettings::new(program.to_string_lossy(), ["demo-server"])))
}

/// The server as the lab reaches it. `reader` is what cannot log in.
pub(super) fn check_target(id: &ServerId, settings: &ServerSettings, reader: &str) -> Result<CheckTarget, CliError> {
    match &settings.transport {
        TransportSettings::Stdio(settings) => Ok(CheckTarget::Stdio(settings.clone())),
        TransportSettings::Http { url, headers, auth: AuthSettings::Headers } => {
            let headers = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            Ok(CheckTarget::Http { url: url.clone(), headers })
        }
        TransportSettings::Http { .. } => {
            Err(CliError::usage(format!("`{id}` is configured with a login, which {reader} does not use"))
                .with_remedy("give its URL with --url, and a token with --header 'Authorization: Bearer ${TOKEN}'"))
        }
        TransportSettings::Unavailable { reason } => {
            Err(CliError::new(ErrorCode::Configuration, format!("the MCP server `{id}` {reason}")))
        }
    }
}

fn known_rule(id: &str) -> Result<(), CliError> {
    if rules::by_id(id).is_some() {
        return Ok(());
    }
    let near = rules::all().map(|rule| rule.id).filter(|known| is_near(known, id)).collect::<Vec<_>>();
    let error = CliError::usage(format!("there is no rule `{id}`"));
    Err(match near.as_slice() {
        [] => error.with_remedy("docs/rules.md lists the rules"),
        near => error.with_remedy(format!("rules with such a name: {}", near.join(", "))),
    })
}

/// Whether two ids share a word.
fn is_near(known: &str, id: &str) -> bool {
    id.split('-').any(|word| word.len() > 3 && known.contains(word))
}

fn severity(text: &str) -> Result<Severity, String> {
    let all = [Severity::Error, Severity::Warning, Severity::Note];
    all.into_iter().find(|severity| severity.as_str() == text).ok_or_else(|| "write error, warning or note".into())
}
