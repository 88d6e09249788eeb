//! Changes since an earlier list of tools, by what they break: callers, approvals, or only prompt caches.

use std::collections::BTreeMap;

use serde_json::Value;

use super::finding::{Finding, one_line};
use super::rules::{Rule, changes as rules};
use super::schema_changes::{Effect, SchemaChange, schema_changes};

/// The differences between an earlier list of tools and this one.
pub fn compare(earlier: &[Value], now: &[Value]) -> Vec<Finding> {
    let name = |tool: &Value| tool.get("name").and_then(Value::as_str).map(str::to_owned);
    let index = |tools: &[Value]| -> BTreeMap<String, Value> {
        tools.iter().filter_map(|tool| Some((name(tool)?, tool.clone()))).collect()
    };
    let (before, after) = (index(earlier), index(now));
    let mut found = Vec::new();
    for (name, old) in &before {
        match after.get(name) {
            Some(new) => changes_of(name, old, new, &mut found),
            None => found.push(Finding::new(&rules::TOOL_REMOVED, "the tool is no longer listed").tool(name)),
        }
    }
    for name in after.keys().filter(|name| !before.contains_key(*name)) {
        found.push(Finding::new(&rules::TOOL_ADDED, "the tool is new").tool(name));
    }
    let order = |tools: &[Value], others: &BTreeMap<String, Value>| -> Vec<String> {
        tools.iter().filter_map(name).filter(|name| others.contains_key(name)).collect()
    };
    if order(earlier, &after) != order(now, &before) {
        found.push(Finding::new(&rules::ORDER_CHANGED, "the tools are listed in another order"));
    }
    found
}

