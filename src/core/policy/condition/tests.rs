//! Tests of conditions: results, and errors on loading. The law that no condition runs long is in `src/core/tests/laws`.

use serde_json::{Map, Value, json};

use super::{Condition, Outlook};
use crate::policy::{Example, Match, Rule, Subject, Verdict};

/// Whether a condition holds for a call of `mcp_shop_pay` by `desk` for `kim`, or the error.
fn evaluate(condition: &str, arguments: &Value) -> Result<bool, String> {
    let arguments: &Map<String, Value> = arguments.as_object().unwrap();
    let tool = Example { server: Some("shop".into()), tool: "pay".into(), ..Example::default() }.tool();
    let (agent, principal) = ("desk".into(), "kim".into());
    let subject = Subject { tool: &tool, agent: Some(&agent), principal: Some(&principal), arguments: Some(arguments) };
    let condition = Condition::parse(condition).map_err(|error| error.to_string())?;
    let facts = super::Facts::new(&subject, &tool.name);
    condition.holds(&facts).unwrap().map_err(|error| error.to_string())
}

fn sample() -> Value {
    json!({
        "amount": 100.5, "count": 3, "whole": 3.0, "huge": u64::MAX, "to": "kim@example.com", "none": null,
        "paths": ["/tmp/a", "/tmp/b"], "options": {"force": true}, "items": [{"price": 5}, {"price": 50}]
    })
}

#[test]
fn conditions_are_true_or_false() {
    for (condition, expected) in [
        ("args.amount > 100", true),
        ("args.count < 3.5 && args.count == 3.0", true),
        ("args.whole == 3", true),
        ("args.count in [1, 2, 3]", true),
        ("args.huge > 9000000000000000000", true),
        ("has(args.missing)", false),
        ("has(args.missing) && args.missing > 5", false),
        ("args.missing > 5 || true", true),
        ("args.to.endsWith('@example.com')", true),
        ("args.to.matches('^[a-z]+@example[.]org$')", false),
        ("matches(args.to, '^kim@') && !args.to.matches('^ada@')", true),
        ("args.paths.all(path, path.matches('^/tmp/[a-z]$'))", true),
        ("{'a': [args.to.matches('k')]}['a'][0] ? args.to.matches('é|i') : false", true),
        ("args.paths.all(path, path.startsWith('/tmp/'))", true),
        ("['/etc', '/root'].exists(root, args.paths[0].startsWith(root))", false),
        ("args.items.filter(item, item.price > 10).size() == 1", true),
        ("'force' in args.options && args.options.force", true),
        ("args.none == null", true),
        ("tool == 'mcp_shop_pay' && server == 'shop' && agent == 'desk' && principal == 'kim'", true),
        ("principal.startsWith('guest-')", false),
        ("type(args.to) == string", true),
        ("args == {}", false),
    ] {
        assert_eq!(evaluate(condition, &sample()), Ok(expected), "{condition}");
    }
}

#[test]
fn evaluation_errors_name_no_value() {
    for (condition, expected) in [
        ("args.missing > 5", "there is no `missing`; `has(…)` asks for what may be missing"),
        ("args.to > 5", "found no matching overload for '_>_' applied to '(string, int)'"),
        ("args.count", "it gives a int and neither true nor false"),
        ("args.count / 0 == 1", "it divides by zero"),
        ("9223372036854775807 + args.count > 0", "a number becomes too large"),
        ("args.paths[7] == ''", "a list is shorter than that"),
        ("args.count.matches('3')", "found no matching overload for 'matches' applied to 'int.(string)'"),
        ("args.gone.matches('3')", "there is no `gone`; `has(…)` asks for what may be missing"),
        ("int(args.to) == 1", "`int` cannot be applied to this value"),
        ("args.none.x == 1", "found no matching overload for '_._' applied to '(null_type, string)'"),
    ] {
        let error = evaluate(condition, &sample()).unwrap_err();
        assert!(!error.contains("kim@"), "{error}");
        assert_eq!(error, expected, "{condition}");
    }
}

