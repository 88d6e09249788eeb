//! Replay of a recording: one side is played, the other one is real, and the new run is compared with the recorded one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::addresses::server_settings;
use super::answers::RecordedAnswers;
use super::error::TestError;
use super::test_run::TestRun;
use crate::app::Models;
use crate::config::{AgentSettings, ServerSettings, Settings};
use crate::core::id::{AgentName, ModelName, ServerId};
use crate::core::redact::Style;
use crate::lab::recording::{Comparison, RecordedServers, Recording, RecordingContext, Side, compare};
use crate::models::scripted::ScriptedModel;
use crate::ports::Model;

/// The name of the model that plays a recording.
pub(super) const RECORDED_MODEL: &str = "recorded";

/// A replay to be made.
#[derive(Debug)]
pub struct Replay {
    pub recording: Recording,
    /// The side that the recording plays.
    pub side: Side,
    pub settings: Settings,
    /// The agent whose policy and limits apply.
    pub agent: AgentName,
    /// The real model, if the recording plays the server; `None` for that of the agent.
    pub model: Option<ModelName>,
    /// Servers to use in place of those of the recording, by their ids in it.
    pub servers: BTreeMap<ServerId, ServerSettings>,
    /// The time after which the run is cancelled.
    pub time_limit: Duration,
}

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct ReplayReport {
    /// The differences.
    pub comparison: Comparison,
    /// The new run, as a recording.
    pub replayed: Recording,
    pub took: Duration,
}

/// Replays a recording.
///
/// # Errors
/// `TestError` if the run cannot begin: a server is not known, or the recording has nothing to play for a matcher. A run
/// that fails is compared like any other.
pub async fn replay(replay: Replay) -> Result<ReplayReport, TestError> {
    let Replay { recording, side, mut settings, agent, model, servers, time_limit } = replay;
    let context = |settings: &Settings| RecordingContext {
        secrets: settings.secrets().build(Style::MESSAGE),
        ..RecordingContext::default()
    };
    let (mut models, mut recorded) = (Models::new(), None);
    let ids: Vec<ServerId> = recording.servers.keys().map(|id| ServerId::from(id.as_str())).collect();
    match side {
        Side::Model => {
            add_servers(&mut settings, &recording, servers)?;
            models.insert(RECORDED_MODEL.into(), recorded_model(&recording)?);
        }
        Side::Server => {
            let servers = RecordedServers::new(recording.clone()).map_err(TestError::invalid)?;
            recorded = Some((ids.clone(), servers));
        }
    }
    let Some(chosen) = settings.agents.get_mut(&agent) else {
        return Err(TestError::invalid(format!("there is no agent `{agent}`")));
    };
    chosen.external_tools.clone_from(&recording.external_tools);
    chosen.rules.output_schema.clone_from(&recording.output_schema);
    match side {
        Side::Model => {
            (chosen.model, chosen.servers) = (RECORDED_MODEL.into(), ids);
            use_no_other_model(chosen);
        }
        Side::Server => {
            chosen.model = model.unwrap_or_else(|| chosen.model.clone());
            chosen.servers = Vec::new();
            chosen.instructions.clone_from(&recording.instructions);
            (chosen.project, chosen.working_directory) = (String::new(), None);
        }
    }
    let context = context(&settings);
    let task = recording.task.clone();
    let run = TestRun { settings, models, agent, task, recorded, time_limit };
    let finished = run.execute(&mut RecordedAnswers::new(&recording)).await?;
    let replayed = Recording::of_journal(&finished.journal, &context)
        .map_err(|error| TestError::invalid(format!("the run cannot be compared: {error}")))?;
    Ok(ReplayReport { comparison: compare(&recording, &replayed, side), replayed, took: finished.took })
}

/// Keeps real models out of a run whose model is played.
pub(super) fn use_no_other_model(agent: &mut AgentSettings) {
    agent.fallback = Vec::new();
    if let Some(compaction) = &mut agent.rules.compaction {
        compaction.model = None;
    }
}

/// The model that gives the recorded replies.
pub(super) fn recorded_model(recording: &Recording) -> Result<Arc<dyn Model>, TestError> {
    let script = recording.script().map_err(TestError::invalid)?;
    Ok(Arc::new(ScriptedModel::new(RECORDED_MODEL, script)))
}

/// Adds the servers of a recording to the settings: those given, those of its header, or those of the configuration.
fn add_servers(
    settings: &mut Settings,
    recording: &Recording,
    mut given: BTreeMap<ServerId, ServerSettings>,
) -> Result<(), TestError> {
    for (name, recorded) in &recording.servers {
        let id = ServerId::from(name.as_str());
        let server = match given.remove(&id) {
            Some(server) => Some(server),
            None => server_settings(name, recorded)?,
        };
        match server {
            Some(server) => drop(settings.servers.insert(id, server)),
            None if settings.servers.contains_key(&id) => {}
            None => {
                return Err(TestError::invalid(format!("the server `{name}` of the recording is not configured"))
                    .with_remedy("name a configuration with --config, or give its command after `--`, or its --url"));
            }
        }
    }
    Ok(())
}

impl ReplayReport {
    /// The report for programs: whether the run diverged, where first, and everywhere.
    pub fn to_json(&self) -> Value {
        let Comparison { divergences, notes } = &self.comparison;
        serde_json::json!({
            "type": "result",
            "status": if divergences.is_empty() { "same" } else { "diverged" },
            "first": divergences.first(),
            "divergences": divergences,
            "notes": notes,
            "calls": self.replayed.calls().count(),
            "turns": self.replayed.turns.len(),
            "duration_ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
        })
    }
}
