//! Validators: checks whose problems the model can correct.

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate_core::run::{Budget, OutputVerdict, Spec};
use toolgate_core::tool::{Problem, Tool};

/// The result of checking arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum InputFindings {
    Valid,
    /// They are invalid; the model reads why.
    Invalid(Vec<Problem>),
}

/// Validates the arguments of a call before it runs or is handed to the caller.
#[async_trait]
pub trait ToolInputValidator: Send + Sync {
    /// Whether the tool's own schemas can be used. A tool with a broken schema is omitted, with this reason.
    fn accepts(&self, tool: &Tool) -> Result<(), String>;

    /// Checks arguments against the tool.
    async fn check(&self, tool: &Tool, arguments: &Map<String, Value>, budget: &Budget) -> InputFindings;

    /// Checks an external tool's result against its declared result schema.
    async fn check_result(&self, tool: &Tool, result: &Value) -> InputFindings;

    /// Validates a form that a person filled in for a server against the server's schema.
    async fn check_form(&self, schema: &Value, form: &Value) -> InputFindings;
}

/// Validates a final answer.
#[async_trait]
pub trait OutputValidator: Send + Sync {
    /// Whether an output schema can be used; the error is the reason. A request with an unusable one is refused.
    fn takes_schema(&self, schema: &Value) -> Result<(), String>;

    /// Validates the model's answer.
    async fn check(&self, spec: &Spec, answer: &str, budget: &Budget) -> OutputVerdict;
}
