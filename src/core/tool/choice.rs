//! Tool choice: the tools that a model may or must call.

use serde::{Deserialize, Serialize};

/// The tools that a model may or must call. As text: `auto`, `required`, or the name of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// At least one tool.
    Required,
    /// This tool, by its name in the request.
    Tool(String),
}

impl From<String> for ToolChoice {
    fn from(text: String) -> Self {
        match text.as_str() {
            "auto" => Self::Auto,
            "required" => Self::Required,
            _ => Self::Tool(text),
        }
    }
}

impl From<ToolChoice> for String {
    fn from(choice: ToolChoice) -> Self {
        match choice {
            ToolChoice::Auto => "auto".to_owned(),
            ToolChoice::Required => "required".to_owned(),
            ToolChoice::Tool(name) => name,
        }
    }
}
