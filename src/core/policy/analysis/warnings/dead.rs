//! Dead rules: no call matches them, or another rule decides wherever they match.

use std::cmp::Ordering;

use super::warning::{Part, SIGNS, Warning};
use crate::pattern::Pattern;
use crate::policy::{Match, Policy, Rule, Verdict};
use crate::tool::{Builtin, escape_untrusted, mcp_name};

/// Warns about a rule that never decides.
pub(super) fn of_rule(policy: &Policy, position: usize, rule: &Rule) -> Option<Warning> {
    let wanted = rule.conditions();
    contradiction(wanted)
        .or_else(|| untrusted_allowance(rule))
        .map(|(message, remedy)| Warning::new(Part::Match, message, remedy))
        .or_else(|| never_true(rule))
        .or_else(|| covered(policy, position, rule))
}

/// Warns about keys that contradict each other.
fn contradiction(wanted: &Match) -> Option<(String, String)> {
    let one_of_two = || "remove one of the two".to_owned();
    let never = |one: &str, other: &str, why: &str| {
        Some((format!("`{one}` and `{other}` never hold together: {why}"), one_of_two()))
    };
    if let Some(origin) = wanted.origin.as_deref().filter(|origin| *origin != "mcp") {
        let one = format!("origin: {origin}");
        if wanted.server.is_some() {
            return never(&one, "server", "only MCP tools have a server");
        }
        if wanted.trusted == Some(true) {
            return never(&one, "trusted: true", "only MCP tools have a server, which can be trusted");
        }
        if let Some(tool_name) = wanted.tool_name.as_deref().filter(|_| origin == "builtin")
            && let Ok(pattern) = Pattern::parse(tool_name)
            && !Builtin::ALL.iter().any(|own| pattern.fits(own.name()))
        {
            let known: Vec<&str> = Builtin::ALL.iter().map(|own| own.name()).collect();
            let message = format!("no builtin tool fits `tool_name: {}`", escape_untrusted(tool_name));
            return Some((message, format!("builtin tools are {}", known.join(", "))));
        }
    }
    let tool = wanted.tool.as_deref()?;
    let is_from = |prefix: &str| tool.starts_with(prefix);
    let shown = format!("tool: {}", escape_untrusted(tool));
    match wanted.origin.as_deref() {
        Some("mcp") if is_from("ext_") => {
            return never(&shown, "origin: mcp", "`ext_…` is the name of an external tool");
        }
        Some(origin) if origin != "mcp" && is_from("mcp_") => {
            return never(&shown, &format!("origin: {origin}"), "`mcp_…` is the name of an MCP tool");
        }
        Some(_) | None => {}
    }
    let server = wanted.server.as_deref()?;
    if is_from("ext_") {
        return never(&shown, "server", "`ext_…` is the name of an external tool, which has no server");
    }
    let prefix = mcp_name(&server.into(), "x").to_string();
    let prefix = prefix.strip_suffix('x').unwrap_or(&prefix);
    let other_server = is_literal(tool) && is_literal(server) && is_from("mcp_") && !is_from(prefix);
    other_server
        .then(|| (format!("`{shown}` is no tool of the server `{}`", escape_untrusted(server)), one_of_two()))
        .filter(|_| {
            // A name that is too long is shortened and then does not contain the server id.
            tool.len() < 60
        })
}

/// Warns about an `allow` rule that matches hints of tools without trusted hints.
fn untrusted_allowance(rule: &Rule) -> Option<(String, String)> {
    let Match { read_only, destructive, idempotent, open_world, origin, trusted, .. } = rule.conditions();
    let wants_hint = [read_only, destructive, idempotent, open_world].into_iter().any(Option::is_some);
    let is_without_trust = *trusted == Some(false) || origin.as_deref().is_some_and(|origin| origin != "mcp");
    if rule.verdict != Verdict::Allow || !wants_hint || !is_without_trust {
        return None;
    }
    let message = "it never matches: a hint allows only tools of trusted servers, and the rule excludes them";
    Some((message.to_owned(), "remove the hint, or what excludes trusted servers".to_owned()))
}

fn never_true(rule: &Rule) -> Option<Warning> {
    let when = rule.when()?;
    let why = when.why_never()?;
    let message = format!("it never matches: of `when: {}`, {why}", escape_untrusted(when.text()));
    Some(Warning::new(Part::When, message, "correct the condition, or remove the rule"))
}

