//! Tool declarations in a provider's form.

use std::collections::BTreeSet;
use std::sync::Once;

use serde_json::Value;

use toolgate_settings::model::ToolChoice;

/// The declaration of a tool in a provider's form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Declared {
    /// The tool can be declared.
    As {
        json: Value,
        /// The dropped rules of its schema, each a sentence.
        lost: Vec<String>,
    },
    /// The tool cannot be declared, with the reason.
    Refused(String),
}

/// The declaration of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Declaration {
    /// The tool's name.
    pub(crate) name: String,
    /// The declaration in the provider's form.
    pub(crate) json: Value,
}

/// The names of the declared tools.
#[derive(Debug)]
pub(crate) struct Names {
    declared: BTreeSet<String>,
    complained: Once,
}

impl Names {
    pub(super) fn new(declared: BTreeSet<String>) -> Self {
        Self { declared, complained: Once::new() }
    }

    /// The tool choice for the request: providers reject a request that names an undeclared tool.
    pub(super) fn sendable<'a>(&self, choice: &'a ToolChoice) -> &'a ToolChoice {
        match choice {
            ToolChoice::Tool(name) if !self.declared.contains(name) => {
                let complain = || tracing::warn!(tool = name, "tool named by tool_choice not available");
                self.complained.call_once(complain);
                &ToolChoice::Auto
            }
            ToolChoice::Tool(_) | ToolChoice::Auto | ToolChoice::Required => choice,
        }
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::new(BTreeSet::new())
    }
}
