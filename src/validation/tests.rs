use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolgate_core::policy::Verdict;
use toolgate_core::run::{Budget, OutputVerdict, Spec};
use toolgate_core::tool::{Annotations, Origin, Problem, Tool, external_name};
use toolgate_ports::{InputFindings, OutputValidator, ToolInputValidator};

use super::SchemaValidator;

fn tool(schema: Value) -> Tool {
    Tool {
        name: external_name("probe"),
        own_name: None,
        endpoint: None,
        origin: Origin::External { tool: "probe".into() },
        description: String::new(),
        input_schema: Arc::new(schema),
        output_schema: None,
        annotations: Annotations::default(),
        trusted: false,
        priority: 0,
        deadline_s: None,
        verdict: Verdict::Allow,
        changed: false,
        hidden: false,
        hash: "sha256:same-for-all".into(),
        pinned: None,
        undo: None,
    }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

async fn problems(schema: Value, arguments: Value) -> Vec<Problem> {
    let validator = SchemaValidator::new();
    let tool = tool(schema);
    validator.accepts(&tool).expect("a usable schema");
    match ToolInputValidator::check(&validator, &tool, &object(arguments), &Budget::default()).await {
        InputFindings::Valid => Vec::new(),
        InputFindings::Invalid(problems) => problems,
    }
}

async fn the_problem(schema: Value, arguments: Value) -> Problem {
    let mut all = problems(schema, arguments).await;
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn refusal(schema: Value) -> String {
    SchemaValidator::new().accepts(&tool(schema)).expect_err("a refusal")
}

async fn verdict(schema: Value, answer: &str) -> OutputVerdict {
    let spec: Spec =
        serde_json::from_value(json!({"agent": "a", "model": "m", "output_schema": schema})).expect("spec");
    OutputValidator::check(&SchemaValidator::new(), &spec, answer, &Budget::default()).await
}

#[tokio::test]
async fn a_problem_names_location_rule_reason_and_received_value() {
    let schema = json!({"type": "object", "properties": {"ship": {"type": "object", "properties": {
        "zip": {"type": "string", "pattern": "^[0-9]{5}$"}}}}});
    assert_eq!(
        the_problem(schema, json!({"ship": {"zip": "12a"}})).await,
        Problem {
            path: "/ship/zip".into(),
            rule: "pattern".into(),
            message: "the value does not match \"^[0-9]{5}$\"".into(),
            received: Some(json!("12a")),
        }
    );
}

#[tokio::test]
async fn a_long_value_is_not_repeated() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}});
    let problem = the_problem(schema, json!({"a": "x".repeat(500)})).await;
    assert_eq!((problem.message.as_str(), problem.received), ("the value is longer than 3 characters", None));
}

#[tokio::test]
async fn a_value_with_the_name_or_the_form_of_a_secret_is_not_repeated() {
    let text = json!({"type": "string", "maxLength": 3});
    let schema = json!({"type": "object", "required": ["n"], "properties": {
        "password": text, "api_key": text, "word": {"type": "string", "maxLength": 3, "format": "password"},
        "card": text, "login": {"type": "object"}}});
    let value = json!({"password": "hunter2", "api_key": "k-123456", "word": "hunter3", "card": "4111111111111111",
        "login": "{\"pin\": \"4711\"}"});
    let found = problems(schema, value).await;
    assert_eq!(found.len(), 6, "{found:?}");
    let told = serde_json::to_string(&found).expect("JSON");
    for secret in ["hunter2", "k-123456", "hunter3", "4111111111111111", "4711"] {
        assert!(!told.contains(secret), "{secret} in {told}");
    }
}

#[tokio::test]
async fn at_most_ten_problems_are_reported() {
    let names: Vec<String> = (0..40).map(|n| format!("field{n}")).collect();
    assert_eq!(problems(json!({"type": "object", "required": names}), json!({})).await.len(), 10);
}

