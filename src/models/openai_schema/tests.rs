use toolgate_core::json::MAX_DEPTH;

use super::*;

fn projected(schema: Value) -> (Value, Vec<String>) {
    let ProjectedSchema { schema, lost } = project(&schema).unwrap();
    (schema, lost)
}

#[test]
fn a_valid_root_stays_unchanged() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false, "$defs": {"x": {"type": "integer"}}});
    assert_eq!(projected(schema.clone()), (schema, vec![]));
}

#[test]
fn the_root_becomes_an_object_with_properties() {
    let empty = json!({"type": "object", "properties": {}});
    for schema in [json!({}), json!(true), json!({"type": "object"}), json!({"type": ["object", "null"]})] {
        assert_eq!(projected(schema), (empty.clone(), vec![]));
    }
}

#[test]
fn a_schema_of_a_non_object_is_rejected_with_the_reason() {
    assert_eq!(project(&json!(false)).unwrap_err(), "its schema allows nothing at all");
    assert_eq!(project(&json!("x")).unwrap_err(), "its schema is not a JSON Schema");
    let of_a_string = project(&json!({"type": "string"})).unwrap_err();
    assert_eq!(of_a_string, "its schema is not that of an object: its type is \"string\"");
}

#[test]
fn a_reference_at_the_root_is_expanded() {
    let definitions = json!({"Args": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false}});
    let (schema, lost) = projected(json!({"$ref": "#/definitions/Args", "definitions": definitions.clone()}));
    let expected = json!({"definitions": definitions, "type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"], "additionalProperties": false});
    assert_eq!((schema, lost), (expected, vec![]));
}

#[test]
fn a_dangling_or_circular_root_reference_is_dropped() {
    for reference in ["#/$defs/none", "#", "https://elsewhere.example/schema"] {
        let (schema, lost) = projected(json!({"$ref": reference}));
        assert_eq!(schema, json!({"type": "object", "properties": {}}), "{reference}");
        assert!(!lost.is_empty(), "{reference}");
    }
}

#[test]
fn a_schema_that_expands_without_end_is_cut_short() {
    let twice =
        |name: &str| json!({"allOf": [{"$ref": format!("#/$defs/{name}")}, {"$ref": format!("#/$defs/{name}")}]});
    let mut definitions: Map<String, Value> =
        (0..30).map(|level| (format!("d{level}"), twice(&format!("d{}", level + 1)))).collect();
    definitions.insert("d30".into(), json!({}));
    let (schema, lost) = projected(json!({"$ref": "#/$defs/d0", "$defs": definitions.clone()}));
    assert_eq!(schema, json!({"$defs": definitions, "type": "object", "properties": {}}));
    assert_eq!(lost, ["Its root refers to itself or to too many schemas: some of them are left out."]);
}

#[test]
fn a_dangling_nested_reference_is_dropped_and_reported() {
    let (schema, lost) = projected(json!({"type": "object", "$defs": {"x": {"type": "string"}},
        "allOf": [{"properties": {"moved": {"$ref": "#/allOf/0/$defs/y"}}, "$defs": {"x": true, "y": true}}],
        "properties": {"fine": {"$ref": "#/$defs/x"}, "far": {"$ref": "https://e.example/s", "title": "t"}}}));
    let expected = json!({"type": "object", "$defs": {"x": {"type": "string"}, "y": true},
        "properties": {"fine": {"$ref": "#/$defs/x"}, "far": {"title": "t"}, "moved": {}}});
    assert_eq!(schema, expected);
    let expected =
        ["A reference to \"https://e.example/s\" is left out.", "A reference to \"#/allOf/0/$defs/y\" is left out."];
    assert_eq!(lost, expected);
}

#[test]
fn a_conjunction_at_the_root_is_merged_without_loss() {
    let (schema, lost) =
        projected(json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "allOf": [
            {"properties": {"b": {"type": "integer"}}, "required": ["b", "a"]},
            {"properties": {"a": {"minLength": 1}}},
        ]}));
    let expected = json!({"type": "object", "properties": {
            "a": {"allOf": [{"type": "string"}, {"minLength": 1}]},
            "b": {"type": "integer"},
        }, "required": ["a", "b"]});
    assert_eq!((schema, lost), (expected, vec![]));
}

