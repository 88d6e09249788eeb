//! Setup of a case: its model, its server and its agent, from the scenario and the configuration.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::addresses::this_program;
use super::answers::{Answers, RecordedAnswers};
use super::error::TestError;
use super::recording_file::read_recording;
use super::replay::{recorded_model, use_no_other_model};
use super::test_run::TestRun;
use crate::app::Models;
use crate::config::{
    self, AgentSettings, AuthSettings, ModelSettings, ServerSettings, Settings, StdioSettings, TransportSettings,
};
use crate::core::id::{AgentName, ModelName, ServerId};
use crate::lab::recording::{RecordedServers, Recording};
use crate::lab::scenario::{Endpoint, ModelChoice, Program, ServerChoice, TestCase};
use crate::models::scripted::{Script, ScriptedModel};
use crate::ports::Model;

/// The name of the model of a scenario in the settings of its run.
const SCENARIO_MODEL: &str = "scenario";

/// The time limit of a run without `timeout_s`.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// A case that can run.
pub(super) struct CaseSetup {
    /// The run of one attempt.
    pub(super) run: TestRun,
    /// The answers of the recording that the model plays.
    pub(super) recorded: Option<Box<dyn Answers>>,
}

/// The name of the real model that a case needs: its own, or that of its judge. `None` if every model is scripted or
/// recorded.
pub(super) fn live_model(case: &TestCase, settings: &Settings) -> Option<String> {
    let own = match &case.model {
        ModelChoice::Configured(name) => Some(name),
        ModelChoice::Scripted(_) | ModelChoice::Script(_) | ModelChoice::Recorded(_) => None,
    };
    let judge = case.scenario.expect.answer.as_ref().and_then(|answer| answer.judge.as_ref());
    let is_real = |name: &&String| match settings.models.get(&ModelName::from(name.as_str())) {
        Some(ModelSettings::Scripted { is_stand_in, .. }) => *is_stand_in,
        Some(ModelSettings::Http(_) | ModelSettings::Missing { .. }) => true,
        // It does not exist, which the setup reports.
        None => false,
    };
    own.into_iter().chain(judge.map(|judge| &judge.model)).find(is_real).cloned()
}

impl CaseSetup {
    /// The setup of a case. Paths are relative to the folder of the file.
    pub(super) fn new(case: &TestCase, settings: &Settings, folder: &Path) -> Result<Self, TestError> {
        let mut settings = settings.clone();
        settings.servers.values_mut().for_each(|server| name_this_program(&mut server.transport));
        let agent = agent_name(&settings, case.scenario.agent.as_deref())?;
        let mut chosen = settings.agents.get(&agent).cloned().ok_or_else(|| no_agent(&settings, agent.as_str()))?;
        let mut models = Models::new();
        let mut recorded: Option<Box<dyn Answers>> = None;
        let scripted = |script| Arc::new(ScriptedModel::new(SCENARIO_MODEL, script)) as Arc<dyn Model>;
        let played = match &case.model {
            ModelChoice::Configured(name) => {
                chosen.model = configured_model(&settings, name)?;
                None
            }
            ModelChoice::Scripted(turns) => Some(scripted(Script { turns: turns.clone(), summary: None })),
            ModelChoice::Script(file) => Some(scripted(config::read_file(&folder.join(file))?)),
            ModelChoice::Recorded(file) => {
                let recording = read_recording(&folder.join(file))?;
                recorded = Some(Box::new(RecordedAnswers::new(&recording)));
                Some(recorded_model(&recording)?)
            }
        };
        if let Some(model) = played {
            chosen.model = SCENARIO_MODEL.into();
            models.insert(SCENARIO_MODEL.into(), model);
        }
        use_no_other_model(&mut chosen);
        if let Some(judge) = case.scenario.expect.answer.as_ref().and_then(|answer| answer.judge.as_ref()) {
            configured_model(&settings, &judge.model)?;
        }
        apply(case, &settings, &mut chosen)?;
        let recorded_servers = use_server(case, &mut settings, &mut chosen, folder)?;
        settings.agents.insert(agent.clone(), chosen);
        let run = TestRun {
            settings,
            models,
            agent,
            task: case.scenario.task.clone(),
            recorded: recorded_servers,
            time_limit: case.scenario.timeout_s.map_or(TIME_LIMIT, Duration::from_secs),
        };
        Ok(Self { run, recorded })
    }
}

/// The keys of the scenario that change its agent.
fn apply(case: &TestCase, settings: &Settings, agent: &mut AgentSettings) -> Result<(), TestError> {
    let scenario = &case.scenario;
    if let Some(instructions) = &scenario.instructions {
        agent.instructions.clone_from(instructions);
    }
    if !scenario.external_tools.is_empty() {
        agent.external_tools.clone_from(&scenario.external_tools);
    }
    if let Some(name) = &scenario.policy {
        agent.policy = settings.policies.get(name).cloned().ok_or_else(|| {
            let known = quoted(settings.policies.keys().map(String::as_str));
            TestError::invalid(format!("there is no policy `{name}`; there are {known}"))
        })?;
    }
    Ok(())
}

