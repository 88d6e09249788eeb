//! Rule suggestions: the narrowest rules that cover past approvals. They are never applied automatically; the operator
//! reads them and keeps the intended ones.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::decision_history::{Approval, DecisionHistory, ExclusionReason, arguments_hash};
use crate::id::{AgentName, Principal};
use crate::pattern::Pattern;
use crate::policy::Condition;
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
    /// Its definition changed between the approvals.
    DefinitionChanged,
    /// Fewer approvals of each call than asked for.
    TooFewApprovals,
    /// No rule can match exactly the approved calls.
    NotExpressible,
}

/// One rule for each tool of each agent (or of `agent`) that never changed, for its calls that were approved at least
/// `at_least` times and never denied; and what is left out. A denial counts for all agents.
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
    for ((origin, of, principal), approvals) in groups {
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
        let mut calls: BTreeMap<String, Vec<&'a Approval>> = BTreeMap::new();
        for approval in approvals {
            calls.entry(arguments_hash(&approval.arguments)).or_default().push(approval);
        }
        let (mut kept, mut too_few) = (Vec::new(), Vec::new());
        for (hash, same) in calls {
            match past.refused.get(&(origin.clone(), hash)) {
                Some(reason) => left_out.push(left(&same, arguments_of(&same), SkipReason::Excluded(reason))),
                None if same.len() < at_least => too_few.extend(same),
                None => kept.extend(same),
            }
        }
        if !too_few.is_empty() {
            left_out.push(left(&too_few, arguments_of(&too_few), SkipReason::TooFewApprovals));
        }
        if !kept.is_empty() {
            match suggestion(origin, of, principal, &kept) {
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

fn suggestion(
    origin: &Origin,
    agent: &AgentName,
    principal: Option<&Principal>,
    approvals: &[&Approval],
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
    let when = condition(principal, seen.keys());
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
    Some(Suggestion {
        rule: SuggestedRule {
            id: format!("approved-{}", name.as_str().to_ascii_lowercase().replace('_', "-")),
            r#match: conditions,
            when,
            verdict: "allow",
            reason: format!("Approved {times} by {by} and never denied."),
            examples: json!({"match": examples?}),
        },
        covered: approvals.len(),
        asked_by: approvals.iter().filter_map(|approval| approval.rule.clone()).collect(),
    })
}

/// A CEL condition that holds for exactly these arguments, and only for runs without a principal if these runs had
/// none. JSON is a valid CEL expression.
fn condition<'a>(principal: Option<&Principal>, seen: impl Iterator<Item = &'a String>) -> String {
    let seen: Vec<&str> = seen.map(String::as_str).collect();
    let same = match &seen[..] {
        [only] => format!("args == {only}"),
        several => format!("args in [{}]", several.join(", ")),
    };
    if principal.is_some() { same } else { format!("principal == null && {same}") }
}