#[tokio::test]
async fn an_object_sent_as_a_string_is_recognized() {
    let schema = json!({"type": "object", "properties": {
        "filter": {"type": "object"}, "tags": {"anyOf": [{"type": "array"}, {"type": "null"}]}, "n": {"type": "integer"}}});
    let found = problems(schema, json!({"filter": "{\"a\": 1}", "tags": "[1]", "n": "5"})).await;
    let messages: Vec<&str> = found.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "the value is not of type \"object\": object was sent as a JSON string; send the object itself",
            "the value fits none of the 2 alternatives: (1) the value is not of type \"array\": array was sent as a JSON string; send the array itself; (2) the value is not of type \"null\"",
            "the value is not of type \"integer\": number was sent as a JSON string; send the number itself",
        ]
    );
}

#[tokio::test]
async fn each_alternative_reports_its_problem() {
    let schema = json!({"type": "object", "properties": {"to": {"oneOf": [
        {"type": "object", "required": ["email"], "properties": {"kind": {"const": "email"}}},
        {"type": "object", "required": ["phone"], "properties": {"phone": {"type": "string"}}},
    ]}}});
    let problem = the_problem(schema, json!({"to": {"kind": "email", "phone": 5}})).await;
    assert_eq!((problem.path.as_str(), problem.rule.as_str()), ("/to", "oneOf"));
    assert_eq!(
        problem.message,
        "the value fits none of the 2 alternatives: (1) \"email\" is a required property; (2) /to/phone: the value is not of type \"string\""
    );
}

#[tokio::test]
async fn a_schema_is_read_in_its_own_dialect() {
    let tuple = |dialect: Value| {
        json!({"$schema": dialect, "type": "object", "properties": {
        "pair": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}}})
    };
    let draft_07 = tuple(json!("http://json-schema.org/draft-07/schema#"));
    assert_eq!(the_problem(draft_07, json!({"pair": [1, 2]})).await.path, "/pair/1");
    assert!(refusal(tuple(json!("https://json-schema.org/draft/2020-12/schema"))).contains("/properties/pair/items"));
    let prefix = json!({"type": "object", "properties": {"pair": {"prefixItems": [{"type": "integer"}]}}});
    assert_eq!(the_problem(prefix, json!({"pair": ["x"]})).await.path, "/pair/0");
}

#[tokio::test]
async fn an_unknown_dialect_is_read_as_the_newest() {
    let schema = json!({"$schema": "https://example.com/my-own", "type": "object", "required": ["a"]});
    assert_eq!(the_problem(schema, json!({})).await.rule, "required");
}

#[tokio::test]
async fn formats_are_checked_and_unknown_ones_are_not() {
    let schema = json!({"type": "object", "properties": {
        "when": {"type": "string", "format": "date-time"}, "n": {"type": "integer", "format": "uint64"}}});
    assert_eq!(the_problem(schema, json!({"when": "yesterday", "n": 3})).await.rule, "format");
}

#[tokio::test]
async fn recursive_schemas_and_lookahead_patterns_work() {
    let tree = json!({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "pattern": "^(?!root).*$"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}});
    let problem = the_problem(tree, json!({"name": "a", "children": [{"name": "root"}]})).await;
    assert_eq!(problem.path, "/children/0/name");
}

#[tokio::test]
async fn a_pattern_that_backtracks_forever_is_cut_off() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=(a+)+$)(a|a)*b$"}}});
    let begun = Instant::now();
    let problem = the_problem(schema, json!({"a": format!("{}!", "a".repeat(60))})).await;
    assert_eq!(problem.rule, "pattern");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn nothing_is_fetched() {
    for reference in ["https://example.com/schema.json", "file:///etc/passwd", "other.json#/a", "#/$defs/nowhere"] {
        let reason = refusal(json!({"type": "object", "properties": {"a": {"$ref": reference}}}));
        assert!(reason.contains("is broken at"), "{reference}: {reason}");
    }
}

#[test]
fn a_schema_that_cannot_describe_arguments_is_rejected() {
    for (schema, expected) in [
        (json!(true), "its input schema is a bare true or false; it has to be a JSON Schema of type object"),
        (Value::Null, "its input schema is missing; it has to be a JSON Schema of type object"),
        (
            json!({"type": "string"}),
            "its input schema does not admit an object; it has to be a JSON Schema of type object",
        ),
        (json!([]), "its input schema is not a JSON object; it has to be a JSON Schema of type object"),
    ] {
        assert_eq!(refusal(schema), expected);
    }
    for schema in [json!({}), json!({"type": ["object", "null"]}), json!({"anyOf": [{"type": "object"}]})] {
        assert_eq!(SchemaValidator::new().accepts(&tool(schema.clone())), Ok(()), "{schema}");
    }
}