/// Gives the agent the server of the case in place of its own ones. Returns the servers of a recording with their ids.
fn use_server(
    case: &TestCase,
    settings: &mut Settings,
    agent: &mut AgentSettings,
    folder: &Path,
) -> Result<Option<(Vec<ServerId>, RecordedServers)>, TestError> {
    let Some(server) = &case.server else { return Ok(None) };
    let (id, transport) = match server {
        ServerChoice::Stdio { name, program } => (name, stdio(program, folder)?),
        ServerChoice::Http { name, endpoint } => (name, http(endpoint)?),
        ServerChoice::Configured(id) => {
            let id = ServerId::from(id.as_str());
            if !settings.servers.contains_key(&id) {
                let known = quoted(settings.servers.keys().map(ServerId::as_str));
                return Err(TestError::invalid(format!("there is no MCP server `{id}`; configured are {known}"))
                    .with_remedy("name a configuration with --config, or write `server: { stdio: { command: … } }`"));
            }
            agent.servers = vec![id];
            return Ok(None);
        }
        ServerChoice::Recorded(file) => {
            let recording: Recording = read_recording(&folder.join(file))?;
            agent.servers = Vec::new();
            let ids = recording.servers.keys().map(|id| ServerId::from(id.as_str())).collect();
            return Ok(Some((ids, RecordedServers::new(recording).map_err(TestError::invalid)?)));
        }
    };
    let id = ServerId::from(id.as_str());
    agent.servers = vec![id.clone()];
    settings.servers.insert(id, ServerSettings::new(transport));
    Ok(None)
}

fn stdio(program: &Program, folder: &Path) -> Result<TransportSettings, TestError> {
    let args = program.args.iter().map(|arg| expanded(arg)).collect::<Result<Vec<_>, _>>()?;
    let mut settings = StdioSettings::new(this_program(&program.command), args);
    for (name, value) in &program.env {
        settings = settings.env(name.as_str(), expanded(value)?);
    }
    let own_folder = Some(folder.to_path_buf()).filter(|folder| !folder.as_os_str().is_empty());
    settings.cwd = program.cwd.as_ref().map(|cwd| folder.join(cwd)).or(own_folder);
    Ok(TransportSettings::Stdio(settings))
}

fn http(endpoint: &Endpoint) -> Result<TransportSettings, TestError> {
    let header = |(name, value): (&String, &String)| Ok((name.clone(), expanded(value)?.into()));
    let headers = endpoint.headers.iter().map(header).collect::<Result<BTreeMap<_, _>, TestError>>()?;
    Ok(TransportSettings::Http { url: expanded(&endpoint.url)?, headers, auth: AuthSettings::Headers })
}

fn expanded(text: &str) -> Result<String, TestError> {
    config::expanded(text, &|name| std::env::var(name).ok()).map_err(|fault| {
        let error = TestError::invalid(fault.message());
        match fault.remedy() {
            Some(remedy) => error.with_remedy(remedy),
            None => error,
        }
    })
}

fn name_this_program(transport: &mut TransportSettings) {
    if let TransportSettings::Stdio(stdio) = transport {
        stdio.command = this_program(&stdio.command);
    }
}

fn configured_model(settings: &Settings, name: &str) -> Result<ModelName, TestError> {
    let model = ModelName::from(name);
    match settings.models.get(&model) {
        Some(ModelSettings::Missing { remedy }) => {
            Err(TestError::invalid(format!("the model `{name}` is not configured")).with_remedy(remedy.clone()))
        }
        Some(ModelSettings::Http(_) | ModelSettings::Scripted { .. }) => Ok(model),
        None => {
            let known = quoted(settings.models.keys().map(ModelName::as_str));
            Err(TestError::invalid(format!("there is no model `{name}`; configured are {known}"))
                .with_remedy("name a configuration with --config"))
        }
    }
}

/// The agent: the named one, the only one, or `assistant`.
fn agent_name(settings: &Settings, named: Option<&str>) -> Result<AgentName, TestError> {
    if let Some(name) = named {
        let agent = settings.agents.values().find(|agent| agent.is_named(name));
        return agent.map(|agent| agent.name.clone()).ok_or_else(|| no_agent(settings, name));
    }
    let mut names = settings.agents.keys();
    match (names.next(), names.next()) {
        (Some(only), None) => Ok(only.clone()),
        _ => Ok("assistant".into()),
    }
}

fn no_agent(settings: &Settings, name: &str) -> TestError {
    let known = quoted(settings.agents.keys().map(AgentName::as_str));
    TestError::invalid(format!("there is no agent `{name}`; configured are {known}"))
        .with_remedy("add `agent: NAME` to the scenario")
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