#[test]
fn invalid_conditions_are_refused_on_loading() {
    let deep = format!("{}true{}", "[".repeat(200), "]".repeat(200));
    let chain = format!("1{} > 0", "+1".repeat(300));
    let long = format!("args.a == '{}'", "x".repeat(3000));
    let pattern = format!("args.a.matches('{}')", "x".repeat(300));
    for (condition, expected) in [
        ("", "it is empty; write what has to hold, or remove the key"),
        ("  ", "it is empty"),
        ("args.a >", "something is missing at the end"),
        ("args.amount => 100", "column 13: "),
        ("args.amount => 100", "`>=` is what `=>` is elsewhere"),
        ("args.amount = 100", "`==` is what `=` is elsewhere"),
        ("args.a > 1 and args.b > 1", "column 12: "),
        ("args.a > 1 and args.b > 1", "`&&` is what `and` is elsewhere"),
        ("args.a > 1 &&\n args.b or args.c", "line 2, column 9: "),
        ("args.a > 1 or args.b > 1", "`||` is what `or` is elsewhere"),
        ("not args.a", "`!` is what `not` is elsewhere"),
        ("(args.a > 1", "expected ')'; something is missing at the end"),
        ("args.a == 'x", "column 11: "),
        ("arg.a > 1", "there is no `arg`; there are `args`, `tool`"),
        ("a.b.c", "there is no `a`"),
        ("args.a.lowerAscii() == ''", "there is no function `lowerAscii`"),
        ("duration('1s') > duration('2s')", "there is no function `duration`"),
        ("args.a.all(x, args.b.all(y, x == y))", "a macro"),
        ("args.a.map(x, x + x).map(x, x + x).size() > 1", "a macro"),
        ("args.a.exists(x, x == y)", "there is no `y`"),
        ("args.a.matches(args.b)", "has to be written out"),
        ("args.a.matches('(')", "is not a regular expression"),
        ("args.a.matches('(a{1000}){1000}')", "becomes too large"),
        ("args.a.all(x, !x.matches('\\\\w{100}'))", "becomes too large; `[a-z]` is smaller"),
        ("args.a.matches('a').matches(args.b)", "has to be written out"),
        ("matches()", "has to be written out"),
        ("size(args.path)", "it gives a number and neither true nor false"),
        ("args.a + args.b", "it gives a sum"),
        ("'rm'", "it gives text"),
        ("args", "it gives all arguments"),
        ("principal", "it gives text"),
        ("args.to.map(to, to + 'x')", "it gives a list"),
        ("args.force && size(args.path)", "it gives a number"),
        ("!args.items.filter(i, i.price > 3)", "it gives a list"),
        ("args.force ? 1 : 2", "it gives a number"),
        ("Call{a: 1} == args", "there is no type `Call`"),
        ("\u{202e}args.a == 1", "column"),
        (&deep, "column"),
        (&chain, "nested deeper"),
        (&long, "the most are 2000"),
        (&pattern, "at most 200"),
    ] {
        let error = Condition::parse(condition).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("recovery"), "{condition}: {error}");
        assert!(error.chars().count() < 300, "{error}");
    }
}

#[test]
fn the_outlook_of_a_condition_is_known_before_any_call() {
    for (condition, expected) in [
        ("args.amount > 100", Outlook::Open),
        ("args.a && !args.b || has(args.c)", Outlook::Open),
        ("args.to.exists_one(to, to == 'a')", Outlook::Open),
        ("args.to.all(to, to.contains('a'))", Outlook::Open),
        ("args.to == 'a' ? args.a > 1 : args.b > 1", Outlook::Open),
        ("principal == null", Outlook::Open),
        ("args.a in ['x']", Outlook::Open),
        ("true", Outlook::Constant),
        ("1 < 2 || [1].exists(n, n > 1)", Outlook::Constant),
        ("args.force", Outlook::Unknown),
        ("args['force']", Outlook::Unknown),
        ("dyn(args.force)", Outlook::Unknown),
        ("args.a ? args.b : true", Outlook::Unknown),
    ] {
        assert_eq!(Condition::parse(condition).unwrap().outlook(), expected, "{condition}");
    }
}

#[test]
fn comparisons_with_patterns_stop_at_the_budget() {
    let condition = "args.l.all(x, !x.matches('(a|b|ab)*c{1,40}[^a]{40}d'))";
    let few = json!({"l": vec!["ab".repeat(20); 3]});
    assert_eq!(evaluate(condition, &few), Ok(true));
    let many = json!({"l": vec!["ab".repeat(20); 2_000]});
    let error = evaluate(condition, &many).unwrap_err();
    assert_eq!(error, "it could take too long for arguments of this size");
    // The length of the list alone is no problem: the comparisons cost.
    assert_eq!(evaluate("args.l.all(x, x != 'c')", &many), Ok(true));
    // Each call has a budget of its own.
    assert_eq!(evaluate(condition, &few), Ok(true));
}

#[test]
fn a_rule_explains_why_it_matches_or_not() {
    let matches = Match { tool_name: Some("pay*".into()), ..Match::default() };
    let when = Condition::parse("args.amount > 100").unwrap();
    let rule = Rule::new("large", Verdict::Deny, "No.", matches, vec![], vec![]).unwrap().with_condition(when);
    let tool = Example { server: Some("shop".into()), tool: "pay_out".into(), ..Example::default() }.tool();
    let explained = |arguments: Option<Value>| {
        let arguments = arguments.map(|arguments| arguments.as_object().unwrap().clone());
        let subject = Subject { tool: &tool, agent: None, principal: None, arguments: arguments.as_ref() };
        let finding = rule.examine(&subject);
        (finding.as_str(), finding.in_words(&rule, &subject))
    };
    assert_eq!(explained(None).0, "depends");
    assert_eq!(explained(Some(json!({"amount": 101}))).0, "matches");
    assert_eq!(explained(Some(json!({"amount": 100}))), ("misses", "`args.amount > 100` does not hold".to_owned()));
    assert_eq!(explained(Some(json!({}))).0, "unclear");
}
