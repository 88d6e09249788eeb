//! Rules that can be read and hardly mean what they say: a regular expression where a pattern is asked for, a tool by half
//! its name, a condition that is none. A denial of that kind denies nothing, and nobody is told.
//!
//! They are warned of and not refused, for each of them can be meant. An example that the rule matches proves that it is.

use serde::Serialize;

use crate::core::policy::{Match, Outlook, Policy, Rule};
use crate::core::tool::{Builtin, visible};

/// What else stands at the beginning of a name the model sees.
const PREFIXES: [&str; 2] = ["mcp_", "ext_"];

/// What has a meaning of its own in a pattern.
const SIGNS: [char; 5] = ['*', '?', '[', '{', '\\'];

/// A rule that hardly means what it says.
#[derive(Debug, Serialize)]
pub(super) struct Doubt<'a> {
    rule: &'a str,
    /// What looks wrong.
    message: String,
    /// What to write.
    remedy: String,
}

impl Doubt<'_> {
    pub(super) fn in_words(&self) -> String {
        format!("rule `{}`: {} ({})", self.rule, self.message, self.remedy)
    }
}

/// What is doubtful in a policy, rule by rule.
pub(super) fn doubts(policy: &Policy) -> Vec<Doubt<'_>> {
    let unproven = policy.rules.iter().filter(|rule| rule.examples().0.is_empty());
    let doubt = |rule| of_rule(rule).into_iter().map(|(message, remedy)| Doubt { rule: &rule.id, message, remedy });
    unproven.flat_map(doubt).collect()
}

/// What is said, and the remedy.
type Said = (String, String);

fn of_rule(rule: &Rule) -> Vec<Said> {
    let wanted = rule.conditions();
    let Match { tool, named, server, agent, principal, .. } = wanted;
    let patterns = [("tool", tool), ("named", named), ("server", server), ("agent", agent), ("principal", principal)];
    let patterns = patterns.into_iter().filter_map(|(key, pattern)| pattern.as_deref().map(|pattern| (key, pattern)));
    let mut said: Vec<Said> = patterns.filter_map(|(key, pattern)| regular_expression(key, pattern)).collect();
    if said.is_empty() {
        said.extend(tool.as_deref().and_then(half_a_name));
    }
    said.extend(contradiction(wanted));
    said.extend(rule.when().and_then(|when| idle(when.text(), when.outlook())));
    said
}

fn regular_expression(key: &str, pattern: &str) -> Option<Said> {
    let classes = [r"\d", r"\w", r"\s", r"\b", r"\."];
    let found = [pattern.starts_with('^').then_some("^"), pattern.ends_with('$').then_some("$")];
    let inside = [".*", ".+", "|"].into_iter().chain(classes).filter(|sign| pattern.contains(*sign));
    let signs: Vec<String> = found.into_iter().flatten().chain(inside).map(|sign| format!("`{sign}`")).collect();
    if signs.is_empty() {
        return None;
    }
    let look = if signs.len() == 1 { "looks" } else { "look" };
    let message = format!("in `{key}: {}`, {} {look} like a regular expression", visible(pattern), signs.join(", "));
    let glob = pattern.trim_start_matches('^').trim_end_matches('$').replace(".*", "*").replace(".+", "?*");
    let is_plain = !glob.is_empty() && !glob.contains(['\\', '|', '(', ')', '+', '^', '$']);
    Some((
        message,
        match is_plain {
            true => format!("patterns are globs and compare the whole name: write `{}`", visible(&glob)),
            false => "patterns are globs and compare the whole name: `*` is any text, `?` any one character, \
                      `{a,b}` either"
                .to_owned(),
        },
    ))
}

/// A pattern of the whole name that no whole name fits, as far as its beginning tells.
fn half_a_name(pattern: &str) -> Option<Said> {
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
    let pattern = visible(pattern);
    let remedy = format!("write `named: {pattern}`, or `tool: mcp_SERVER_{pattern}`");
    Some((format!("`tool: {pattern}` is no full name, and no tool is called so"), remedy))
}

/// What is asked for together and is never together.
fn contradiction(wanted: &Match) -> Option<Said> {
    let origin = wanted.origin.as_deref().filter(|origin| *origin != "mcp")?;
    wanted.server.as_ref()?;
    let message = format!("`origin: {origin}` and `server` never hold together: only MCP tools have a server");
    Some((message, "remove one of the two".to_owned()))
}

/// A condition that does not look at the call, or says nothing of it.
fn idle(when: &str, outlook: Outlook) -> Option<Said> {
    let when = visible(when);
    match outlook {
        Outlook::Open => None,
        Outlook::Constant => Some((
            format!("`when: {when}` says the same of every call"),
            "say what the arguments have to be, or remove `when`".to_owned(),
        )),
        Outlook::Unknown => Some((
            format!(
                "`when: {when}` is yes or no only where the value itself is `true` or `false`; else the call is asked about"
            ),
            format!("compare it (`{when} == …`), or add an example that matches"),
        )),
    }
}
