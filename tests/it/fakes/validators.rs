//! Minimal validators. They support a few keywords and panic at others.

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate::core::run::{Budget, OutputVerdict, Spec};
use toolgate::core::tool::{Problem, Tool};
use toolgate::ports::{InputFindings, OutputValidator, ToolInputValidator};

/// Supports `type`, `required` and `properties`.
pub(crate) struct StrictInputs;

/// Accepts answers that are JSON.
pub(crate) struct JsonAnswers;

#[async_trait]
impl ToolInputValidator for StrictInputs {
    fn accepts(&self, tool: &Tool) -> Result<(), String> {
        if tool.input_schema.is_object() { Ok(()) } else { Err("its input schema is no object".into()) }
    }

    async fn check(&self, tool: &Tool, arguments: &Map<String, Value>, _budget: &Budget) -> InputFindings {
        findings(&tool.input_schema, &Value::Object(arguments.clone()))
    }

    async fn check_result(&self, tool: &Tool, result: &Value) -> InputFindings {
        tool.output_schema.as_deref().map_or(InputFindings::Valid, |schema| findings(schema, result))
    }

    async fn check_form(&self, schema: &Value, form: &Value) -> InputFindings {
        findings(schema, form)
    }
}

#[async_trait]
impl OutputValidator for JsonAnswers {
    fn takes_schema(&self, _schema: &Value) -> Result<(), String> {
        Ok(())
    }

    async fn check(&self, _spec: &Spec, answer: &str, _budget: &Budget) -> OutputVerdict {
        match serde_json::from_str(answer) {
            Ok(value) => OutputVerdict::Valid { value: Some(value) },
            Err(_) => OutputVerdict::Invalid { problems: vec![Problem::whole("json", "the answer is not JSON")] },
        }
    }
}

fn findings(schema: &Value, value: &Value) -> InputFindings {
    let mut problems = Vec::new();
    check(schema, value, "", &mut problems);
    if problems.is_empty() { InputFindings::Valid } else { InputFindings::Invalid(problems) }
}

fn check(schema: &Value, value: &Value, path: &str, problems: &mut Vec<Problem>) {
    let mut found = |rule: &str, message: String| {
        problems.push(Problem { path: path.into(), rule: rule.into(), message, received: None });
    };
    for (keyword, rule) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "type" if !is_a(value, rule.as_str().unwrap()) => found("type", format!("is not of type {rule}")),
            "type" => {}
            "required" => {
                for name in rule.as_array().unwrap().iter().map(|name| name.as_str().unwrap()) {
                    if value.get(name).is_none() {
                        found("required", format!("{name:?} is missing"));
                    }
                }
            }
            // The form of an elicitation is validated elsewhere, too.
            "properties" | "default" | "additionalProperties" | "minLength" | "items" | "description" => {}
            unknown => panic!("the strict validator does not know the keyword {unknown:?}"),
        }
    }
    for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(member) = value.get(name) {
            check(schema, member, &format!("{path}/{name}"), problems);
        }
    }
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        unknown => panic!("the strict validator does not know the type {unknown:?}"),
    }
}