#[test]
fn alternatives_at_the_root_keep_their_common_part() {
    for word in ["anyOf", "oneOf"] {
        let (schema, lost) = projected(json!({"type": "object", word: [
            {"properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
            {"properties": {"kind": {"const": "b"}, "y": {"type": "string"}}, "required": ["kind"]},
            {"type": "null"},
        ]}));
        let expected = json!({"type": "object", "required": ["kind"], "properties": {
            "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]},
            "x": {"type": "string"}, "y": {"type": "string"}}});
        assert_eq!(schema, expected);
        assert_eq!(
            lost,
            [format!("`{word}` at the root is merged: the rules on which arguments go together are lost.")]
        );
    }
}

#[test]
fn a_single_alternative_loses_no_rule() {
    let (schema, lost) = projected(json!({"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": true}}]}));
    assert_eq!((schema, lost), (json!({"type": "object", "properties": {"a": true}}), vec![]));
}

#[test]
fn unsupported_root_keywords_are_dropped_and_reported() {
    let (schema, lost) = projected(json!({"type": "object", "not": {"required": ["a"]}, "enum": [{}]}));
    assert_eq!(schema, json!({"type": "object", "properties": {}}));
    assert_eq!(lost, ["`enum` at the root is left out.", "`not` at the root is left out."]);
}

#[test]
fn nested_arrays_declare_their_items() {
    let (schema, lost) = projected(json!({"type": "object", "properties": {
        "bare": {"type": "array"},
        "maybe": {"type": ["array", "null"]},
        "tuple": {"type": "array", "items": [{"type": "string"}, {"type": "array"}], "additionalItems": false},
        "deep": {"anyOf": [{"type": "object", "additionalProperties": {"type": "array"}}]},
        "type": {"type": "string"}, "default": {"default": {"type": "array"}},
    }}));
    let properties = json!({
        "bare": {"type": "array", "items": {}},
        "maybe": {"type": ["array", "null"], "items": {}},
        "tuple": {"type": "array", "items": false, "prefixItems": [{"type": "string"}, {"type": "array", "items": {}}]},
        "deep": {"anyOf": [{"type": "object", "additionalProperties": {"type": "array", "items": {}}}]},
        "type": {"type": "string"}, "default": {"default": {"type": "array"}},
    });
    assert_eq!((schema["properties"].clone(), lost), (properties, vec![]));
}

#[test]
fn a_schema_within_the_subset_is_strict() {
    for schema in [
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}),
        json!({"type": "object", "properties": {
                "a": {"type": ["string", "null"], "description": "d", "format": "date"},
                "b": {"type": "array", "items": {"$ref": "#/$defs/B"}, "maxItems": 3},
                "c": {"anyOf": [{"type": "string", "enum": ["x", "y"]}, {"type": "null"}]}},
            "required": ["a", "b", "c"], "additionalProperties": false,
            "$defs": {"B": {"type": "object", "properties": {}, "required": [], "additionalProperties": false}}}),
    ] {
        assert_eq!(why_not_strict(&schema), None, "{schema}");
    }
}

#[test]
fn a_schema_outside_the_subset_is_reported_with_the_reason() {
    let closed = |properties: Value, required: Value| {
        json!({"type": "object", "properties": properties,
        "required": required, "additionalProperties": false})
    };
    let mut deep = json!({"type": "string"});
    for _ in 0..11 {
        deep = closed(json!({"a": deep}), json!(["a"]));
    }
    let many: Vec<String> = (0..1_001).map(|value| value.to_string()).collect();
    for (schema, why) in [
        (json!({"type": "array", "items": {}}), "its root is not an object"),
        (json!({"type": "object", "anyOf": []}), "`anyOf` is at its root"),
        (json!({"type": "object", "properties": {}}), "the root has no `additionalProperties: false`"),
        (json!({"type": "object", "additionalProperties": false}), "the root has no `properties`"),
        (closed(json!({"a": {"type": "string"}}), json!([])), "`a` is not required"),
        (closed(json!({}), json!(null)), "the root has no `required`"),
        (closed(json!({}), json!(["a"])), "\"a\" is required but not declared"),
        (closed(json!({"a": {}}), json!(["a"])), "`a` has no `type`"),
        (closed(json!({"a": true}), json!(["a"])), "`a` is not a plain schema"),
        (closed(json!({"a": {"oneOf": []}}), json!(["a"])), "`a` has `oneOf`"),
        (closed(json!({"a": {"type": "string", "minLength": 1}}), json!(["a"])), "`a` has `minLength`"),
        (closed(json!({"a": {"type": "string", "format": "uri"}}), json!(["a"])), "`a` has the format \"uri\""),
        (closed(json!({"a": {"$ref": "#", "title": "t"}}), json!(["a"])), "`$ref` of `a` has sibling keywords"),
        (closed(json!({"a": {"type": "array"}}), json!(["a"])), "`a` does not declare its items"),
        (closed(json!({"a": {"type": "object"}}), json!(["a"])), "`a` has no `additionalProperties: false`"),
        (closed(json!({"a": {"enum": ["x"]}}), json!(["a"])), "`a` has no `type`"),
        (closed(json!({"a": {"type": "string", "enum": many}}), json!(["a"])), "more than 1000 values of enums"),
        (deep, "it is nested deeper than 10 levels"),
    ] {
        assert_eq!(why_not_strict(&schema).as_deref(), Some(why), "{schema}");
    }
}

