//! A policy file. For any content: parsing returns a policy or printable errors, a loaded policy judges every kind of
//! tool, and no verdict is milder than a matching rule.

use serde_json::{Map, Value, json};
use toolgate_config::policy_text;
use toolgate_core::policy::{Example, Finding, Subject, Verdict};
use toolgate_core::tool::Tool;

/// Panics if the text breaks a rule above.
pub(crate) fn check(text: &str) {
    let policy = match policy_text("policy.yaml", text) {
        Ok(policy) => policy,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    policy.check_examples().expect("the examples were run when it was loaded");
    let (agent, principal) = ("shopkeeper".into(), "kim".into());
    for (tool, arguments) in tools().iter().flat_map(|tool| calls().into_iter().map(move |call| (tool, call))) {
        let subject = Subject { tool, agent: Some(&agent), principal: Some(&principal), arguments: arguments.as_ref() };
        let verdict = policy.judge(&subject).verdict;
        for (rule, finding) in policy.explain(&subject) {
            assert!(!finding.in_words(rule, &subject).is_empty());
            match finding {
                Finding::Matches => assert!(verdict >= rule.verdict, "{}: {verdict:?}", rule.id),
                Finding::Unclear(_) => assert!(verdict >= Verdict::Ask, "{}: {verdict:?}", rule.id),
                Finding::Misses(_) | Finding::Depends => {}
            }
        }
    }
}

fn tools() -> [Tool; 4] {
    let of_server = Example { server: Some("shop".into()), tool: "pay".into(), ..Example::default() };
    [
        of_server.tool(),
        Example { trusted: true, ..of_server }.tool(),
        Example { tool: "refund".into(), ..Example::default() }.tool(),
        Example { tool: "ask_human".into(), builtin: true, ..Example::default() }.tool(),
    ]
}

fn calls() -> Vec<Option<Map<String, Value>>> {
    let calls = [json!({}), json!({"amount": 1e300, "path": "/etc/../etc", "list": [1, "a", null]})];
    calls.into_iter().map(|call| call.as_object().cloned()).chain([None]).collect()
}
