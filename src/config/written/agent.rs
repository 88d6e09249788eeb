//! Written form of agents.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use toolgate_core::chat::Usd;
use toolgate_core::run::{OnDeny, OnExceed, OnToolError, OnUnknownOutcome, Restart};
use toolgate_core::tool::TierMode;

use super::policy::PolicyChoice;
use crate::spanned::{Located, Text};

/// An agent: written here, or in a Markdown file whose front matter has the same keys and whose text contains the
/// instructions.
#[derive(Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Agent {
    /// The Markdown file. An entry with a file has no other key.
    pub(crate) file: Option<Text>,
    /// Other names under which runs may request it. Default: none.
    pub(crate) aliases: Option<Vec<Text>>,
    /// Variants by name: settings that replace the agent's own while the variant is chosen, with `variant` or
    /// `--variant`. Default: none.
    pub(crate) variants: Option<BTreeMap<String, Located<Agent>>>,
    /// The model. Default: the only configured model.
    pub(crate) model: Option<Text>,
    /// The fallback models for when it fails, in order. Default: none.
    pub(crate) fallback: Option<Vec<Located<Fallback>>>,
    /// Further models that a run may choose, besides the agent's own and its fallback models. Default: none.
    pub(crate) models: Option<Vec<Text>>,
    /// The delays before further attempts at a model. Default: half a second, doubled up to eight seconds.
    pub(crate) backoff: Option<Located<Backoff>>,
    /// Seconds for which a failed model is skipped while another one is available. Default: 60.
    pub(crate) cooldown_s: Option<u64>,
    /// The system prompt. Variables are not expanded.
    pub(crate) instructions: Option<Text>,
    /// Whether a run over HTTP may add `instructions` of its caller to the system prompt. Default: false.
    pub(crate) run_instructions: Option<bool>,
    /// A system prompt that comes with toolgate, for an agent without `instructions`: `coding` or `research`. Default: none.
    pub(crate) instructions_preset: Option<Text>,
    /// The folder that the agent works on. The model is told its path. A session from another folder begins afresh.
    /// Default: none.
    pub(crate) working_directory: Option<Text>,
    /// The sources of further instructions: `project` for `AGENTS.md` and `CLAUDE.md` in the working directory, at most
    /// 64 KiB. Default: `[project]` with a working directory.
    #[schemars(schema_with = "source_words")]
    pub(crate) setting_sources: Option<Vec<Located<SettingSource>>>,
    /// The MCP servers whose tools it may use. Default: none.
    pub(crate) servers: Option<Vec<Text>>,
    /// Filter for the tools, by the names that the model sees.
    pub(crate) tools: Option<Tools>,
    /// Priorities by tool name pattern; the first pattern that matches applies. Default: 0.
    pub(crate) priorities: Option<Priorities>,
    /// How calls below the highest priority of a reply are handled. Default: `defer`.
    #[schemars(schema_with = "tier_words")]
    pub(crate) tiers: Option<TierMode>,
    /// The approval policy: its name, the path of a policy file, or the policy itself. Default: `default`.
    pub(crate) policy: Option<Located<PolicyChoice>>,
    /// The permission modes that a run or a session may choose in place of the policy: names of policies. Default: none.
    pub(crate) modes: Option<Vec<Text>>,
    /// When a session begins afresh: its next run does not continue the conversation.
    pub(crate) sessions: Option<Sessions>,
    /// Whether tools whose every call requires approval are hidden from the model until a grant covers them. Default: false.
    pub(crate) hide_unapproved: Option<bool>,
    /// Whether the model may ask the user, with the tool `ask_human`; `{ deadline_s }` limits the time for an answer.
    /// Default: false.
    pub(crate) ask_human: Option<Located<AskHumanChoice>>,
    /// The effect of a denied call: `report` it to the model, or `fail` the run. Default: `report`.
    #[schemars(schema_with = "report_or_fail")]
    pub(crate) on_deny: Option<OnDeny>,
    /// The effect of a call that ends with an error: `report` it to the model, or `fail` the run. Default: `report`.
    #[schemars(schema_with = "report_or_fail")]
    pub(crate) on_tool_error: Option<OnToolError>,
    /// How a call with an unknown outcome is handled: `report` it to the model, or `ask` the user. Default: `report`.
    #[schemars(schema_with = "doubt_words")]
    pub(crate) on_unknown_outcome: Option<OnUnknownOutcome>,
    /// Whether a run that ends as failed or cancelled first undoes the calls that took effect, of tools with an `undo`. Default:
    /// false.
    pub(crate) compensate: Option<bool>,
    /// JSON Schema of the final answer, or the path of a file with it.
    pub(crate) output_schema: Option<Located<Value>>,
    /// Tools, by name pattern, whose successful call ends the run with its result as the answer. `finish` makes a tool of that
    /// name available whose arguments are the answer; needs an `output_schema` of type `object`. Default: none.
    pub(crate) finish_with: Option<Vec<Text>>,
    /// CEL condition on `run`, checked after each turn with tools; once it holds, the model answers without tools.
    pub(crate) stop_when: Option<Text>,
    /// Tools that the calling application runs: `name`, `description`, `input_schema`, `result_schema`, `priority`,
    /// `deadline_s`.
    pub(crate) external_tools: Option<Vec<Located<Value>>>,
    /// When long conversations are compacted: a model writes a summary of their beginning. Default: only on request.
    pub(crate) compaction: Option<Located<Compaction>>,
    /// The limits of a run.
    pub(crate) limits: Option<Limits>,
    /// The effect of a hard limit: a last answer without tools (`last_word`), `fail`, `ask`, or only a warning (`warn`).
    /// Default: `last_word`.
    #[schemars(schema_with = "exceed_words")]
    pub(crate) on_exceed: Option<OnExceed>,
}

