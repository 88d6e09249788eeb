//! What a server wants to know before it goes on with a call (MCP elicitation), and what it is told.
//!
//! The questions are a fact of the run. A server of the revisions up to 2025-11-25 asks on the open call, which is held for
//! the answers as long as they may come soon. A call that is not held any longer, and any call of the stateless revision, is
//! suspended, and sent again with the answers and with whatever the server gave to remember it by.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::TaskHandle;

/// A call that a server put aside until it is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputNeeded {
    /// The questions, by the server's own keys. At least one.
    pub questions: BTreeMap<String, Question>,
    /// What the server wants to be handed back with the answers (MCP `requestState`). Opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The task that waits for the answers, when the call had become one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskHandle>,
    /// Whether the server was told to stop, so that the call is made afresh with the answers. Servers of the revisions
    /// up to 2025-11-25 cannot be answered later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarts: bool,
    /// Whether the call was cancelled while its server was at work on it, so that it may have taken effect: sending it with
    /// the answers runs it a second time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum Question {
    /// Fill in this form.
    Form {
        /// What is asked, for a person.
        message: String,
        /// JSON Schema of the answer: an object of plain values (MCP `requestedSchema`), verbatim.
        schema: Value,
    },
    /// Do something at this address, and say when it is done.
    Url {
        /// What is asked, for a person.
        message: String,
        /// The address. It is the server's word: show it before it is opened.
        url: String,
    },
}

/// What is answered to one question (MCP `ElicitResult`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reaction {
    /// Yes, no, or neither.
    pub action: Action,
    /// The filled-in form; with `accept` of a form only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
}

/// How a question was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It was answered.
    Accept,
    /// The person said no.
    Decline,
    /// The person turned away without a choice.
    Cancel,
}

/// The reactions to all questions of a call, by the server's keys.
pub type Reactions = BTreeMap<String, Reaction>;

impl Question {
    /// What is asked, for a person.
    pub fn message(&self) -> &str {
        match self {
            Self::Form { message, .. } | Self::Url { message, .. } => message,
        }
    }

    /// What cannot be right about a reaction, whatever the schema says.
    pub fn objection(&self, reaction: &Reaction) -> Option<&'static str> {
        match (reaction.action, self, &reaction.content) {
            (Action::Accept, Self::Form { .. }, None) => {
                Some("accepts a form without filling it in; give its `content`, an object")
            }
            (Action::Accept, Self::Url { .. }, Some(_)) => {
                Some("fills in a form, but there is only an address to visit")
            }
            (Action::Decline | Action::Cancel, _, Some(_)) => {
                Some("fills in a form that it does not accept; leave `content` out")
            }
            (Action::Accept, Self::Form { .. }, Some(_))
            | (Action::Accept, Self::Url { .. }, None)
            | (Action::Decline | Action::Cancel, _, None) => None,
        }
    }

    /// The reaction with the schema's defaults where an accepted form leaves something out (SEP-1034).
    #[must_use]
    pub fn with_defaults(&self, mut reaction: Reaction) -> Reaction {
        let (Self::Form { schema, .. }, Action::Accept) = (self, reaction.action) else { return reaction };
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return reaction };
        let content = reaction.content.get_or_insert_with(Map::new);
        for (name, property) in properties {
            if let (Some(default), false) = (property.get("default"), content.contains_key(name)) {
                content.insert(name.clone(), default.clone());
            }
        }
        reaction
    }
}

impl Reaction {
    /// A filled-in form.
    pub fn accept(content: Map<String, Value>) -> Self {
        Self { action: Action::Accept, content: Some(content) }
    }

    /// An address that was visited.
    pub fn done() -> Self {
        Self { action: Action::Accept, content: None }
    }

    /// No.
    pub fn decline() -> Self {
        Self { action: Action::Decline, content: None }
    }

    /// Neither yes nor no.
    pub fn cancel() -> Self {
        Self { action: Action::Cancel, content: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_accepted_form_takes_the_defaults_of_what_it_leaves_out_and_keeps_what_it_says() {
        let schema = json!({"type": "object", "properties": {
            "name": {"type": "string", "default": "Ada"}, "age": {"type": "integer", "default": 36}, "note": {"type": "string"},
        }});
        let form = Question::Form { message: "who?".into(), schema };
        let said = Map::from_iter([("age".to_owned(), json!(0))]);
        let filled = form.with_defaults(Reaction::accept(said)).content.expect("filled in");
        assert_eq!(Value::from(filled), json!({"age": 0, "name": "Ada"}));
        assert_eq!(form.with_defaults(Reaction::decline()), Reaction::decline());
    }
}
