//! Elicitation: a server's questions about a call, and their answers.
//!
//! The questions are recorded in the run. A server with a protocol version up to 2025-11-25 asks during the open call,
//! which is held while answers may come soon. A call that is no longer held, and any call of the stateless protocol
//! version, is suspended. It is sent again with the answers and with the server's request state.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::TaskHandle;

/// An elicitation request: a call that a server suspended until its questions are answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ElicitationRequest {
    /// The questions, by the server's own keys. At least one.
    pub questions: BTreeMap<String, Question>,
    /// The opaque state that the server wants returned with the answers (MCP `requestState`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The task that waits for the answers, if the call had become one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskHandle>,
    /// Whether the call was cancelled at the server, so that it is made again with the answers. Servers with a protocol
    /// version up to 2025-11-25 cannot be answered later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarts: bool,
    /// Whether the call was cancelled while its server was running it, so that it may have taken effect: sending it
    /// with the answers runs it a second time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum Question {
    /// Fill in this form.
    Form {
        /// The question in words.
        message: String,
        /// JSON Schema of the answer: an object of plain values (MCP `requestedSchema`), verbatim.
        schema: Value,
    },
    /// Visit this address, and confirm when done.
    Url {
        /// The question in words.
        message: String,
        /// The address. It is chosen by the server: show it before it is opened.
        url: String,
    },
}

/// The response to one question (MCP `ElicitResult`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElicitationResponse {
    /// The action: accept, decline or cancel.
    pub action: Action,
    /// The filled-in form; with `accept` of a form only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
}

/// The action of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The question was answered.
    Accept,
    /// The person declined.
    Decline,
    /// The person dismissed the question without a choice.
    Cancel,
}

/// The responses to all questions of a call, by the server's keys.
pub type ElicitationResponses = BTreeMap<String, ElicitationResponse>;

impl Question {
    /// The question in words.
    pub fn message(&self) -> &str {
        match self {
            Self::Form { message, .. } | Self::Url { message, .. } => message,
        }
    }

    /// The reason why a response is invalid, whatever the schema.
    pub fn invalid_reason(&self, reaction: &ElicitationResponse) -> Option<&'static str> {
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

    /// The response with the schema's defaults for members that an accepted form omits (SEP-1034).
    #[must_use]
    pub fn with_defaults(&self, mut reaction: ElicitationResponse) -> ElicitationResponse {
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

impl ElicitationResponse {
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
        let content = Map::from_iter([("age".to_owned(), json!(0))]);
        let filled = form.with_defaults(ElicitationResponse::accept(content)).content.expect("filled in");
        assert_eq!(Value::from(filled), json!({"age": 0, "name": "Ada"}));
        assert_eq!(form.with_defaults(ElicitationResponse::decline()), ElicitationResponse::decline());
    }
}
