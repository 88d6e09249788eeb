//! The configuration file as it is written. What these comments say is what editors show: the JSON Schema of the file
//! is made from them. Nothing here has a default, a meaning or a variable filled in; [`super::resolve`] does that.
//! No type can be shown with `Debug`: keys may have been written out in the file.

mod agent;
mod auth;
mod envelope;
mod gateway;
mod model;
mod policy;
mod price;
mod runs;

use std::collections::BTreeMap;

pub(super) use agent::{Agent, AskHumanChoice, Fallback, Limits, Tools};
pub(super) use auth::{Auth, ClientCredentials, OAuth};
pub(super) use envelope::{Envelope, EnvelopeKey};
pub(super) use gateway::{Gateway, GatewayLimits, Oidc, Webhook};
pub(super) use model::{HttpModel, Model};
pub(super) use policy::{
    PolicyChoice, WrittenCommand, WrittenExample, WrittenMatch, WrittenPolicy, WrittenRule, WrittenWord,
};
pub(super) use price::Price;
pub(super) use runs::Runs;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::placed::{Placed, Text};
use super::settings::{ContentMode, Durability, McpEra, McpStart, OtlpProtocol, RecheckTools, TraceContext};
use crate::core::tool::result::ResultCheck;

/// The configuration of toolgate: `toolgate.yaml`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "toolgate.yaml")]
pub(super) struct Written {
    /// Where runs are kept. Default: SQLite at `.toolgate/toolgate.db`.
    pub(super) store: Option<Store>,
    /// How long a run belongs to a process that stopped showing signs of life, in seconds. Default: 5.
    #[schemars(schema_with = "seconds")]
    pub(super) lease_s: Option<Text>,
    /// The language models, by name.
    pub(super) models: Option<BTreeMap<String, Placed<Model>>>,
    /// What models charge, by the name of the model: where the built-in list is wrong or does not know the model.
    pub(super) prices: Option<BTreeMap<String, Placed<Price>>>,
    /// The MCP servers, by id. Tools are shown to the model as `mcp_<id>_<tool>`.
    pub(super) servers: Option<BTreeMap<String, Placed<Server>>>,
    /// The file in which `toolgate mcp login` keeps what it was granted. Default: `.toolgate/credentials/tokens.json`.
    pub(super) credentials: Option<Text>,
    /// Approval policies by name, each the path of a policy file or the policy itself; besides `default`, `accept-edits`,
    /// `plan` and `bypass`.
    pub(super) policies: Option<BTreeMap<String, Placed<PolicyChoice>>>,
    /// The agents, by name.
    pub(super) agents: Option<BTreeMap<String, Placed<Agent>>>,
    /// Signed envelopes, for callers who keep the state of their runs themselves. Default: none are made or accepted.
    pub(super) envelope: Option<Placed<Envelope>>,
    /// The HTTP gateway: what `toolgate serve` serves, and to whom.
    pub(super) gateway: Option<Placed<Gateway>>,
    /// Where traces go.
    pub(super) telemetry: Option<Telemetry>,
    /// What is logged: a level (`warn`) or directives (`info,toolgate::mcp=debug`). Default: `warn`.
    pub(super) log: Option<Text>,
}

