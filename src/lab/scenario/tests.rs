use serde_json::{Value, json};

use super::*;
use crate::recording::Recording;

/// A run with two calls of one server, and one that toolgate rejected.
fn run() -> Recording {
    let tools = json!([
        {"name": "find", "model_name": "mcp_shop_find", "input_schema": {}},
        {"name": "pay", "model_name": "mcp_shop_pay", "input_schema": {}},
    ]);
    let usage = json!({"input_tokens": 100, "output_tokens": 10});
    serde_json::from_value(json!({
        "toolgate_recording": 1, "task": "t", "servers": {"shop": {"tools": tools}},
        "turns": [
            {"usage": usage, "calls": [
                {"id": "call_1", "tool": "mcp_shop_find", "arguments": {"name": "Ada", "limit": 5},
                 "result": {"text": "{\"id\": 7}", "structured": {"id": 7}}},
            ]},
            {"usage": usage, "calls": [
                {"id": "call_2", "tool": "mcp_shop_pay", "arguments": {"id": 7}, "result": {"text": "declined", "error": true}},
                {"id": "call_3", "tool": "mcp_shop_pay", "arguments": {"id": 7, "cents": 100}, "result": {"text": "paid"}},
            ]},
            {"usage": usage, "say": "Paid 7."},
        ],
        "end": {"status": "completed", "answer": "{\"paid\": 7}"},
    }))
    .unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// The unmet expectations, as `key at place`.
fn findings(expect: Value) -> Vec<String> {
    let expect: Expect = serde_json::from_value(expect).unwrap();
    let found = block_on(check(&expect, &run()));
    let place = |finding: &Finding| finding.place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
    found.iter().map(|finding| format!("{}{}", finding.expectation, place(finding))).collect()
}

#[test]
fn met_expectations_give_no_findings() {
    for expect in [
        json!({}),
        json!({"status": "completed", "turns": 3, "call_count": {"min": 2}, "errors": {"max": 1}, "tokens": {"max": 330}}),
        json!({"calls": [{"tool": "find", "arguments": {"name": "Ada"}}, {"tool": "mcp_shop_pay", "result": {"error": true}}]}),
        json!({"calls": [{"tool": "pay", "arguments": {"cents": {"$range": [1, 100]}}}]}),
        json!({"order": "any", "calls": [{"tool": "pay"}, {"tool": "f*", "result": {"structured": {"id": 7}}}]}),
        json!({"order": "exact", "calls": [{"tool": "find"}, {"tool": "pay"}, {"tool": "pay", "result": {"text": "paid"}}]}),
        json!({"calls": [{"tool": "pay", "times": 2}, {"tool": "pay", "arguments": {"cents": 100}, "times": {"max": 1}}]}),
        json!({"not_called": ["delete_*"]}),
        json!({"answer": {"contains": ["paid", "7"], "excludes": "sorry", "pattern": "^\\{", "schema": {"required": ["paid"]}}}),
        json!({"answer": {"equals": {"$json": {"paid": 7}}}}),
    ] {
        assert_eq!(findings(expect.clone()), [""; 0], "{expect}");
    }
}

#[test]
fn each_unmet_expectation_is_found_at_its_place() {
    for (expect, found) in [
        (json!({"status": "failed"}), "expect.status"),
        (json!({"turns": {"max": 2}}), "expect.turns"),
        (json!({"call_count": 2}), "expect.call_count"),
        (json!({"errors": 0}), "expect.errors"),
        (json!({"tokens": {"max": 329}}), "expect.tokens"),
        (json!({"calls": [{"tool": "refund"}]}), "expect.calls[0].tool"),
        (
            json!({"calls": [{"tool": "find", "arguments": {"name": "Bob"}}]}),
            "expect.calls[0].arguments at call 1 (mcp_shop_find), $.name",
        ),
        (
            json!({"calls": [{"tool": "find", "arguments": {"limit": {"$absent": true}}}]}),
            "expect.calls[0].arguments at call 1 (mcp_shop_find), $.limit",
        ),
        (
            json!({"calls": [{"tool": "find", "result": {"structured": {"id": 8}}}]}),
            "expect.calls[0].result at call 1 (mcp_shop_find), $.structured.id",
        ),
        (json!({"calls": [{"tool": "pay"}, {"tool": "find"}]}), "expect.calls[1].tool at call 1 (mcp_shop_find)"),
        (
            json!({"order": "exact", "calls": [{"tool": "find"}, {"tool": "pay"}]}),
            "expect.calls at call 3 (mcp_shop_pay)",
        ),
        (
            json!({"order": "exact", "calls": [{"tool": "find"}, {"tool": "find"}, {"tool": "pay"}]}),
            "expect.calls[1].tool at call 2 (mcp_shop_pay)",
        ),
        (json!({"order": "any", "calls": [{"tool": "find"}, {"tool": "find"}]}), "expect.calls[1].tool"),
        (json!({"calls": [{"tool": "pay", "times": 3}]}), "expect.calls[0].times"),
        (json!({"not_called": ["find"]}), "expect.not_called at call 1 (mcp_shop_find)"),
        (json!({"answer": {"contains": "sorry"}}), "expect.answer.contains"),
        (json!({"answer": {"excludes": "paid"}}), "expect.answer.excludes"),
        (json!({"answer": {"pattern": "^Paid"}}), "expect.answer.pattern"),
        (json!({"answer": {"equals": {"$json": {"paid": 8}}}}), "expect.answer.equals at $.paid"),
        (json!({"answer": {"schema": {"properties": {"paid": {"type": "string"}}}}}), "expect.answer.schema at /paid"),
        (json!({"answer": {"equals": null}}), "expect.answer.equals at $"),
        (
            json!({"calls": [{"tool": "find", "arguments": null}]}),
            "expect.calls[0].arguments at call 1 (mcp_shop_find), $",
        ),
    ] {
        assert_eq!(findings(expect.clone()), [found], "{expect}");
    }
}

#[test]
fn a_finding_is_shown_with_both_values() {
    let expect: Expect =
        serde_json::from_value(json!({"calls": [{"tool": "find", "arguments": {"name": "Bob"}}]})).unwrap();
    let found = block_on(check(&expect, &run()));
    assert_eq!(
        found[0].lines(),
        [
            "expect.calls[0].arguments at call 1 (mcp_shop_find), $.name: the arguments differ",
            "  expected: \"Bob\"",
            "  actual:   \"Ada\"",
        ]
    );
}

#[test]
fn bad_values_of_a_file_are_refused_with_a_remedy() {
    for (expect, told) in [
        (json!({"turns": "3"}), "such as `{ min: 1, max: 3 }`"),
        (json!({"turns": {"min": 3, "max": 1}}), "greater than `max`"),
        (json!({"status": "done"}), "expected one of `running`"),
        (json!({"answer": {"pattern": "["}}), "is not a regular expression"),
        (json!({"answer": {"contains": 1}}), "a text, or a list of texts"),
        (json!({"not_called": ["["]}), "is not a pattern of names"),
        (json!({"call": []}), "unknown field `call`"),
    ] {
        let error = serde_json::from_value::<Expect>(expect).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

fn cases(written: Value) -> Result<Vec<TestCase>, String> {
    expand(&written)
}

#[test]
fn a_case_runs_for_each_row_and_each_model() {
    let written = json!({
        "models": {"a": {"configured": "main"}, "b": {"scripted": []}},
        "scenarios": [{
            "name": "s", "task": "find {{who}}", "cases": [{"name": "Ada", "with": {"who": "Ada", "n": 3}}, {"name": "Bob", "with": {"who": "Bob", "n": 4}}],
            "expect": {"calls": [{"tool": "find", "arguments": {"name": "{{who}}", "n": "{{n}}"}}]},
        }],
    });
    let cases = cases(written).unwrap();
    let titles: Vec<String> = cases.iter().map(TestCase::title).collect();
    assert_eq!(titles, ["s [Ada] (a)", "s [Ada] (b)", "s [Bob] (a)", "s [Bob] (b)"]);
    assert_eq!(cases[3].scenario.task, "find Bob");
    let arguments = cases[3].scenario.expect.calls[0].arguments.as_ref().unwrap();
    assert_eq!(arguments.written(), &json!({"name": "Bob", "n": 4}));
}

#[test]
fn variables_fill_numbers_and_patterns() {
    let written = json!({"scenarios": [{
        "name": "s", "task": "t", "model": {"scripted": []}, "timeout_s": "{{limit}}",
        "cases": [{"name": "x", "with": {"n": 3, "limit": 20, "id": "A-1"}}],
        "expect": {"turns": "{{n}}", "errors": {"max": "{{n}}"}, "answer": {"pattern": "^{{id}}$"},
            "calls": [{"tool": "find", "times": "{{n}}", "arguments": {"id": {"$pattern": "^{{id}}"}}}]},
    }]});
    let scenario = cases(written).unwrap().remove(0).scenario;
    let exactly = Some(Bounds { min: 3, max: Some(3) });
    assert_eq!((scenario.timeout_s, scenario.expect.turns), (Some(20), exactly));
    assert_eq!((scenario.expect.errors.unwrap().max, scenario.expect.calls[0].times), (Some(3), exactly));
    assert_eq!(scenario.expect.answer.unwrap().pattern.unwrap().0.as_str(), "^A-1$");
}

#[test]
fn calls_in_any_order_are_matched_as_well_as_possible() {
    let order = |calls: Value| findings(json!({"order": "any", "calls": calls}));
    let (any, second) = (json!({"tool": "pay"}), json!({"tool": "pay", "arguments": {"id": 7}}));
    let first = json!({"tool": "pay", "result": {"error": true}});
    assert_eq!(order(json!([any, first])), [""; 0]);
    assert_eq!(order(json!([second, first])), [""; 0]);
    assert_eq!(order(json!([second, any, first])), ["expect.calls[2].tool"]);
}

#[test]
fn two_cases_of_one_name_are_refused() {
    let scenario = json!({"name": "s", "task": "t", "model": {"scripted": []}});
    let error = cases(json!({"scenarios": [scenario, scenario]})).unwrap_err();
    assert!(error.starts_with("two cases are called `s`; give each scenario"), "{error}");
}

#[test]
fn a_missing_variable_and_a_missing_model_are_named() {
    let scenario = |more: Value| {
        let mut scenario = json!({"name": "s", "task": "find {{who}}"});
        scenario.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"scenarios": [scenario]})
    };
    let model = json!({"scripted": [{"say": "{{last_result}}"}]});
    let error = cases(scenario(json!({"model": model, "cases": [{"name": "x", "with": {"other": 1}}]}))).unwrap_err();
    assert_eq!(error, "scenario `s`: case `x`: it has no variable `who`; its `with` has `other`");
    assert!(cases(scenario(json!({}))).unwrap_err().contains("add `model: { scripted: [turns] }`"));
    let both = cases(scenario(json!({"model": model, "models": {"a": model}}))).unwrap_err();
    assert!(both.contains("both `model` and `models`"), "{both}");
}

fn report(outcome: CaseOutcome, findings: Vec<Finding>) -> TestReport {
    let attempt = Attempt {
        passed: findings.is_empty(),
        findings,
        status: "completed".into(),
        turns: 2,
        calls: 1,
        tokens: 5,
        duration_ms: 7,
        answer: None,
        trace_id: None,
        steps: vec![Step { name: "model m".into(), start_ms: 0, duration_ms: 5, failed: false }],
    };
    let case = CaseReport {
        file: "a&b.yaml".into(),
        scenario: "s".into(),
        title: "s <1>".into(),
        outcome,
        reason: None,
        pass_rate: 1.0,
        duration_ms: 1234,
        attempts: vec![attempt],
    };
    TestReport { cases: vec![case] }
}

#[test]
fn reports_escape_the_texts_of_others() {
    let failed = report(CaseOutcome::Failed, vec![Finding::new("expect.answer", "a `<b>`\u{1b} ```")]);
    let xml = junit(&failed);
    assert!(xml.contains("<testsuite name=\"a&amp;b.yaml\" tests=\"1\" failures=\"1\""), "{xml}");
    assert!(
        xml.contains("name=\"s &lt;1&gt;\" time=\"1.234\"") && xml.contains("a `&lt;b&gt;` ```</failure>"),
        "{xml}"
    );
    let text = markdown(&failed);
    assert!(
        text.contains("| ❌ failed | s &lt;1&gt; | 2 | 1 | 5 | 1234 ms |") && text.contains("````text\n"),
        "{text}"
    );
}

#[test]
fn a_test_passes_only_if_a_case_ran() {
    assert!(report(CaseOutcome::Passed, vec![]).passed());
    assert!(!report(CaseOutcome::Skipped, vec![]).passed());
    assert!(!report(CaseOutcome::Error, vec![]).passed());
    assert!(!TestReport::default().passed());
}

#[test]
fn a_judge_decides_in_its_first_word() {
    assert_eq!(judge::verdict("PASS\nIt names the order."), Ok((true, "It names the order.".into())));
    assert_eq!(judge::verdict("**FAIL**\nno"), Ok((false, "no".into())));
    assert!(judge::verdict("I think it passes").unwrap_err().contains("neither PASS nor FAIL"));
}
