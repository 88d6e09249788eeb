//! Changes since an earlier list of tools, by what they break: callers, approvals, or only prompt caches.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolgate_core::json::pointer_token;

use super::finding::{Finding, one_line};
use super::rules::{Rule, changes as rules};

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
    let narrower = narrowed(&before, &after, "/inputSchema");
    for (pointer, text) in &narrower {
        report(&rules::INPUT_NARROWED, pointer, text);
    }
    if narrower.is_empty() {
        report(&rules::INPUT_WIDENED, "/inputSchema", "the inputSchema changed, and earlier arguments still fit");
    }
}

/// What earlier arguments may violate, each with its place.
fn narrowed(old: &Value, new: &Value, at: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let (old_names, new_names) = (properties(old), properties(new));
    for name in required(new).into_iter().filter(|name| !required(old).contains(name)) {
        found.push((format!("{at}/required"), format!("`{}` is now required", one_line(&name, 80))));
    }
    let is_closed = new.get("additionalProperties") == Some(&Value::Bool(false));
    for name in old_names.keys().filter(|name| !new_names.contains_key(*name)) {
        let text = if is_closed { "is no longer accepted" } else { "is no longer declared" };
        found.push((format!("{at}/properties"), format!("`{}` {text}", one_line(name, 80))));
    }
    if is_closed && old.get("additionalProperties") != Some(&Value::Bool(false)) && !old_names.is_empty() {
        found.push((format!("{at}/additionalProperties"), "undeclared properties are no longer accepted".into()));
    }
    for (name, before) in &old_names {
        if let Some(after) = new_names.get(name) {
            found.extend(narrowed_value(before, after, &format!("{at}/properties/{}", pointer_token(name))));
        }
    }
    found
}

fn narrowed_value(old: &Value, new: &Value, at: &str) -> Vec<(String, String)> {
    if old == new {
        return Vec::new();
    }
    let mut found = Vec::new();
    let (before, after) = (types(old), types(new));
    let lost: Vec<&String> = before.iter().filter(|kind| !admits(&after, kind)).collect();
    if !after.is_empty() && (before.is_empty() || !lost.is_empty()) {
        found.push((format!("{at}/type"), format!("the type is now {}", after.join(" or "))));
    }
    let values = |schema: &Value| schema.get("enum").and_then(Value::as_array).cloned();
    if let Some(allowed) = values(new) {
        let dropped: Vec<String> = values(old)
            .unwrap_or_default()
            .iter()
            .filter(|value| !allowed.contains(value))
            .map(Value::to_string)
            .collect();
        if values(old).is_none() {
            found.push((format!("{at}/enum"), "only some values are accepted now".into()));
        } else if !dropped.is_empty() {
            found.push((format!("{at}/enum"), format!("no longer accepted: {}", one_line(&dropped.join(", "), 120))));
        }
    }
    for (keyword, is_tighter) in BOUNDS {
        let number = |schema: &Value| schema.get(*keyword).and_then(Value::as_f64);
        if number(new).is_some_and(|now| number(old).is_none_or(|then| is_tighter(then, now))) {
            found.push((format!("{at}/{keyword}"), format!("`{keyword}` is stricter")));
        }
    }
    for keyword in ["pattern", "format", "const", "multipleOf"] {
        if new.get(keyword).is_some() && new.get(keyword) != old.get(keyword) {
            found.push((format!("{at}/{keyword}"), format!("`{keyword}` is new or other")));
        }
    }
    found.extend(narrowed(old, new, at));
    if let (Some(before), Some(after)) = (old.get("items"), new.get("items")) {
        found.extend(narrowed_value(before, after, &format!("{at}/items")));
    }
    found
}

/// Keywords of bounds, and whether the second value is stricter than the first.
type Bound = (&'static str, fn(f64, f64) -> bool);
const BOUNDS: &[Bound] = &[
    ("minimum", |then, now| now > then),
    ("exclusiveMinimum", |then, now| now > then),
    ("minLength", |then, now| now > then),
    ("minItems", |then, now| now > then),
    ("maximum", |then, now| now < then),
    ("exclusiveMaximum", |then, now| now < then),
    ("maxLength", |then, now| now < then),
    ("maxItems", |then, now| now < then),
];

fn properties(schema: &Value) -> Map<String, Value> {
    schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
}

fn required(schema: &Value) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn types(schema: &Value) -> Vec<String> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(_) | None => Vec::new(),
    }
}

fn admits(types: &[String], kind: &str) -> bool {
    types.iter().any(|one| one == kind || (one == "number" && kind == "integer"))
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

    #[test]
    fn tighter_values_break_callers() {
        let schema = |inner: Value| json!({"type": "object", "properties": {"a": inner}});
        for (old, new, at) in [
            (json!({"type": "string"}), json!({"type": "integer"}), "type"),
            (json!({"type": "integer"}), json!({"type": "integer", "maximum": 5}), "maximum"),
            (json!({"enum": ["a", "b"]}), json!({"enum": ["a"]}), "enum"),
        ] {
            let found = rules_of(&[tool("x", schema(old))], &[tool("x", schema(new))]);
            assert_eq!(found, [("input-narrowed", format!("/inputSchema/properties/a/{at}"))]);
        }
        let wider =
            rules_of(&[tool("x", schema(json!({"type": "integer"})))], &[tool("x", schema(json!({"type": "number"})))]);
        assert_eq!(wider, [("input-widened", "/inputSchema".to_owned())]);
    }

    #[test]
    fn removed_and_reordered_tools_are_found() {
        let [a, b] = ["a", "b"].map(|name| tool(name, json!({"type": "object"})));
        assert_eq!(rules_of(&[a.clone(), b.clone()], std::slice::from_ref(&b))[0].0, "tool-removed");
        assert_eq!(rules_of(std::slice::from_ref(&b), &[a.clone(), b.clone()])[0].0, "tool-added");
        assert_eq!(rules_of(&[a.clone(), b.clone()], &[b, a])[0].0, "order-changed");
    }
}
