//! Checks whose findings the model can mend.

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::core::run::{Budget, OutputVerdict, Spec};
use crate::core::tool::{Problem, Tool};

/// What a check of arguments found.
#[derive(Clone, Debug, PartialEq)]
pub enum InputFindings {
    /// They fit.
    Valid,
    /// They do not; the model reads why.
    Invalid(Vec<Problem>),
}

/// Checks the arguments of a call before it runs or is handed to the caller.
#[async_trait]
pub trait ToolInputValidator: Send + Sync {
    /// Whether the tool's own schemas can be used. A tool with a broken schema is left out, with this reason.
    fn accepts(&self, tool: &Tool) -> Result<(), String>;

    /// Checks arguments against the tool.
    async fn check(&self, tool: &Tool, arguments: &Map<String, Value>, budget: &Budget) -> InputFindings;

    /// Checks an external tool's result against its declared result schema.
    async fn check_result(&self, tool: &Tool, result: &Value) -> InputFindings;

    /// Checks a form that a person filled in for a server against the schema it came with.
    async fn check_form(&self, schema: &Value, form: &Value) -> InputFindings;
}

/// Checks a final answer.
#[async_trait]
pub trait OutputValidator: Send + Sync {
    /// Whether a schema of answers can be used: why not. A request with another one is refused.
    fn takes_schema(&self, schema: &Value) -> Result<(), String>;

    /// Checks the answer the model gave.
    async fn check(&self, spec: &Spec, answer: &str, budget: &Budget) -> OutputVerdict;
}
