//! Resolved configuration: defaults filled in, paths resolved, references checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use toolgate_core::address::EgressPolicy;
use toolgate_core::chat::Price;
use toolgate_core::id::{AgentName, ModelName, ServerId};
use toolgate_core::pattern::NamePattern;
use toolgate_core::policy::Policy;
use toolgate_core::tool::result::ResultCheck;
use toolgate_core::tool::{Undo, Validation};
use toolgate_core::trace::Propagation;
use toolgate_settings::mcp::{PinnedValue, ProtocolVersionChoice, Recheck, Start, StdioSettings};
use toolgate_settings::model;

use super::access::AuthSettings;
use super::agent::AgentSettings;
use super::gateway::GatewaySettings;
use super::places::Places;

/// All settings of a gateway. `Debug` redacts secrets.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The configuration file; `None` for the defaults.
    pub file: Option<PathBuf>,
    /// The base folder of relative paths; empty for the current folder.
    pub folder: PathBuf,
    pub store: StoreSettings,
    /// How long a run belongs to a process that no longer renews its lease.
    pub lease: Duration,
    /// The models by name, including every model of an agent.
    pub models: BTreeMap<ModelName, ModelSettings>,
    /// Configured model prices. Every name is that of a model.
    pub prices: BTreeMap<ModelName, Price>,
    /// The MCP servers by id, including every server of an agent.
    pub servers: BTreeMap<ServerId, ServerSettings>,
    /// The file that stores credentials from logins. It may not exist yet.
    pub credentials: PathBuf,
    /// The approval policies by name, including the presets.
    pub policies: BTreeMap<String, Arc<Policy>>,
    /// The agents by name; at least one.
    pub agents: BTreeMap<AgentName, AgentSettings>,
    /// Signed envelopes, if they are enabled.
    pub envelope: Option<EnvelopeSettings>,
    /// The HTTP gateway.
    pub gateway: GatewaySettings,
    /// Trace export.
    pub telemetry: TelemetrySettings,
    /// A log level or directives for `tracing-subscriber`. `None`: the default of the command.
    pub log: Option<String>,
    /// The folder for a readable log file of each run. `None`: there are no such files.
    pub log_folder: Option<PathBuf>,
    /// Where the settings stand whose errors only their adapters find.
    pub places: Places,
    /// A sentence with the place and the remedy of each `$NAME`, which is text: only `${NAME}` is a variable.
    pub bare_variables: BTreeSet<String>,
}

/// The store of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSettings {
    /// In an SQLite file.
    Sqlite {
        /// The file. Its folder may not exist yet.
        path: PathBuf,
        /// What a committed event survives.
        durability: Durability,
    },
    Memory,
}

/// What a committed event survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The machine losing power.
    #[default]
    PowerCut,
    /// The process dying; a power cut may lose the last events, never damage the rest.
    ProcessCrash,
}

/// A language model.
#[derive(Clone, Debug)]
pub enum ModelSettings {
    Http(Box<HttpModelSettings>),
    /// A conversation from a file.
    Scripted {
        file: PathBuf,
        /// Whether it stands in for the model that the environment does not name.
        is_stand_in: bool,
    },
    /// The environment should name a model and does not. This is an error only when the model is used.
    Missing {
        /// How to fix it, as text for the user.
        remedy: String,
    },
}

/// The API of a model server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// OpenAI's Chat Completions.
    OpenAiChat,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's generateContent.
    Gemini,
    /// OpenAI's Images.
    OpenAiImages,
}

impl Api {
    /// Every API.
    pub const ALL: [Self; 5] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::OpenAiImages, Self::Anthropic, Self::Gemini];

    /// Its key in the configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiResponses => "openai_responses",
            Self::OpenAiImages => "openai_images",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

/// A model on a server.
#[derive(Clone, Debug)]
pub struct HttpModelSettings {
    pub api: Api,
    pub settings: model::Settings,
}