/// Where runs are kept.
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
    /// A program that toolgate starts and talks to over its standard input and output.
    pub(super) stdio: Option<Stdio>,
    /// A server that is reached over streamable HTTP.
    pub(super) http: Option<Http>,
    /// Whether the hints it gives about its tools (read-only, idempotent, …) are believed. Default: false.
    pub(super) trusted: Option<bool>,
    /// Whether it is started with the program (`eager`), where that stays (`toolgate serve`), or when it is first needed
    /// (`lazy`). Default: `lazy`.
    pub(super) start: Option<McpStart>,
    /// For starting or connecting, in seconds. Default: 60.
    #[schemars(schema_with = "seconds")]
    pub(super) start_timeout_s: Option<Text>,
    /// For a call without any progress, in seconds. Default: 60.
    #[schemars(schema_with = "seconds")]
    pub(super) call_timeout_s: Option<Text>,
    /// For a call however much it progresses, in seconds. Default: 600.
    #[schemars(schema_with = "seconds")]
    pub(super) total_timeout_s: Option<Text>,
    /// Calls at the same time. Default: 16.
    #[schemars(range(min = 1))]
    pub(super) max_concurrency: Option<Placed<usize>>,
    /// Tools of its list that are used; the rest is left out, which is reported. Default: 10000.
    #[schemars(range(min = 1))]
    pub(super) max_tools: Option<Placed<usize>>,
    /// Which era of the protocol it is spoken to in. Default: `auto`.
    pub(super) era: Option<McpEra>,
    /// Whether it may ask the run's user something in the middle of a call. Default: true.
    pub(super) elicitation: Option<bool>,
    /// Before which calls the server is asked for its tools again, so that a definition that changed without an announcement
    /// is noticed. Default: `approved`.
    pub(super) recheck_tools: Option<RecheckTools>,
    /// How long `toolgate serve` holds a call open, in seconds, for the answers to what its server asks in the middle of it.
    /// Then the call is cancelled, and sent again only with consent. 0 holds none. Default: 300.
    pub(super) elicitation_hold_s: Option<u64>,
    /// Bytes of text that one of its results brings into the conversation. Default: the agent's `limits.max_result_bytes`.
    #[schemars(range(min = 2048))]
    pub(super) max_result_bytes: Option<Placed<u64>>,
    /// What becomes of a structured result that does not fit the tool's output schema: nobody looks (`off`), the model is
    /// told (`warn`), or it counts as an error as well (`fail`). Default: `warn`.
    #[schemars(schema_with = "check_words")]
    pub(super) check_results: Option<ResultCheck>,
    /// What it is told of the trace that a request belongs to, in `_meta` and, over HTTP, in headers. Default: `all`.
    pub(super) trace_context: Option<TraceContext>,
}

/// A program to start.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Stdio {
    /// The program: a name on the PATH, or a path.
    pub(super) command: Text,
    /// Its arguments.
    pub(super) args: Option<Vec<Text>>,
    /// Its environment, besides the few variables every program needs. Values are kept secret.
    pub(super) env: Option<BTreeMap<String, Text>>,
    /// Whether it gets all of toolgate's own environment, keys included. Default: false.
    pub(super) inherit_env: Option<bool>,
    /// The folder it runs in. Default: toolgate's own.
    pub(super) cwd: Option<Text>,
}

/// A server to connect to.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Http {
    /// Its URL.
    pub(super) url: Text,
    /// HTTP headers to send, for example `Authorization`. Values are kept secret.
    pub(super) headers: Option<BTreeMap<String, Text>>,
    /// How access is granted. Default: as the server asks for it, with what `toolgate mcp login` was granted.
    pub(super) auth: Option<Placed<Auth>>,
}

/// Where traces go.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Telemetry {
    /// The base address of an OTLP receiver. Default: `OTEL_EXPORTER_OTLP_ENDPOINT`, or else no export.
    pub(super) otlp_endpoint: Option<Text>,
    /// The protocol it speaks. Default: `OTEL_EXPORTER_OTLP_PROTOCOL`, or else `http/protobuf`.
    pub(super) protocol: Option<OtlpProtocol>,
    /// Headers for it. Values are kept secret.
    pub(super) headers: Option<BTreeMap<String, Text>>,
    /// The name of this service. Default: `OTEL_SERVICE_NAME`, or else `toolgate`.
    pub(super) service_name: Option<Text>,
    /// How much of prompts, answers, arguments and results spans carry: `full` (the default), `last_turn` or `none`.
    pub(super) content: Option<ContentMode>,
    /// What is blotted out of spans, whatever quotes it.
    pub(super) redact: Option<Redact>,
    /// About how many bytes of spans may wait to be sent. Default: 67108864 (64 MiB).
    #[schemars(range(min = 1))]
    pub(super) queue_bytes: Option<Placed<usize>>,
}

/// What is blotted out of spans besides the secrets of this configuration.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Redact {
    /// Patterns of names: what stands under a name that fits is hidden, in JSON and in `name: value`. Case, `-` and `_` make
    /// no difference. They add to the usual ones.
    pub(super) keys: Option<Vec<Text>>,
    /// Whether the usual names of secrets count (`password`, `authorization`, `*api_key`, …). Default: true.
    pub(super) usual: Option<bool>,
}

fn check_words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["off", "warn", "fail"]})
}

fn seconds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["number", "string"], "exclusiveMinimum": 0})
}
