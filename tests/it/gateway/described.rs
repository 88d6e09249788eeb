//! Checks of response bodies against the OpenAPI description, for every response that a scenario reads: a member that is
//! described is there, and has the described type.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::Validator;
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
    SCHEMAS.iter().chain([&("problem", "Problem")]).map(of).collect()
});

/// The schema of a page of each `object` that is listed.
static PAGES: LazyLock<BTreeMap<&str, Validator>> = LazyLock::new(|| {
    let is_listed = |page: &str| DESCRIPTION["components"]["schemas"].get(page).is_some();
    let pages = SCHEMAS.iter().map(|(object, schema)| (*object, format!("Page_{schema}")));
    pages.filter(|(_, page)| is_listed(page)).map(|(object, page)| (object, validator(&page))).collect()
});

fn validator(schema: &str) -> Validator {
    let root = json!({"$ref": format!("#/components/schemas/{schema}"), "components": DESCRIPTION["components"]});
    jsonschema::validator_for(&root).unwrap()
}

/// The differences of a body from a schema.
pub(super) fn errors(schema: &str, body: &Value) -> Vec<String> {
    differences(&validator(schema), body)
}

fn differences(validator: &Validator, body: &Value) -> Vec<String> {
    validator.iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Checks a body, and each item of a list.
pub(super) fn check(body: &Value) {
    let object = if body["request_id"].is_string() { Some("problem") } else { body["object"].as_str() };
    let mut validator = object.and_then(|object| VALIDATORS.get(object));
    if object == Some("list") {
        body["data"].as_array().unwrap().iter().for_each(check);
        validator = body["data"][0]["object"].as_str().and_then(|object| PAGES.get(object));
    }
    let Some(validator) = validator else { return };
    let errors = differences(validator, body);
    assert!(errors.is_empty(), "a response does not match its description: {errors:#?}\n{body:#}");
}
