//! Shared flags: the configuration file, and changes to the configuration for one command.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::error::CliError;
use super::file_texts;
use super::output::Output;
use super::text::list;
use super::view::RepeatedFlags;
use crate::app::App;
use crate::config::{self, AgentSettings, ModelSettings, Settings, StdioSettings, TransportSettings};
use crate::core::error::ErrorCode;
use crate::core::id::{AgentName, ModelName, ServerId};
use crate::core::policy::Policy;
use crate::core::similar::{did_you_mean, similar};
use crate::core::tool::escape_untrusted;
use crate::telemetry::logging;

/// The flag that selects the configuration.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct ConfigFlag {
    /// The configuration [default: ./toolgate.yaml if there is one, or else built-in defaults]
    #[arg(long, value_name = "FILE", env = "TOOLGATE_CONFIG", hide_env_values = true)]
    pub(super) config: Option<PathBuf>,
}

/// Changes to the configuration for one command. Another command on the same run needs the same flags.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "For this command only")]
pub(super) struct ConfigOverrides {
    /// Adds the MCP servers of this file, in the format of Claude Desktop, Cursor or VS Code (repeatable)
    #[arg(long, value_name = "FILE")]
    pub(super) mcp_config: Vec<PathBuf>,

    /// Uses this variant of the agent
    #[arg(long, value_name = "NAME")]
    pub(super) variant: Option<String>,
}

/// The model and the policy of a new run, which keeps both.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "For this run")]
pub(super) struct RunChoice {
    /// Uses another configured model
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,

    /// Uses another approval policy: default, accept-reads, accept-edits, dont-ask, delegate, plan, bypass, or a configured one
    #[arg(long, value_name = "NAME")]
    pub(super) policy: Option<String>,
}

/// Reads the configuration.
pub(super) fn settings(flag: &ConfigFlag) -> Result<Settings, CliError> {
    let mut settings = config::load(flag.config.as_deref(), &environment)?;
    settings.servers.values_mut().for_each(|server| meaning_this_program(&mut server.transport));
    Ok(settings)
}

/// Replaces `toolgate demo-server` as a server command by the path of this executable.
pub(super) fn meaning_this_program(transport: &mut TransportSettings) {
    if let TransportSettings::Stdio(StdioSettings { command, .. }) = transport
        && command == "toolgate"
        && let Ok(myself) = std::env::current_exe()
    {
        *command = myself.to_string_lossy().into_owned();
    }
}

/// The default log filter of a command.
const USUAL_LOG: &str = "warn,toolgate::run=off,toolgate_mcp::supervisor=error,rmcp=off,opentelemetry=off";

/// A log filter without the records of runs, for a command whose view shows the same. A filter that names them stays.
fn without_runs(filter: &str) -> String {
    if filter.contains("toolgate::run") { filter.to_owned() } else { format!("{filter},toolgate::run=off") }
}

/// Opens the log on standard error first, then everything that the settings name. A run may choose each configured model
/// and policy: the user of this terminal may change the configuration.
pub(super) async fn open(settings: Settings) -> Result<App, CliError> {
    // The live view and the result line report most events; by default, the log adds only the rest.
    let chosen = settings.log.as_deref().map(|filter| match std::io::stderr().is_terminal() {
        true => without_runs(filter),
        false => filter.to_owned(),
    });
    log(chosen.as_deref().unwrap_or(USUAL_LOG))?;
    let sinks = std::io::stdout().is_terminal().then(file_texts::sink).into_iter().collect();
    let mut app = App::open(with_every_choice(settings.clone()), sinks).await?;
    // What the configuration warns of concerns what it offers itself.
    app.settings = settings;
    Ok(app)
}

/// The settings with each usable model and each policy among those that a run of an agent may choose.
fn with_every_choice(mut settings: Settings) -> Settings {
    let is_usable = |model: &ModelSettings| !matches!(model, ModelSettings::Missing { .. });
    let models: Vec<ModelName> =
        settings.models.iter().filter(|(_, model)| is_usable(model)).map(|(name, _)| name.clone()).collect();
    for agent in settings.agents.values_mut() {
        let is_new = |name: &&ModelName| !agent.models().any(|known| known == *name);
        let new: Vec<ModelName> = models.iter().filter(is_new).cloned().collect();
        agent.selectable_models.extend(new);
        let has = |name: &str| agent.policy.name == name || agent.modes.iter().any(|mode| mode.name == name);
        let new: Vec<_> = settings.policies.values().filter(|policy| !has(&policy.name)).cloned().collect();
        agent.modes.extend(new);
    }
    settings
}

/// Closes the resources that a command opened.
pub(super) async fn close(app: App, out: &mut Output) {
    for complaint in app.close().await {
        out.note(format!("warning: {complaint}"));
    }
}

/// The same after the command followed a run. A user who pressed Ctrl-C twice does not wait for anything.
pub(super) async fn close_after<T>(ended: &Result<T, CliError>, app: App, out: &mut Output) {
    match ended {
        Err(CliError::Interrupted) => {}
        // The process ends at once, without waiting for tasks.
        Err(CliError::Terminated(_)) => app.abandon().await,
        Ok(_) | Err(CliError::Coded { .. } | CliError::Config(_)) => close(app, out).await,
    }
}

