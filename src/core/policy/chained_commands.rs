//! Chained commands: a call whose command no rule matches as a whole is allowed if a rule allows each of its parts.
//!
//! Rules that ask or deny look into the parts of a command themselves, so that only a call about which no rule says anything
//! comes here. A part that changes how another one runs is not allowed (`command::chain`).

use std::collections::BTreeSet;

use super::condition::Facts;
use super::{CommandPattern, Judgement, Policy, Rule, Verdict};

impl Policy {
    /// The judgement that allows a chained command, or `None` if a part is not plain or no rule allows it.
    pub(super) fn allow_parts(&self, facts: &Facts<'_>) -> Option<Judgement> {
        let patterns: Vec<(&Rule, &CommandPattern)> =
            self.rules.iter().filter_map(|rule| Some((rule, rule.allows_parts(facts)?))).collect();
        let read: BTreeSet<&Option<String>> = patterns.iter().map(|(_, pattern)| &pattern.argument).collect();
        let rules = read.into_iter().find_map(|argument| {
            let (_, pattern) = patterns.iter().find(|(_, pattern)| pattern.argument == *argument)?;
            let parts = pattern.independent_parts(facts.subject.arguments?).ok()?;
            let rule_of = |(index, words): (usize, &Vec<String>)| {
                let allows = |(_, pattern): &&(&Rule, &CommandPattern)| {
                    pattern.argument == *argument && pattern.covers_part(index, words)
                };
                patterns.iter().find(allows).map(|(rule, _)| *rule)
            };
            parts.iter().enumerate().map(rule_of).collect::<Option<Vec<&Rule>>>()
        })?;
        let first = rules.first()?;
        let names: BTreeSet<String> = rules.iter().map(|rule| format!("`{}`", rule.id)).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        Some(self.judgement(first, Verdict::Allow, format!("each part of the command is allowed, by {names}")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy::{Condition, Example, FollowingWords, LimitAmount, LimitWindow, Match, RuleLimit, Subject};

    fn rule(verdict: Verdict, words: &[&str], rest: FollowingWords) -> Rule {
        let words: Vec<Vec<String>> = words.iter().map(|word| vec![(*word).to_owned()]).collect();
        let id = format!("{}-{}", verdict.as_str(), words.concat().join("-"));
        let command = CommandPattern { argument: None, words, rest };
        let matches = Match { server: Some("shell".into()), command: Some(command), ..Match::default() };
        Rule::new(&id, verdict, "Because.", matches, vec![], vec![]).unwrap()
    }

    fn allow(words: &[&str]) -> Rule {
        rule(Verdict::Allow, words, FollowingWords::Any)
    }

    fn judged(policy: &Policy, arguments: &serde_json::Value) -> Judgement {
        let tool = Example { server: Some("shell".into()), tool: "run".into(), ..Example::default() }.tool();
        policy.judge(&Subject { tool: &tool, agent: None, principal: None, arguments: arguments.as_object() })
    }

    fn policy() -> Policy {
        let rules = vec![
            allow(&["git", "diff"]),
            allow(&["head"]),
            allow(&["cd", "app"]),
            allow(&["python3"]),
            allow(&["export"]),
            allow(&["sh"]),
            rule(Verdict::Allow, &["npm", "test"], FollowingWords::Nothing),
            rule(Verdict::Deny, &["rm"], FollowingWords::Any),
            rule(Verdict::Ask, &["git", "push"], FollowingWords::Any),
        ];
        Policy { rules, ..Policy::ask_always() }
    }

    #[test]
    fn a_chained_command_is_judged_by_its_parts() {
        for (command, verdict) in [
            ("cd app && git diff", Verdict::Allow),
            ("git diff | head -50", Verdict::Allow),
            ("git diff 2>&1", Verdict::Allow),
            ("npm test 2>&1 | head -30", Verdict::Allow),
            ("cd app && python3 -m pytest 2>/dev/null", Verdict::Allow),
            ("git diff; rm -rf x", Verdict::Deny),
            ("git diff && git push", Verdict::Ask),
            ("git diff && git log", Verdict::Ask),
            ("git diff && npm test -- --watch", Verdict::Ask),
            ("git diff && git diff --output=x", Verdict::Ask),
            ("git diff > x", Verdict::Ask),
            ("git diff && head $X", Verdict::Ask),
            ("git diff \"$(head x)\"", Verdict::Ask),
            ("git diff & head x", Verdict::Ask),
            ("cd web && git diff", Verdict::Ask),
            ("cd app sub && git diff", Verdict::Ask),
            ("git diff && cd app", Verdict::Ask),
            ("head x | python3", Verdict::Ask),
            ("head x && sh build.sh", Verdict::Ask),
            ("export GIT_EXTERNAL_DIFF=x && git diff", Verdict::Ask),
        ] {
            assert_eq!(judged(&policy(), &json!({ "command": command })).verdict, verdict, "{command}");
        }
        let judgement = judged(&policy(), &json!({"command": "git diff | head"}));
        assert_eq!(judgement.reason, "each part of the command is allowed, by `allow-git-diff`, `allow-head`");
    }

    #[test]
    fn a_part_is_allowed_by_a_rule_that_allows_the_call() {
        let chain = json!({"command": "git diff | head", "timeout": 5});
        let with = |rule: Rule| judged(&Policy { rules: vec![allow(&["head"]), rule], ..policy() }, &chain).verdict;
        let diff = || allow(&["git", "diff"]);
        let when = |text: &str| diff().with_condition(Condition::parse(text).unwrap());
        let limit = RuleLimit { per: LimitWindow::Day, max: LimitAmount::ONE, sum: Vec::new() };
        assert_eq!(with(when("args.timeout < 9")), Verdict::Allow);
        assert_eq!(with(when("args.timeout < 2")), Verdict::Ask);
        assert_eq!(with(diff().with_limit(Some(limit))), Verdict::Ask, "a limit counts calls");
        for arguments in [
            json!({"command": "git diff | head", "stdin": "x"}),
            json!({"command": "git diff | head", "args": ["x"]}),
            json!({"command": ["git", "diff", "|", "head"]}),
        ] {
            assert_eq!(judged(&policy(), &arguments).verdict, Verdict::Ask, "{arguments}");
        }
        let denies = Policy { fallback: Verdict::Deny, ..policy() };
        assert_eq!(judged(&denies, &chain).verdict, Verdict::Allow, "the default is for what no rule matches");
    }
}
