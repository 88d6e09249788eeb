//! The narrowest rules that cover past approvals. Suggested, never applied: a person reads them and keeps what they mean.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::past::{Approval, Past};
use crate::cli::text::{count, list};
use crate::core::id::{AgentName, Principal};
use crate::core::tool::{Origin, external_name, mcp_name, visible};

/// Policy files take no longer one.
const LONGEST_CONDITION: usize = 2_000;

/// A rule, and what speaks for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Suggestion {
    /// The rule as a policy file has it.
    pub(super) rule: Suggested,
    /// How many past approvals it would have made unnecessary.
    pub(super) covers: usize,
    /// The rules that asked. They are stricter than a rule that allows: while they match, they still ask.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) asked_by: BTreeSet<String>,
}

/// A rule of a policy file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Suggested {
    id: String,
    r#match: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    when: Option<String>,
    verdict: &'static str,
    justification: String,
    examples: Value,
}

/// A rule for each tool of each agent that was approved at least so often, never refused, and never changed.
pub(super) fn suggestions(past: &Past, at_least: usize) -> Vec<Suggestion> {
    let mut groups: BTreeMap<(&Origin, &AgentName, Option<&Principal>), Vec<&Approval>> = BTreeMap::new();
    let mut definitions: BTreeMap<&Origin, BTreeSet<&str>> = BTreeMap::new();
    for approval in past.approvals.values() {
        let group = (&approval.origin, &approval.agent, approval.principal.as_ref());
        groups.entry(group).or_default().push(approval);
        definitions.entry(&approval.origin).or_default().insert(&approval.definition);
    }
    let is_steady = |origin: &Origin| definitions.get(origin).is_some_and(|hashes| hashes.len() == 1);
    let wanted = groups.into_iter().filter(|((origin, ..), approvals)| {
        approvals.len() >= at_least && is_steady(origin) && !past.barred.contains(*origin)
    });
    let suggested =
        wanted.filter_map(|((origin, agent, principal), approvals)| suggestion(origin, agent, principal, &approvals));
    let mut suggested: Vec<Suggestion> = suggested.collect();
    let mut taken = BTreeMap::<String, usize>::new();
    for suggestion in &mut suggested {
        let times = taken.entry(suggestion.rule.id.clone()).or_default();
        *times += 1;
        if *times > 1 {
            suggestion.rule.id = format!("{}-{times}", suggestion.rule.id);
        }
    }
    suggested
}

fn suggestion(
    origin: &Origin,
    agent: &AgentName,
    principal: Option<&Principal>,
    approvals: &[&Approval],
) -> Option<Suggestion> {
    let (mut conditions, mut example, name) = match origin {
        Origin::Mcp { server, tool } => {
            let conditions = json!({"server": server, "tool": mcp_name(server, tool)});
            (conditions, json!({"server": server, "tool": tool}), mcp_name(server, tool))
        }
        Origin::External { tool } => {
            let conditions = json!({"origin": "external", "tool": external_name(tool)});
            (conditions, json!({"tool": tool}), external_name(tool))
        }
        Origin::Builtin { .. } => return None,
    };
    let when = condition(approvals);
    // A rule that cannot say what was the same would cover more than was approved.
    if when.as_ref().is_some_and(|when| when.len() > LONGEST_CONDITION) {
        return None;
    }
    for side in [&mut conditions, &mut example].into_iter().filter_map(Value::as_object_mut) {
        side.insert("agent".into(), json!(agent));
        side.extend(principal.map(|principal| ("principal".to_owned(), json!(principal))));
    }
    let arguments = approvals.iter().find_map(|approval| approval.arguments.as_ref()).filter(|_| when.is_some());
    if let (Some(example), Some(arguments)) = (example.as_object_mut(), arguments) {
        example.insert("arguments".into(), arguments.to_value());
    }
    let by: BTreeSet<String> = approvals.iter().map(|approval| visible(&approval.by)).collect();
    let times = count(approvals.len(), "time");
    Some(Suggestion {
        rule: Suggested {
            id: format!("approved-{}", name.as_str().to_ascii_lowercase().replace('_', "-")),
            r#match: conditions,
            when,
            verdict: "allow",
            justification: format!("Approved {times} by {} and never denied.", list(by)),
            examples: json!({"match": [example]}),
        },
        covers: approvals.len(),
        asked_by: approvals.iter().filter_map(|approval| approval.rule.clone()).collect(),
    })
}

/// What all the calls have in common, as a condition (CEL) on `args`: the values that were always the same, and that there
/// was nothing besides what was seen. `None` when no value was always the same, or not all arguments are known.
fn condition(approvals: &[&Approval]) -> Option<String> {
    let arguments: Option<Vec<&Map<String, Value>>> =
        approvals.iter().map(|approval| approval.arguments.as_ref()?.as_object()).collect();
    let arguments = arguments?;
    let (first, others) = arguments.split_first()?;
    let names: BTreeSet<&String> = arguments.iter().flat_map(|arguments| arguments.keys()).collect();
    let constant = first.iter().filter(|(name, value)| others.iter().all(|other| other.get(*name) == Some(value)));
    let mut terms: Vec<String> = constant.map(|(name, value)| format!("{} == {value}", member(name))).collect();
    if terms.is_empty() {
        return None;
    }
    let known: Vec<Value> = names.into_iter().map(|name| json!(name)).collect();
    terms.push(format!("args.all(name, name in {})", Value::Array(known)));
    Some(terms.join(" && "))
}

