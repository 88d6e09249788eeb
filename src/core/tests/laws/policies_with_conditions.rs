//! Random policies over random calls: no panics, no long evaluation, and no addition that makes a policy more lenient.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_core::policy::{Condition, Example, Finding, Match, Policy, Rule, Subject, Verdict};
use toolgate_core::tool::{Annotations, Tool};

use crate::choices::strictly;

const CONDITIONS: [&str; 16] = [
    "tool == 'mcp_shop_pay' && args.a > 1",
    "tool == 'other' && args.a > 1",
    "args.a > 1",
    "args.a == args.b",
    "has(args.a)",
    "args.b.startsWith('x')",
    "args.a.all(i, i != args.b)",
    "args.b.exists(i, i > 0)",
    "args.a.map(i, args.b).size() > 3",
    "args.a.b.c == null",
    "size(args.a) < size(args.b)",
    "args.a.matches('(x+x+)+y')",
    "args.a + args.a + args.a == args.b",
    "principal == 'kim' || tool.contains('pay')",
    "args['a']",
    "1 / args.a > 0",
];

fn tool() -> Tool {
    Example { server: Some("shop".into()), tool: "pay".into(), ..Example::default() }.tool()
}

fn judge(policy: &Policy, arguments: Option<&Map<String, Value>>) -> Verdict {
    let (tool, principal) = (tool(), "kim".into());
    policy.judge(&Subject { tool: &tool, agent: None, principal: Some(&principal), arguments }).verdict
}

fn findings(policy: &Policy, arguments: &Map<String, Value>) -> Vec<(Verdict, Finding)> {
    let (tool, principal) = (tool(), "kim".into());
    let subject = Subject { tool: &tool, agent: None, principal: Some(&principal), arguments: Some(arguments) };
    policy.explain(&subject).into_iter().map(|(rule, finding)| (rule.verdict, finding)).collect()
}

fn any_verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![Just(Verdict::Allow), Just(Verdict::Ask), Just(Verdict::Deny)]
}

prop_compose! {
    fn any_rule()(
        verdict in any_verdict(),
        condition in proptest::option::of(proptest::sample::select(CONDITIONS.to_vec())),
        named in prop_oneof![Just("pay"), Just("*"), Just("other")],
        principal in proptest::option::of(prop_oneof![Just("kim"), Just("guest-*")]),
    ) -> Rule {
        let matches = Match { tool_name: Some(named.into()), principal: principal.map(Into::into), ..Match::default() };
        let rule = Rule::new("r", verdict, "Because.", matches, vec![], vec![]).unwrap();
        match condition {
            Some(condition) => rule.with_condition(Condition::parse(condition).unwrap()),
            None => rule,
        }
    }
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let rules = proptest::collection::vec(any_rule(), 0..6);
    (rules, any_verdict()).prop_map(|(rules, fallback)| Policy { rules, fallback, ..Policy::ask_always() })
}

fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        (-2i64..4).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "x{0,2000}".prop_map(Value::from),
    ];
    scalar.prop_recursive(3, 60, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
            proptest::collection::btree_map("[abc]", inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn any_arguments() -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::btree_map("[abc]", any_value(), 0..4).prop_map(|map| map.into_iter().collect())
}

fn any_hint() -> impl Strategy<Value = Option<bool>> {
    any::<Option<bool>>()
}

fn any_hints() -> impl Strategy<Value = Annotations> {
    (any_hint(), any_hint(), any_hint(), any_hint()).prop_map(
        |(read_only_hint, destructive_hint, idempotent_hint, open_world_hint)| Annotations {
            title: None,
            read_only_hint,
            destructive_hint,
            idempotent_hint,
            open_world_hint,
        },
    )
}

prop_compose! {
    fn any_rule_by_hints()(
        verdict in any_verdict(),
        wanted in any_hints(),
        condition in proptest::option::of(prop_oneof![Just("args.amount > 1"), Just("args.missing > 1")]),
    ) -> Rule {
        let matches = Match {
            tool_name: Some("*".into()),
            read_only: wanted.read_only_hint,
            destructive: wanted.destructive_hint,
            idempotent: wanted.idempotent_hint,
            open_world: wanted.open_world_hint,
            ..Match::default()
        };
        let rule = Rule::new("r", verdict, "", matches, vec![], vec![]).unwrap();
        match condition {
            Some(condition) => rule.with_condition(Condition::parse(condition).unwrap()),
            None => rule,
        }
    }
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn hints_of_an_untrusted_server_never_make_a_verdict_milder(
        rules in proptest::collection::vec(any_rule_by_hints(), 0..5),
        fallback in any_verdict(),
        said in any_hints(),
        arguments in proptest::option::of(0..3i64),
    ) {
        let policy = Policy { rules, fallback, ..Policy::ask_always() };
        let arguments = arguments.map(|amount| json!({"amount": amount}).as_object().unwrap().clone());
        let judge = |tool: &Tool| {
            policy.judge(&Subject { tool, agent: None, principal: None, arguments: arguments.as_ref() }).verdict
        };
        let silent = Tool { annotations: Annotations::default(), ..tool() };
        let talks = Tool { annotations: said, ..silent.clone() };
        prop_assert!(!silent.trusted);
        prop_assert!(judge(&talks) >= judge(&silent), "{:?} became {:?}", judge(&silent), judge(&talks));
    }

    #[test]
    fn a_verdict_is_as_strict_as_every_matching_or_unclear_rule(
        policy in any_policy(),
        arguments in any_arguments(),
    ) {
        let begin = Instant::now();
        let verdict = judge(&policy, Some(&arguments));
        prop_assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        let findings = findings(&policy, &arguments);
        let matching = findings.iter().filter(|(_, finding)| *finding == Finding::Matches).map(|(verdict, _)| *verdict);
        let expected = matching.max().unwrap_or(policy.fallback);
        let is_unclear = findings.iter().any(|(_, finding)| matches!(finding, Finding::Unclear(_)));
        let floor = if is_unclear { Verdict::Ask } else { Verdict::Allow };
        prop_assert_eq!(verdict, expected.max(floor));
    }

    #[test]
    fn every_call_of_a_tool_gets_its_listed_verdict_unless_that_depends_on_arguments(
        policy in any_policy(),
        arguments in any_arguments(),
    ) {
        let schema = json!({"properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": false});
        let (tool, principal) = (Tool { input_schema: std::sync::Arc::new(schema), ..tool() }, "kim".into());
        let subject = Subject { tool: &tool, agent: None, principal: Some(&principal), arguments: None };
        let listed = policy.judge_tool(&subject);
        if !listed.depends_on_arguments {
            let of_call = policy.judge(&Subject { arguments: Some(&arguments), ..subject }).verdict;
            // A call may be milder than a rule that asks in any case, and stricter where a condition cannot be evaluated.
            prop_assert!(of_call >= listed.judgement.verdict || listed.judgement.verdict == Verdict::Ask);
        }
    }

    #[test]
    fn an_added_rule_never_makes_a_policy_with_a_match_milder(
        policy in any_policy(),
        more in any_rule(),
        arguments in any_arguments(),
    ) {
        let speaks = findings(&policy, &arguments).iter().any(|(_, finding)| *finding == Finding::Matches);
        let before = judge(&policy, Some(&arguments));
        let mut longer = policy.clone();
        longer.rules.push(more);
        let after = judge(&longer, Some(&arguments));
        prop_assert!(!speaks || after >= before, "{before:?} became {after:?}");
        // If no rule matched before, only a rule that matches with certainty replaces the default.
        let added = findings(&longer, &arguments).pop().unwrap();
        prop_assert!(after >= before || added.1 == Finding::Matches, "{before:?} became {after:?} by {added:?}");
    }

    #[test]
    fn a_verdict_before_any_call_holds_for_every_call_or_is_ask(
        policy in any_policy(),
        arguments in any_arguments(),
    ) {
        let (of_tool, of_call) = (judge(&policy, None), judge(&policy, Some(&arguments)));
        prop_assert!(of_tool == of_call || of_tool == Verdict::Ask, "{of_tool:?}, and {of_call:?} of a call");
    }

    #[test]
    fn no_text_makes_the_condition_parser_panic_or_run_long(
        noise in ".{0,200}",
        tokens in proptest::collection::vec(
            proptest::sample::select(vec![
                "args", ".a", "(", ")", "[", "]", "{", "}", "'", "\"", "+", "-", "!", "?", ":", "&&", "||", "==", "<", "1",
                "1.5", "2u", "b'", "r'", "true", ".all(x,", ".map(x,", "x", " ", ",", "has(", "in", ".matches('", "\\", "\n", "\u{0}",
            ]),
            0..120,
        ),
        arguments in any_arguments(),
    ) {
        for text in [noise, tokens.concat()] {
            let begin = Instant::now();
            if let Ok(condition) = Condition::parse(&text) {
                let matches = Match { tool_name: Some("*".into()), ..Match::default() };
                let rule = Rule::new("r", Verdict::Allow, "", matches, vec![], vec![]).unwrap().with_condition(condition);
                judge(&Policy { rules: vec![rule], ..Policy::ask_always() }, Some(&arguments));
            }
            prop_assert!(begin.elapsed() < Duration::from_secs(5), "{text}: {:?}", begin.elapsed());
        }
    }
}

#[test]
fn no_accepted_condition_runs_long_for_any_arguments() {
    let many = |items: usize| -> Vec<u64> { (0..items as u64).collect() };
    let deep = (0..90).fold(json!(1), |inner, _| json!([inner]));
    let calls = [
        json!({"l": many(100_000), "s": "x", "d": deep.clone(), "w": ["ab"]}),
        json!({"l": many(4000), "s": "a".repeat(1000), "d": deep.clone(), "w": ["ab"]}),
        json!({"l": many(300), "s": "a".repeat(9000), "d": deep.clone(), "w": ["ab"]}),
        json!({"l": [1], "s": "a".repeat(1_000_000), "d": deep.clone(), "w": [""]}),
        json!({"l": [1], "s": "a", "d": deep, "w": vec!["a"; 2000]}),
    ];
    let conditions = [
        "args.l.all(x, x >= 0 || args.s == '')".to_owned(),
        "args.l.map(x, x).size() > 1".to_owned(),
        "args.l.map(x, args) == args.l.map(x, args)".to_owned(),
        "args.l.map(x, args.s + args.s + args.s + args.s).size() > 1".to_owned(),
        "args.l.exists(x, args.s.matches('(a|aa)+b'))".to_owned(),
        "args.s.matches('(a|aa)+b') || args.s.matches('(a*)*c')".to_owned(),
        "args.w.all(x, !x.matches('[^b]{0,40}(a|b|ab)*c'))".to_owned(),
        "args.w.all(x, !x.matches('\\\\w{10}'))".to_owned(),
        "(args.l + args.l + args.l + args.l).exists_one(x, x == 7)".to_owned(),
        "args.d == args.d".to_owned(),
        vec!["args.s.contains('b')"; 60].join(" || "),
        vec!["args.l.all(x, x >= 0)"; 60].join(" && "),
        vec!["args.s"; 20].join(" + ") + " == ''",
    ];
    let (mut longest, mut evaluated) = (Duration::ZERO, 0);
    for (condition, arguments) in conditions.iter().flat_map(|c| calls.iter().map(move |call| (c, call))) {
        let tool = tool();
        let matches = Match { tool_name: Some("pay".into()), ..Match::default() };
        let rule = Rule::new("r", Verdict::Deny, "", matches, vec![], vec![]).unwrap();
        let rule = rule.with_condition(Condition::parse(condition).unwrap());
        let arguments = arguments.as_object().unwrap();
        let subject = Subject { tool: &tool, agent: None, principal: None, arguments: Some(arguments) };
        let begin = Instant::now();
        let said = rule.examine(&subject);
        let took = begin.elapsed();
        longest = longest.max(took);
        assert!(took < Duration::from_secs(10), "{condition}: {took:?}");
        match said {
            Finding::Unclear(why) => {
                let why = why.reason();
                assert!(why.contains("too long") || why.contains("larger than"), "{condition}: {why}")
            }
            Finding::Matches | Finding::Misses(_) | Finding::Depends => evaluated += 1,
        }
    }
    assert!(evaluated > 10, "{evaluated} of them, {longest:?}: a budget that refuses everything proves nothing");
}
