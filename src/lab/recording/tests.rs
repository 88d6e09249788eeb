use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn expected(value: Value) -> Expected {
    Expected::parse(value).unwrap()
}

fn places(written: Value, actual: &Value, members: Members) -> Vec<String> {
    let differences = expected(written).differences(actual, members, &|_| false);
    differences.iter().map(|difference| difference.path.to_string()).collect()
}

/// A recording of one turn for each call, with these tools, arguments and results.
fn recording(calls: Value) -> Recording {
    let tools = json!([
        {"name": "find", "model_name": "mcp_shop_find", "input_schema": {"type": "object"}},
        {"name": "pay", "model_name": "mcp_shop_pay", "input_schema": {"type": "object"}, "description": "Pays."},
    ]);
    let calls: Vec<Value> = calls.as_array().unwrap().clone();
    let turns: Vec<Value> = calls.iter().map(|call| json!({"calls": [call]})).collect();
    serde_json::from_value(json!({
        "toolgate_recording": 1, "task": "t", "servers": {"shop": {"tools": tools}}, "turns": turns,
        "end": {"status": "completed", "answer": "done"},
    }))
    .unwrap()
}

fn call(number: usize, tool: &str, arguments: Value, text: Value) -> Value {
    json!({"id": format!("call_{number}"), "tool": tool, "arguments": arguments, "result": {"text": text}})
}

fn usual() -> Value {
    json!([
        call(1, "mcp_shop_find", json!({"name": "Ada"}), json!("{\"id\": 7, \"tags\": [\"a\"]}")),
        call(2, "mcp_shop_pay", json!({"id": 7, "cents": 100}), json!("paid")),
    ])
}

fn kinds(recorded: &Recording, replayed: &Recording, side: Side) -> Vec<(DivergenceKind, String)> {
    let comparison = compare(recorded, replayed, side);
    comparison.divergences.iter().map(|divergence| (divergence.kind, divergence.place())).collect()
}

#[test]
fn matchers_hold_for_the_values_they_describe() {
    for (written, fits, fails) in [
        (json!({"$any": true}), json!([1]), None),
        (json!({"$pattern": "^A-\\d+$"}), json!("A-12"), Some(json!("B-12"))),
        (json!({"$range": [1, 10]}), json!(10), Some(json!(10.5))),
        (json!({"$range": [null, 0]}), json!(-5), Some(json!("0"))),
        (json!({"$one_of": ["a", {"$range": [1, 2]}]}), json!(2), Some(json!("b"))),
        (json!({"$contains": "or"}), json!("order"), Some(json!("none"))),
        (json!({"$contains": {"id": 1}}), json!([{"id": 1}]), Some(json!([{"id": 2}]))),
        (json!({"$has": {"a": 1}}), json!({"a": 1, "b": 2}), Some(json!({"b": 2}))),
        (json!({"$type": "integer"}), json!(3), Some(json!(3.5))),
        (json!({"$json": {"a": {"$any": true}}}), json!("{\"a\": 5}"), Some(json!("{}"))),
        (json!({"$equals": {"$any": true}}), json!({"$any": true}), Some(json!(1))),
        (json!({"a": {"$absent": true}}), json!({}), Some(json!({"a": 1}))),
        (json!(1), json!(1.0), Some(json!("1"))),
        (json!("{\"a\": 1}"), json!("{ \"a\":1 }"), Some(json!("{\"a\": 2}"))),
        (json!({"key": "[redacted]"}), json!({"key": ["secret"]}), Some(json!({}))),
        (json!("Bearer [redacted]!"), json!("Bearer abc!"), Some(json!("Basic abc!"))),
        (json!("{\"key\": \"[redacted]\"}"), json!("{\"key\":\"abc\"}"), Some(json!("{\"key\": \"abc\", \"b\": 1}"))),
    ] {
        assert_eq!(places(written.clone(), &fits, Members::Exact), [""; 0], "{written}");
        if let Some(fails) = fails {
            assert_ne!(places(written.clone(), &fails, Members::Exact), [""; 0], "{written}");
        }
    }
}

