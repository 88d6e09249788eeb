//! Name lint: rules that allow by name alone. A server chooses the names and the behavior of its tools, so a name
//! proves nothing unless the operator trusts the server.

use super::warning::{Part, SIGNS, Warning};
use crate::policy::{Match, Rule, Verdict};
use crate::tool::escape_untrusted;

/// Programs that execute their arguments, so the program name limits nothing.
const RUNNERS: [&str; 32] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "env", "xargs", "sudo", "doas", "su", "nohup", "time", "timeout",
    "nice", "exec", "eval", "command", "busybox", "watch", "python", "python3", "node", "deno", "bun", "perl", "ruby",
    "php", "awk", "sed", "vim", "ssh",
];

/// Programs whose first argument is a subcommand.
const WITH_SUBCOMMANDS: [&str; 14] = [
    "git",
    "docker",
    "podman",
    "kubectl",
    "npm",
    "npx",
    "pip",
    "cargo",
    "go",
    "make",
    "gh",
    "systemctl",
    "terraform",
    "aws",
];

/// Warns about a rule that allows by name alone, or allows a program that can do anything.
pub(super) fn of_rule(rule: &Rule) -> Option<Warning> {
    if rule.verdict != Verdict::Allow {
        return None;
    }
    by_name(rule).or_else(|| of_any_server(rule)).or_else(|| any_command(rule))
}

fn by_name(rule: &Rule) -> Option<Warning> {
    let Match { tool, tool_name, server, origin, .. } = rule.conditions();
    let names = [("tool", tool), ("tool_name", tool_name), ("server", server)].into_iter();
    let names: Vec<(&str, &str)> = names.filter_map(|(key, name)| Some((key, name.as_deref()?))).collect();
    let is_own = origin.as_deref().is_some_and(|origin| origin != "mcp");
    let is_everything = names.iter().all(|(_, name)| name.chars().all(|sign| sign == '*'));
    let is_external = tool.as_deref().is_some_and(|tool| !tool.starts_with("mcp_") && !tool.starts_with(SIGNS));
    if !rule.allows_by_name_alone() || is_own || is_everything || is_external {
        return None;
    }
    let shown: Vec<String> = names.iter().map(|(key, name)| format!("`{key}: {}`", escape_untrusted(name))).collect();
    let shown = shown.join(" and ");
    Some(match rule.allows_names_of_any_server() {
        true => Warning::new(
            Part::Match,
            format!("it allows by name alone ({shown}), so it matches only tools of trusted servers"),
            "write `trusted: true` if that is intended, or name the `server`",
        ),
        false => Warning::new(
            Part::Match,
            format!(
                "it allows by name alone ({shown}): a server chooses what its tools do, and can change it at any time"
            ),
            "add `trusted: true`, or bound the arguments with `when` or `command`",
        ),
    })
}

/// Warns about a rule that allows by arguments without a server.
fn of_any_server(rule: &Rule) -> Option<Warning> {
    let Match { server, trusted, origin, tool, .. } = rule.conditions();
    let looks_at_arguments = rule.when().is_some() || rule.conditions().command.is_some();
    let knows_server = server.is_some()
        || *trusted == Some(true)
        || origin.as_deref().is_some_and(|origin| origin != "mcp")
        || tool.as_deref().is_some_and(|tool| !tool.contains(SIGNS) || tool.starts_with("ext_"))
        || rule.when().is_some_and(|when| when.text().contains("server"))
        || rule.wants_hints();
    (looks_at_arguments && !knows_server).then(|| {
        Warning::new(
            Part::Match,
            "it allows such calls for any server that has a tool with these arguments",
            "add `server: ID`, or `trusted: true`",
        )
    })
}

fn any_command(rule: &Rule) -> Option<Warning> {
    let command = rule.conditions().command.as_ref()?;
    let programs = command.words.first()?;
    let name = |program: &String| program.rsplit('/').next().unwrap_or_default().to_owned();
    if let Some(program) = programs.iter().find(|program| RUNNERS.contains(&name(program).as_str())) {
        let message = format!("`{}` executes its arguments, so the rule allows any command", escape_untrusted(program));
        return Some(Warning::new(Part::Match, message, "name the intended program instead"));
    }
    let is_alone = command.words.len() == 1;
    let program = programs.iter().find(|program| is_alone && WITH_SUBCOMMANDS.contains(&name(program).as_str()))?;
    let message = format!("`command: [{}]` allows every subcommand of it", escape_untrusted(program));
    Some(Warning::new(Part::Match, message, format!("list the subcommands: `[{}, [A, B]]`", escape_untrusted(program))))
}
