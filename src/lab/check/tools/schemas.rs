//! Schemas of arguments and results.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;
use toolgate_core::json::pointer_token;
use toolgate_validation::{SchemaError, SchemaValidator};

use super::tool_judge::ToolJudge;
use super::walk::each_schema;
use super::{defaults, refs};
use crate::check::finding::one_line;
use crate::check::revision::Revision;
use crate::check::rules::{Rule, Severity, tools as rules};

static VALIDATOR: LazyLock<SchemaValidator> = LazyLock::new(SchemaValidator::new);

/// Known dialects, without their scheme.
const DIALECTS: [&str; 5] = [
    "//json-schema.org/draft-04/schema",
    "//json-schema.org/draft-06/schema",
    "//json-schema.org/draft-07/schema",
    "//json-schema.org/draft/2019-09/schema",
    "//json-schema.org/draft/2020-12/schema",
];

/// Judges the schemas of a tool.
pub(super) fn judge(judge: &ToolJudge<'_>) {
    match judge.tool.get("inputSchema") {
        None | Some(Value::Null) => {
            judge.report(&rules::INPUT_SCHEMA_MISSING, "/inputSchema", "the tool has no inputSchema")
        }
        Some(schema) => input(judge, schema),
    }
    if let Some(schema) = judge.tool.get("outputSchema").filter(|schema| !schema.is_null()) {
        output(judge, schema);
    }
}

fn input(judge: &ToolJudge<'_>, schema: &Value) {
    if let Some(why) = not_an_object(schema) {
        judge.report(&rules::INPUT_SCHEMA_NOT_OBJECT, "/inputSchema", why);
        if !schema.is_object() {
            return;
        }
    }
    let is_usable = common(judge, schema, "/inputSchema", &rules::INPUT_SCHEMA_INVALID);
    root_union(judge, schema);
    required(judge, schema);
    undescribed(judge, schema);
    if judge.session.revision.is_modern() {
        headers(judge, schema);
    }
    if is_usable {
        defaults::judge(judge, schema);
    }
}

fn output(judge: &ToolJudge<'_>, schema: &Value) {
    if judge.session.revision <= Revision::LAST_LEGACY
        && let Some(why) = not_an_object(schema)
    {
        judge.report(&rules::OUTPUT_SCHEMA_NOT_OBJECT, "/outputSchema", why);
        if !schema.is_object() {
            return;
        }
    }
    common(judge, schema, "/outputSchema", &rules::OUTPUT_SCHEMA_INVALID);
}

/// What holds for every schema: its dialect, its references, and whether it compiles.
fn common(judge: &ToolJudge<'_>, schema: &Value, pointer: &str, invalid: &'static Rule) -> bool {
    if let Some(dialect) = schema.get("$schema").and_then(Value::as_str)
        && !DIALECTS.iter().any(|known| dialect.contains(known))
    {
        let text = format!("the dialect `{}` is not known", one_line(dialect, 120));
        judge.report(&rules::SCHEMA_DIALECT_UNKNOWN, format!("{pointer}/$schema"), text);
    }
    let is_whole = refs::judge(judge, schema, pointer);
    match VALIDATOR.accepts_schema(schema) {
        Ok(()) => is_whole,
        // The missing target has a finding of its own.
        Err(SchemaError::Broken { .. }) if !is_whole => false,
        Err(SchemaError::Broken { at, reason }) => {
            let at = at.trim_start_matches('#');
            judge.report(invalid, format!("{pointer}{at}"), format!("the schema is invalid in its dialect: {reason}"));
            false
        }
        Err(
            other @ (SchemaError::NotAnObject(_)
            | SchemaError::TooLarge { .. }
            | SchemaError::TooDeep
            | SchemaError::TooHeavy),
        ) => {
            judge.add(
                judge.session.finding(invalid, format!("the schema {other}")).at(pointer).severity(Severity::Warning),
            );
            false
        }
    }
}