fn member(name: &str) -> String {
    let mut letters = name.chars();
    let starts = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let is_plain = starts && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain { format!("args.{name}") } else { format!("args[{}]", json!(name)) }
}

impl Suggestion {
    /// The rule as lines of a policy file. JSON is YAML, so nothing in a name or a value can leave its place.
    pub(super) fn yaml(&self) -> Vec<String> {
        let Suggested { id, r#match, when, verdict, justification, examples } = &self.rule;
        let mut lines = vec![format!("  # would have covered {}", count(self.covers, "past approval"))];
        lines.extend((!self.asked_by.is_empty()).then(|| {
            let rules = list(self.asked_by.iter().map(|rule| visible(rule)));
            format!("  # asked about by {rules}, which is stricter and goes on asking: narrow that rule as well")
        }));
        lines.push(format!("  - id: {}", json!(id)));
        lines.push(format!("    match: {conditions}", conditions = r#match));
        lines.extend(when.iter().map(|when| format!("    when: {}", json!(when))));
        lines.push(format!("    verdict: {verdict}"));
        lines.push(format!("    justification: {}", json!(justification)));
        lines.push(format!("    examples: {examples}"));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::{CallId, RunId};
    use crate::core::tool::Arguments;

    fn approved(call: &str, tool: &str, definition: &str, arguments: Option<Value>) -> ((RunId, CallId), Approval) {
        let approval = Approval {
            agent: "desk".into(),
            principal: None,
            origin: Origin::Mcp { server: "shop".into(), tool: tool.into() },
            definition: definition.into(),
            arguments: arguments.map(Arguments::from_value),
            rule: None,
            by: "kim".into(),
        };
        (("run_1".into(), call.into()), approval)
    }

    fn past<const N: usize>(approvals: [((RunId, CallId), Approval); N]) -> Past {
        Past { approvals: approvals.into(), barred: BTreeSet::new() }
    }

    fn note(call: &str, customer: &str, text: &str) -> ((RunId, CallId), Approval) {
        approved(call, "add_note", "d", Some(json!({"customer": customer, "text": text})))
    }

    #[test]
    fn values_that_were_always_the_same_become_a_condition_and_nothing_unseen_passes() {
        let suggested = suggestions(&past([note("a", "C-1", "late"), note("b", "C-1", "lost")]), 2);
        let [Suggestion { rule, covers: 2, .. }] = &suggested[..] else { panic!("{suggested:?}") };
        let when = r#"args.customer == "C-1" && args.all(name, name in ["customer","text"])"#;
        assert_eq!(rule.when.as_deref(), Some(when));
        assert_eq!(rule.r#match, json!({"server": "shop", "tool": "mcp_shop_add_note", "agent": "desk"}));
        let example = json!({"server": "shop", "tool": "add_note", "agent": "desk",
                             "arguments": {"customer": "C-1", "text": "late"}});
        assert_eq!(rule.examples, json!({"match": [example]}));
    }

    #[test]
    fn calls_with_nothing_in_common_make_a_rule_for_the_tool_of_that_agent_alone() {
        let suggested = suggestions(&past([note("a", "C-1", "late"), note("b", "C-2", "lost")]), 2);
        assert_eq!((suggested.len(), suggested[0].rule.when.as_deref()), (1, None));
    }

    #[test]
    fn what_was_refused_changed_or_approved_too_seldom_is_not_suggested() {
        let twice = || [note("a", "C-1", "x"), note("b", "C-1", "x")];
        assert_eq!(suggestions(&past(twice()), 3), []);
        let mut refused = past(twice());
        refused.barred.insert(Origin::Mcp { server: "shop".into(), tool: "add_note".into() });
        assert_eq!(suggestions(&refused, 1), []);
        let changed = past([note("a", "C-1", "x"), approved("b", "add_note", "other", Some(json!({})))]);
        assert_eq!(suggestions(&changed, 1), []);
    }

    #[test]
    fn unknown_arguments_make_no_condition() {
        let suggested = suggestions(&past([note("a", "C-1", "x"), approved("b", "add_note", "d", None)]), 2);
        assert_eq!(suggested[0].rule.when, None);
    }

    #[test]
    fn what_no_condition_could_say_is_not_suggested_at_all() {
        let long = "x".repeat(3_000);
        assert_eq!(suggestions(&past([note("a", "C-1", &long), note("b", "C-1", &long)]), 2), []);
    }

    #[test]
    fn odd_names_of_arguments_stay_in_their_place() {
        assert_eq!(member("a_1"), "args.a_1");
        assert_eq!(member("a-b"), "args[\"a-b\"]");
        assert_eq!(member("a\" || true"), "args[\"a\\\" || true\"]");
    }
}
