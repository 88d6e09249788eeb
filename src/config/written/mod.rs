//! Written form of the configuration file. Editors show these comments: they become the JSON Schema of the file.
//! [`super::resolve`] fills in defaults, expands variables and interprets the values. No type implements `Debug`,
//! because keys may be written out in the file.

mod agent;
mod auth;
mod egress;
mod envelope;
mod gateway;
mod model;
mod policy;
mod price;

use std::collections::BTreeMap;

pub(super) use agent::{Agent, AskHumanChoice, Backoff, Compaction, Fallback, Limits, Sessions, SettingSource, Tools};
pub(super) use auth::{Auth, ClientCredentials, OAuth};
pub(super) use egress::Egress;
pub(super) use envelope::{Envelope, EnvelopeKey};
pub(super) use gateway::{Files, Gateway, GatewayLimits, Oidc, Quota, Retention, Runs, Webhook};
pub(super) use model::{HttpModel, Model};
pub(super) use policy::{
    PolicyChoice, WrittenCommand, WrittenExample, WrittenLimit, WrittenMatch, WrittenPolicy, WrittenRule, WrittenWord,
};
pub(super) use price::Price;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use toolgate_core::tool::Validation;
use toolgate_core::tool::result::ResultCheck;
use toolgate_settings::mcp::{ProtocolVersionChoice, Recheck, Start};

use super::settings::{ContentMode, Durability, OtlpProtocol, TraceContext};
use super::spanned::{Located, Text};

/// The configuration of toolgate: `toolgate.yaml`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "toolgate.yaml")]
pub(super) struct ConfigFile {
    /// The store of runs. Default: SQLite at `.toolgate/toolgate.db`.
    pub(super) store: Option<Store>,
    /// How long a run belongs to a process that no longer renews its lease, in seconds. Default: 5.
    #[schemars(schema_with = "seconds")]
    pub(super) lease_s: Option<Text>,
    /// The language models, by name.
    pub(super) models: Option<BTreeMap<String, Located<Model>>>,
    /// Model prices, by model name. They override the built-in list and add models to it.
    pub(super) prices: Option<BTreeMap<String, Located<Price>>>,
    /// The MCP servers, by id. Tools are shown to the model as `mcp_<id>_<tool>`.
    pub(super) servers: Option<BTreeMap<String, Located<Server>>>,
    /// The file that stores the credentials from `toolgate mcp login`. Default: `.toolgate/credentials/tokens.json`.
    pub(super) credentials: Option<Text>,
    /// Approval policies by name, each the path of a policy file or the policy itself. The presets `default`,
    /// `accept-reads`, `accept-edits`, `dont-ask`, `delegate`, `plan` and `bypass` always exist.
    pub(super) policies: Option<BTreeMap<String, Located<PolicyChoice>>>,
    /// The agents, by name.
    pub(super) agents: Option<BTreeMap<String, Located<Agent>>>,
    /// The variant to use of every agent that has it. Default: none.
    pub(super) variant: Option<Text>,
    /// Signed envelopes, for callers that keep the state of their runs themselves. Default: disabled.
    pub(super) envelope: Option<Located<Envelope>>,
    /// The HTTP gateway of `toolgate serve`.
    pub(super) gateway: Option<Located<Gateway>>,
    /// The addresses that toolgate may reach. Default: models and MCP servers anywhere, others as `gateway` says.
    pub(super) egress: Option<Located<Egress>>,
    /// Trace export.
    pub(super) telemetry: Option<Telemetry>,
    /// The log level (`warn`) or directives (`info,toolgate_mcp=debug`). Default: `warn`.
    pub(super) log: Option<Text>,
    /// A folder for a readable log file of each run, with its conversation. Default: no such files.
    pub(super) log_folder: Option<Text>,
}

/// The store of runs.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Store {
    /// In an SQLite file.
    Sqlite(Sqlite),
    /// In memory: runs do not survive the process.
    Memory(Nothing),
}

/// No settings.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// An SQLite store.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Sqlite {
    /// The file; its folder is created. Default: `.toolgate/toolgate.db`.
    pub(super) path: Option<Text>,
    /// What a committed event survives: `power_cut` (the default) or only a `process_crash`, which is faster.
    pub(super) durability: Option<Durability>,
}

