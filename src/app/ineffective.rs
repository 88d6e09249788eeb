//! Settings without effect: rules, tool patterns and cost limits that can apply to no call, models without a key, and
//! variables without braces. The configuration alone shows these; what only the listed tools show, `Toolset::warnings`
//! has.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use secrecy::ExposeSecret as _;

use super::cost_limits::idle_cost_limits;
use super::file_permissions::exposed_files;
use super::models::Models;
use crate::config::{AgentSettings, ModelSettings, Provider, Settings, TransportSettings};
use crate::core::id::ServerId;
use crate::core::policy::{KnownNames, Policy, Rule};
use crate::mcp::StdioSettings;
use crate::ports::ToolInputValidator as _;
use crate::validation::SchemaValidator;

/// A sentence with the remedy for each setting that has no effect or is unsafe. Opens nothing.
pub fn configuration_warnings(settings: &Settings, models: &Models) -> Vec<String> {
    let mut warnings = exposed_files(settings);
    warnings.extend(idle_cost_limits(settings, models).iter().map(ToString::to_string));
    warnings.extend(settings.bare_variables.iter().cloned());
    warnings.extend(models_without_key(settings));
    warnings.extend(missing_programs(settings));
    warnings.extend(unused_servers(settings));
    warnings.extend(ineffective_rules(settings));
    warnings.extend(unusable_external_tools(settings));
    warnings
}

/// Models at a provider that requires a key, without one.
fn models_without_key(settings: &Settings) -> impl Iterator<Item = String> {
    settings.models.iter().filter_map(|(name, model)| {
        let ModelSettings::Http(http) = model else { return None };
        let http = &http.settings;
        // A header may have the key.
        let is_without = http.api_key.is_none() && http.headers.is_empty();
        let provider = Provider::at(&http.base_url).filter(|_| is_without)?;
        let (host, variable) = (provider.host(), provider.key_variable);
        Some(format!("model `{name}`: {host} refuses requests without a key; set `api_key: \"${{{variable}}}\"`"))
    })
}

/// External tools that runs leave out, because a schema of theirs is invalid.
fn unusable_external_tools(settings: &Settings) -> Vec<String> {
    let validator = SchemaValidator::default();
    let of_agent = |agent: &AgentSettings| -> Vec<String> {
        let invalid = agent.external_tools.iter().filter_map(|tool| {
            let reason = validator.accepts(&tool.to_tool()).err()?;
            Some(format!("agent `{}`: runs leave out its external tool `{}`: {reason}", agent.name, tool.name))
        });
        invalid.collect()
    };
    settings.agents.values().flat_map(of_agent).collect()
}

/// Rules and patterns of agents that can match no tool, whichever tools their servers list.
fn ineffective_rules(settings: &Settings) -> Vec<String> {
    let warnings: BTreeSet<String> = settings.agents.values().flat_map(|agent| of_agent(settings, agent)).collect();
    warnings.into_iter().collect()
}

fn of_agent(settings: &Settings, agent: &AgentSettings) -> Vec<String> {
    let all: Vec<ServerId> = settings.servers.keys().cloned().collect();
    let known = KnownNames {
        agent: Some(&agent.name),
        principal: None,
        tools: &[],
        left_out: &[],
        servers: &all,
        unlisted: &all,
    };
    let policies = [&agent.policy].into_iter().chain(&agent.modes);
    let mut warnings = Vec::new();
    for policy in policies {
        warnings.extend(policy.unmatched_rules(&known).iter().map(ToString::to_string));
    }
    warnings.extend(ineffective_hints(settings, agent));
    let known = KnownNames { servers: &agent.servers, unlisted: &agent.servers, ..known };
    let filter = [("tools.allow", &agent.tools.allow), ("tools.deny", &agent.tools.deny)];
    let filter = filter.into_iter().flat_map(|(key, patterns)| patterns.iter().map(move |pattern| (key, pattern)));
    let patterns = filter.chain(agent.priorities.iter().map(|(pattern, _)| ("priorities", pattern)));
    warnings.extend(patterns.filter(|(_, pattern)| known.misses(pattern)).map(|(key, pattern)| {
        format!(
            "agent `{}`: `{key}: {}` matches no tool: the names of MCP tools begin with `mcp_<server>_`, those of external \
             tools with `ext_`",
            agent.name,
            pattern.as_str()
        )
    }));
    warnings
}

