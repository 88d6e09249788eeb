//! Policy lints: warnings about valid rules that probably do not do what they say. The lints find a regular expression
//! in place of a pattern and a partial tool name ([`of_form`]), a test that a call can evade ([`evasion`]), a rule that
//! allows by name alone ([`names`]) and a rule that never decides ([`dead`]).
//!
//! They are warnings, not errors, because each can be intended. An example that the rule matches proves that its form
//! is intended.

mod dead;
mod evasion;
mod names;
mod warning;

use crate::policy::{Match, Outlook, Policy, Rule, Verdict};
use crate::tool::{Builtin, escape_untrusted};
pub use warning::RuleWarning;
use warning::{Part, SIGNS, Warning};

/// Prefixes of the model's tool names.
const PREFIXES: [&str; 2] = ["mcp_", "ext_"];

/// The warnings about a policy, rule by rule.
pub fn rule_warnings(policy: &Policy) -> Vec<RuleWarning<'_>> {
    let of_rule = |(position, rule)| {
        let warnings = warnings(policy, position, rule).into_iter();
        warnings.map(|warning| warning.about(rule))
    };
    policy.rules.iter().enumerate().flat_map(of_rule).collect()
}

fn warnings(policy: &Policy, position: usize, rule: &Rule) -> Vec<Warning> {
    let is_unproven = rule.examples().0.is_empty();
    let mut found = if is_unproven { of_form(rule) } else { Vec::new() };
    found.extend(dead::of_rule(policy, position, rule));
    if found.is_empty() {
        found.extend(names::of_rule(rule));
    }
    found.extend(evasion::of_rule(rule));
    found
}

type MessageAndRemedy = (String, String);

/// Warnings about the form of a rule; an example that the rule matches suppresses them.
fn of_form(rule: &Rule) -> Vec<Warning> {
    let wanted = rule.conditions();
    let Match { tool, tool_name, server, agent, principal, .. } = wanted;
    let patterns =
        [("tool", tool), ("tool_name", tool_name), ("server", server), ("agent", agent), ("principal", principal)];
    let patterns = patterns.into_iter().filter_map(|(key, pattern)| pattern.as_deref().map(|pattern| (key, pattern)));
    let mut findings: Vec<MessageAndRemedy> =
        patterns.filter_map(|(key, pattern)| regular_expression(key, pattern)).collect();
    if findings.is_empty() {
        findings.extend(tool.as_deref().and_then(half_a_name));
    }
    let of_match = findings.into_iter().map(|(message, remedy)| Warning::new(Part::Match, message, remedy));
    let idle = rule.when().filter(|when| when.why_never().is_none());
    let idle = idle.and_then(|when| idle_condition(when.text(), when.outlook()));
    of_match.chain(idle.map(|(message, remedy)| Warning::new(Part::When, message, remedy))).collect()
}

fn regular_expression(key: &str, pattern: &str) -> Option<MessageAndRemedy> {
    let classes = [r"\d", r"\w", r"\s", r"\b", r"\."];
    let found = [pattern.starts_with('^').then_some("^"), pattern.ends_with('$').then_some("$")];
    let inside = [".*", ".+", "|"].into_iter().chain(classes).filter(|sign| pattern.contains(*sign));
    let signs: Vec<String> = found.into_iter().flatten().chain(inside).map(|sign| format!("`{sign}`")).collect();
    if signs.is_empty() {
        return None;
    }
    let look = if signs.len() == 1 { "looks" } else { "look" };
    let message =
        format!("in `{key}: {}`, {} {look} like a regular expression", escape_untrusted(pattern), signs.join(", "));
    let glob = pattern.trim_start_matches('^').trim_end_matches('$').replace(".*", "*").replace(".+", "?*");
    let is_plain = !glob.is_empty() && !glob.contains(['\\', '|', '(', ')', '+', '^', '$']);
    Some((
        message,
        match is_plain {
            true => format!("patterns are globs and compare the whole name: write `{}`", escape_untrusted(&glob)),
            false => "patterns are globs and compare the whole name: `*` is any text, `?` any one character, \
                      `{a,b}` either"
                .to_owned(),
        },
    ))
}

/// Warns about a pattern that matches no full tool name, judged by its beginning.
fn half_a_name(pattern: &str) -> Option<MessageAndRemedy> {
    let begin = pattern.split(SIGNS).next().unwrap_or_default();
    let is_whole = begin.len() == pattern.len();
    let fits_prefix = |prefix: &str| match is_whole {
        true => begin.starts_with(prefix),
        false => begin.starts_with(prefix) || prefix.starts_with(begin),
    };
    let fits_builtin = |name: &str| if is_whole { name == begin } else { name.starts_with(begin) };
    let may_fit = PREFIXES.into_iter().any(fits_prefix) || Builtin::ALL.iter().any(|own| fits_builtin(own.name()));
    if may_fit {
        return None;
    }
    let has_arguments = pattern.contains('(');
    let pattern = escape_untrusted(pattern);
    let remedy = match has_arguments {
        true => {
            "to match arguments, write `command` or `when`; `toolgate policy import` translates permissions of Claude \
                 Code and codex"
                .to_owned()
        }
        false => format!("write `tool_name: {pattern}`, or `tool: mcp_SERVER_{pattern}`"),
    };
    Some((format!("`tool: {pattern}` is not a full name and matches no tool"), remedy))
}

/// Warns about a condition that is constant, or that may not be a boolean.
fn idle_condition(when: &str, outlook: Outlook) -> Option<MessageAndRemedy> {
    let when = escape_untrusted(when);
    match outlook {
        Outlook::Open => None,
        Outlook::Constant => Some((
            format!("`when: {when}` is the same for every call"),
            "say what the arguments have to be, or remove `when`".to_owned(),
        )),
        Outlook::Unknown => Some((
            format!(
                "`when: {when}` is a boolean only if the value itself is `true` or `false`; otherwise the call requires approval"
            ),
            format!("compare it (`{when} == …`), or add an example that matches"),
        )),
    }
}

/// The `allow` rules that match a part of the model's tool name, which joins the server id and the tool name.
pub fn matches_any_server(policy: &Policy) -> Vec<&str> {
    let crosses = |rule: &&Rule| {
        let wanted = rule.conditions();
        let by_part = wanted.tool.as_ref().is_some_and(|tool| tool.contains('*') && tool != "*" && tool != "ext_*");
        let is_bound =
            wanted.server.is_some() || wanted.tool_name.is_some() || wanted.origin.as_deref() == Some("external");
        rule.verdict == Verdict::Allow && by_part && !is_bound
    };
    policy.rules.iter().filter(crosses).map(|rule| rule.id.as_str()).collect()
}

/// The number of examples of all rules.
pub fn count_examples(policy: &Policy) -> usize {
    policy.rules.iter().map(all_examples).sum()
}

fn all_examples(rule: &Rule) -> usize {
    let (good, bad) = rule.examples();
    good.len() + bad.len()
}

/// The rules without an example.
pub fn examples_missing(policy: &Policy) -> Vec<&str> {
    policy.rules.iter().filter(|rule| all_examples(rule) == 0).map(|rule| rule.id.as_str()).collect()
}