fn not_an_object(schema: &Value) -> Option<String> {
    match schema {
        Value::Object(members) => match members.get("type") {
            Some(kind) if kind == "object" => None,
            Some(kind) => {
                Some(format!("the type of the schema is {}, not \"object\"", one_line(&kind.to_string(), 60)))
            }
            None => Some("the schema has no \"type\": \"object\"".into()),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Some(format!("the schema is {}, not an object", one_line(&schema.to_string(), 60)))
        }
    }
}

fn root_union(judge: &ToolJudge<'_>, schema: &Value) {
    for keyword in ["oneOf", "anyOf", "allOf"] {
        if schema.get(keyword).is_some() {
            judge.report(
                &rules::SCHEMA_ROOT_UNION,
                format!("/inputSchema/{keyword}"),
                format!("`{keyword}` is at the root of the schema"),
            );
        }
    }
}

/// Reports required properties that are not declared. In branches and beside combinations other schemas may declare them.
fn required(judge: &ToolJudge<'_>, schema: &Value) {
    each_schema(schema, "/inputSchema", &mut |place| {
        let Some(required) = place.schema.get("required").and_then(Value::as_array) else { return };
        let combined = ["allOf", "anyOf", "oneOf", "$ref", "patternProperties", "if", "dependentSchemas"];
        if place.is_branch || combined.iter().any(|keyword| place.schema.get(*keyword).is_some()) {
            return;
        }
        let declared = place.schema.get("properties").and_then(Value::as_object);
        let is_open = place.schema.get("additionalProperties").is_some_and(Value::is_object);
        if is_open || (declared.is_none() && place.pointer != "/inputSchema") {
            return;
        }
        for name in required
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| declared.is_none_or(|known| !known.contains_key(*name)))
        {
            let is_closed = place.schema.get("additionalProperties") == Some(&Value::Bool(false));
            let severity = if is_closed { Severity::Error } else { rules::REQUIRED_UNKNOWN.severity };
            let text = format!("`{}` is required and not below `properties`", one_line(name, 80));
            let finding =
                judge.session.finding(&rules::REQUIRED_UNKNOWN, text).at(format!("{}/required", place.pointer));
            judge.add(finding.severity(severity));
        }
    });
}

/// Reports the parameters without a description, all in one finding.
fn undescribed(judge: &ToolJudge<'_>, schema: &Value) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let is_described = |property: &Value| {
        let target = property
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| schema.pointer(reference.strip_prefix('#')?));
        [Some(property), target]
            .into_iter()
            .flatten()
            .any(|schema| schema.get("description").and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty()))
    };
    let names: Vec<&str> =
        properties.iter().filter(|(_, schema)| !is_described(schema)).map(|(name, _)| name.as_str()).collect();
    if !names.is_empty() {
        let text = format!(
            "{} of {} parameters have no description: {}",
            names.len(),
            properties.len(),
            one_line(&names.join(", "), 160)
        );
        judge.report(&rules::PARAMETER_UNDESCRIBED, "/inputSchema/properties", text);
    }
}

/// Judges the parameters that are mirrored into HTTP headers.
fn headers(judge: &ToolJudge<'_>, schema: &Value) {
    let mut seen = BTreeSet::new();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Some(header) = property.get("x-mcp-header") else { continue };
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let text = header.as_str().filter(|text| !text.is_empty() && text.chars().all(is_token));
        let is_simple = property
            .get("type")
            .and_then(Value::as_str)
            .is_some_and(|kind| ["string", "integer", "boolean"].contains(&kind));
        let why = match text {
            None => "the value is no name of an HTTP header",
            Some(text) if !seen.insert(text.to_ascii_lowercase()) => "two parameters have this header",
            Some(_) if !is_simple => "the parameter is no string, integer or boolean",
            Some(_) => continue,
        };
        let pointer = format!("/inputSchema/properties/{}/x-mcp-header", pointer_token(name));
        judge.report(&rules::HEADER_INVALID, pointer, format!("{}: {why}", one_line(&header.to_string(), 60)));
    }
}
