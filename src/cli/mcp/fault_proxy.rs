//! `toolgate mcp break`: a proxy between a client and a server that injects faults.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tokio::net::TcpListener;

use super::check::check_target;
use super::target::TargetFlags;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::interrupt::Interrupts;
use crate::cli::output::Output;
use crate::cli::setup;
use crate::core::error::ErrorCode;
use crate::lab::check::CheckTarget;
use crate::lab::fault_proxy::{self, FaultPlan, FaultTransport, ProxyOptions, Report, kinds};

const EXAMPLES: &str = "\
Examples:
  toolgate mcp break --fault hang -- node server.js              the first tools/call
  toolgate mcp break --fault slow=0.5#3 --fault truncated@tools/list -- node server.js
  toolgate mcp break --fault lost-session#2 --http 8900 --url http://localhost:3000/mcp
  toolgate mcp break --fault http-429 --http 8900 -- node server.js     a command behind HTTP
  toolgate mcp break --rate 0.2 --seed 7 --report faults.jsonl -- node server.js

A command in a client's configuration: the client starts this proxy, and the proxy the server. For a
URL the proxy listens on 127.0.0.1, and prints its own URL as {\"url\": …} first. The report goes to
standard error, and with --report to a file.

A fault is written NAME[=VALUE][@METHOD][#N]: by default the first tools/call, with #all every one.
docs/mcp-faults.md says what each does, and what a correct client makes of it.

Exit codes: 0 done, 2 wrong usage or configuration, 5 the server could not be started, 9 the report
has an error: the client violated the specification.";

/// Stand between a client and a server, inject faults, and report what both made of them
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(
    override_usage = "toolgate mcp break [OPTIONS] SERVER\n       toolgate mcp break [OPTIONS] --url URL\n       \
                            toolgate mcp break [OPTIONS] -- COMMAND…"
)]
pub(super) struct Break {
    /// A configured server, by its id, or a URL
    #[arg(value_name = "SERVER")]
    word: Option<String>,

    /// Injects this fault: NAME[=VALUE][@METHOD][#N] (repeatable)
    #[arg(long, value_name = "FAULT")]
    fault: Vec<String>,

    /// Injects a random fault into this part of the requests
    #[arg(long, value_name = "0–1", value_parser = rate)]
    rate: Option<f64>,

    /// Repeats a random schedule [default: a new one, which the report names]
    #[arg(long, value_name = "N", requires = "rate")]
    seed: Option<u64>,

    /// The faults of the random schedule, by name [default: all that do not end a stdio session]
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "rate")]
    faults: Vec<String>,

    /// Lists the faults
    #[arg(long, conflicts_with_all = ["word", "server", "url", "command", "program"])]
    list_faults: bool,

    /// Serves HTTP on this port, also in front of a command [default with a URL: a free port]
    #[arg(long, value_name = "PORT")]
    http: Option<u16>,

    /// Appends the report to this file, as one line of JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Prints the report as JSON, to standard error as well
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    reach: TargetFlags,
}

impl Break {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        setup::log(setup::QUIET_LOG)?;
        if self.list_faults {
            return Ok(list_faults(out));
        }
        let target = self.reach.target(self.word.as_deref())?;
        let target = check_target(&target.id, &target.settings, "the proxy")?;
        let options = self.options(&target)?;
        // A wrong path costs no session.
        let file = self.report.as_deref().map(|path| appended(path, "the report")).transpose()?;
        let mut interrupts = Interrupts::listen();
        let stop = async move {
            interrupts.next().await;
        };
        let report = match &target {
            CheckTarget::Stdio(settings) if self.http.is_some() => {
                let port = self.http.unwrap_or_default();
                fault_proxy::serve_command(listen(port, out)?, settings, options, stop).await
            }
            CheckTarget::Stdio(settings) => {
                let streams = (tokio::io::stdin(), tokio::io::stdout());
                let relayed = fault_proxy::relay(settings, options, streams, stop).await;
                relayed.map_err(|error| format!("`{}` cannot be started: {error}", settings.command))
            }
            CheckTarget::Http { url, headers } => {
                let listener = listen(self.http.unwrap_or_default(), out)?;
                fault_proxy::serve(listener, url, headers, options, stop).await
            }
        };
        match report {
            Ok(report) => self.finish(&report, file, out),
            Err(reason) => {
                out.note(format!("{} {reason}", out.note_paint().red("error:")));
                Ok(Exit::ServerFailed)
            }
        }
    }

    fn options(&self, target: &CheckTarget) -> Result<ProxyOptions, CliError> {
        let transport = match target {
            CheckTarget::Stdio(_) if self.http.is_none() => FaultTransport::Stdio,
            CheckTarget::Stdio(_) | CheckTarget::Http { .. } => FaultTransport::Http,
        };
        let mut plan = FaultPlan::default();
        let usage = |reason| CliError::usage(reason).with_remedy("toolgate mcp break --list-faults lists them");
        self.fault.iter().try_for_each(|fault| plan.add(fault, transport)).map_err(usage)?;
        if let Some(rate) = self.rate {
            let seed = self.seed.unwrap_or_else(|| u64::from(uuid::Uuid::new_v4().as_fields().0));
            plan.schedule(seed, rate, &self.faults, transport).map_err(usage)?;
        }
        // A client may start the command several times.
        let wire = self.reach.wire().map(|path| appended(path, "the wire file")).transpose()?;
        Ok(ProxyOptions { plan, wire })
    }

    fn finish(&self, report: &Report, file: Option<File>, out: &mut Output) -> Result<Exit, CliError> {
        let line =
            serde_json::to_string(report).map_err(|error| CliError::new(ErrorCode::Internal, error.to_string()))?;
        if let (Some(mut file), Some(path)) = (file, &self.report) {
            writeln!(file, "{line}").map_err(|error| CliError::file("the report", path, &error))?;
        }
        let is_planned = self.rate.is_some() || !self.fault.is_empty();
        match self.json {
            true => out.note(line),
            // Without faults it only writes the wire.
            false if !is_planned => {}
            false => report.to_string().lines().for_each(|line| out.note(line)),
        }
        Ok(if report.has_errors() { Exit::Findings } else { Exit::Done })
    }
}

/// Listens for clients, and prints the URL for their configuration.
fn listen(port: u16, out: &mut Output) -> Result<TcpListener, CliError> {
    let listening = fault_proxy::listen(port);
    let (listener, own) =
        listening.map_err(|error| CliError::usage(format!("the port {port} cannot be used: {error}")))?;
    out.line(json!({ "url": own }).to_string());
    Ok(listener)
}

fn list_faults(out: &mut Output) -> Exit {
    let widest = kinds().map(|kind| kind.usage().len()).max().unwrap_or_default();
    for kind in kinds() {
        out.line(format!("{:widest$}  {}", kind.usage(), kind.effect));
    }
    Exit::Done
}

fn appended(path: &Path, what: &str) -> Result<File, CliError> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|error| CliError::file(what, path, &error))
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.0..=1.0).contains(rate));
    rate.ok_or_else(|| "write a number from 0 to 1, for example 0.2".into())
}
