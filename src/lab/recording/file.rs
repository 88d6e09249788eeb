//! Recording file: one run, seen from both of its seams. The model's replies are the turns; the server's part are the
//! lists of tools and the results of the calls.
//!
//! A recording has no times, no run ids and no secrets, and the ids of its calls are numbered. Two recordings of one run
//! are equal byte for byte.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};
use toolgate_core::chat::{Stop, Usage};
use toolgate_core::pattern::NamePattern;
use toolgate_core::tool::{Annotations, Choice, ElicitationResponses, ExternalTool};

use super::expected::Expected;
use super::json_path::PathPattern;

/// The version of the file format.
pub const VERSION: u32 = 1;

/// A recorded run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The version of the format.
    #[serde(deserialize_with = "known_version")]
    pub toolgate_recording: u32,
    /// The user's message.
    pub task: String,
    /// The agent's name in its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model's name in its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The system prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// The JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The MCP servers, by their ids.
    #[serde(default)]
    pub servers: BTreeMap<String, RecordedServer>,
    /// The tools that the application ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_tools: Vec<ExternalTool>,
    /// How strictly a replay compares the order of calls.
    #[serde(default, skip_serializing_if = "CallOrder::is_exact")]
    pub order: CallOrder,
    /// The values that a replay does not compare.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<Ignore>,
    /// The replies of the model, with the calls they request.
    #[serde(default)]
    pub turns: Vec<RecordedTurn>,
    /// The summary of a compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    pub end: RecordedEnd,
}

/// How a server is reached, and the tools that it listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordedServer {
    /// A program to start. Without `stdio` and `http`, the server is one of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdio: Option<StdioAddress>,
    /// A streamable HTTP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpAddress>,
    /// Why the server listed no tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    pub tools: Vec<RecordedTool>,
}

/// A program that is an MCP server. Values of its variables are not recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StdioAddress {
    pub command: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The names of variables that are passed on from the environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The folder in which it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// The address of an HTTP server. Headers are not recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpAddress {
    pub url: String,
}

/// A tool as its server listed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedTool {
    /// The server's name of the tool.
    pub name: String,
    /// The name that the model sees.
    pub model_name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "has_no_hints")]
    pub annotations: Annotations,
}

/// A reply of the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordedTurn {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The text of the reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<RecordedCall>,
    /// The stop reason, where it does not follow from the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    #[serde(skip_serializing_if = "Usage::is_unknown")]
    pub usage: Usage,
}

/// A tool call, from the model's request to its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCall {
    /// `call_1`, `call_2`, …, in the order of the requests.
    pub id: String,
    /// The name that the model wrote.
    pub tool: String,
    /// The arguments that the model wrote: an object, or a text that is not JSON.
    #[serde(default = "no_arguments")]
    pub arguments: Expected,
    /// The decision of an approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<RecordedDecision>,
    /// The answers to the elicitations of the server, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elicitations: Vec<ElicitationResponses>,
    /// The answer to a question of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    #[serde(default)]
    pub result: RecordedResult,
}

/// The decision of an approver about a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedDecision {
    pub answer: toolgate_core::run::DecisionKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The arguments that the approver sent in place of those of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_arguments: Option<Map<String, Value>>,
}

/// The result of a call, as the model read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordedResult {
    /// The text, if the content is text alone.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub text: Option<Expected>,
    /// The parts of content that is not text alone.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub content: Option<Expected>,
    /// The structured content.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub structured: Option<Expected>,
    /// Whether the tool reported an error.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub error: bool,
    /// Why the call has no answer: `timeout`, `disconnected`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Why toolgate did not send the call: `unknown`, `invalid_arguments`, `denied`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
}

/// The end of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedEnd {
    /// `completed`, `failed`, `incomplete`, …
    pub status: String,
    /// The final answer: a text, or the value if it has a schema.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub answer: Option<Expected>,
    /// The message of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How strictly a replay compares the order of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOrder {
    /// The same calls in the same order.
    #[default]
    Exact,
    /// The same calls in any order.
    Any,
}

/// Values that a replay does not compare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ignore {
    /// The tools, by a pattern of the names that the model sees; every tool without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<NamePattern>,
    #[serde(rename = "in")]
    pub part: Part,
    /// The place in that part; the whole part without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathPattern>,
}

/// A part of a recording that a replay compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The definition of a tool: `description`, `input_schema`, `output_schema`, `annotations`.
    Definition,
    /// The arguments of a call.
    Arguments,
    /// The result of a call: `text`, `structured`, `content`, `error`, `failed`, `rejected`.
    Result,
    /// The final answer.
    Answer,
}

impl Recording {
    /// The calls of all turns, in their order.
    pub fn calls(&self) -> impl Iterator<Item = &RecordedCall> {
        self.turns.iter().flat_map(|turn| &turn.calls)
    }

    /// The tools of all servers, each with the id of its server.
    pub fn tools(&self) -> impl Iterator<Item = (&String, &RecordedTool)> {
        self.servers.iter().flat_map(|(server, recorded)| recorded.tools.iter().map(move |tool| (server, tool)))
    }
}

impl CallOrder {
    fn is_exact(&self) -> bool {
        *self == Self::Exact
    }
}

/// A value that is there; `null` is a value.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Expected>, D::Error> {
    Expected::deserialize(deserializer).map(Some)
}

fn known_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let version = u32::deserialize(deserializer)?;
    if version == VERSION {
        return Ok(version);
    }
    Err(D::Error::custom(format!(
        "this version of toolgate reads recordings of version {VERSION}, not {version}; record the run again"
    )))
}

fn has_no_hints(annotations: &Annotations) -> bool {
    *annotations == Annotations::default()
}

fn no_arguments() -> Expected {
    Expected::literal(Value::Object(Map::new()))
}