/// The log filter of commands that report errors themselves; a log would repeat them.
pub(super) const QUIET_LOG: &str = "error,rmcp=off,rustls_platform_verifier=off";

/// The log filter of commands that report what became of their runs.
pub(super) const REPORTED_RUN_LOG: &str = "error,toolgate::run=off,rmcp=off,rustls_platform_verifier=off";

/// The default log filter of a server: requests, runs, and the background worker.
const USUAL_SERVER_LOG: &str = "warn,toolgate=info,rmcp=off,opentelemetry=off";

/// Starts the log of a server on standard error. Its default is more verbose than that of a command.
pub(super) fn log_of_server(settings: &Settings, format: logging::Format) -> Result<(), CliError> {
    let level = settings.log.as_deref().unwrap_or(USUAL_SERVER_LOG);
    log_as(level, format, logging::Output::Queued)
}

/// Starts the log on standard error.
pub(super) fn log(level: &str) -> Result<(), CliError> {
    log_as(level, logging::Format::Text, logging::Output::Direct)
}

fn log_as(level: &str, format: logging::Format, output: logging::Output) -> Result<(), CliError> {
    match logging::init(level, format, output, environment) {
        // A command that opens the program a second time has a log already.
        Ok(()) | Err(logging::LoggingError::Taken(_)) => Ok(()),
        Err(error) => Err(CliError::new(ErrorCode::Configuration, error.to_string())),
    }
}

/// Reads an environment variable.
pub(super) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl ConfigFlag {
    /// The flag, for a further command.
    fn words(&self) -> Vec<String> {
        flag("--config", self.config.as_deref().map(path)).collect()
    }
}

impl ConfigOverrides {
    /// Applies the changes to one agent, or to every agent when `agent` is `None`.
    pub(super) fn apply(&self, settings: &mut Settings, agent: Option<&AgentName>) -> Result<(), CliError> {
        let added = self.added_servers()?;
        let concerned = |settings: &AgentSettings| agent.is_none_or(|agent| *agent == settings.name);
        if let Some(variant) = &self.variant {
            choose(variant, settings.agents.values_mut().filter(|settings| concerned(settings)))?;
        }
        for settings in settings.agents.values_mut().filter(|settings| concerned(settings)) {
            let new = added.iter().map(|(id, _)| id).filter(|id| !settings.servers.contains(id));
            let new: Vec<_> = new.cloned().collect();
            settings.servers.extend(new);
        }
        settings.servers.extend(added);
        Ok(())
    }

    /// The flags, for a further command.
    fn words(&self) -> Vec<String> {
        let servers = self.mcp_config.iter().flat_map(|file| flag("--mcp-config", Some(path(file))));
        servers.chain(flag("--variant", self.variant.clone())).collect()
    }

    fn added_servers(&self) -> Result<Vec<(ServerId, config::ServerSettings)>, CliError> {
        servers_of(&self.mcp_config)
    }
}

impl RunChoice {
    /// Applies the choice to one agent, or to every agent when `agent` is `None`.
    pub(super) fn apply(&self, settings: &mut Settings, agent: Option<&AgentName>) -> Result<(), CliError> {
        let model = self.model.as_deref().map(|name| model(settings, name)).transpose()?;
        let policy = self.policy.as_deref().map(|name| policy(settings, name)).transpose()?;
        let concerned = |settings: &&mut AgentSettings| agent.is_none_or(|agent| *agent == settings.name);
        for settings in settings.agents.values_mut().filter(concerned) {
            if let Some(model) = &model {
                settings.model.clone_from(model);
                settings.selectable_models.retain(|name| name != model);
            }
            settings.policy = policy.clone().unwrap_or_else(|| settings.policy.clone());
        }
        Ok(())
    }

    /// The permission mode of a new run of an agent with these changes: the name of the policy that decides about its
    /// calls in later commands as well. `None` for the policy of the configured agent.
    pub(super) fn mode(&self, changes: &ConfigOverrides, agent: &AgentSettings) -> Option<String> {
        (self.policy.is_some() || changes.variant.is_some()).then(|| agent.policy.name.clone())
    }
}

/// Replaces the agents that have the variant by it. At least one must have it.
fn choose<'a>(variant: &str, agents: impl Iterator<Item = &'a mut AgentSettings>) -> Result<(), CliError> {
    let (mut known, mut is_known) = (BTreeSet::new(), false);
    for agent in agents {
        known.extend(agent.variants.keys().cloned());
        if let Some(chosen) = agent.in_variant(variant) {
            *agent = chosen;
            is_known = true;
        }
    }
    if is_known { Ok(()) } else { Err(unknown("variant", variant, known.iter().map(String::as_str))) }
}

/// The servers from files in the format of editors.
pub(super) fn servers_of(files: &[PathBuf]) -> Result<Vec<(ServerId, config::ServerSettings)>, CliError> {
    let mut servers = Vec::new();
    for file in files {
        servers.extend(config::mcp_servers_file(file, &environment)?);
    }
    Ok(servers)
}