fn changes_of(name: &str, old: &Value, new: &Value, found: &mut Vec<Finding>) {
    let mut report =
        |rule: &'static Rule, pointer: &str, text: &str| found.push(Finding::new(rule, text).tool(name).at(pointer));
    let member = |tool: &Value, key: &str| tool.get(key).cloned().unwrap_or_default();
    if member(old, "description") != member(new, "description") || member(old, "title") != member(new, "title") {
        report(&rules::DESCRIPTION_CHANGED, "/description", "title or description changed");
    }
    if member(old, "annotations") != member(new, "annotations") {
        let text = format!(
            "{} became {}",
            one_line(&member(old, "annotations").to_string(), 120),
            one_line(&member(new, "annotations").to_string(), 120)
        );
        report(&rules::ANNOTATIONS_CHANGED, "/annotations", &text);
    }
    if member(old, "outputSchema") != member(new, "outputSchema") {
        report(&rules::OUTPUT_CHANGED, "/outputSchema", "the outputSchema changed");
    }
    let (before, after) = (member(old, "inputSchema"), member(new, "inputSchema"));
    if before == after {
        return;
    }
    let differences = schema_changes(&before, &after);
    if differences.is_empty() {
        report(&rules::INPUT_WIDENED, "/inputSchema", "the inputSchema changed, and earlier arguments still fit");
    }
    for SchemaChange { effect, pointer, text } in differences {
        let rule = match effect {
            Effect::Refused => &rules::INPUT_NARROWED,
            Effect::Ignored => &rules::INPUT_IGNORED,
        };
        report(rule, &format!("/inputSchema{pointer}"), &text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, schema: Value) -> Value {
        json!({"name": name, "description": "d", "inputSchema": schema})
    }

    fn rules_of(earlier: &[Value], now: &[Value]) -> Vec<(&'static str, String)> {
        compare(earlier, now).into_iter().map(|finding| (finding.rule, finding.pointer.unwrap_or_default())).collect()
    }

    #[test]
    fn a_new_required_property_breaks_callers_and_an_optional_one_does_not() {
        let old = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let optional = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        let mut needed = optional.clone();
        needed["required"] = json!(["b"]);
        let rules = |new: &Value| rules_of(&[tool("x", old.clone())], &[tool("x", new.clone())]);
        assert_eq!(rules(&optional), [("input-widened", "/inputSchema".to_owned())]);
        assert_eq!(rules(&needed), [("input-narrowed", "/inputSchema/required".to_owned())]);
    }

    /// The rule and the pointer below `/inputSchema` of the only difference.
    fn difference(old: &Value, new: &Value) -> (&'static str, String) {
        let mut found = rules_of(&[tool("x", old.clone())], &[tool("x", new.clone())]);
        assert_eq!(found.len(), 1, "{found:?}");
        let (rule, pointer) = found.remove(0);
        (rule, pointer.trim_start_matches("/inputSchema").to_owned())
    }

    #[test]
    fn tighter_values_break_callers() {
        let schema = |inner: &Value| json!({"type": "object", "properties": {"a": inner}});
        for (old, new, at) in [
            (json!({"type": "string"}), json!({"type": "integer"}), "/type"),
            (json!({"type": "integer"}), json!({"type": "integer", "maximum": 5}), "/maximum"),
            (json!({"enum": ["a", "b"]}), json!({"enum": ["a"]}), "/enum"),
            (json!({"enum": ["a", "b"]}), json!({"const": "a"}), "/const"),
            (json!({"type": "array"}), json!({"type": "array", "items": {"type": "string"}}), "/items/type"),
            (json!({"type": ["string", "null"]}), json!({"anyOf": [{"type": "string"}]}), "/anyOf"),
            (
                json!({"oneOf": [{"type": "string"}, {"type": "null"}]}),
                json!({"oneOf": [{"type": "string"}]}),
                "/oneOf",
            ),
            (json!({"type": "string"}), json!({"allOf": [{"type": "string"}, {"minLength": 2}]}), "/minLength"),
        ] {
            let expected = ("input-narrowed", format!("/properties/a{at}"));
            assert_eq!(difference(&schema(&old), &schema(&new)), expected, "{old} {new}");
        }
    }

    #[test]
    fn wider_values_break_no_callers() {
        let schema = |inner: &Value| json!({"type": "object", "properties": {"a": inner}});
        for (old, new) in [
            (json!({"type": "integer"}), json!({"type": "number"})),
            (json!({"type": ["string", "null"]}), json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
            (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), json!({"type": ["null", "string"]})),
            (json!({"const": "a"}), json!({"type": "string", "enum": ["a", "b"]})),
            (json!({"type": "string"}), json!({"allOf": [{"type": "string"}]})),
            (
                json!({"type": "object", "properties": {"b": {"type": "string"}}, "anyOf": [{"required": ["b"]}]}),
                json!({"type": "object", "properties": {"b": {"type": "string"}}}),
            ),
        ] {
            assert_eq!(difference(&schema(&old), &schema(&new)).0, "input-widened", "{old} {new}");
        }
    }

    #[test]
    fn variants_of_variants_take_no_unlimited_time() {
        let nested = |last: Value| {
            (0..12).fold(last, |inner, level| {
                let variant = |name: &str| json!({"required": [format!("{name}{level}")]});
                json!({"type": "object", "properties": {"x": inner}, "anyOf": [variant("a"), variant("b"), variant("c")]})
            })
        };
        let (old, new) = (nested(json!({"type": "string"})), nested(json!({"type": "integer"})));
        assert!(rules_of(&[tool("x", old)], &[tool("x", new)]).iter().all(|(rule, _)| *rule == "input-narrowed"));
    }

    #[test]
    fn changes_behind_references_are_found_once() {
        let schema = |inner: Value| {
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}, "b": {"$ref": "#/$defs/node"}},
                "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "value": inner}}}})
        };
        let (old, new) = (schema(json!({"type": "string"})), schema(json!({"type": "integer"})));
        assert_eq!(difference(&old, &new), ("input-narrowed", "/$defs/node/properties/value/type".to_owned()));
    }

    #[test]
    fn a_removed_property_is_refused_by_a_closed_schema_and_ignored_by_an_open_one() {
        let old = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let open = json!({"type": "object", "properties": {}});
        let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let integers = json!({"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}});
        let rules = |new: &Value| {
            let found = rules_of(&[tool("x", old.clone())], &[tool("x", new.clone())]);
            found.into_iter().map(|(rule, _)| rule).collect::<Vec<_>>()
        };
        assert_eq!(rules(&open), ["input-ignored"]);
        assert_eq!(rules(&closed), ["input-narrowed", "input-narrowed"]);
        assert_eq!(rules(&integers), ["input-narrowed", "input-narrowed"]);
    }

    #[test]
    fn removed_and_reordered_tools_are_found() {
        let [a, b] = ["a", "b"].map(|name| tool(name, json!({"type": "object"})));
        assert_eq!(rules_of(&[a.clone(), b.clone()], std::slice::from_ref(&b))[0].0, "tool-removed");
        assert_eq!(rules_of(std::slice::from_ref(&b), &[a.clone(), b.clone()])[0].0, "tool-added");
        assert_eq!(rules_of(&[a.clone(), b.clone()], &[b, a])[0].0, "order-changed");
    }
}
