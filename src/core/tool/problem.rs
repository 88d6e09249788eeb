//! Validation problems of arguments or answers, described so that a model can correct them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::json::present;

/// A validation problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// JSON pointer to the offending value; empty for the whole.
    pub path: String,
    /// The violated rule: a JSON Schema keyword, or a validator's own name for it.
    pub rule: String,
    pub message: String,
    /// The received value, if it is short.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub received: Option<Value>,
}

impl Problem {
    /// The rule of content that MCP does not allow, so that it cannot be read.
    pub const UNREADABLE_CONTENT: &str = "unreadable_content";
    /// The rule of a result whose list of content is `null`. No content is lost.
    pub const NULL_CONTENT: &str = "null_content";

    /// Whether the server violates MCP, and not only its tool's declaration.
    pub fn violates_mcp(&self) -> bool {
        [Self::UNREADABLE_CONTENT, Self::NULL_CONTENT].contains(&self.rule.as_str())
    }

    /// A problem of the whole value.
    pub fn whole(rule: &str, message: impl Into<String>) -> Self {
        Self { path: String::new(), rule: rule.to_owned(), message: message.into(), received: None }
    }

    /// The structured feedback the model reads.
    pub fn feedback(headline: &str, problems: &[Self]) -> String {
        format!("{headline}\n{}", json!({ "problems": problems }))
    }
}
