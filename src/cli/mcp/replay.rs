//! `toolgate mcp replay`: one side of a recording against the other side as it is today.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::target::{TargetFlags, seconds};
use super::wire_proxy;
use crate::app::testing::{self, ReplayReport, read_recording};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup;
use crate::cli::text::{compact, count, duration, one_line};
use crate::config::{ServerSettings, Settings};
use crate::core::id::{AgentName, ServerId};
use crate::lab::recording::{Comparison, Divergence, Recording, Side};

/// The word that selects the side of the recording.
const RECORDED: &str = "recorded";

/// The most characters of a value in the report.
const SHOWN: usize = 400;

/// The most further differences that the report lists.
const LISTED: usize = 10;

const EXAMPLES: &str = "\
Examples:
  toolgate mcp replay ada.yaml                        the recorded model, and the server of the file's header
  toolgate mcp replay ada.yaml -- node new-server.js  the recorded model, and this server
  toolgate mcp replay ada.yaml --server recorded --model main

By default the recording plays the model: the calls are the recorded ones, and the server's tools and
results are compared. `--server recorded` plays the server, and the calls of a real model of the
configuration are compared. Approvals, results of external tools and answers to questions are those of
the recording.

The first difference is shown with its call, its JSON path, the expected and the actual value. Matchers
and the key `ignore` in the file allow differences: docs/mcp-recordings.md.

Exit codes: 0 as recorded, 2 wrong usage, file or configuration, 9 the run diverged.";

/// Replay a recording: the recorded model against a server, or a recorded server against a model
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Replay {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The model: `recorded`, or with `--server recorded` a configured one [default: recorded, or the agent's model]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// The agent whose policy and limits apply [default: that of the recording, if it is configured]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Cancels the run after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "300")]
    timeout: Duration,

    /// Prints one JSON object with every difference
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    reach: TargetFlags,
}

impl Replay {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        setup::log(setup::REPORTED_RUN_LOG)?;
        let recording = read_recording(&self.file)?;
        let side = self.side()?;
        let (file, json) = (self.file.display().to_string(), self.json);
        let replay = self.prepared(recording, side)?;
        let report = testing::replay(replay).await?;
        if json {
            out.json(&report.to_json())
        } else {
            print(&report, &file, side, out)
        }
        Ok(if report.comparison.divergences.is_empty() { Exit::Done } else { Exit::Findings })
    }

    fn side(&self) -> Result<Side, CliError> {
        let plays_server = self.reach.server() == Some(RECORDED);
        match (plays_server, self.model.as_deref()) {
            (true, Some(RECORDED)) => {
                Err(CliError::usage("both sides would be recorded, and nothing would be compared")
                    .with_remedy("leave out `--model recorded`, or `--server recorded`"))
            }
            (true, _) => Ok(Side::Server),
            (false, None | Some(RECORDED)) => Ok(Side::Model),
            (false, Some(model)) => Err(CliError::usage(format!("`--model {model}` needs a recorded server"))
                .with_remedy("add `--server recorded`, or write a scenario for `toolgate mcp test`")),
        }
    }

    fn prepared(self, recording: Recording, side: Side) -> Result<testing::Replay, CliError> {
        let settings = self.reach.settings()?;
        let agent = agent(&settings, self.agent.as_deref(), &recording)?;
        let model = self.model.as_deref().filter(|name| *name != RECORDED);
        let model = model.map(|name| setup::model(&settings, name)).transpose()?;
        if side == Side::Server && model.is_none() {
            setup::require_model(&settings, &agent)?;
        }
        let servers = match side {
            Side::Model => servers(&self.reach, &recording)?,
            Side::Server => {
                // A recorded server and a real one exclude each other.
                if self.reach.without_server().is_given() {
                    return Err(CliError::usage("`--server recorded` replaces the server")
                        .with_remedy("leave out the command or the --url"));
                }
                BTreeMap::new()
            }
        };
        Ok(testing::Replay { recording, side, settings, agent, model, servers, time_limit: self.timeout })
    }
}

/// The agent: the named one, that of the recording if it is configured, or the usual one.
fn agent(settings: &Settings, named: Option<&str>, recording: &Recording) -> Result<AgentName, CliError> {
    let is_configured = |name: &&str| settings.agents.values().any(|agent| agent.is_named(name));
    let recorded = recording.agent.as_deref().filter(is_configured);
    setup::agent(settings, named.or(recorded))
}

/// The server of the command line, in place of the server of the recording with its id, or of the only one.
fn servers(reach: &TargetFlags, recording: &Recording) -> Result<BTreeMap<ServerId, ServerSettings>, CliError> {
    if !reach.is_given() {
        reach.refuse_wire()?;
        return Ok(BTreeMap::new());
    }
    let mut ids = recording.servers.keys();
    let target = wire_proxy::target(reach, None)?;
    if recording.servers.contains_key(target.id.as_str()) {
        return Ok([(target.id, target.settings)].into());
    }
    match (ids.next(), ids.next()) {
        (Some(only), None) => Ok([(ServerId::from(only.as_str()), target.settings)].into()),
        (None, _) => Err(CliError::usage("the recording has no server").with_remedy("leave the server out")),
        (Some(_), Some(_)) => Err(CliError::usage("the recording has several servers, and one was given").with_remedy(
            "name the one that it replaces with --name, or a configuration with all of them with --config",
        )),
    }
}

fn print(report: &ReplayReport, file: &str, side: Side, out: &mut Output) {
    let Comparison { divergences, notes } = &report.comparison;
    for note in notes {
        out.note(format!("note: {}: {}", note.place(), note.kind.in_words()));
    }
    let Some((first, others)) = divergences.split_first() else {
        let (turns, calls) =
            (count(report.replayed.turns.len(), "turn"), count(report.replayed.calls().count(), "call"));
        let took = duration(u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX));
        return out.line(format!("as recorded: {turns} with {calls}, {took}"));
    };
    out.line(format!("diverged at {}: {}", first.place(), first.kind.in_words()));
    for (name, value) in [("expected", &first.expected), ("actual  ", &first.actual)] {
        if first.expected.is_some() || first.actual.is_some() {
            out.line(format!("  {name}: {}", value.as_ref().map_or("nothing".to_owned(), shown)));
        }
    }
    for other in others.iter().take(LISTED) {
        out.line(format!("then at {}: {}", other.place(), difference_line(other)));
    }
    if others.len() > LISTED {
        out.line(format!("and {}", count(others.len() - LISTED, "further difference")));
    }
    if let Some(remedy) = first.remedy() {
        out.note(format!("to allow it, add to {file}: {remedy}"));
    }
    if side == Side::Model {
        out.note("if the change is intended, record the run again");
    }
}

fn difference_line(divergence: &Divergence) -> String {
    let values = divergence.expected.as_ref().zip(divergence.actual.as_ref());
    let values = values.map(|(expected, actual)| format!(", {} → {}", compact(expected, 60), compact(actual, 60)));
    format!("{}{}", divergence.kind.in_words(), values.unwrap_or_default())
}

fn shown(value: &Value) -> String {
    one_line(&value.to_string(), SHOWN)
}