/// Rules of an agent that allow because of a hint, where no server is trusted whose hints could count.
pub(super) fn ineffective_hints(settings: &Settings, agent: &AgentSettings) -> Vec<String> {
    let is_trusted = |id: &&ServerId| settings.servers.get(*id).is_some_and(|server| server.trusted);
    let trusted: Vec<ServerId> = agent.servers.iter().filter(is_trusted).cloned().collect();
    if agent.servers.is_empty() {
        return Vec::new();
    }
    let warning = |policy: &Policy, rule: &Rule| {
        format!(
            "agent `{}`: rule `{}` of policy `{}` allows nothing, because hints count only from a server with \
             `trusted: true`, and no server that the rule matches has it",
            agent.name, rule.id, policy.name
        )
    };
    let of_policy = |policy: &Policy| policy.hints_without_trust(&trusted).map(|rule| warning(policy, rule)).collect();
    [&agent.policy].into_iter().chain(&agent.modes).flat_map(|policy| -> Vec<String> { of_policy(policy) }).collect()
}

/// Servers that no agent uses.
fn unused_servers(settings: &Settings) -> impl Iterator<Item = String> {
    let agents = || settings.agents.values().flat_map(|agent| [agent].into_iter().chain(agent.variants.values()));
    let is_used = move |id: &ServerId| agents().any(|agent| agent.servers.contains(id));
    settings.servers.keys().filter(move |id| !is_used(id)).map(|id| {
        format!("server `{id}`: no agent uses it; name it in the `servers:` of an agent, for example `servers: [{id}]`")
    })
}

/// The ends of the names of scripts that an interpreter runs.
const SCRIPTS: [&str; 8] = ["py", "js", "mjs", "cjs", "ts", "sh", "rb", "jar"];

/// Servers whose program, or the script that it runs, does not exist.
fn missing_programs(settings: &Settings) -> impl Iterator<Item = String> {
    settings.servers.iter().filter_map(|(id, server)| {
        let TransportSettings::Stdio(StdioSettings { command, args, cwd, env, .. }) = &server.transport else {
            return None;
        };
        let path = env.get("PATH").map(|path| path.expose_secret().into()).or_else(|| std::env::var_os("PATH"))?;
        if let Some(folder) = cwd.as_ref().filter(|folder| !folder.is_dir()) {
            return Some(format!("server `{id}`: its folder `{}` does not exist", folder.display()));
        }
        let missing = why_missing(command, cwd.as_deref(), &path).map(|why| (command, why));
        let (program, why) = missing.or_else(|| Some((missing_script(args, cwd.as_deref())?, NO_FILE)))?;
        Some(format!("server `{id}`: the program `{program}` cannot be started: {why}"))
    })
}

const NO_FILE: &str = "there is no such file";

/// The script in the arguments of an interpreter, if it does not exist.
fn missing_script<'a>(args: &'a [String], cwd: Option<&Path>) -> Option<&'a String> {
    let script = args.iter().find(|arg| *arg != "run").filter(|arg| !arg.starts_with('-'))?;
    let is_script = Path::new(script).extension().is_some_and(|end| SCRIPTS.iter().any(|known| end == *known));
    (is_script && !cwd.unwrap_or(Path::new("")).join(script).exists()).then_some(script)
}

/// Why a program that starts from this folder cannot be found: it is no file, or not in a folder of `path`.
pub fn why_missing(program: &str, cwd: Option<&Path>, path: &OsStr) -> Option<&'static str> {
    if program.contains('/') {
        let file = cwd.map_or_else(|| program.into(), |cwd| cwd.join(program));
        return (!file.exists()).then_some(NO_FILE);
    }
    let is_found = std::env::split_paths(path).any(|folder| folder.join(program).is_file());
    (!is_found).then_some("it is not on PATH")
}