/// An MCP server: `stdio` or `http`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Server {
    /// A program that toolgate starts, with JSON-RPC over its standard input and output.
    pub(super) stdio: Option<Stdio>,
    /// A server over streamable HTTP.
    pub(super) http: Option<Http>,
    /// Whether the hints of its tools (read-only, idempotent, …) are trusted. Default: false.
    pub(super) trusted: Option<bool>,
    /// Whether a run fails, with `tool_unavailable`, if the server is not available when the run begins. Default: false.
    pub(super) required: Option<bool>,
    /// When to start it: at startup of `toolgate serve` (`eager`), or on first use (`lazy`). Default: `lazy`.
    pub(super) start: Option<Start>,
    /// Timeout for the start or the connection, in seconds. Default: 60.
    #[schemars(schema_with = "seconds")]
    pub(super) start_timeout_s: Option<Text>,
    /// Timeout for a call without progress, in seconds. Default: 60.
    #[schemars(schema_with = "seconds")]
    pub(super) call_timeout_s: Option<Text>,
    /// Timeout for a call regardless of progress, in seconds. Default: 600.
    #[schemars(schema_with = "seconds")]
    pub(super) total_timeout_s: Option<Text>,
    /// Concurrent calls. Default: 16.
    #[schemars(range(min = 1))]
    pub(super) max_concurrency: Option<Located<usize>>,
    /// The maximum of tools used from its list; the others are left out, which is reported. Default: 10000.
    #[schemars(range(min = 1))]
    pub(super) max_tools: Option<Located<usize>>,
    /// The protocol version. Default: `auto`.
    pub(super) protocol_version: Option<ProtocolVersionChoice>,
    /// Whether the server may ask the run's user for input during a call (elicitation). Default: true.
    pub(super) elicitation: Option<bool>,
    /// Before which calls toolgate refreshes the list of tools, to detect a definition that changed without a
    /// notification. Default: `approved`.
    pub(super) recheck_tools: Option<Recheck>,
    /// How long `toolgate serve` keeps a call open while the user answers an elicitation, in seconds. After that
    /// toolgate cancels the call, and sends it again only with consent. 0 disables this. Default: 300.
    pub(super) elicitation_hold_s: Option<u64>,
    /// Bytes of text that one of its results adds to the conversation. Default: the agent's `limits.max_result_bytes`.
    #[schemars(range(min = 2048))]
    pub(super) max_result_bytes: Option<Located<u64>>,
    /// How a structured result that does not match the tool's output schema is handled: ignored (`off`), reported to
    /// the model (`warn`), or treated as an error as well (`fail`). Default: `warn`.
    #[schemars(schema_with = "check_words")]
    pub(super) check_results: Option<ResultCheck>,
    /// How arguments that do not match the tool's input schema are handled: the call is rejected (`strict`), or the problems
    /// are recorded and the call goes on (`advisory`). Default: `strict`.
    #[schemars(schema_with = "validation_words")]
    pub(super) validation: Option<Located<Validation>>,
    /// The trace context in requests, in `_meta` and, over HTTP, in headers. Default: `all`.
    pub(super) trace_context: Option<TraceContext>,
    /// Settings of single tools, by the server's names of the tools.
    pub(super) tools: Option<BTreeMap<String, ServerTool>>,
}

/// Settings of one tool of a server.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerTool {
    /// Arguments that every call of the tool has. The model neither sees nor sets them. Each is a value,
    /// `{ secret: '${NAME}' }`, or an object as `{ value: { … } }`.
    pub(super) arguments: Option<BTreeMap<String, Located<Value>>>,
    /// How its calls are undone, in the runs of agents with `compensate: true`.
    pub(super) undo: Option<ToolUndo>,
}

/// The tool that undoes the calls of another one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolUndo {
    /// The server's name of the tool; a tool of the same server.
    pub(super) tool: Text,
    /// Its arguments: JSON pointers into the undone call, which begin with `/arguments` or `/result`. Default: none.
    pub(super) arguments: Option<BTreeMap<String, Text>>,
}

/// A program that toolgate starts.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Stdio {
    /// The program: a name on the PATH, or a path.
    pub(super) command: Text,
    /// Its arguments.
    pub(super) args: Option<Vec<Text>>,
    /// Its environment, in addition to the few variables that every program needs. Values are kept secret.
    pub(super) env: Option<BTreeMap<String, Text>>,
    /// Whether it inherits all of toolgate's environment, including keys. Default: false.
    pub(super) inherit_env: Option<bool>,
    /// The working folder. Default: toolgate's own.
    pub(super) cwd: Option<Text>,
}

/// A server that toolgate connects to.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Http {
    /// Its URL.
    pub(super) url: Text,
    /// Additional HTTP headers, for example `Authorization`. Values are kept secret.
    pub(super) headers: Option<BTreeMap<String, Text>>,
    /// The authentication. Default: as the server requires, with the credentials from `toolgate mcp login`.
    pub(super) auth: Option<Located<Auth>>,
}

/// Trace export.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Telemetry {
    /// The base URL of an OTLP receiver. Default: `OTEL_EXPORTER_OTLP_ENDPOINT`, or else no export.
    pub(super) otlp_endpoint: Option<Text>,
    /// The protocol of the receiver. Default: `OTEL_EXPORTER_OTLP_PROTOCOL`, or else `http/protobuf`.
    pub(super) protocol: Option<OtlpProtocol>,
    /// HTTP headers for the receiver. Values are kept secret.
    pub(super) headers: Option<BTreeMap<String, Text>>,
    /// The service name. Default: `OTEL_SERVICE_NAME`, or else `toolgate`.
    pub(super) service_name: Option<Text>,
    /// How much of prompts, answers, arguments and results spans contain: `full` (the default), `last_turn` or `none`.
    pub(super) content: Option<ContentMode>,
    /// Redaction rules for spans.
    pub(super) redact: Option<Redact>,
    /// The approximate maximum of span bytes in the queue. Default: 67108864 (64 MiB).
    #[schemars(range(min = 1))]
    pub(super) queue_bytes: Option<Located<usize>>,
    /// The longest text of a span attribute, in bytes. A longer one is cut, or replaced within JSON. Default: 65536.
    #[schemars(range(min = 1024))]
    pub(super) value_bytes: Option<Located<usize>>,
}

/// Redaction rules for spans. The secrets of this configuration are always redacted.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Redact {
    /// Patterns of names whose values are redacted, in JSON and in `name: value` text. Case, `-` and `_` make no
    /// difference. These patterns add to the default names.
    pub(super) keys: Option<Vec<Text>>,
    /// Whether the default names of secrets apply (`password`, `authorization`, `*api_key`, …). Default: true.
    pub(super) usual: Option<bool>,
}

fn validation_words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["strict", "advisory"]})
}

fn check_words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["off", "warn", "fail"]})
}

fn seconds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["number", "string"], "exclusiveMinimum": 0})
}

fn dollars(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["number", "string", "null"], "minimum": 0})
}
