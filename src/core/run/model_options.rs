//! Model options of a run: what its model calls use in place of the settings of the configured models.

use serde::{Deserialize, Serialize};

use crate::tool::ToolChoice;

/// The model options of a run. An absent one leaves the model's own setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelOptions {
    /// The tools that the model may or must call while tools are available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether the model may request several tools at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens of a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

impl ModelOptions {
    /// Whether no option is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Each option that is set: its name, and options with it alone.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, Self)> {
        let Self { tool_choice, parallel_tool_calls, temperature, max_output_tokens } = self.clone();
        let none = Self::default;
        [
            ("tool_choice", Self { tool_choice, ..none() }),
            ("parallel_tool_calls", Self { parallel_tool_calls, ..none() }),
            ("temperature", Self { temperature, ..none() }),
            ("max_output_tokens", Self { max_output_tokens, ..none() }),
        ]
        .into_iter()
        .filter(|(_, option)| !option.is_empty())
    }
}