#[test]
fn a_broken_schema_is_rejected_with_its_location() {
    let reason = refusal(json!({"type": "object", "properties": {"a": {"type": "strnig"}}}));
    assert!(reason.starts_with("its input schema is broken at `/properties/a/type`: "), "{reason}");
    let mut with_result = tool(json!({"type": "object"}));
    with_result.output_schema = Some(Arc::new(json!({"minimum": "x"})));
    let reason = SchemaValidator::new().accepts(&with_result).expect_err("refused");
    assert!(reason.starts_with("its result schema is broken at `/minimum`: "), "{reason}");
}

#[test]
fn huge_and_deep_schemas_are_rejected_quickly() {
    let begun = Instant::now();
    let huge = refusal(json!({"type": "object", "description": "x".repeat(300_000)}));
    assert_eq!(huge, "its input schema is larger than 256 KiB; describe the arguments more briefly");
    let deep = (0..200).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}));
    assert_eq!(refusal(deep), "its input schema is nested deeper than 100 levels");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn patterns_too_large_together_are_rejected() {
    let with = |count: usize, pattern: &str| {
        let property = |number: usize| (format!("p{number}"), json!({"type": "string", "pattern": pattern}));
        json!({"type": "object", "properties": (0..count).map(property).collect::<Map<_, _>>()})
    };
    let started = std::time::Instant::now();
    assert!(refusal(with(1000, "^\\pL{300}$")).contains("is broken at"));
    assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
    assert_eq!(problems(with(8, "^\\pL{20}$"), json!({})).await, []);
    assert_eq!(problems(with(1000, "^[a-z0-9][a-z0-9-]{0,62}$"), json!({"p7": "fine"})).await, []);
}

/// Definitions `d0` to `d<length>`. Each refers to the next as often as there are references.
fn chain(length: usize, extra: impl Fn(usize) -> Value, references: &[&dyn Fn(usize) -> String]) -> Value {
    let mut definitions = Map::new();
    for n in 0..=length {
        let next: Vec<Value> = references.iter().map(|reference| json!({"$ref": reference(n + 1)})).collect();
        let mut definition = if n == length { json!({"minProperties": 0}) } else { json!({"allOf": next}) };
        definition.as_object_mut().expect("an object").append(&mut object(extra(n)));
        definitions.insert(format!("d{n}"), definition);
    }
    json!({"type": "object", "allOf": [{"$ref": references[0](0)}], "$defs": definitions})
}

