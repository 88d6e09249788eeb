//! A policy condition and the arguments of a call, as `condition NUL arguments in JSON`. For any input: no panic, no
//! long run time (libFuzzer's `-timeout`), and a rule that cannot be evaluated never allows a call.

use serde_json::{Map, Value};
use toolgate_core::policy::{Condition, Example, Finding, Match, Policy, Rule, Subject, Verdict};

/// Panics if the input breaks a rule above. Returns whether the input has the form of this target.
pub(crate) fn check(data: &[u8]) -> bool {
    let Some((text, arguments)) = read(data) else { return false };
    let Ok(condition) = Condition::parse(text) else { return true };
    let again = Condition::parse(condition.text()).expect("what was read once is read again");
    for verdict in [Verdict::Allow, Verdict::Ask, Verdict::Deny] {
        let matches = Match { tool: Some("*".into()), ..Match::default() };
        let rule = Rule::new("r", verdict, "Because.", matches, vec![], vec![]).expect("a plain rule");
        judged_as_it_was_found(rule.clone().with_condition(condition.clone()), &arguments);
        judged_as_it_was_found(rule.with_condition(again.clone()), &arguments);
    }
    true
}

fn read(data: &[u8]) -> Option<(&str, Map<String, Value>)> {
    let end = data.iter().position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(data.get(..end)?).ok()?;
    Some((text, serde_json::from_slice(data.get(end + 1..)?).ok()?))
}

/// A policy with one rule that allows everything else: the rule's finding decides about the call, and an error requires
/// approval.
fn judged_as_it_was_found(rule: Rule, arguments: &Map<String, Value>) {
    let tool = Example { server: Some("shop".into()), tool: "pay".into(), ..Example::default() }.tool();
    let subject = Subject { tool: &tool, agent: None, principal: None, arguments: Some(arguments) };
    let expected = match rule.examine(&subject) {
        Finding::Matches => rule.verdict,
        Finding::Misses(_) => Verdict::Allow,
        Finding::Unclear(why) => {
            assert!(!why.reason().is_empty());
            Verdict::Ask
        }
        Finding::Depends => unreachable!("the arguments are known"),
    };
    let policy = Policy { rules: vec![rule], ..Policy::allow_always() };
    assert_eq!(policy.judge(&subject).verdict, expected);
    // Before any call the verdict is the same as for every call, or *ask*.
    let of_tool = policy.judge(&Subject { arguments: None, ..subject }).verdict;
    assert!(of_tool == expected || of_tool == Verdict::Ask, "{of_tool:?} of the tool, {expected:?} of the call");
}
