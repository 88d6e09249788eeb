//! Properties of suggested rules: they allow the approved calls and no others.

use proptest::prelude::*;

use serde_json::{Map, Value};

use super::*;
use crate::config;
use crate::core::id::{CallId, Principal, RunId};
use crate::core::policy::analysis::{Approval, RefusedCall, arguments_hash};
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
        condition: None,
        by: "kim".into(),
    };
    (("run_1".into(), call.into()), approval)
}

fn by(principal: &str, (key, approval): Approved) -> Approved {
    (key, Approval { principal: Some(principal.into()), ..approval })
}

fn past(approvals: impl IntoIterator<Item = Approved>) -> DecisionHistory {
    DecisionHistory { approvals: approvals.into_iter().collect(), ..DecisionHistory::default() }
}

fn suggested(past: &DecisionHistory) -> Vec<Suggestion> {
    suggestions(past, None, 1).0
}

fn note(call: &str, customer: &str, text: &str) -> Approved {
    approved(call, "add_note", &json!({"customer": customer, "text": text}))
}

/// The suggested policy file, loaded as `policy check` loads it.
fn loaded(suggested: &[Suggestion]) -> Policy {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("suggested.yaml");
    std::fs::write(&path, policy(suggested).join("\n")).unwrap();
    config::policy_file(&path).unwrap_or_else(|error| panic!("{}", error.plain()))
}

/// The policy's verdict on a call that the agent `desk` makes to the server `shop`.
fn judged(policy: &Policy, tool: &str, principal: Option<&str>, arguments: &Value) -> Verdict {
    let tool = Example { server: Some("shop".into()), tool: tool.into(), ..Example::default() }.tool();
    let (agent, principal) = ("desk".into(), principal.map(Principal::from));
    let arguments = arguments.as_object();
    policy.judge(&Subject { tool: &tool, agent: Some(&agent), principal: principal.as_ref(), arguments }).verdict
}

#[test]
fn a_rule_names_the_calls_that_were_approved() {
    let suggested = suggested(&past([note("a", "C-1", "late"), note("b", "C-1", "lost"), note("c", "C-1", "lost")]));
    let [Suggestion { rule, covered: 3, .. }] = &suggested[..] else { panic!("{suggested:?}") };
    let when = r#"principal == null && args in [{"customer":"C-1","text":"late"}, {"customer":"C-1","text":"lost"}]"#;
    assert_eq!(rule.when, when);
    assert_eq!(rule.r#match, json!({"server": "shop", "tool_name": "add_note", "agent": "desk"}));
    assert_eq!(rule.examples["match"].as_array().unwrap().len(), 2);
}

#[test]
fn suggestions_allow_approved_calls_and_no_others() {
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
        for (tool, principal) in odd.iter().chain(&["team1", "a", "b", "anyone"]).map(|other| (other, other)) {
            let expected = if *tool == name { Verdict::Allow } else { Verdict::Ask };
            assert_eq!(judged(&policy, tool, Some(principal), &json!({})), expected, "{name}, {tool}");
        }
        assert_eq!(judged(&policy, name, None, &json!({})), Verdict::Ask, "{name}");
    }
}

fn refuse(past: &mut DecisionHistory, tool: &str, arguments: &Value) {
    let origin = Origin::Mcp { server: "shop".into(), tool: tool.into() };
    let reason = ExclusionReason::Refused { by: "ann".into(), run: "run_2".into() };
    let arguments = arguments.as_object().unwrap().clone();
    past.refused.insert((origin, arguments_hash(&arguments)), RefusedCall { arguments, reason });
}

