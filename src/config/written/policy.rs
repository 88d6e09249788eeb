//! Written form of policies, in files or in place.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::spanned::{Located, Text};
use crate::core::policy::Verdict;

/// Rules, and the default verdict if no rule matches.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct WrittenPolicy {
    /// The name. Optional for a policy that is written in place.
    pub(in crate::config) name: Option<Text>,
    /// The verdict if no rule matches: `allow`, `ask` or `deny`.
    #[schemars(required, schema_with = "verdict_words")]
    pub(in crate::config) default: Option<Verdict>,
    /// Seconds that an approver has to answer, unless a rule sets its own limit. Default: the lifetime of the run.
    #[schemars(range(min = 1))]
    pub(in crate::config) answer_timeout_s: Option<Located<u64>>,
    /// The rules. If several match, the strictest verdict wins.
    #[serde(default)]
    pub(in crate::config) rules: Vec<Located<WrittenRule>>,
}

/// One rule.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct WrittenRule {
    /// The rule's name within the policy; decisions contain it.
    pub(in crate::config) id: Text,
    /// The conditions on the tool and the run; all of them must hold.
    pub(in crate::config) r#match: Located<WrittenMatch>,
    /// A CEL expression over `args`, `tool`, `server`, `agent` and `principal` that must be true as well.
    pub(in crate::config) when: Option<Text>,
    /// The verdict: `allow`, `ask` or `deny`.
    #[schemars(schema_with = "verdict_words")]
    pub(in crate::config) verdict: Verdict,
    /// The reason, in one sentence; users and the model read it.
    pub(in crate::config) reason: Text,
    /// Seconds that an approver has to answer when this rule asks. Default: the policy's.
    #[schemars(range(min = 1))]
    pub(in crate::config) answer_timeout_s: Option<Located<u64>>,
    /// Calls that must match the rule, and calls that must not; verified when the policy is loaded.
    #[serde(default)]
    pub(in crate::config) examples: WrittenExamples,
}

/// The conditions of a rule. Patterns support `*`, `?`, `[a-z]` and `{a,b}`.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct WrittenMatch {
    /// Pattern of the tool name that the model sees.
    pub(in crate::config) tool: Option<Text>,
    /// Pattern of the tool's own name at its server or in the application.
    pub(in crate::config) tool_name: Option<Text>,
    /// Pattern of the server id.
    pub(in crate::config) server: Option<Text>,
    /// The origin of the tool: `mcp`, `external` or `builtin`.
    #[schemars(schema_with = "origin_words")]
    pub(in crate::config) origin: Option<Text>,
    /// Pattern of the agent's name.
    pub(in crate::config) agent: Option<Text>,
    /// Pattern of the principal that the run acts for.
    pub(in crate::config) principal: Option<Text>,
    /// Whether the configuration trusts the server.
    pub(in crate::config) trusted: Option<bool>,
    /// The leading words of a shell command, for example `[git, [diff, log]]`. A command that chains, substitutes or
    /// redirects is never allowed by it. It is always denied or requires approval if any of its parts may begin with
    /// these words.
    pub(in crate::config) command: Option<Located<WrittenCommand>>,
    /// The hint `readOnlyHint`.
    pub(in crate::config) read_only: Option<bool>,
    /// The hint `destructiveHint`.
    pub(in crate::config) destructive: Option<bool>,
    /// The hint `idempotentHint`.
    pub(in crate::config) idempotent: Option<bool>,
    /// The hint `openWorldHint`.
    pub(in crate::config) open_world: Option<bool>,
}

/// The leading words of a shell command, alone or with restrictions on the rest.
#[derive(JsonSchema, Serialize)]
#[schemars(untagged)]
#[serde(untagged)]
pub(in crate::config) enum WrittenCommand {
    /// The words.
    Words(Vec<WrittenWord>),
    /// The words, the argument that contains them, and what may follow them.
    Bounded(BoundedCommand),
}

