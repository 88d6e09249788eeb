//! Checks of responses and events against the OpenAPI description, for every one that a scenario reads: a member that is
//! described is there, and has the described type; and no other member is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use jsonschema::Validator;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

/// The schema of each `object`.
const SCHEMAS: [(&str, &str); 13] = [
    ("agent", "Agent"),
    ("approval", "Approval"),
    ("approval.grant", "Grant"),
    ("key", "Key"),
    ("me", "Me"),
    ("model", "Model"),
    ("run", "Run"),
    ("run.summary", "RunSummary"),
    ("session", "Session"),
    ("tool", "Tool"),
    ("tool.call", "ToolCall"),
    ("webhook_delivery", "WebhookDelivery"),
    ("webhook_endpoint", "WebhookEndpoint"),
];

static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| serde_json::to_value(toolgate::gateway::description()).unwrap());

static VALIDATORS: LazyLock<BTreeMap<&str, Validator>> = LazyLock::new(|| {
    let of = |(object, schema): &(&'static str, &str)| (*object, validator(schema));
    let others = [&("problem", "Problem"), &("event", "StreamEvent"), &("key.created", "CreatedKey")];
    SCHEMAS.iter().chain(others).map(of).collect()
});

/// The schema of a page of each `object` that is listed.
static PAGES: LazyLock<BTreeMap<&str, Validator>> = LazyLock::new(|| {
    let is_listed = |page: &str| DESCRIPTION["components"]["schemas"].get(page).is_some();
    let name = |schema: &str| format!("{}Page", schema.strip_suffix("Summary").unwrap_or(schema));
    let pages = SCHEMAS.iter().map(|(object, schema)| (*object, name(schema)));
    pages.filter(|(_, page)| is_listed(page)).map(|(object, page)| (object, validator(&page))).collect()
});

/// The schemas, without members that are not described.
static CLOSED: LazyLock<Value> = LazyLock::new(|| {
    let mut components = DESCRIPTION["components"].clone();
    close(&mut components["schemas"]);
    components
});

fn close(schema: &mut Value) {
    if let Value::Object(object) = schema {
        if object.contains_key("properties") && object.get("type").is_some_and(Value::is_string) {
            object.entry("additionalProperties").or_insert(false.into());
        }
        object.values_mut().for_each(close);
    }
    schema.as_array_mut().into_iter().flatten().for_each(close);
}

fn validator(schema: &str) -> Validator {
    let root = json!({"$ref": format!("#/components/schemas/{schema}"), "components": *CLOSED});
    jsonschema::validator_for(&root).unwrap()
}

/// Headers that a response has only if its description says so.
const HEADERS: [&str; 8] = [
    "ETag",
    "Idempotent-Replayed",
    "Location",
    "Preference-Applied",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
    "X-Request-Id",
];

/// Checks that an operation of the path describes the headers of a response with this status.
pub(super) fn check_headers(path: &str, status: u16, headers: &HeaderMap) {
    let paths = DESCRIPTION["paths"].as_object().unwrap();
    let is_path = |template: &str| {
        let (template, path): (Vec<&str>, Vec<&str>) = (template.split('/').collect(), path.split('/').collect());
        template.len() == path.len() && template.iter().zip(&path).all(|(a, b)| a == b || a.starts_with('{'))
    };
    let Some((_, item)) = paths.iter().find(|(template, _)| is_path(template)) else { return };
    let operations = item.as_object().unwrap().values();
    let responses: Vec<&Value> = operations
        .filter_map(|operation| operation["responses"].get(status.to_string()))
        .map(|response| match response["$ref"].as_str() {
            Some(shared) => DESCRIPTION.pointer(shared.trim_start_matches('#')).unwrap(),
            None => response,
        })
        .collect();
    for name in HEADERS.iter().filter(|name| headers.contains_key(**name)) {
        let is_described = responses.iter().any(|response| response["headers"].get(name).is_some());
        assert!(is_described || responses.is_empty(), "{path} sends `{name}` with {status}, which is not described");
    }
}

/// The types of the objects of a union.
pub(super) fn types_of(union: &str) -> BTreeSet<String> {
    let mapping = &DESCRIPTION["components"]["schemas"][union]["discriminator"]["mapping"];
    mapping.as_object().unwrap().keys().cloned().collect()
}

/// The differences of a body from a schema.
pub(super) fn errors(schema: &str, body: &Value) -> Vec<String> {
    differences(&validator(schema), body)
}

fn differences(validator: &Validator, body: &Value) -> Vec<String> {
    validator.iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Checks a body, each item of a list, and each event of a stream.
pub(super) fn check(body: &Value) {
    let object = match body {
        Value::String(text) => {
            let messages = text.lines().filter_map(|line| line.strip_prefix("data: "));
            return messages.for_each(|message| check(&serde_json::from_str(message).unwrap_or_default()));
        }
        body if body["request_id"].is_string() => Some("problem"),
        body if body["object"] == "key" && body["secret"].is_string() => Some("key.created"),
        body if body["object"].is_null() && body["type"].is_string() => Some("event"),
        body => body["object"].as_str(),
    };
    let mut validator = object.and_then(|object| VALIDATORS.get(object));
    if object == Some("list") {
        body["data"].as_array().unwrap().iter().for_each(check);
        validator = body["data"][0]["object"].as_str().and_then(|object| PAGES.get(object));
    }
    let Some(validator) = validator else { return };
    let errors = differences(validator, body);
    assert!(errors.is_empty(), "a response does not match its description: {errors:#?}\n{body:#}");
}
