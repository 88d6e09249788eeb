//! Builtin tools: tools that toolgate runs itself. They show a run its own data and change nothing, so they run without
//! approval unless a rule requires it. Their names are reserved.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::name::unprefixed_name;
use super::{Annotations, Ask, Origin, Tool};
use crate::policy::Verdict;

/// A builtin tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// Reads a result, or a piece of one, that was too large to be shown in full.
    ResultRead,
    /// Asks the user a question.
    AskHuman,
    /// Gives the answer of the run as its arguments.
    Finish,
}

impl Builtin {
    /// All builtin tools.
    pub const ALL: [Self; 3] = [Self::ResultRead, Self::AskHuman, Self::Finish];

    /// The builtin that an origin names.
    pub fn from_origin(origin: &Origin) -> Option<Self> {
        match origin {
            Origin::Builtin { tool } => Self::ALL.into_iter().find(|builtin| builtin.name() == tool),
            Origin::Mcp { .. } | Origin::External { .. } => None,
        }
    }

    /// The name the model sees.
    pub fn name(self) -> &'static str {
        match self {
            Self::ResultRead => "result_read",
            Self::AskHuman => "ask_human",
            Self::Finish => "finish",
        }
    }

    /// Whether toolgate runs its calls. The others are settled from outside.
    pub fn runs_here(self) -> bool {
        match self {
            Self::ResultRead | Self::Finish => true,
            Self::AskHuman => false,
        }
    }

    /// The reason why arguments are invalid, whatever the schema.
    pub fn invalid_reason(self, arguments: &Map<String, Value>) -> Option<String> {
        match self {
            Self::ResultRead | Self::Finish => None,
            Self::AskHuman => Ask::parse(arguments).err(),
        }
    }

    /// Whether a name is reserved for one of them.
    pub fn reserves(name: &str) -> bool {
        Self::ALL.iter().any(|builtin| builtin.name() == name)
    }

    /// The tool before the policy is applied. The schema of the run's answers is that of the arguments of `finish`.
    pub(super) fn tool(self, answer: Option<&Value>) -> Tool {
        let origin = Origin::Builtin { tool: self.name().to_owned() };
        let (description, input_schema) = (self.description(), self.input_schema(answer));
        // It is repeatable: an attempt whose answer was lost is simply made again.
        let annotations =
            Annotations { read_only_hint: Some(true), idempotent_hint: Some(true), ..Annotations::default() };
        Tool {
            name: unprefixed_name(self.name(), &origin),
            hash: Tool::definition_hash((&origin, None), description, &input_schema, None, (&annotations, None)),
            own_name: None,
            origin,
            endpoint: None,
            description: description.to_owned(),
            input_schema: Arc::new(input_schema),
            output_schema: None,
            annotations,
            trusted: true,
            priority: 0,
            deadline_s: None,
            verdict: Verdict::Ask,
            changed: false,
            hidden: false,
            pinned: None,
            undo: None,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::ResultRead => {
                "Reads a part of an earlier tool result that was too large to be shown whole. Such a result names its \
                 handle (media://...). Choose the part by `line` and `lines`, by `offset` and `length` in \
                 bytes, by a JSON `pointer` if it is JSON, or look for a text with `search`. Without any of them it \
                 reads from the beginning. Each answer says where it goes on."
            }
            Self::AskHuman => {
                "Asks the person you work for a question and waits for the answer, which may take long. Ask only what you \
                 cannot find out yourself and cannot go on without. Give `options` when the answer is a choice."
            }
            Self::Finish => {
                "Gives your final answer as arguments and ends your work. Call it alone, once you have read the results of \
                 all other calls."
            }
        }
    }

    fn input_schema(self, answer: Option<&Value>) -> Value {
        match self {
            Self::ResultRead => json!({
                "type": "object",
                "properties": {
                    "handle": {"type": "string", "description": "What to read: the handle, media://..., as the result named it."},
                    "line": {"type": "integer", "description": "The first line to read, from 1."},
                    "lines": {"type": "integer", "description": "How many lines to read."},
                    "offset": {"type": "integer", "description": "The first byte to read, from 0."},
                    "length": {"type": "integer", "description": "How many bytes to read."},
                    "pointer": {"type": "string", "description":
                        "JSON pointer (RFC 6901) to a value in it, such as /orders/0/id. Everything else counts from that value then."},
                    "search": {"type": "string", "description": "A text to look for, exactly as it is written."}
                },
                "required": ["handle"]
            }),
            Self::AskHuman => json!({
                "type": "object",
                "properties": {
                    "question": {"type": "string", "minLength": 1, "description": "What you want to know."},
                    "options": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from."},
                    "multiple": {"type": "boolean", "description": "Whether more than one option may be chosen."},
                    "free_text": {"type": "boolean", "description":
                        "Whether the answer may be something else than the options. Default: yes."}
                },
                "required": ["question"],
                "additionalProperties": false
            }),
            Self::Finish => answer.cloned().unwrap_or_else(|| json!({"type": "object"})),
        }
    }
}