/// The leading words of a shell command, the argument that contains them, and what may follow them.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct BoundedCommand {
    /// The leading words.
    pub(in crate::config) words: Vec<WrittenWord>,
    /// The argument that contains the command. Default: `command`, `cmd` or `command_line`, whichever the call has.
    pub(in crate::config) argument: Option<String>,
    /// The only options (words that begin with `-`) that may follow. Default: any option that is not known to write
    /// files or to run programs.
    pub(in crate::config) options: Option<Vec<String>>,
    /// Whether no further word may follow. Default: false.
    #[serde(default)]
    pub(in crate::config) exact: bool,
}

/// A word, or alternatives.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub(in crate::config) enum WrittenWord {
    /// This word.
    Word(String),
    /// One of these words.
    OneOf(Vec<String>),
}

impl WrittenWord {
    /// The alternatives.
    pub(in crate::config) fn alternatives(&self) -> Vec<String> {
        match self {
            Self::Word(word) => vec![word.clone()],
            Self::OneOf(words) => words.clone(),
        }
    }
}

/// Implemented by hand, so that an error in either form names its key and its location.
impl<'de> Deserialize<'de> for WrittenCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordsOrBounded;
        impl<'de> Visitor<'de> for WordsOrBounded {
            type Value = WrittenCommand;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of words such as `[git, [diff, log]]`, or a mapping with `words`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(WrittenCommand::Words)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                BoundedCommand::deserialize(MapAccessDeserializer::new(map)).map(WrittenCommand::Bounded)
            }
        }
        deserializer.deserialize_any(WordsOrBounded)
    }
}

/// Example calls that verify a rule.
#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct WrittenExamples {
    /// Calls that the rule must match.
    pub(in crate::config) r#match: Vec<Located<WrittenExample>>,
    /// Calls that the rule must not match.
    pub(in crate::config) no_match: Vec<Located<WrittenExample>>,
}

/// A call, or any call of a tool.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct WrittenExample {
    /// The tool's own name at its origin.
    pub(in crate::config) tool: String,
    /// The server; without one the calling application runs the tool.
    pub(in crate::config) server: Option<String>,
    /// Whether toolgate runs the tool itself. Default: false.
    #[serde(default)]
    pub(in crate::config) builtin: bool,
    /// The agent.
    pub(in crate::config) agent: Option<String>,
    /// The principal that the run acts for.
    pub(in crate::config) principal: Option<String>,
    /// The arguments; required for a rule with `when`.
    pub(in crate::config) arguments: Option<Map<String, Value>>,
    /// Whether the server is trusted. Default: false.
    #[serde(default)]
    pub(in crate::config) trusted: bool,
    /// The hint `readOnlyHint`.
    pub(in crate::config) read_only: Option<bool>,
    /// The hint `destructiveHint`.
    pub(in crate::config) destructive: Option<bool>,
    /// The hint `idempotentHint`.
    pub(in crate::config) idempotent: Option<bool>,
    /// The hint `openWorldHint`.
    pub(in crate::config) open_world: Option<bool>,
}

/// A policy, by name, by path, or written in place.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(in crate::config) enum PolicyChoice {
    /// The name of a policy, or the path of a policy file.
    Named(String),
    /// The policy itself.
    Here(Box<WrittenPolicy>),
}

/// Implemented by hand, because values buffered for serde's `untagged` lose their location in the file.
impl<'de> Deserialize<'de> for PolicyChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrPolicy;
        impl<'de> Visitor<'de> for NameOrPolicy {
            type Value = PolicyChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a policy, the path of a policy file, or a policy")
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(PolicyChoice::Named(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let policy = WrittenPolicy::deserialize(MapAccessDeserializer::new(map))?;
                Ok(PolicyChoice::Here(Box::new(policy)))
            }
        }
        deserializer.deserialize_any(NameOrPolicy)
    }
}

fn verdict_words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["allow", "ask", "deny"]})
}

fn origin_words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["mcp", "external", "builtin"]})
}