/// When a session begins afresh.
#[derive(Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sessions {
    /// Seconds without use after which a session expires. Default: never.
    #[schemars(range(min = 1))]
    pub(crate) expire_after_s: Option<Located<u64>>,
    /// The changes of the configuration after which a session begins afresh: `working_directory`, `model`, `servers`,
    /// `policy`. Default: `[working_directory]`.
    #[schemars(schema_with = "restart_words")]
    pub(crate) restart_on: Option<Vec<Located<Restart>>>,
}

/// When long conversations are compacted, and what is kept.
#[derive(Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Compaction {
    /// The size of a conversation in tokens at which it is compacted. Default: only when it does not fit the model's
    /// context window.
    #[schemars(range(min = 1))]
    pub(crate) at_tokens: Option<Located<u64>>,
    /// The most tokens at the end of a conversation that are kept as they are. Less than `at_tokens`. Default: 10000, or
    /// a quarter of `at_tokens` if that is less.
    pub(crate) keep_tokens: Option<Located<u64>>,
    /// The model that writes summaries. Default: the agent's own.
    pub(crate) model: Option<Text>,
}

/// Allow and deny lists of tool names with wildcards.
#[derive(Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tools {
    /// Names of allowed tools; empty means all.
    pub(crate) allow: Vec<Text>,
    /// Names of denied tools; takes precedence over `allow`.
    pub(crate) deny: Vec<Text>,
}

/// The limits of a run.
#[derive(Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    /// Turns with tools, and rejected answers; after that the model must answer with what it has. Default: 30.
    pub(crate) max_tool_interactions: Option<u32>,
    /// Model turns; after that the run ends. Default: 50.
    #[schemars(range(min = 1))]
    pub(crate) max_iterations: Option<Located<u32>>,
    /// MCP calls. Default: no limit.
    pub(crate) max_mcp_calls: Option<u32>,
    /// Input and output tokens. Default: no limit.
    pub(crate) max_tokens: Option<u64>,
    /// US dollars. Default: no limit.
    #[schemars(with = "Option<f64>")]
    pub(crate) max_cost_usd: Option<Usd>,
    /// Seconds since the start, including time spent waiting. Default: no limit.
    pub(crate) deadline_s: Option<u64>,
    /// Consecutive turns that contain only unusable calls or rejected answers. Default: 3.
    pub(crate) max_corrections: Option<u32>,
    /// Attempts at one model call, including the first. Default: 3.
    #[schemars(range(min = 1))]
    pub(crate) max_attempts: Option<Located<u32>>,
    /// Bytes of text that one tool result adds to the conversation; the rest is stored and can be read in pieces.
    /// Default: 65536.
    #[schemars(range(min = 2048))]
    pub(crate) max_result_bytes: Option<Located<u64>>,
}

