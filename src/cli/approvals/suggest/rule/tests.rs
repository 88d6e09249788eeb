//! That what is suggested lets run what was approved, and nothing else.

use super::*;
use crate::config;
use crate::core::id::{CallId, RunId};
use crate::core::policy::{Example, Policy, Subject, Verdict};

type Approved = ((RunId, CallId), Approval);

fn approved(call: &str, tool: &str, arguments: &Value) -> Approved {
    let approval = Approval {
        agent: "desk".into(),
        principal: None,
        origin: Origin::Mcp { server: "shop".into(), tool: tool.into() },
        definition: "d".into(),
        arguments: arguments.as_object().unwrap().clone(),
        rule: None,
        by: "kim".into(),
    };
    (("run_1".into(), call.into()), approval)
}

fn by(principal: &str, (key, approval): Approved) -> Approved {
    (key, Approval { principal: Some(principal.into()), ..approval })
}

fn past(approvals: impl IntoIterator<Item = Approved>) -> Past {
    Past { approvals: approvals.into_iter().collect(), ..Past::default() }
}

fn suggested(past: &Past) -> Vec<Suggestion> {
    suggestions(past, None, 1)
}

fn note(call: &str, customer: &str, text: &str) -> Approved {
    approved(call, "add_note", &json!({"customer": customer, "text": text}))
}

/// The suggested file, as `policy check` reads it.
fn loaded(suggested: &[Suggestion]) -> Policy {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("suggested.yaml");
    std::fs::write(&path, crate::cli::approvals::suggest::policy(suggested).join("\n")).unwrap();
    config::policy_file(&path).unwrap_or_else(|error| panic!("{}", error.plain()))
}

/// What a policy says of a call of `desk` on the server `shop`.
fn judged(policy: &Policy, tool: &str, principal: Option<&str>, arguments: &Value) -> Verdict {
    let tool = Example { server: Some("shop".into()), tool: tool.into(), ..Example::default() }.tool();
    let (agent, principal) = ("desk".into(), principal.map(Principal::from));
    let arguments = arguments.as_object();
    policy.judge(&Subject { tool: &tool, agent: Some(&agent), principal: principal.as_ref(), arguments }).verdict
}

#[test]
fn a_rule_names_the_calls_that_were_approved() {
    let suggested = suggested(&past([note("a", "C-1", "late"), note("b", "C-1", "lost"), note("c", "C-1", "lost")]));
    let [Suggestion { rule, covers: 3, .. }] = &suggested[..] else { panic!("{suggested:?}") };
    let when = r#"principal == null && args in [{"customer":"C-1","text":"late"}, {"customer":"C-1","text":"lost"}]"#;
    assert_eq!(rule.when, when);
    assert_eq!(rule.r#match, json!({"server": "shop", "named": "add_note", "agent": "desk"}));
    assert_eq!(rule.examples["match"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_suggested_allows_what_was_approved_and_nothing_beside_it() {
    let seen = [
        json!({}),
        json!({"customer": "C-1", "text": "late"}),
        json!({"customer": "C-2", "text": "lost"}),
        json!({"amount": 1}),
        json!({"amount": 3}),
        json!({"amount": -2.5, "deep": {"a": [1, null, true, {"b": "c"}]}}),
        json!({"odd \" key\n": "\u{1}\t\\ \u{1f600} é \u{2028}", "a-b": i64::MAX}),
        json!({"small": 1e-300, "large": 1e300}),
    ];
    let near = [
        json!({"force": true}),
        json!({"customer": "C-1", "text": "late", "force": true}),
        json!({"customer": "C-1", "text": "lost"}),
        json!({"customer": "C-1"}),
        json!({"amount": 2}),
        json!({"amount": "1"}),
        json!({"amount": -2.5, "deep": {"a": [1, null, true, {"b": "d"}]}}),
        json!({"odd \" key\n": "", "a-b": i64::MAX}),
    ];
    let calls = seen.iter().enumerate().map(|(n, arguments)| approved(&n.to_string(), "pay", arguments));
    let policy = loaded(&suggested(&past(calls)));
    for arguments in &seen {
        assert_eq!(judged(&policy, "pay", None, arguments), Verdict::Allow, "{arguments}");
        assert_eq!(judged(&policy, "pay_out", None, arguments), Verdict::Ask, "{arguments}");
        assert_eq!(judged(&policy, "pay", Some("kim"), arguments), Verdict::Ask, "{arguments}");
    }
    for arguments in &near {
        assert_eq!(judged(&policy, "pay", None, arguments), Verdict::Ask, "{arguments}");
    }
}

#[test]
fn names_that_look_like_patterns_mean_themselves() {
    let odd = ["*", "team[1]", "{a,b}", r"a\*", "kim"];
    for name in odd {
        let policy = loaded(&suggested(&past([by(name, approved("a", name, &json!({})))])));
        for (tool, principal) in odd.iter().chain(&["team1", "a", "b", "anybody"]).map(|other| (other, other)) {
            let expected = if *tool == name { Verdict::Allow } else { Verdict::Ask };
            assert_eq!(judged(&policy, tool, Some(principal), &json!({})), expected, "{name}, {tool}");
        }
        assert_eq!(judged(&policy, name, None, &json!({})), Verdict::Ask, "{name}");
    }
}

#[test]
fn what_was_refused_changed_or_approved_too_seldom_is_not_suggested() {
    let twice = || [note("a", "C-1", "x"), note("b", "C-1", "x")];
    assert_eq!(suggestions(&past(twice()), None, 3), []);
    let mut refused = past(twice());
    refused.barred.insert(Origin::Mcp { server: "shop".into(), tool: "add_note".into() });
    assert_eq!(suggested(&refused), []);
    let mut changed = twice();
    changed[1].1.definition = "other".into();
    assert_eq!(suggested(&past(changed)), []);
}

#[test]
fn only_what_was_asked_for_is_suggested_of_an_agent() {
    let mut calls = [note("a", "C-1", "x"), note("b", "C-1", "x")];
    calls[1].1.agent = "other".into();
    let past = past(calls);
    assert_eq!(suggested(&past).len(), 2);
    let of_one = suggestions(&past, Some(&"other".into()), 1);
    assert_eq!((of_one.len(), &of_one[0].rule.r#match["agent"]), (1, &json!("other")));
}

#[test]
fn what_no_condition_could_say_is_not_suggested_at_all() {
    for value in [json!("x".repeat(3_000)), json!(u64::MAX), (0..40).fold(json!(1), |inner, _| json!([inner]))] {
        assert_eq!(suggested(&past([approved("a", "pay", &json!({"value": value}))])), []);
    }
}