#[test]
fn multiplying_references_are_rejected_in_every_form() {
    let begun = Instant::now();
    let pointer = |n: usize| format!("#/$defs/d{n}");
    let encoded = |n: usize| format!("#/%24defs/d{n}");
    let anchor = |n: usize| format!("#a{n}");
    let id = |n: usize| format!("d{n}.json");
    let nothing = |_: usize| json!({});
    let anchored = |n: usize| json!({"$anchor": format!("a{n}")});
    let identified = |n: usize| json!({"$id": format!("https://example.com/d{n}.json")});
    let mut by_id = chain(40, identified, &[&id, &id]);
    by_id["$id"] = json!("https://example.com/root.json");
    let [signed, zeroed, tildes] = ["list/+0", "list/00", "~~1"].map(|place| {
        let reference = |n: usize| format!("#/$defs/d{n}/{place}");
        let next =
            |n: usize| if n == 40 { json!(true) } else { json!({"allOf": vec![json!({"$ref": reference(n + 1)}); 2]}) };
        chain(40, |n| json!({"list": [next(n)], "~~1": next(n)}), &[&reference])
    });
    for bomb in [
        chain(40, nothing, &[&pointer, &pointer]),
        chain(40, nothing, &[&pointer, &encoded]),
        chain(40, anchored, &[&anchor, &anchor]),
        by_id,
        signed,
        zeroed,
        tildes,
        chain(5000, nothing, &[&pointer]),
    ] {
        let reason = refusal(bomb);
        assert!(reason.contains("refers to itself so often"), "{reason}");
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
    let harmless = chain(20, nothing, &[&pointer]);
    assert_eq!(SchemaValidator::new().accepts(&tool(harmless)), Ok(()));
}

#[test]
fn multiplying_anchors_of_older_drafts_are_rejected() {
    for (draft, key, anchor) in [("07", "$id", "#%61"), ("07", "$id", "#%2Fa"), ("04", "id", "#%61")] {
        let anchor = |n: usize| format!("{anchor}{n}");
        let mut bomb = chain(40, |n| json!({key: anchor(n)}), &[&anchor, &anchor]);
        bomb["$schema"] = json!(format!("http://json-schema.org/draft-{draft}/schema#"));
        bomb["definitions"] = bomb["$defs"].take();
        let reason = refusal(bomb);
        assert!(reason.contains("refers to itself so often"), "{reason}");
    }
}

#[test]
fn multiplying_references_of_a_property_named_like_a_keyword_are_rejected() {
    let pointer = |n: usize| format!("#/$defs/d{n}");
    for (key, name) in [("properties", "$defs"), ("patternProperties", "definitions"), ("dependencies", "$defs")] {
        let mut bomb = chain(40, |_| json!({}), &[&pointer, &pointer]);
        bomb["allOf"] = json!([{key: {name: bomb["allOf"][0].take()}}]);
        let reason = refusal(bomb);
        assert!(reason.contains("refers to itself so often"), "{reason}");
    }
}

#[test]
fn multiplying_references_in_a_cycle_are_rejected() {
    let reference = |n: usize| json!({"$ref": format!("#/$defs/d{n}")});
    let back = |n: usize| json!({"properties": {"a": n.checked_sub(1).map_or(json!(true), reference)}});
    let mut bomb = chain(40, back, &[&|n| format!("#/$defs/d{n}"), &|n| format!("#/$defs/d{n}")]);
    bomb["properties"] = json!({"a": reference(40)});
    let from_the_end =
        json!({"type": "object", "properties": bomb["properties"], "allOf": bomb["allOf"], "$defs": bomb["$defs"]});
    let reason = refusal(from_the_end);
    assert!(reason.contains("refers to itself so often"), "{reason}");
}

#[test]
fn multiplying_references_beside_false_cycles_are_rejected() {
    let reference = |n: usize| json!({"$ref": format!("#/$defs/a{n:02}")});
    // An unknown keyword, or an alternative that is never reached, refers back to a definition that is being counted.
    let beside: [fn(Value) -> Value; 2] = [|back| json!({"x": back}), |back| json!({"anyOf": [true, back]})];
    for beside in beside {
        let definition = |n: usize| {
            let mut definition = if n < 40 { beside(reference(n + 1)) } else { json!({}) };
            definition["allOf"] = json!(vec![n.checked_sub(1).map_or(json!(true), reference); 2]);
            (format!("a{n:02}"), definition)
        };
        let definitions: Map<String, Value> = (0..=40).map(definition).collect();
        let bomb = json!({"type": "object", "x": reference(0), "allOf": [reference(40)], "$defs": definitions});
        let reason = refusal(bomb);
        assert!(reason.contains("refers to itself so often"), "{reason}");
    }
}

#[tokio::test]
async fn problems_of_a_recursive_schema_are_not_collected_without_end() {
    let begun = Instant::now();
    let again = json!({"properties": {"a": {"$ref": "#"}}});
    let bomb = json!({"type": "object", "allOf": [again, again]});
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
    let found = the_problem(bomb.clone(), nested(60)).await;
    assert!(found.message.contains("too large to find out where"), "{}", found.message);
    assert!(!problems(bomb, nested(3)).await.is_empty(), "few are collected");
    let tree = json!({
        "type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "a": {"$ref": "#"}, "all": {"type": "array", "items": {"$ref": "#"}}},
    });
    let deep = (0..40).fold(json!({}), |inner, _| json!({"name": "n", "a": inner}));
    assert_eq!(the_problem(tree, deep).await.path, "/a".repeat(40));
    let texts =
        json!({"type": "object", "properties": {"a": {"items": {"allOf": vec![json!({"type": "string"}); 1000]}}}});
    let found = the_problem(texts, json!({"a": vec![1; 100_000]})).await;
    assert!(found.message.contains("too large to find out where"), "{}", found.message);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn multiplying_ids_are_rejected_before_any_lookup() {
    let ids: Vec<Value> = (0..3000).map(|n| json!({"$id": format!("i{n}")})).collect();
    let references: Vec<Value> = (0..3000).map(|n| json!({"$ref": format!("#/x{n}")})).collect();
    let begun = Instant::now();
    let reason = refusal(json!({"type": "object", "enum": ids, "allOf": references}));
    assert!(reason.contains("refers to itself so often"), "{reason}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_reused_key_never_returns_another_schemas_validator() {
    let validator = SchemaValidator::new();
    let any = tool(json!({"type": "object"}));
    let strict = tool(json!({"type": "object", "required": ["a"]}));
    let check = async |tool: &Tool| ToolInputValidator::check(&validator, tool, &Map::new(), &Budget::default()).await;
    assert_eq!(check(&any).await, InputFindings::Valid);
    assert!(matches!(check(&strict).await, InputFindings::Invalid(_)));
    assert_eq!(check(&any).await, InputFindings::Valid);
}

#[tokio::test]
async fn a_result_is_checked_only_against_a_declared_schema() {
    let validator = SchemaValidator::new();
    let mut tool = tool(json!({"type": "object"}));
    assert_eq!(validator.check_result(&tool, &json!(5)).await, InputFindings::Valid);
    tool.output_schema = Some(Arc::new(json!({"type": "string"})));
    assert!(matches!(validator.check_result(&tool, &json!(5)).await, InputFindings::Invalid(_)));
    assert_eq!(validator.check_result(&tool, &json!("5")).await, InputFindings::Valid);
}

#[tokio::test]
async fn without_a_schema_every_answer_is_final() {
    assert_eq!(verdict(Value::Null, "just text").await, OutputVerdict::Valid { value: None });
}

#[tokio::test]
async fn an_answer_is_json_or_one_fence_around_it() {
    let schema = json!({"type": "object", "required": ["ok"]});
    for answer in ["{\"ok\": 1}", " \n{\"ok\": 1}\n", "```json\n{\"ok\": 1}\n```", "```\n{\"ok\": 1}```\n"] {
        let expected = OutputVerdict::Valid { value: Some(json!({"ok": 1})) };
        assert_eq!(verdict(schema.clone(), answer).await, expected, "{answer}");
    }
}

#[tokio::test]
async fn an_answer_with_other_text_is_rejected_with_the_reason() {
    let mixed = "there is other text besides the JSON; answer with the JSON alone, without prose or code fences";
    for (answer, message) in [
        ("", "the answer is empty; answer with the JSON alone"),
        ("Sorry, I cannot.", "the answer is not JSON; answer with the JSON alone, without prose or code fences"),
        ("Here you are: {\"ok\": 1}", mixed),
        ("{\"ok\": 1}\nHope this helps!", mixed),
        ("Here:\n```json\n{\"ok\": 1}\n```", mixed),
        ("{\"ok\": }", "the answer is not valid JSON: expected value at line 1 column 8; answer with the JSON alone"),
    ] {
        let expected = OutputVerdict::Invalid { problems: vec![Problem::whole("json", message)] };
        assert_eq!(verdict(json!({"type": "object"}), answer).await, expected, "{answer}");
    }
}

#[tokio::test]
async fn an_invalid_answer_is_rejected_with_the_location() {
    let OutputVerdict::Invalid { problems } = verdict(json!({"properties": {"n": {"minimum": 3}}}), "{\"n\": 1}").await
    else {
        panic!("accepted")
    };
    assert_eq!((problems[0].path.as_str(), problems[0].rule.as_str()), ("/n", "minimum"));
}
