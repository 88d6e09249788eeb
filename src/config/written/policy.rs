//! Written form of policies, in files or in place.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolgate_core::policy::{LimitWindow, OnTimeout, Verdict};

use crate::spanned::{Located, Text};

/// Rules, and the default verdict if no rule matches.
#[derive(PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenPolicy {
    /// The name. Optional for a policy that is written in place.
    pub(crate) name: Option<Text>,
    /// The verdict if no rule matches: `allow`, `ask` or `deny`.
    #[schemars(required, schema_with = "verdict_words")]
    pub(crate) default: Option<Verdict>,
    /// Seconds that an approver has to answer, unless a rule sets its own limit. Default: the lifetime of the run.
    #[schemars(range(min = 1))]
    pub(crate) answer_timeout_s: Option<Located<u64>>,
    /// The effect if that time passes without an answer: `approve`, `deny` or `expire`, unless a rule sets its own. Default:
    /// `expire`, the call does not run, and the model reads that no answer arrived.
    #[schemars(schema_with = "on_timeout_words")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_timeout: Option<Located<OnTimeout>>,
    /// The rules. If several match, the strictest verdict wins.
    #[serde(default)]
    pub(crate) rules: Vec<Located<WrittenRule>>,
}

/// One rule.
#[derive(PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenRule {
    /// The rule's name within the policy; decisions contain it.
    pub(crate) id: Text,
    /// The conditions on the tool and the run; all of them must hold.
    pub(crate) r#match: Located<WrittenMatch>,
    /// A CEL expression over `args`, `tool`, `server`, `agent` and `principal` that must be true as well.
    pub(crate) when: Option<Text>,
    /// The verdict: `allow`, `ask` or `deny`.
    #[schemars(schema_with = "verdict_words")]
    pub(crate) verdict: Verdict,
    /// The reason, in one sentence; users and the model read it.
    pub(crate) reason: Text,
    /// Seconds that an approver has to answer when this rule asks. Default: the policy's.
    #[schemars(range(min = 1))]
    pub(crate) answer_timeout_s: Option<Located<u64>>,
    /// The effect if that time passes without an answer: `approve`, `deny` or `expire`. Default: the policy's.
    #[schemars(schema_with = "on_timeout_words")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_timeout: Option<Located<OnTimeout>>,
    /// How much the rule allows in a window of time, for rules that allow. Calls beyond it require approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<Located<WrittenLimit>>,
    /// Whether a rule that asks or denies may name a tool or server that does not exist. Default: no; calls that such a
    /// rule may have meant then require approval.
    #[serde(default)]
    pub(crate) allow_unmatched: bool,
    /// Calls that must match the rule, and calls that must not; verified when the policy is loaded.
    #[serde(default)]
    pub(crate) examples: WrittenExamples,
}

/// How much a rule allows in a window of time.
#[derive(PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenLimit {
    /// The window, which begins in UTC: `hour`, `day` or `month`.
    #[schemars(schema_with = "window_words")]
    pub(crate) per: LimitWindow,
    /// The most that the rule allows in a window: a number of calls, or the sum of the argument.
    #[schemars(range(min = 0))]
    pub(crate) max: Located<f64>,
    /// The argument that is summed, such as `args.amount`. Default: calls are counted.
    pub(crate) sum: Option<Text>,
}

/// The conditions of a rule. Patterns support `*`, `?`, `[a-z]` and `{a,b}`.
#[derive(Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WrittenMatch {
    /// Pattern of the tool name that the model sees.
    pub(crate) tool: Option<Text>,
    /// Pattern of the tool's own name at its server or in the application.
    pub(crate) tool_name: Option<Text>,
    /// Pattern of the server id.
    pub(crate) server: Option<Text>,
    /// The origin of the tool: `mcp`, `external` or `builtin`.
    #[schemars(schema_with = "origin_words")]
    pub(crate) origin: Option<Text>,
    /// Pattern of the agent's name.
    pub(crate) agent: Option<Text>,
    /// Pattern of the principal that the run acts for.
    pub(crate) principal: Option<Text>,
    /// Whether the configuration trusts the server.
    pub(crate) trusted: Option<bool>,
    /// The leading words of a shell command, for example `[git, [diff, log]]`. A command that substitutes or redirects
    /// is never allowed by it, and a chained one only if rules allow each of its parts. It is denied if any of its parts
    /// begins with these words, and requires approval if that cannot be known.
    pub(crate) command: Option<Located<WrittenCommand>>,
    /// The hint `readOnlyHint`.
    pub(crate) read_only: Option<bool>,
    /// The hint `destructiveHint`.
    pub(crate) destructive: Option<bool>,
    /// The hint `idempotentHint`.
    pub(crate) idempotent: Option<bool>,
    /// The hint `openWorldHint`.
    pub(crate) open_world: Option<bool>,
}

/// The leading words of a shell command, alone or with restrictions on the rest.
#[derive(PartialEq, Serialize, JsonSchema)]
#[schemars(untagged)]
#[serde(untagged)]
pub(crate) enum WrittenCommand {
    /// The words.
    Words(Vec<WrittenWord>),
    /// The words, the argument that contains them, and what may follow them.
    Bounded(BoundedCommand),
}

/// The leading words of a shell command, the argument that contains them, and what may follow them.
#[derive(PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BoundedCommand {
    /// The leading words.
    pub(crate) words: Vec<WrittenWord>,
    /// The argument that contains the command. Default: `command`, `cmd` or `command_line`, whichever the call has.
    pub(crate) argument: Option<String>,
    /// The only options (words that begin with `-`) that may follow. Default: any option that is not known to write
    /// files or to run programs.
    pub(crate) options: Option<Vec<String>>,
    /// Whether no further word may follow. Default: false.
    #[serde(default)]
    pub(crate) exact: bool,
}

/// A word, or alternatives.
#[derive(PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum WrittenWord {
    /// This word.
    Word(String),
    /// One of these words.
    OneOf(Vec<String>),
}

impl WrittenWord {
    pub(crate) fn alternatives(&self) -> Vec<String> {
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
#[derive(Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WrittenExamples {
    /// Calls that the rule must match.
    pub(crate) r#match: Vec<Located<WrittenExample>>,
    /// Calls that the rule must not match.
    pub(crate) no_match: Vec<Located<WrittenExample>>,
}

/// A call, or any call of a tool.
#[derive(PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenExample {
    /// The tool's own name at its origin.
    pub(crate) tool: String,
    /// The server; without one the calling application runs the tool.
    pub(crate) server: Option<String>,
    /// Whether toolgate runs the tool itself. Default: false.
    #[serde(default)]
    pub(crate) builtin: bool,
    /// The agent.
    pub(crate) agent: Option<String>,
    /// The principal that the run acts for.
    pub(crate) principal: Option<String>,
    /// The arguments; required for a rule with `when`.
    pub(crate) arguments: Option<Map<String, Value>>,
    /// Whether the server is trusted. Default: false.
    #[serde(default)]
    pub(crate) trusted: bool,
    /// The hint `readOnlyHint`.
    pub(crate) read_only: Option<bool>,
    /// The hint `destructiveHint`.
    pub(crate) destructive: Option<bool>,
    /// The hint `idempotentHint`.
    pub(crate) idempotent: Option<bool>,
    /// The hint `openWorldHint`.
    pub(crate) open_world: Option<bool>,
}

/// A policy, by name, by path, or written in place.
#[derive(PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum PolicyChoice {
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

fn on_timeout_words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["approve", "deny", "expire"]})
}

fn window_words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["hour", "day", "month"]})
}

fn origin_words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["mcp", "external", "builtin"]})
}