/// A source of instructions beside the agent's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SettingSource {
    /// The instruction files of the working directory.
    Project,
}

/// The delays before further attempts at a model: growing ones, or always the same.
#[derive(Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Backoff {
    /// Milliseconds before the second attempt. Default: 500.
    #[schemars(range(min = 1))]
    pub(crate) first_ms: Option<Located<u64>>,
    /// The most milliseconds before an attempt. Default: 8000.
    #[schemars(range(min = 1))]
    pub(crate) cap_ms: Option<Located<u64>>,
    /// The factor for each further attempt. Default: 2.
    #[schemars(range(min = 1))]
    pub(crate) factor: Option<Located<u32>>,
    /// Milliseconds before every further attempt; excludes the other keys.
    #[schemars(range(min = 1))]
    pub(crate) every_ms: Option<Located<u64>>,
}

/// A fallback model, for when the models before it fail.
#[derive(PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Fallback {
    /// Its name.
    Name(String),
    /// Its name, and the number of attempts.
    Entry(FallbackEntry),
}

/// A fallback model, for when the models before it fail.
#[derive(PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FallbackEntry {
    /// The model.
    pub(crate) model: Text,
    /// Attempts in one turn, including the first. Default: `max_attempts`.
    #[schemars(range(min = 1))]
    pub(crate) attempts: Option<Located<u32>>,
}

/// Implemented by hand, because values buffered for serde's `untagged` lose their location in the file.
impl<'de> Deserialize<'de> for Fallback {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrEntry;
        impl<'de> Visitor<'de> for NameOrEntry {
            type Value = Fallback;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a model, or `model` and `attempts`")
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Fallback::Name(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                FallbackEntry::deserialize(MapAccessDeserializer::new(map)).map(Fallback::Entry)
            }
        }
        deserializer.deserialize_any(NameOrEntry)
    }
}

/// Whether the model may ask the user, and how long an answer may take.
#[derive(PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum AskHumanChoice {
    /// Yes or no.
    Whether(bool),
    /// Yes, with a time limit.
    Within(AskHumanWithin),
}

/// How long an answer may take.
#[derive(PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskHumanWithin {
    /// Seconds; after that the model is informed that there is no answer. Default: the lifetime of the run.
    #[schemars(range(min = 1))]
    pub(crate) deadline_s: Option<Located<u64>>,
}

/// Implemented by hand, because values buffered for serde's `untagged` lose their location in the file.
impl<'de> Deserialize<'de> for AskHumanChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WhetherOrWithin;
        impl<'de> Visitor<'de> for WhetherOrWithin {
            type Value = AskHumanChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`true`, `false`, or `{ deadline_s: … }`")
            }

            fn visit_bool<E>(self, whether: bool) -> Result<Self::Value, E> {
                Ok(AskHumanChoice::Whether(whether))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                AskHumanWithin::deserialize(MapAccessDeserializer::new(map)).map(AskHumanChoice::Within)
            }
        }
        deserializer.deserialize_any(WhetherOrWithin)
    }
}

/// Patterns with numbers, in the order written.
#[derive(Default, PartialEq)]
pub(crate) struct Priorities(pub(crate) Vec<(String, Located<i32>)>);

impl<'de> Deserialize<'de> for Priorities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Priorities;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("patterns with their priorities")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Priorities(entries))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl JsonSchema for Priorities {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Priorities".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "additionalProperties": {"type": "integer"}})
    }
}

fn source_words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"enum": ["project"]}})
}

fn restart_words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"enum": ["working_directory", "model", "servers", "policy"]}})
}

fn tier_words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["defer", "drop", "sequential"]})
}

fn report_or_fail(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["report", "fail"]})
}

fn exceed_words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["last_word", "fail", "ask", "warn"]})
}

fn doubt_words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["report", "ask"]})
}
