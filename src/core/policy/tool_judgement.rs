//! Judgement of a tool for people, before any call is known: which verdict its calls get, or that it depends on their
//! arguments. A rule that can match no call of the tool does not count.

use serde_json::{Map, Value};

use super::{Condition, Finding, Judgement, Policy, Rule, Subject, Verdict};
use crate::tool::Tool;

/// A judgement of all calls of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolJudgement {
    pub judgement: Judgement,
    /// Whether calls get another verdict with other arguments.
    pub depends_on_arguments: bool,
}

impl Policy {
    /// Judges a tool by the arguments that its calls may have.
    pub fn judge_tool(&self, subject: &Subject<'_>) -> ToolJudgement {
        let rules = self.rules.iter().filter(|rule| !rule.matches_no_call(subject)).cloned().collect();
        let policy = Self { rules, ..self.clone() };
        let mut waiting = policy.rules.iter().filter(|rule| rule.examine(subject) == Finding::Depends);
        if waiting.clone().all(|rule| !rule.depends_on_arguments_of(subject.tool)) {
            let judgement = policy.judge(&Subject { arguments: Some(&Map::new()), ..*subject });
            return ToolJudgement { judgement, depends_on_arguments: false };
        }
        let judgement = policy.judge(subject);
        let depends_on_arguments =
            judgement.verdict == Verdict::Ask && waiting.any(|rule| judgement.rule.as_ref() == Some(&rule.id));
        ToolJudgement { judgement, depends_on_arguments }
    }
}

impl Rule {
    /// Whether it matches no call of the tool. An argument that the tool does not declare may still be in a call, unless the
    /// schema excludes it: a rule that would allow such a call counts.
    fn matches_no_call(&self, subject: &Subject<'_>) -> bool {
        let tool = subject.tool;
        let mut names = [Some(&tool.name), tool.own_name.as_ref()].into_iter().flatten();
        if self.when().is_some_and(|when| names.all(|name| when.is_false_for(subject, name))) {
            return true;
        }
        let without_arguments = || self.examine(&Subject { arguments: Some(&Map::new()), ..*subject });
        (is_closed(tool) || self.verdict != Verdict::Allow)
            && !self.reads_argument_of(tool)
            && matches!(without_arguments(), Finding::Misses(_))
    }

    /// Whether the result depends on an argument that calls of the tool may have.
    fn depends_on_arguments_of(&self, tool: &Tool) -> bool {
        let reads_any = self.when().is_some_and(Condition::reads_any) || self.conditions().command.is_some();
        self.reads_argument_of(tool) || (reads_any && !is_closed(tool))
    }

    /// Whether the result depends on an argument that the tool declares.
    fn reads_argument_of(&self, tool: &Tool) -> bool {
        let reads = |argument: &String| {
            self.when().is_some_and(|when| when.reads(argument))
                || self.conditions().command.as_ref().is_some_and(|command| command.reads(argument))
        };
        let declared = tool.input_schema.get("properties").and_then(Value::as_object);
        // References and combinations may declare more than `properties` shows.
        let is_plain = FURTHER_ARGUMENTS.iter().all(|keyword| tool.input_schema.get(keyword).is_none());
        self.limit().is_some() || !is_plain || declared.into_iter().flat_map(Map::keys).any(reads)
    }
}

/// Keywords that may declare further arguments.
const FURTHER_ARGUMENTS: [&str; 7] = ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"];

/// Whether the schema excludes arguments that it does not declare.
fn is_closed(tool: &Tool) -> bool {
    tool.input_schema.get("additionalProperties") == Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::policy::{Condition, Example, Match};

    /// The verdict on calls of `refund`, which declares `amount`, by a policy that otherwise allows.
    fn listed(verdict: Verdict, when: &str, closed: bool) -> &'static str {
        let schema = json!({"properties": {"amount": {}}, "additionalProperties": !closed});
        let example = Example { server: Some("shop".into()), tool: "refund".into(), ..Example::default() };
        let tool = Tool { input_schema: Arc::new(schema), ..example.tool() };
        let matches = Match { server: Some("shop".into()), ..Match::default() };
        let rule = Rule::new("r", verdict, "", matches, vec![], vec![]).unwrap();
        let rule = rule.with_condition(Condition::parse(when).unwrap());
        let fallback = if verdict == Verdict::Allow { Verdict::Ask } else { Verdict::Allow };
        let policy = Policy { rules: vec![rule], fallback, ..Policy::ask_always() };
        let judged = policy.judge_tool(&Subject { tool: &tool, agent: None, principal: None, arguments: None });
        if judged.depends_on_arguments { "depends" } else { judged.judgement.verdict.as_str() }
    }

    #[test]
    fn a_rule_counts_only_if_it_can_match_a_call_of_the_tool() {
        for (verdict, when, open, closed) in [
            (Verdict::Ask, "args.amount > 100", "depends", "depends"),
            (Verdict::Ask, "tool == 'mcp_shop_pay' && args.amount > 100", "allow", "allow"),
            (Verdict::Ask, "has(args.force) && args.force", "allow", "allow"),
            (Verdict::Ask, "args.force", "depends", "ask"),
            (Verdict::Deny, "size(args) > 3", "depends", "depends"),
            (Verdict::Deny, "server == 'shop'", "deny", "deny"),
            (Verdict::Allow, "server == 'shop'", "allow", "allow"),
            (Verdict::Allow, "has(args.dry_run) && args.dry_run", "depends", "ask"),
        ] {
            assert_eq!([listed(verdict, when, false), listed(verdict, when, true)], [open, closed], "{when}");
        }
    }
}