/// An MCP server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    pub transport: TransportSettings,
    /// Whether the hints of its tools are trusted.
    pub trusted: bool,
    /// Whether runs fail without it.
    pub required: bool,
    /// When to start or connect it.
    pub start: Start,
    /// Timeout for the start or the connection.
    pub start_timeout: Duration,
    /// Timeout for a call without progress.
    pub call_timeout: Duration,
    /// Timeout for a call regardless of progress.
    pub total_timeout: Duration,
    /// Concurrent calls; at least 1.
    pub max_concurrency: usize,
    /// The maximum of tools used from its list; at least 1.
    pub max_tools: usize,
    pub protocol_version: ProtocolVersionChoice,
    /// Whether the server may ask the run's user for input during a call (elicitation).
    pub elicitation: bool,
    /// Before which calls toolgate refreshes the list of tools.
    pub recheck: Recheck,
    /// How long a call stays open while the user answers an elicitation; `None` for the default of `toolgate serve`.
    pub elicitation_hold: Option<Duration>,
    /// The maximum of text bytes that one of its results adds to the conversation; `None` for the agent's limit.
    pub max_result_bytes: Option<u64>,
    /// How toolgate treats a structured result that does not match the tool's output schema.
    pub check_results: ResultCheck,
    /// How toolgate treats arguments that do not match the tool's input schema.
    pub validation: Validation,
    pub trace_context: TraceContext,
    /// The addresses at which it may be; `None` for any.
    pub egress: Option<EgressPolicy>,
    /// Arguments that the operator sets, by the server's name of the tool and by their own name.
    pub pinned: BTreeMap<String, BTreeMap<String, PinnedValue>>,
    /// The undo of each tool that has one, by the server's name of the tool.
    pub undos: BTreeMap<String, Undo>,
}

/// Trace context that toolgate sends to a server or a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceContext {
    /// Nothing.
    None,
    /// `traceparent` and `tracestate`.
    Traceparent,
    /// `baggage` as well, which may name users.
    All,
}

impl TraceContext {
    /// The formats that the setting allows.
    pub fn propagation(self) -> Propagation {
        match self {
            Self::None => Propagation::NOTHING,
            Self::Traceparent => Propagation::TRACE_CONTEXT,
            Self::All => Propagation::ALL,
        }
    }
}

/// The transport of an MCP server.
#[derive(Clone, Debug)]
pub enum TransportSettings {
    /// A program that toolgate starts.
    Stdio(StdioSettings),
    /// A streamable HTTP server.
    Http {
        /// Its URL, `http` or `https`.
        url: String,
        /// Additional HTTP headers.
        headers: BTreeMap<String, SecretString>,
        auth: AuthSettings,
    },
    /// An entry of an editor's file that cannot be used.
    Unavailable {
        /// The reason, which completes the sentence "the MCP server `x` ...".
        reason: String,
    },
}

/// Trace export.
#[derive(Clone, Debug)]
pub struct TelemetrySettings {
    /// The base URL of an OTLP receiver; `None` for the value from the environment.
    pub otlp_endpoint: Option<String>,
    /// The protocol of the receiver; `None` for the value from the environment.
    pub protocol: Option<OtlpProtocol>,
    /// HTTP headers for the receiver.
    pub headers: BTreeMap<String, SecretString>,
    pub service_name: String,
    /// How much content spans contain.
    pub content: ContentMode,
    /// Redaction rules for spans.
    pub redact: RedactSettings,
    /// The approximate maximum of span bytes in the queue; `None` for the default.
    pub queue_bytes: Option<usize>,
    /// The longest text of a span attribute in bytes; `None` for the default.
    pub value_bytes: Option<usize>,
}

/// Names that mark secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct RedactSettings {
    /// Patterns of additional names.
    pub keys: Vec<NamePattern>,
    /// Whether the default names apply as well.
    pub usual: bool,
}

/// Protocol of the OTLP receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum OtlpProtocol {
    /// Protobuf over HTTP.
    #[serde(rename = "http/protobuf")]
    HttpProtobuf,
    /// JSON over HTTP.
    #[serde(rename = "http/json")]
    HttpJson,
    /// gRPC.
    #[serde(rename = "grpc")]
    Grpc,
}

/// How much of prompts, answers, arguments and results spans contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentMode {
    /// All content.
    #[default]
    Full,
    /// The last turn of each conversation; all arguments, answers and results.
    LastTurn,
    /// Only names, counts and sizes.
    None,
}

/// Signed envelopes.
#[derive(Clone, Debug)]
pub struct EnvelopeSettings {
    /// The id of the key to sign with.
    pub sign_with: String,
    /// The accepted keys.
    pub keys: Vec<EnvelopeKeySettings>,
    /// How long an envelope is valid.
    pub ttl: Duration,
}

/// A key for envelopes.
#[derive(Clone, Debug)]
pub struct EnvelopeKeySettings {
    pub id: String,
    pub material: KeyMaterial,
}

/// The material of an envelope key.
#[derive(Clone, Debug)]
pub enum KeyMaterial {
    /// A secret that all nodes share.
    Hmac(SecretString),
    Ed25519 {
        /// The private or public key, in PEM or base64.
        key: SecretString,
        /// The secret that encrypts the sealed content.
        seal: SecretString,
    },
}
