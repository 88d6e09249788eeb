//! `toolgate config`: validation and JSON Schema of the configuration.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;
use super::policy::warning_in_words;
use super::preset_policies::meaning;
use super::setup::{self, ConfigFlag};
use super::text::{count, list};
use crate::app::{self, Models};
use crate::config::{
    self, ModelSettings, RetentionSettings, Settings, StdioSettings, StoreSettings, TransportSettings,
};
use crate::core::policy::Policy;
use crate::core::policy::analysis::rule_warnings;

const EXAMPLES: &str = "\
Examples:
  toolgate config check                         shows errors with line and remedy, or a summary
  toolgate config check --strict                fails if a rule, a pattern or a limit has no effect
  toolgate config schema > toolgate.schema.json  for completion and checks in an editor";

/// Check the configuration, or print its schema
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Config {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the errors of the configuration, or a summary of it
    Check {
        #[command(flatten)]
        config: ConfigFlag,

        /// Exits with 1 if there is a warning
        #[arg(long)]
        strict: bool,
    },
    /// Print the JSON Schema of toolgate.yaml
    Schema,
}

impl Config {
    pub(super) fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        match self.command {
            Command::Check { config, strict } => {
                let settings = setup::settings(&config)?;
                let models = checked(&settings)?;
                let without_model =
                    settings.agents.keys().find_map(|agent| setup::require_model(&settings, agent).err());
                found(&settings, without_model.is_none()).iter().for_each(|line| out.line(line));
                let mut warnings = app::configuration_warnings(&settings, &models);
                warnings.extend(policy_warnings(&settings, &warnings));
                warnings.iter().for_each(|warning| out.warning(warning));
                if let Some(error) = without_model {
                    return Err(error);
                }
                if strict && !warnings.is_empty() {
                    return Ok(Exit::Failed);
                }
            }
            Command::Schema => out.pretty(&config::json_schema()),
        }
        Ok(Exit::Done)
    }
}

/// What `toolgate policy check` warns of, for the rules that no other warning names.
fn policy_warnings(settings: &Settings, others: &[String]) -> BTreeSet<String> {
    let agents = settings.agents.values().flat_map(|agent| [agent].into_iter().chain(agent.variants.values()));
    let of_agents = agents.flat_map(|agent| [&agent.policy].into_iter().chain(&agent.modes));
    let of_policy = |policy: &Policy| -> Vec<String> {
        let in_words = |warning: &_| format!("policy `{}`: {}", policy.name, warning_in_words(warning));
        let is_named = |rule: &str| {
            let named = format!("rule `{rule}` of policy `{}`", policy.name);
            others.iter().any(|other| other.contains(&named))
        };
        rule_warnings(policy).iter().filter(|warning| !is_named(warning.rule)).map(in_words).collect()
    };
    settings.policies.values().chain(of_agents).flat_map(|policy| of_policy(policy)).collect()
}

/// Checks everything that the settings name, and opens the models. Sends no request.
pub(super) fn checked(settings: &Settings) -> Result<Models, CliError> {
    let models = app::open_models(settings)?;
    app::check_output_schemas(settings)?;
    app::check_envelope_keys(settings)?;
    app::check_gateway(settings)?;
    app::check_telemetry(settings)?;
    Ok(models)
}

/// The address without user, password and query, which may contain credentials.
fn without_credentials(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

fn found(settings: &Settings, is_usable: bool) -> Vec<String> {
    let file = settings.file.as_ref().map_or_else(|| "no file; defaults".to_owned(), |file| file.display().to_string());
    let store = match &settings.store {
        StoreSettings::Sqlite { path, .. } => format!("SQLite, {}", path.display()),
        StoreSettings::Memory => "memory: runs do not survive the process".into(),
    };
    let verdict = if is_usable { "ok    " } else { "not ok" };
    let mut lines = vec![format!("{verdict}   {file}"), format!("store    {store}")];
    for (name, model) in &settings.models {
        let what = match model {
            ModelSettings::Http(http) => {
                format!("{} at {}", http.settings.model, without_credentials(&http.settings.base_url))
            }
            ModelSettings::Scripted { file, .. } => format!("scripted, {}", file.display()),
            ModelSettings::Missing { remedy } => format!("missing: {remedy}"),
        };
        lines.push(format!("model    {name}: {what}"));
    }
    for (id, server) in &settings.servers {
        let what = match &server.transport {
            TransportSettings::Stdio(StdioSettings { command, args, .. }) => {
                format!("stdio, {} {}", command, args.join(" "))
            }
            TransportSettings::Http { url, .. } => format!("http, {url}"),
            TransportSettings::Unavailable { reason } => reason.clone(),
        };
        let trusted = if server.trusted { ", trusted" } else { "" };
        lines.push(format!("server   {id}: {what}{trusted}"));
    }
    for agent in settings.agents.values() {
        let external = agent.external_tools.iter().map(|tool| &tool.name);
        let (servers, policy) = (list(&agent.servers), &agent.policy.name);
        let mut tools = format!("servers {servers}; external tools {}", list(external));
        if !agent.aliases.is_empty() {
            tools += &format!("; aliases {}", list(&agent.aliases));
        }
        if !agent.variants.is_empty() {
            tools += &format!("; variants {}", list(agent.variants.keys()));
        }
        lines.push(format!("agent    {}: model {}; policy {policy}; {tools}", agent.name, agent.model));
    }
    lines.extend(unused_policies(settings));
    lines.extend(settings.gateway.retention.iter().map(deleted_runs));
    lines
}

/// The policies of the configuration that no agent applies. A flag may choose them.
fn unused_policies(settings: &Settings) -> impl Iterator<Item = String> {
    let agents = || settings.agents.values().flat_map(|agent| [agent].into_iter().chain(agent.variants.values()));
    let applied = move || agents().flat_map(|agent| [&agent.policy].into_iter().chain(&agent.modes));
    let own = settings.policies.keys().filter(|name| meaning(name).is_none());
    own.filter(move |name| applied().all(|policy| policy.name != **name)).map(|name| {
        format!(
            "policy   {name}: no agent applies it; name it in an agent (`policy: {name}`), or choose it with --policy"
        )
    })
}

/// The runs that a server deletes by a rule.
fn deleted_runs(rule: &RetentionSettings) -> String {
    let statuses = match &rule.statuses[..] {
        [] => "ended".to_owned(),
        statuses => list(statuses.iter().map(|status| status.as_str())),
    };
    let tenants = if rule.tenants.is_empty() { "every tenant".to_owned() } else { list(&rule.tenants) };
    format!("delete   runs of {tenants}: {statuses}, {} after the last activity", count(rule.days as usize, "day"))
}
