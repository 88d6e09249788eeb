//! JSON Schema validation of tool arguments, external results and final answers.
//!
//! A schema comes from a server or a caller that may be careless or hostile. So its size is limited before it is
//! compiled, its references are never fetched, and an unusable schema is rejected with a reason instead of being
//! skipped. Problems are worded for the model that has to fix them. Validation never repairs a value: the value that
//! runs is the one the model wrote.

mod answer;
mod cache;
mod problems;
mod schema;
#[cfg(test)]
mod tests;
mod weight;

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate_core::json;
use toolgate_core::run::{Budget, OutputVerdict, Spec};
use toolgate_core::tool::{Problem, Tool};
use toolgate_ports::{InputFindings, OutputValidator, ToolInputValidator};

use cache::Cache;
pub use schema::SchemaError;

/// Validates against JSON Schemas, each compiled once. Cheap to share: all methods take `&self`.
#[derive(Debug, Default)]
pub struct SchemaValidator {
    cache: Cache,
}

impl SchemaValidator {
    /// A validator with an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks that a schema (of an answer, for example) can be used.
    pub fn accepts_schema(&self, schema: &Value) -> Result<(), SchemaError> {
        self.cache.compiled(&json::hash(schema), schema).map(|_| ())
    }

    /// Checks a value against a schema.
    pub fn check_value(&self, schema: &Value, value: &Value) -> InputFindings {
        self.findings(&json::hash(schema), schema, value)
    }

    fn findings(&self, key: &str, schema: &Value, value: &Value) -> InputFindings {
        let problems = match self.cache.compiled(key, schema) {
            Ok(compiled) => problems::find(&compiled.validator, compiled.weight, schema, value),
            Err(error) => vec![Problem::whole("schema", format!("the schema cannot be used: {error}"))],
        };
        if problems.is_empty() { InputFindings::Valid } else { InputFindings::Invalid(problems) }
    }
}

#[async_trait]
impl ToolInputValidator for SchemaValidator {
    fn accepts(&self, tool: &Tool) -> Result<(), String> {
        schema::takes_an_object(&tool.input_schema).map_err(|error| format!("its input schema {error}"))?;
        let usable = |key: &str, schema: &Value| self.cache.compiled(key, schema).map(|_| ());
        usable(&input_key(tool), &tool.input_schema).map_err(|error| format!("its input schema {error}"))?;
        match &tool.output_schema {
            None => Ok(()),
            Some(schema) => usable(&result_key(tool), schema).map_err(|error| format!("its result schema {error}")),
        }
    }

    async fn check(&self, tool: &Tool, arguments: &Map<String, Value>, _budget: &Budget) -> InputFindings {
        self.findings(&input_key(tool), &tool.input_schema, &Value::Object(arguments.clone()))
    }

    async fn check_result(&self, tool: &Tool, result: &Value) -> InputFindings {
        match &tool.output_schema {
            None => InputFindings::Valid,
            Some(schema) => self.findings(&result_key(tool), schema, result),
        }
    }

    async fn check_form(&self, schema: &Value, form: &Value) -> InputFindings {
        self.check_value(schema, form)
    }
}

#[async_trait]
impl OutputValidator for SchemaValidator {
    fn takes_schema(&self, schema: &Value) -> Result<(), String> {
        self.accepts_schema(schema).map_err(|error| error.to_string())
    }

    async fn check(&self, spec: &Spec, answer: &str, _budget: &Budget) -> OutputVerdict {
        let Some(schema) = &spec.rules.output_schema else { return OutputVerdict::Valid { value: None } };
        let value = match answer::parse(answer) {
            Ok(value) => value,
            Err(complaint) => return OutputVerdict::Invalid { problems: vec![Problem::whole("json", complaint)] },
        };
        match self.findings(&json::hash(schema), schema, &value) {
            InputFindings::Valid => OutputVerdict::Valid { value: Some(value) },
            InputFindings::Invalid(problems) => OutputVerdict::Invalid { problems },
        }
    }
}

fn input_key(tool: &Tool) -> String {
    format!("input {}", tool.hash)
}

fn result_key(tool: &Tool) -> String {
    format!("result {}", tool.hash)
}