mod laws {
    use super::*;
    use proptest::prelude::*;

    /// Arbitrary schemas, with combinations at the root.
    fn schemas() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({"type": "string"})),
            Just(json!({"type": "array"})),
            Just(json!({"$ref": "#/$defs/x"})),
            Just(json!({"$ref": "#"})),
            Just(json!({"type": ["object", "null"]})),
            Just(json!(true)),
        ];
        leaf.prop_recursive(4, 24, 3, |inner| {
            let word = prop::sample::select(vec!["allOf", "anyOf", "oneOf"]);
            let named = prop::collection::btree_map("[abc]", inner.clone(), 0..3);
            prop_oneof![
                (word, prop::collection::vec(inner.clone(), 0..3)).prop_map(|(word, all)| json!({word: all})),
                (named, any::<bool>()).prop_map(|(properties, closed)| json!({"type": "object",
                    "required": properties.keys().collect::<Vec<_>>(), "properties": properties,
                    "additionalProperties": !closed})),
                inner.prop_map(|inner| json!({"not": inner.clone(), "$defs": {"x": inner}})),
            ]
        })
    }

    /// Schemas of objects that combine others only by `allOf` and `$ref`.
    fn conjunctions() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({"type": "string"})),
            Just(json!({"type": "array"})),
            Just(json!({"type": "array", "prefixItems": [{"type": "string"}]})),
            Just(json!({"$ref": "#/$defs/x"})),
        ];
        let object = prop::collection::btree_map("[abc]", leaf, 0..3).prop_flat_map(|properties| {
            let names: Vec<String> = properties.keys().cloned().collect();
            let required = prop::sample::subsequence(names.clone(), 0..=names.len());
            (Just(properties), required, any::<bool>()).prop_map(|(properties, required, is_closed)| {
                json!({"properties": properties, "required": required, "additionalProperties": !is_closed})
            })
        });
        let object = object.prop_recursive(3, 12, 3, |inner| {
            (inner.clone(), prop::collection::vec(inner, 1..3)).prop_map(|(mut root, all)| {
                root["allOf"] = all.into();
                root
            })
        });
        object.prop_map(|mut root| {
            root["$defs"] = json!({"x": {"type": ["string", "array"]}});
            root
        })
    }

    fn arguments() -> impl Strategy<Value = Value> {
        let value =
            prop_oneof![Just(json!("s")), Just(json!([])), Just(json!(["s"])), Just(json!([1])), Just(json!(1))];
        prop::collection::btree_map("[abc]", value, 0..4).prop_map(|members| json!(members))
    }

    proptest! {
        #[test]
        fn every_sent_schema_has_a_supported_root(schema in schemas()) {
            if let Ok(ProjectedSchema { schema, .. }) = project(&schema) {
                prop_assert_eq!(&schema["type"], "object");
                prop_assert!(schema["properties"].is_object());
                for word in ["$ref", "allOf", "anyOf", "oneOf", "enum", "const", "not"] {
                    prop_assert!(schema.get(word).is_none(), "{}", word);
                }
                prop_assert!(!toolgate_core::json::is_deeper_than(&schema, MAX_DEPTH));
            }
        }

        #[test]
        fn without_alternatives_allowed_values_stay_allowed(schema in conjunctions(), given in arguments()) {
            if let Ok(ProjectedSchema { schema: sent, .. }) = project(&schema) {
                let (was, is) = (jsonschema::is_valid(&schema, &given), jsonschema::is_valid(&sent, &given));
                prop_assert!(!was || is, "{} was allowed, but is not by {}", given, sent);
            }
        }

        #[test]
        fn projection_is_idempotent(schema in schemas()) {
            if let Ok(first) = project(&schema) {
                let again = project(&first.schema);
                prop_assert_eq!(again, Ok(ProjectedSchema { lost: vec![], ..first }));
            }
        }
    }
}