/// Finds a configured model by name.
pub(super) fn model(settings: &Settings, name: &str) -> Result<ModelName, CliError> {
    let known = settings.models.keys().find(|known| known.as_str() == name);
    known.cloned().ok_or_else(|| unknown("model", name, settings.models.keys().map(ModelName::as_str)))
}

/// Finds a policy by name.
pub(super) fn policy(settings: &Settings, name: &str) -> Result<Arc<Policy>, CliError> {
    settings.policies.get(name).cloned().ok_or_else(|| unknown_policy(settings, name))
}

/// Warns about a filter by an agent that is not configured, because the name may be misspelt. It is not an error: runs
/// of removed agents still exist.
pub(super) fn warn_of_unknown(agent: Option<&str>, settings: &Settings, out: &mut Output) {
    let names = || settings.agents.keys().map(AgentName::as_str);
    let is_known = |name: &str| settings.agents.values().any(|agent| agent.is_named(name));
    if let Some(name) = agent.filter(|name| !is_known(name)) {
        out.warning(escape_untrusted(&unknown("agent", name, names()).to_string()));
    }
}

/// Rejects an agent without a model before its run starts.
pub(super) fn require_model(settings: &Settings, agent: &AgentName) -> Result<(), CliError> {
    let model = settings.agents.get(agent).and_then(|agent| settings.models.get(&agent.model));
    match model {
        Some(config::ModelSettings::Missing { remedy }) => {
            Err(CliError::new(ErrorCode::Configuration, "no model is configured").with_remedy(remedy.clone()))
        }
        Some(config::ModelSettings::Http(_) | config::ModelSettings::Scripted { .. }) | None => Ok(()),
    }
}

/// A warning about a script that stands in for a model, and whose answers have nothing to do with the message. `None` for
/// any other model.
pub(super) fn stand_in_warning(settings: &Settings, agent: &AgentName) -> Option<String> {
    let model = &settings.agents.get(agent)?.model;
    match settings.models.get(model)? {
        config::ModelSettings::Scripted { file, is_stand_in: true } => Some(format!(
            "the environment names no model, so `{model}` plays the script {} and does not answer your message; for a \
             model, set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or TOOLGATE_MODEL_URL and TOOLGATE_MODEL for \
             a local one",
            file.display()
        )),
        config::ModelSettings::Scripted { .. }
        | config::ModelSettings::Http(_)
        | config::ModelSettings::Missing { .. } => None,
    }
}

/// The flags that a further command on the same run needs. The run keeps its model and its policy.
pub(super) fn again(config: &ConfigFlag, changes: &ConfigOverrides) -> RepeatedFlags {
    RepeatedFlags::new(config.words(), changes.words())
}

/// The flags that a further run needs.
pub(super) fn again_for_new(config: &ConfigFlag, changes: &ConfigOverrides, choice: &RunChoice) -> RepeatedFlags {
    let choice = flag("--model", choice.model.clone()).chain(flag("--policy", choice.policy.clone()));
    let changes = changes.words().into_iter().chain(choice).collect();
    RepeatedFlags::new(config.words(), changes)
}

fn flag(name: &'static str, value: Option<String>) -> impl Iterator<Item = String> {
    value.into_iter().flat_map(|value| [name.to_owned(), value])
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Finds the agent: the named one, the only one, or `assistant`.
pub(super) fn agent(settings: &Settings, named: Option<&str>) -> Result<AgentName, CliError> {
    let names = || settings.agents.keys().map(AgentName::as_str);
    if let Some(name) = named {
        let agent = settings.agents.values().find(|agent| agent.is_named(name));
        return agent.map(|agent| agent.name.clone()).ok_or_else(|| unknown("agent", name, names()));
    }
    let mut agents = settings.agents.keys();
    match (agents.next(), agents.next()) {
        (Some(only), None) => Ok(only.clone()),
        _ => settings.agents.keys().find(|agent| agent.as_str() == "assistant").cloned().ok_or_else(|| {
            let message = format!("there are several agents: {}", list(names()));
            CliError::usage(message).with_remedy("say which one with --agent NAME")
        }),
    }
}

/// Suggests the form for a policy that is a file.
fn unknown_policy(settings: &Settings, name: &str) -> CliError {
    let error = unknown("policy", name, settings.policies.keys().map(String::as_str));
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).filter(|_| Path::new(name).is_file());
    match stem {
        Some(stem) => error.with_remedy(format!(
            "`--policy` takes a name; add `policies: {{ {stem}: {name} }}` to the configuration and pass `--policy {stem}`"
        )),
        None => error,
    }
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> CliError {
    let known: Vec<&str> = known.collect();
    let error = format!("there is no {what} `{name}`; configured are: {}", list(known.iter().copied()));
    let error = CliError::new(ErrorCode::NotFound, error);
    match did_you_mean(similar(name, known)) {
        Some(meant) => error.with_remedy(meant),
        None => error,
    }
}