#[test]
fn a_difference_has_the_path_of_its_place() {
    let written = json!({"a": [1, {"b": "x"}], "c": true, "text": "{\"ids\": [1, 2]}"});
    let actual = json!({"a": [1, {"b": "y"}, 3], "d": null, "text": "{\"ids\": [1, 3]}"});
    assert_eq!(places(written.clone(), &actual, Members::Exact), ["$.a[1].b", "$.a[2]", "$.c", "$.text.ids[1]", "$.d"]);
    assert_eq!(places(written, &actual, Members::Open), ["$.a[1].b", "$.a[2]", "$.c", "$.text.ids[1]"]);
}

#[test]
fn a_bad_matcher_is_refused_with_a_remedy() {
    for (written, told) in [
        (json!({"$patern": "x"}), "unknown matcher `$patern`; expected one of `$any`"),
        (json!({"$pattern": "("}), "is not a regular expression"),
        (json!({"$range": [3, 1]}), "such as `{ $range: [1, 10] }`"),
        (json!({"$range": 3}), "such as `{ $range: [1, 10] }`"),
        (json!({"$one_of": []}), "takes a list of values"),
        (json!({"$type": "date"}), "is not a type"),
        (json!({"$any": true, "$range": [1, 2]}), "a matcher has one condition"),
        (json!({"$has": 1}), "takes an object"),
        (json!({"$any": false}), "`$any` takes `true`"),
        (json!({"$absent": false}), "`$absent` takes `true`"),
    ] {
        let error = Expected::parse(json!([written])).unwrap_err();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_matcher_plays_its_example() {
    let value = json!({"id": {"$pattern": "^A", "$example": "A-1"}, "n": {"$one_of": [3]}, "x": {"$absent": true}});
    assert_eq!(expected(value).example(), Ok(json!({"id": "A-1", "n": 3})));
    assert!(expected(json!({"id": {"$any": true}})).example().unwrap_err().contains("has no `$example`"));
}

#[test]
fn each_kind_of_divergence_is_found_at_its_place() {
    use DivergenceKind as K;
    let recorded = recording(usual());
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut calls = usual();
        change(&mut calls);
        recording(calls)
    };
    let find = |kind, place: &str| vec![(kind, place.to_owned())];
    for (change, found) in [
        (
            &(|calls: &mut Value| calls[1]["tool"] = "mcp_shop_find".into()) as &dyn Fn(&mut Value),
            find(K::Call, "call 2 (mcp_shop_pay)"),
        ),
        (&|calls: &mut Value| calls.as_array_mut().unwrap().reverse(), find(K::Order, "call 1 (mcp_shop_find)")),
        (&|calls: &mut Value| drop(calls.as_array_mut().unwrap().pop()), find(K::MissingCall, "call 2 (mcp_shop_pay)")),
        (
            &|calls: &mut Value| calls[1]["arguments"]["cents"] = 90.into(),
            find(K::Arguments, "call 2 (mcp_shop_pay), $.cents"),
        ),
        (
            &|calls: &mut Value| calls[0]["result"]["text"] = "{\"id\": 7, \"tags\": [\"b\"]}".into(),
            find(K::Result, "call 1 (mcp_shop_find), $.text.tags[0]"),
        ),
        (
            &|calls: &mut Value| calls[1]["result"]["error"] = true.into(),
            find(K::Result, "call 2 (mcp_shop_pay), $.error"),
        ),
        (
            &|calls: &mut Value| calls.as_array_mut().unwrap().push(call(3, "mcp_shop_pay", json!({}), json!("x"))),
            find(K::ExtraCall, "call 3 (mcp_shop_pay)"),
        ),
    ] {
        assert_eq!(kinds(&recorded, &changed(change), Side::Model), found);
    }
}

#[test]
fn a_changed_list_of_tools_is_reported_as_such() {
    use DivergenceKind as K;
    let recorded = recording(usual());
    let mut listed = recording(usual());
    let server = listed.servers.get_mut("shop").unwrap();
    server.tools[0].input_schema = json!({"type": "object", "required": ["name"]});
    server.tools.remove(1);
    server.tools.push(RecordedTool {
        name: "new".into(),
        model_name: "mcp_shop_new".into(),
        ..server.tools[0].clone()
    });
    let comparison = compare(&recorded, &listed, Side::Model);
    let places: Vec<_> = comparison.divergences.iter().map(|found| (found.kind, found.place())).collect();
    assert_eq!(
        places,
        [(K::ToolChanged, "mcp_shop_find, $.input_schema.required".into()), (K::ToolRemoved, "mcp_shop_pay".into())]
    );
    assert_eq!(comparison.notes[0].kind, K::ToolAdded);
    let only_finds = recording(json!([usual()[0]]));
    assert_eq!(kinds(&only_finds, &recording(json!([usual()[0]])), Side::Model), []);
}

#[test]
fn matchers_and_ignored_places_allow_differences() {
    let mut recorded = recording(usual());
    recorded.turns[1].calls[0].arguments =
        expected(json!({"id": {"$type": "integer", "$example": 7}, "cents": {"$range": [50, 100], "$example": 60}}));
    recorded.ignore = serde_json::from_value(json!([
        {"tool": "mcp_shop_f*", "in": "result", "path": "$.text.tags"}, {"in": "answer"},
    ]))
    .unwrap();
    let mut calls = usual();
    calls[0]["result"]["text"] = "{\"id\": 7, \"tags\": []}".into();
    calls[1]["arguments"]["cents"] = 70.into();
    let mut replayed = recording(calls);
    replayed.end.answer = Some(expected(json!("other words")));
    assert_eq!(kinds(&recorded, &replayed, Side::Model), []);
}

#[test]
fn the_order_of_calls_can_be_left_open() {
    let mut recorded = recording(usual());
    recorded.order = CallOrder::Any;
    let mut calls = usual();
    calls.as_array_mut().unwrap().reverse();
    assert_eq!(kinds(&recorded, &recording(calls), Side::Model), []);
}

#[test]
fn a_real_model_may_word_its_answer_in_its_own_way() {
    let mut recorded = recording(usual());
    let mut replayed = recording(usual());
    replayed.end.answer = Some(expected(json!("it is done now")));
    assert_eq!(kinds(&recorded, &replayed, Side::Server), []);
    recorded.end.answer = Some(expected(json!({"$pattern": "^paid"})));
    assert_eq!(kinds(&recorded, &replayed, Side::Server).len(), 1);
}

#[test]
fn a_file_is_read_back_in_both_forms() {
    let recorded = recording(usual());
    let yaml: Recording = serde_saphyr::from_str(&recorded.to_text(Format::Yaml).unwrap()).unwrap();
    assert_eq!(yaml, recorded);
    assert_eq!(Recording::from_jsonl(&recorded.to_text(Format::Jsonl).unwrap()).unwrap(), recorded);
    let error = Recording::from_jsonl("{\"toolgate_recording\": 1}\n{\"turn\": {\"sayy\": 1}}").unwrap_err();
    assert!(error.to_string().starts_with("line 2: unknown field `sayy`"), "{error}");
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1e3f64..1e3).prop_map(Value::from),
        "[a-z{}\\[\\]\":$, ]{0,8}".prop_map(Value::from),
    ];
    let name = prop_oneof!["[a-z]{1,3}", Just("$any".to_owned()), Just("$pattern".to_owned()), Just("$x".to_owned())];
    leaf.prop_recursive(3, 16, 3, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_literal_fits_itself_and_survives_its_file(value in json_values()) {
        let literal = Expected::literal(value.clone());
        prop_assert_eq!(literal.differences(&value, Members::Exact, &|_| false), vec![]);
        prop_assert_eq!(literal.example(), Ok(value.clone()));
        let again = Expected::parse(literal.written().clone()).unwrap();
        prop_assert_eq!(again.example(), Ok(value));
    }

    #[test]
    fn a_recording_never_diverges_from_itself(arguments in json_values(), text in json_values(), answer in json_values()) {
        let mut recorded = recording(usual());
        let call = &mut recorded.turns[0].calls[0];
        call.arguments = Expected::literal(arguments);
        call.result.structured = Some(Expected::literal(text));
        recorded.end.answer = Some(Expected::literal(answer));
        let read: Recording = serde_saphyr::from_str(&recorded.to_text(Format::Yaml).unwrap()).unwrap();
        for order in [CallOrder::Exact, CallOrder::Any] {
            let recorded = Recording { order, ..recorded.clone() };
            for side in [Side::Model, Side::Server] {
                prop_assert_eq!(compare(&recorded, &read, side), Comparison::default());
            }
        }
    }
}
