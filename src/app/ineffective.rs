//! Settings without effect: rules, tool patterns and cost limits that can apply to no call, and variables without braces. The
//! configuration alone shows these; what only the listed tools show, `Toolset::warnings` has.

use std::collections::BTreeSet;

use secrecy::ExposeSecret as _;

use super::cost_limits::idle_cost_limits;
use super::file_permissions::exposed_files;
use super::models::Models;
use crate::config::{AgentSettings, Settings, TransportSettings};
use crate::core::id::ServerId;
use crate::core::policy::{KnownNames, Policy, Rule};
use crate::mcp::StdioSettings;

/// A sentence with the remedy for each setting that has no effect or is unsafe. Opens nothing.
pub fn configuration_warnings(settings: &Settings, models: &Models) -> Vec<String> {
    let mut warnings = exposed_files(settings);
    warnings.extend(idle_cost_limits(settings, models).iter().map(ToString::to_string));
    warnings.extend(settings.bare_variables.iter().cloned());
    warnings.extend(missing_programs(settings));
    warnings.extend(ineffective_rules(settings));
    warnings
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

/// Servers whose program is not on `PATH`.
fn missing_programs(settings: &Settings) -> impl Iterator<Item = String> {
    settings.servers.iter().filter_map(|(id, server)| {
        let TransportSettings::Stdio(StdioSettings { command, cwd, env, .. }) = &server.transport else { return None };
        let is_path = command.contains('/');
        let path = env.get("PATH").map(|path| path.expose_secret().into()).or_else(|| std::env::var_os("PATH"))?;
        let found = match is_path {
            true => cwd.as_ref().map_or_else(|| command.into(), |cwd| cwd.join(command)).exists(),
            false => std::env::split_paths(&path).any(|folder| folder.join(command).is_file()),
        };
        let where_to = if is_path { "there is no such file" } else { "it is not on PATH" };
        (!found).then(|| format!("server `{id}`: the program `{command}` cannot be started: {where_to}"))
    })
}
