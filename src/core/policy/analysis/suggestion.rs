//! Rule suggestions: the narrowest rules that cover past approvals, and rules with the conditions under which persons
//! approved later calls as well. They are never applied automatically; the operator
//! reads them and keeps the intended ones.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::decision_history::{Approval, DecisionHistory, ExclusionReason, arguments_hash};
use crate::id::{AgentName, Principal};
use crate::pattern::Pattern;
use crate::policy::{Condition, Example, Subject};
use crate::tool::{Origin, escape_untrusted, external_name, mcp_name};

/// A suggested rule and the approvals that support it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suggestion {
    /// The rule as written in a policy file.
    pub rule: SuggestedRule,
    /// The number of past approvals that the rule would have avoided.
    pub covered: usize,
    /// The rules that required approval. They take precedence over an `allow` rule: while they match, approval is still
    /// required.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub asked_by: BTreeSet<String>,
}

/// A rule of a policy file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuggestedRule {
    pub id: String,
    pub r#match: Value,
    pub when: String,
    pub verdict: &'static str,
    pub reason: String,
    pub examples: Value,
}

/// An approved tool without a suggestion.
#[derive(Debug, PartialEq)]
pub struct SkippedTool<'a> {
    pub origin: &'a Origin,
    pub agent: &'a AgentName,
    pub principal: Option<&'a Principal>,
    /// The number of its approvals.
    pub approvals: usize,
    /// The arguments, if all these approvals have the same.
    pub arguments: Option<&'a Map<String, Value>>,
    pub reason: SkipReason<'a>,
}

/// The reason why an approved tool has no suggestion.
#[derive(Debug, PartialEq)]
pub enum SkipReason<'a> {
    Excluded(&'a ExclusionReason),
    /// This condition of their grants compares commands, which a rule does with `command`. Rules for their arguments may be
    /// suggested.
    ConditionOfCommands(&'a str),
    /// A denied call meets this condition of their grants. Rules for their arguments may be suggested.
    ConditionMetByDenied(&'a str),
    /// Its definition changed between the approvals.
    DefinitionChanged,
    /// Fewer approvals of each call than asked for.
    TooFewApprovals,
    /// No rule can match exactly the approved calls.
    NotExpressible,
}

/// Rules for each tool of each agent (or of `agent`) that never changed, and what is left out: one for each condition that
/// persons gave to a grant at least `at_least` times and that no denied call meets, and one for the other calls that were
/// approved at least `at_least` times and never denied. A denial counts for all agents.
pub fn suggestions<'a>(
    past: &'a DecisionHistory,
    agent: Option<&AgentName>,
    at_least: usize,
) -> (Vec<Suggestion>, Vec<SkippedTool<'a>>) {
    let mut groups: BTreeMap<(&Origin, &AgentName, Option<&Principal>), Vec<&Approval>> = BTreeMap::new();
    let mut definitions: BTreeMap<&Origin, BTreeSet<&str>> = BTreeMap::new();
    for approval in past.approvals.values() {
        let group = (&approval.origin, &approval.agent, approval.principal.as_ref());
        groups.entry(group).or_default().push(approval);
        definitions.entry(&approval.origin).or_default().insert(&approval.definition);
    }
    let is_steady = |origin: &Origin| definitions.get(origin).is_some_and(|hashes| hashes.len() == 1);
    let (mut suggested, mut left_out) = (Vec::<Suggestion>::new(), Vec::new());
    for ((origin, of, principal), mut approvals) in groups {
        if agent.is_some_and(|agent| agent != of) {
            continue;
        }
        let left = |approvals: &[&Approval], arguments, reason| SkippedTool {
            origin,
            agent: of,
            principal,
            approvals: approvals.len(),
            arguments,
            reason,
        };
        let whole_tool = match past.barred.get(origin) {
            Some(excluded) => Some(SkipReason::Excluded(excluded)),
            None => (!is_steady(origin)).then_some(SkipReason::DefinitionChanged),
        };
        if let Some(reason) = whole_tool {
            left_out.push(left(&approvals, None, reason));
            continue;
        }
        let mut conditions: BTreeMap<&str, Vec<&'a Approval>> = BTreeMap::new();
        for approval in &approvals {
            let condition = approval.condition.as_deref().into_iter();
            condition.for_each(|condition| conditions.entry(condition).or_default().push(approval));
        }
        for (condition, given) in conditions.into_iter().filter(|(_, given)| given.len() >= at_least) {
            let Ok(parsed) = Condition::for_grant(condition) else { continue };
            let tool = example_of(origin).tool();
            let meets = |arguments| {
                parsed.holds_for(&Subject { tool: &tool, agent: Some(of), principal, arguments: Some(arguments) })
            };
            let of_tool = past.refused.iter().filter(|((other, _), _)| other == origin);
            if Condition::parse(condition).is_err() {
                left_out.push(left(&given, None, SkipReason::ConditionOfCommands(condition)));
            } else if of_tool.into_iter().any(|(_, refused)| meets(&refused.arguments)) {
                left_out.push(left(&given, None, SkipReason::ConditionMetByDenied(condition)));
            } else if let Some(suggestion) = suggestion(origin, of, principal, &given, Some(condition)) {
                approvals.retain(|approval| !meets(&approval.arguments));
                suggested.push(suggestion);
            }
        }
        let mut calls: BTreeMap<String, Vec<&'a Approval>> = BTreeMap::new();
        for approval in approvals {
            calls.entry(arguments_hash(&approval.arguments)).or_default().push(approval);
        }
        let (mut kept, mut too_few) = (Vec::new(), Vec::new());
        for (hash, same) in calls {
            match past.refused.get(&(origin.clone(), hash)) {
                Some(refused) => {
                    left_out.push(left(&same, arguments_of(&same), SkipReason::Excluded(&refused.reason)));
                }
                None if same.len() < at_least => too_few.extend(same),
                None => kept.extend(same),
            }
        }
        if !too_few.is_empty() {
            left_out.push(left(&too_few, arguments_of(&too_few), SkipReason::TooFewApprovals));
        }
        if !kept.is_empty() {
            match suggestion(origin, of, principal, &kept, None) {
                Some(suggestion) => suggested.push(suggestion),
                None => left_out.push(left(&kept, arguments_of(&kept), SkipReason::NotExpressible)),
            }
        }
    }
    make_ids_unique(&mut suggested);
    (suggested, left_out)
}

/// The arguments that all these approvals have.
fn arguments_of<'a>(approvals: &[&'a Approval]) -> Option<&'a Map<String, Value>> {
    let first = &approvals.first()?.arguments;
    approvals.iter().all(|approval| approval.arguments == *first).then_some(first)
}