#[test]
fn a_denial_leaves_out_only_the_call_that_was_denied() {
    let run = |call: &str, command: &str| approved(call, "run", &json!({"command": command}));
    let mut past = past([run("a", "git diff"), run("b", "git diff"), run("c", "ls"), run("d", "make")]);
    refuse(&mut past, "run", &json!({"command": "ls"}));
    refuse(&mut past, "run", &json!({"command": "rm -rf /"}));
    past.approvals.extend([approved("e", "pay", &json!({"to": "ann", "cents": 5}))]);
    refuse(&mut past, "pay", &json!({"cents": 5, "to": "ann"}));
    let (suggested, left_out) = suggestions(&past, None, 1);
    let policy = loaded(&suggested);
    for (command, verdict) in [("git diff", Verdict::Allow), ("make", Verdict::Allow), ("ls", Verdict::Ask)] {
        assert_eq!(judged(&policy, "run", None, &json!({"command": command})), verdict, "{command}");
    }
    let lines: Vec<String> = left_out.iter().map(|left| skipped_in_words(left, 1)).collect();
    let denied = "agent desk, approved 1 time: the same call was denied by ann in run run_2";
    let pay = format!(r#"mcp_shop_pay (to: "ann", cents: 5), {denied}"#);
    assert_eq!(lines, [pay, format!(r#"mcp_shop_run (command: "ls"), {denied}"#)]);
}

#[test]
fn the_condition_of_grants_is_a_rule_unless_a_denied_call_meets_it() {
    let under = |condition: &str, call: &str, path: &str| {
        let (key, approval) = approved(call, "write", &json!({"path": path}));
        (key, Approval { condition: Some(condition.to_owned()), ..approval })
    };
    let src = |call: &str, path: &str| under("args.path.lexicallyWithin('/src')", call, path);
    let other = approved("c", "write", &json!({"path": "/etc/x"}));
    let mut past = past([src("a", "/src/a"), src("b", "/src/b"), other]);
    assert_eq!(suggestions(&past, None, 3).0, [], "given twice");
    let (suggested, _) = suggestions(&past, None, 1);
    let policy = loaded(&suggested);
    assert_eq!(suggested.len(), 2, "the arguments that meet the condition are in no rule of their own");
    for (path, verdict) in [("/src/c", Verdict::Allow), ("/etc/x", Verdict::Allow), ("/etc/y", Verdict::Ask)] {
        assert_eq!(judged(&policy, "write", None, &json!({"path": path})), verdict, "{path}");
    }
    assert_eq!(judged(&policy, "write", Some("ann"), &json!({"path": "/src/c"})), Verdict::Ask);
    refuse(&mut past, "write", &json!({"path": "/src/secret"}));
    past.approvals.extend([under(r#"args.commandStartsWith(["ls"])"#, "d", "ls")]);
    let (suggested, left_out) = suggestions(&past, None, 1);
    let policy = loaded(&suggested);
    for (path, verdict) in [("/src/c", Verdict::Ask), ("/src/a", Verdict::Allow)] {
        assert_eq!(judged(&policy, "write", None, &json!({"path": path})), verdict, "{path}");
    }
    let [commands, denied] = &left_out[..] else { panic!("{left_out:?}") };
    let nearest = "a command `ls …` (files of its folder); a rule with `match: { command: [\"ls\"] }` covers more";
    assert!(skipped_in_words(commands, 1).contains(nearest), "{}", skipped_in_words(commands, 1));
    assert!(skipped_in_words(denied, 1).contains("which a denied call meets: args.path.lexicallyWithin"));
}

#[test]
fn denied_changed_or_rarely_approved_tools_are_not_suggested() {
    let twice = || [note("a", "C-1", "x"), note("b", "C-1", "x")];
    assert_eq!(suggestions(&past(twice()), None, 3).0, []);
    let mut refused = past(twice());
    refuse(&mut refused, "add_note", &json!({"customer": "C-1", "text": "x"}));
    assert_eq!(suggested(&refused), []);
    let mut changed = twice();
    changed[1].1.definition = "other".into();
    assert_eq!(suggested(&past(changed)), []);
}

#[test]
fn approvals_and_denials_of_one_call_say_nothing_about_another() {
    let mut past = past([note("a", "C-1", "x"), note("b", "C-1", "x"), note("c", "C-1", "y"), note("d", "C-2", "z")]);
    refuse(&mut past, "add_note", &json!({"customer": "C-2", "text": "z"}));
    let (suggested, left_out) = suggestions(&past, None, 2);
    let [Suggestion { rule, covered: 2, .. }] = &suggested[..] else { panic!("{suggested:?}") };
    assert_eq!(rule.when, r#"principal == null && args == {"customer":"C-1","text":"x"}"#);
    assert_eq!(left_out.len(), 2);
}

#[test]
fn a_left_out_tool_is_named_with_its_reason() {
    let mut past = past([
        by("kim", note("a", "C-1", "x")),
        approved("b", "pay", &json!({})),
        approved("c", "look", &json!({"id": u64::MAX})),
        approved("d", "look", &json!({"id": u64::MAX})),
        approved("e", "send", &json!({})),
        approved("f", "wipe", &json!({})),
        approved("g", "edit", &json!({})),
    ]);
    past.approvals.insert(
        ("run_2".into(), "a".into()),
        Approval { definition: "other".into(), ..past.approvals[&("run_1".into(), "g".into())].clone() },
    );
    let tool = |tool: &str| Origin::Mcp { server: "shop".into(), tool: tool.into() };
    refuse(&mut past, "pay", &json!({}));
    let send = (tool("send"), arguments_hash(&Map::new()));
    let reason = ExclusionReason::Denied { run: "run_3".into() };
    past.refused.insert(send, RefusedCall { arguments: Map::new(), reason });
    past.bar(&tool("wipe"), ExclusionReason::Changed { run: "run_4".into() });
    let (suggested, left_out) = suggestions(&past, None, 2);
    assert_eq!(suggested, []);
    let lines: Vec<String> = left_out.iter().map(|left| skipped_in_words(left, 2)).collect();
    assert_eq!(
        lines,
        [
            r#"mcp_shop_add_note (customer: "C-1", text: "x"), agent desk for kim, approved 1 time: no call with the same arguments 2 times (`--at-least`)"#,
            "mcp_shop_edit, agent desk, approved 2 times: its definition changed between the approvals",
            "mcp_shop_look (id: 18446744073709551615), agent desk, approved 2 times: no rule can match exactly these calls",
            "mcp_shop_pay (no arguments), agent desk, approved 1 time: the same call was denied by ann in run run_2",
            "mcp_shop_send (no arguments), agent desk, approved 1 time: the same call was denied by a policy in run run_3",
            "mcp_shop_wipe, agent desk, approved 1 time: it changed during run run_4",
        ]
    );
}

#[test]
fn only_the_requested_agent_gets_suggestions() {
    let mut calls = [note("a", "C-1", "x"), note("b", "C-1", "x")];
    calls[1].1.agent = "other".into();
    let past = past(calls);
    assert_eq!(suggested(&past).len(), 2);
    let (of_one, _) = suggestions(&past, Some(&"other".into()), 1);
    assert_eq!((of_one.len(), &of_one[0].rule.r#match["agent"]), (1, &json!("other")));
}

#[test]
fn calls_that_no_condition_can_express_are_not_suggested() {
    for value in [json!("x".repeat(3_000)), json!(u64::MAX), (0..40).fold(json!(1), |inner, _| json!([inner]))] {
        assert_eq!(suggested(&past([approved("a", "pay", &json!({"value": value}))])), []);
    }
}

/// A tool of `shop`, the principal and the arguments.
type Call = (String, Option<String>, Map<String, Value>);

/// Any argument value, including values that no condition can express.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("no JSON", |number| number.is_finite()).prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            any_members(inner).prop_map(Value::Object),
        ]
    })
}

fn any_members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let key = prop_oneof!["[ab]", any::<String>()];
    proptest::collection::btree_map(key, value, 0..3).prop_map(|members| members.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn suggestions_form_a_valid_policy_for_exactly_the_approved_calls(
        calls in proptest::collection::vec(
            (prop_oneof!["[ab]", any::<String>()], proptest::option::of("(kim|[*]|[{]a,b[}])"), any_members(any_value())),
            1..8,
        ),
        approved_ones in 0..8usize,
    ) {
        let approval = |(n, (tool, principal, arguments)): (usize, &Call)| {
            let (key, approval) = approved(&n.to_string(), tool, &json!(arguments));
            (key, Approval { principal: principal.as_deref().map(Principal::from), ..approval })
        };
        let (yes, _) = calls.split_at(approved_ones.min(calls.len()));
        let past = past(yes.iter().enumerate().map(approval));
        let (suggested, left_out) = suggestions(&past, None, 1);
        let covered: usize = suggested.iter().map(|suggestion| suggestion.covered).sum();
        prop_assert_eq!(covered + left_out.iter().map(|left| left.approvals).sum::<usize>(), yes.len());
        if suggested.is_empty() {
            return Ok(());
        }
        let policy = loaded(&suggested);
        let mut allowed = 0;
        for (n, call) in calls.iter().enumerate() {
            let (tool, principal, arguments) = call;
            let is_allowed = judged(&policy, tool, principal.as_deref(), &json!(arguments)) == Verdict::Allow;
            allowed += usize::from(is_allowed && n < yes.len());
            prop_assert!(!is_allowed || yes.iter().any(|other| is_same(other, call)), "{:?}", call);
        }
        prop_assert_eq!(allowed, covered);
    }
}

/// Equality as in conditions: numbers compare by value.
fn is_same(one: &Call, other: &Call) -> bool {
    one.0 == other.0 && one.1 == other.1 && equal(&json!(one.2), &json!(other.2))
}

fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(key, value): (&String, &Value)| other.get(key).is_some_and(|other| equal(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        _ => one == other,
    }
}
