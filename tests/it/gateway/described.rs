//! Checks of response bodies against the OpenAPI description, for every response that a scenario reads: a member that is
//! described is there, and has the described type.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

/// The schema of each `object`.
const SCHEMAS: [(&str, &str); 12] = [
    ("agent", "Agent"),
    ("approval", "Approval"),
    ("approval.grant", "Grant"),
    ("key", "Key"),
    ("model", "Model"),
    ("run", "Run"),
    ("run.summary", "RunSummary"),
    ("session", "Session"),
    ("tool", "Tool"),
    ("tool.call", "ToolCall"),
    ("webhook_delivery", "WebhookDelivery"),
    ("webhook_endpoint", "WebhookEndpoint"),
];

static VALIDATORS: LazyLock<BTreeMap<&str, Validator>> = LazyLock::new(|| {
    let description = serde_json::to_value(toolgate::gateway::description()).unwrap();
    let validator = |schema: &str| {
        let root = json!({"$ref": format!("#/components/schemas/{schema}"), "components": description["components"]});
        jsonschema::validator_for(&root).unwrap()
    };
    SCHEMAS.iter().chain([&("problem", "Problem")]).map(|(object, schema)| (*object, validator(schema))).collect()
});

/// Checks a body, and each item of a list.
pub(super) fn check(body: &Value) {
    let object = if body["request_id"].is_string() { Some("problem") } else { body["object"].as_str() };
    if object == Some("list") {
        body["data"].as_array().unwrap().iter().for_each(check);
    }
    let Some(validator) = object.and_then(|object| VALIDATORS.get(object)) else { return };
    let errors: Vec<String> =
        validator.iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "a response does not match its description: {errors:#?}\n{body:#}");
}