/// Makes the rule names unique.
fn make_ids_unique(suggested: &mut [Suggestion]) {
    let mut taken = BTreeMap::<String, usize>::new();
    for suggestion in suggested {
        let times = taken.entry(suggestion.rule.id.clone()).or_default();
        *times += 1;
        if *times > 1 {
            suggestion.rule.id = format!("{}-{times}", suggestion.rule.id);
        }
    }
}

/// The rule for calls that meet this condition, which persons gave with these approvals; without one, for calls with the
/// arguments of these approvals.
fn suggestion(
    origin: &Origin,
    agent: &AgentName,
    principal: Option<&Principal>,
    approvals: &[&Approval],
    given: Option<&str>,
) -> Option<Suggestion> {
    let (mut conditions, tool, name) = match origin {
        Origin::Mcp { server, tool } => {
            let conditions = json!({"server": Pattern::exactly(server.as_str()), "tool_name": Pattern::exactly(tool)});
            (conditions, json!({"server": server, "tool": tool}), mcp_name(server, tool))
        }
        Origin::External { tool } => {
            let conditions = json!({"origin": "external", "tool_name": Pattern::exactly(tool)});
            (conditions, json!({"tool": tool}), external_name(tool))
        }
        Origin::Builtin { .. } => return None,
    };
    let seen: BTreeMap<String, &Map<String, Value>> =
        approvals.iter().map(|approval| (json!(approval.arguments).to_string(), &approval.arguments)).collect();
    let when = given.map_or_else(|| same_arguments(seen.keys()), |given| format!("({given})"));
    // Only for runs without a principal if these runs had none.
    let when = if principal.is_some() { when } else { format!("principal == null && {when}") };
    // Skip calls that no condition can express: a looser rule would cover more than was approved.
    Condition::parse(&when).ok()?;
    let who = [("agent", Some(agent.as_str())), ("principal", principal.map(|principal| principal.as_str()))];
    let who = || who.into_iter().filter_map(|(key, who)| who.map(|who| (key.to_owned(), who)));
    conditions.as_object_mut()?.extend(who().map(|(key, who)| (key, json!(Pattern::exactly(who)))));
    let fits_nothing = |pattern: &Value| pattern.as_str().is_some_and(|pattern| Pattern::parse(pattern).is_err());
    if conditions.as_object()?.values().any(fits_nothing) {
        return None;
    }
    let example = |arguments: &Map<String, Value>| {
        let mut example = tool.clone();
        example.as_object_mut()?.extend(who().map(|(key, who)| (key, json!(who))));
        example.as_object_mut()?.insert("arguments".to_owned(), json!(arguments));
        Some(example)
    };
    let examples: Option<Vec<Value>> = seen.values().map(|arguments| example(arguments)).collect();
    let by: BTreeSet<String> = approvals.iter().map(|approval| escape_untrusted(&approval.by)).collect();
    let by = by.into_iter().collect::<Vec<_>>().join(", ");
    let times = if let [_] = approvals { "1 time".to_owned() } else { format!("{} times", approvals.len()) };
    let reason = match given {
        None => format!("Approved {times} by {by} and never denied."),
        Some(_) => format!("Approved {times} by {by}, with later calls that meet this condition."),
    };
    Some(Suggestion {
        rule: SuggestedRule {
            id: format!("approved-{}", name.as_str().to_ascii_lowercase().replace('_', "-")),
            r#match: conditions,
            when,
            verdict: "allow",
            reason,
            examples: json!({"match": examples?}),
        },
        covered: approvals.len(),
        asked_by: approvals.iter().filter_map(|approval| approval.rule.clone()).collect(),
    })
}

/// A CEL condition that holds for exactly these arguments. JSON is a valid CEL expression.
fn same_arguments<'a>(seen: impl Iterator<Item = &'a String>) -> String {
    let seen: Vec<&str> = seen.map(String::as_str).collect();
    match &seen[..] {
        [only] => format!("args == {only}"),
        several => format!("args in [{}]", several.join(", ")),
    }
}

/// A tool of this origin, for the evaluation of a condition.
fn example_of(origin: &Origin) -> Example {
    match origin {
        Origin::Mcp { server, tool } => {
            Example { server: Some(server.to_string()), tool: tool.clone(), ..Example::default() }
        }
        Origin::External { tool } | Origin::Builtin { tool } => Example { tool: tool.clone(), ..Example::default() },
    }
}