/// Warns about a rule that is shadowed by a stricter rule, or by an equally strict rule before it.
fn covered(policy: &Policy, position: usize, rule: &Rule) -> Option<Warning> {
    let decides = |(other_position, other): &(usize, &Rule)| {
        let is_limited = rule.limit().is_some() && other.verdict == rule.verdict;
        let goes_first = match policy.strictness(other).cmp(&policy.strictness(rule)) {
            Ordering::Greater => true,
            // Every limit counts, whichever rule decides.
            Ordering::Equal => *other_position < position && !is_limited,
            Ordering::Less => false,
        };
        *other_position != position && goes_first && covers(other, rule)
    };
    let (_, other) = policy.rules.iter().enumerate().find(decides)?;
    let is_stricter = policy.strictness(other) > policy.strictness(rule);
    let is_same = other.conditions() == rule.conditions() && !is_stricter;
    let message = match is_same {
        true => format!("it duplicates rule `{}`, which comes before it and decides", other.id),
        false => format!(
            "it never decides: rule `{}`, which {}, matches all of its calls",
            other.id,
            if is_stricter { "is stricter" } else { "comes before it" }
        ),
    };
    Some(Warning::new(Part::Whole, message, "remove it, or narrow the other rule"))
}

/// Whether a rule matches every call that the other one matches.
fn covers(wide: &Rule, narrow: &Rule) -> bool {
    let (w, n) = (wide.conditions(), narrow.conditions());
    let patterns = [
        (&w.tool, &n.tool),
        (&w.tool_name, &n.tool_name),
        (&w.server, &n.server),
        (&w.agent, &n.agent),
        (&w.principal, &n.principal),
    ];
    let same_condition = match (wide.when(), narrow.when()) {
        (None, _) => true,
        (Some(wide), Some(narrow)) => wide.text() == narrow.text(),
        (Some(_), None) => false,
    };
    let hints = |wanted: &Match| [wanted.read_only, wanted.destructive, wanted.idempotent, wanted.open_world];
    // `allow` rules compare hints differently.
    let is_compared_alike = wide.verdict == narrow.verdict || hints(w).iter().all(Option::is_none);
    let is_command_covered = w.command.is_none() || (w.command == n.command && wide.verdict == narrow.verdict);
    // Every tool has a name, but not every call has a server, an agent or a principal.
    let is_any_name = |wide: &Option<String>| wide.as_deref().is_some_and(is_anything);
    let [by_tool, by_named, others @ ..] = patterns;
    let names = [by_tool, by_named].into_iter();
    names.into_iter().all(|(wide, narrow)| is_any_name(wide) || pattern_covers(wide.as_deref(), narrow.as_deref()))
        && others.into_iter().all(|(wide, narrow)| pattern_covers(wide.as_deref(), narrow.as_deref()))
        && same_condition
        && is_compared_alike
        && is_command_covered
        && !wide.allows_names_of_any_server()
        && (w.origin.is_none() || w.origin == n.origin)
        && (w.trusted.is_none() || w.trusted == n.trusted)
        && hints(w).into_iter().zip(hints(n)).all(|(wide, narrow)| wide.is_none() || wide == narrow)
}

fn pattern_covers(wide: Option<&str>, narrow: Option<&str>) -> bool {
    match (wide, narrow) {
        (None, _) => true,
        (Some(wide), narrow) if narrow == Some(wide) => true,
        (Some(wide), Some(narrow)) => {
            let fits = |pattern: Pattern| pattern.fits(narrow);
            is_anything(wide) || (is_literal(narrow) && Pattern::parse(wide).is_ok_and(fits))
        }
        (Some(_), None) => false,
    }
}

fn is_anything(pattern: &str) -> bool {
    pattern.chars().all(|sign| sign == '*')
}

fn is_literal(pattern: &str) -> bool {
    !pattern.contains(SIGNS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{LimitAmount, LimitWindow, RuleLimit};

    /// A rule that allows tools of the shop: all of them, or one.
    fn allowed(id: &str, tool: Option<&str>, is_limited: bool) -> Rule {
        let matches = Match { server: Some("shop".into()), tool_name: tool.map(str::to_owned), ..Match::default() };
        let limit = RuleLimit { per: LimitWindow::Day, max: LimitAmount::ONE, sum: Vec::new() };
        let rule = Rule::new(id, Verdict::Allow, "because", matches, Vec::new(), Vec::new()).unwrap();
        rule.with_limit(is_limited.then_some(limit))
    }

    /// The warning about each rule; empty without one.
    fn warnings(rules: Vec<Rule>) -> Vec<String> {
        let policy = Policy { rules, ..Policy::ask_always() };
        let message = |(position, rule)| {
            covered(&policy, position, rule).map_or(String::new(), |warning| warning.about(rule).message)
        };
        policy.rules.iter().enumerate().map(message).collect()
    }

    #[test]
    fn a_rule_with_a_limit_is_stricter_than_one_without() {
        let all = || allowed("all", None, false);
        assert_eq!(warnings(vec![all(), allowed("small", Some("refund"), true)]), ["", ""]);
        let few = || allowed("few", None, true);
        let dead = "it never decides: rule `few`, which is stricter, matches all of its calls";
        assert_eq!(warnings(vec![all(), few()]), [dead, ""]);
        // Every limit counts, whichever rule is named.
        assert_eq!(warnings(vec![few(), allowed("small", Some("refund"), true)]), ["", ""]);
    }
}
