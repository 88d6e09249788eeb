//! The configuration as it is used: every default filled in, every path made, every reference checked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::access::AuthSettings;
use super::gateway::GatewaySettings;
use crate::core::chat::Price;
use crate::core::id::{AgentName, ModelName, ServerId};
use crate::core::pattern::NamePattern;
use crate::core::policy::Policy;
use crate::core::run::{AskHuman, Candidate, InDoubt, Limits, OnDeny};
use crate::core::tool::result::ResultCheck;
use crate::core::tool::{ExternalTool, TierMode, ToolFilter};

/// Everything a gateway is told. Secrets show themselves as redacted.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file it was read from; `None` for the defaults.
    pub file: Option<PathBuf>,
    /// The folder relative paths were resolved against; empty for the current one.
    pub folder: PathBuf,
    /// Where runs are kept.
    pub store: StoreSettings,
    /// How long a run belongs to a process that stopped showing signs of life.
    pub lease: Duration,
    /// The models, by name. Every agent's models are in here.
    pub models: BTreeMap<ModelName, ModelSettings>,
    /// What models charge, where it is configured; every name is that of a model.
    pub prices: BTreeMap<ModelName, Price>,
    /// The MCP servers, by id. Every agent's servers are in here.
    pub servers: BTreeMap<ServerId, ServerSettings>,
    /// The file in which logins are kept. It may not exist yet.
    pub credentials: PathBuf,
    /// The approval policies by name, the presets included.
    pub policies: BTreeMap<String, Arc<Policy>>,
    /// The agents, by name; at least one.
    pub agents: BTreeMap<AgentName, AgentSettings>,
    /// How envelopes are signed, if any are made or accepted.
    pub envelope: Option<EnvelopeSettings>,
    /// The HTTP gateway.
    pub gateway: GatewaySettings,
    /// Where traces go.
    pub telemetry: TelemetrySettings,
    /// A log level or directives, as `tracing-subscriber` reads them. `None`: what is usual for the command.
    pub log: Option<String>,
}

/// Where runs are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreSettings {
    /// In an SQLite file.
    Sqlite {
        /// The file. Its folder may not exist yet.
        path: PathBuf,
        /// What a committed event survives.
        durability: Durability,
    },
    /// In memory.
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
    /// A model on a server.
    Http(Box<HttpModelSettings>),
    /// A conversation from a file.
    Scripted {
        /// The file.
        file: PathBuf,
    },
    /// The environment was to name a model and does not. An error only when it is used.
    Missing {
        /// What to do, for people.
        remedy: String,
    },
}

/// Which API a model server speaks.
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

/// A model on a server.
#[derive(Clone, Debug)]
pub struct HttpModelSettings {
    /// What the server speaks.
    pub api: Api,
    /// The address that the API's path is appended to, without a trailing slash.
    pub base_url: String,
    /// Where the key comes from, if one is sent.
    pub key: Option<KeySettings>,
    /// The model to ask for.
    pub model: String,
    /// Further HTTP headers.
    pub headers: BTreeMap<String, SecretString>,
    /// How the server is reached.
    pub proxy: ProxySettings,
    /// How long to wait for the connection.
    pub connect_timeout: Duration,
    /// How long to wait for the first token of a streamed reply.
    pub first_token_timeout: Duration,
    /// How long to wait for the next piece of a reply.
    pub idle_timeout: Duration,
    /// How long to wait for a whole reply.
    pub total_timeout: Duration,
    /// Whether replies are streamed.
    pub stream: bool,
    /// Sampling temperature, if it is sent.
    pub temperature: Option<f64>,
    /// Nucleus sampling, if it is sent.
    pub top_p: Option<f64>,
    /// The seed, if it is sent.
    pub seed: Option<i64>,
    /// Most tokens of one reply, if it is sent.
    pub max_tokens: Option<u64>,
    /// How much the model thinks, in the provider's own word.
    pub reasoning_effort: Option<String>,
    /// Most tokens of thinking.
    pub reasoning_budget_tokens: Option<u64>,
    /// Whether the thinking is asked for.
    pub show_reasoning: Option<bool>,
    /// Which tools the model calls: `auto`, `required`, or the name of one.
    pub tool_choice: Option<String>,
    /// Whether the model may ask for several tools at once.
    pub parallel_tool_calls: Option<bool>,
    /// Whether tools are declared strict where their schema allows it.
    pub strict_tools: bool,
    /// Whether the output schema is sent.
    pub structured_output: Option<bool>,
    /// What is sent as it is.
    pub media: Option<Vec<MediaKind>>,
    /// Whether prompts are to be cached.
    pub prompt_cache: PromptCache,
    /// What it is told of the trace that a request belongs to.
    pub trace_context: TraceContext,
    /// Further members of the request body.
    pub extra: Map<String, Value>,
}

/// Where a key comes from.
#[derive(Clone, Debug)]
pub enum KeySettings {
    /// From the configuration or the environment.
    Fixed(SecretString),
    /// From a program.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
    },
}

/// How a server is reached.
#[derive(Clone, Debug, Default)]
pub enum ProxySettings {
    /// As the environment says.
    #[default]
    Environment,
    /// Directly.
    Direct,
    /// Through this proxy.
    Url(SecretString),
}

/// A kind of content that is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// Images.
    Images,
    /// Documents, PDF above all.
    Files,
    /// Audio.
    Audio,
}

/// How long a provider is to remember what was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum PromptCache {
    /// As the provider does by itself.
    #[default]
    #[serde(rename = "automatic")]
    Automatic,
    /// Asked for, for five minutes.
    #[serde(rename = "5m")]
    FiveMinutes,
    /// Asked for, for an hour.
    #[serde(rename = "1h")]
    OneHour,
    /// Not asked for.
    #[serde(rename = "off")]
    Off,
}

/// An MCP server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// How it is reached.
    pub transport: TransportSettings,
    /// Whether its hints are believed.
    pub trusted: bool,
    /// When it is started.
    pub start: McpStart,
    /// How long starting or connecting may take.
    pub start_timeout: Duration,
    /// How long a call may go without progress.
    pub call_timeout: Duration,
    /// How long a call may take however much it progresses.
    pub total_timeout: Duration,
    /// Calls at the same time; at least 1.
    pub max_concurrency: usize,
    /// Tools of its list that are used; at least 1.
    pub max_tools: usize,
    /// Which era of the protocol it is spoken to in.
    pub era: McpEra,
    /// Whether it may ask the run's user something in the middle of a call.
    pub elicitation: bool,
    /// Before which calls its list of tools is asked for again.
    pub recheck_tools: RecheckTools,
    /// How long a call is held open for the answers to what it asks; `None` for the usual time of `toolgate serve`.
    pub elicitation_hold: Option<Duration>,
    /// Bytes of text that one of its results brings into the conversation; `None` for the agent's limit.
    pub max_result_bytes: Option<u64>,
    /// What becomes of a structured result that does not fit the tool's output schema.
    pub check_results: ResultCheck,
    /// What it is told of the trace that a request belongs to.
    pub trace_context: TraceContext,
}

/// What a server or a model is told of the trace that a request belongs to.
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

/// Before which calls a server is asked for its tools again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecheckTools {
    /// Before calls that a person approved, or a saved approval covers, since the list was asked for.
    #[default]
    Approved,
    /// Before every call.
    Always,
    /// Before none.
    Never,
}

/// When a server is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpStart {
    /// With the program, where that stays.
    Eager,
    /// When it is first needed.
    #[default]
    Lazy,
}

/// Which era of the protocol a server is spoken to in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpEra {
    /// It is found out, with one request more at the first connection.
    #[default]
    Auto,
    /// The sessions of the revisions up to 2025-11-25.
    Legacy,
    /// The stateless revision 2026-07-28.
    Modern,
}

/// How an MCP server is reached.
#[derive(Clone, Debug)]
pub enum TransportSettings {
    /// A program to start.
    Stdio {
        /// The program: a name on the PATH, or a path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its own environment variables.
        env: BTreeMap<String, SecretString>,
        /// Whether it gets all of toolgate's own environment as well.
        inherit_env: bool,
        /// The folder it runs in; `None` for toolgate's own.
        cwd: Option<PathBuf>,
    },
    /// A streamable HTTP server.
    Http {
        /// Its URL, `http` or `https`.
        url: String,
        /// HTTP headers to send.
        headers: BTreeMap<String, SecretString>,
        /// How access is granted.
        auth: AuthSettings,
    },
}

/// An agent.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// Its name.
    pub name: AgentName,
    /// Its model.
    pub model: ModelName,
    /// The models that stand in for it, in order; each is named once.
    pub fallback: Vec<Candidate>,
    /// Seconds for which a model that failed is passed over.
    pub cooldown_s: u64,
    /// Its system prompt; may be empty.
    pub instructions: String,
    /// The servers whose tools it may use, in the order written.
    pub servers: Vec<ServerId>,
    /// Which of the tools it may use.
    pub tools: ToolFilter,
    /// Priorities by name pattern; the first match counts.
    pub priorities: Vec<(NamePattern, i32)>,
    /// What becomes of calls below the highest priority.
    pub tiers: TierMode,
    /// Its approval policy.
    pub policy: Arc<Policy>,
    /// Whether its model may ask a person.
    pub ask_human: Option<AskHuman>,
    /// What a denied call does.
    pub on_deny: OnDeny,
    /// What becomes of a call whose outcome nobody knows.
    pub in_doubt: InDoubt,
    /// JSON Schema of the final answer. Read as JSON, not yet checked to be a schema.
    pub output_schema: Option<Value>,
    /// Tools that the calling application runs itself.
    pub external_tools: Vec<ExternalTool>,
    /// What bounds a run.
    pub limits: Limits,
}

impl AgentSettings {
    /// Every model it may ask: its own, and those that stand in for it.
    pub fn models(&self) -> impl Iterator<Item = &ModelName> {
        [&self.model].into_iter().chain(self.fallback.iter().map(|candidate| &candidate.model))
    }
}

/// Where traces go.
#[derive(Clone, Debug)]
pub struct TelemetrySettings {
    /// The base address of an OTLP receiver; `None` for what the environment says.
    pub otlp_endpoint: Option<String>,
    /// The protocol it speaks; `None` for what the environment says.
    pub protocol: Option<OtlpProtocol>,
    /// Headers for it.
    pub headers: BTreeMap<String, SecretString>,
    /// The name of this service.
    pub service_name: String,
    /// How much content spans carry.
    pub content: ContentMode,
    /// What is hidden in spans where it stands under a name that fits.
    pub redact: RedactSettings,
    /// About how many bytes of spans may wait to be sent; `None` for the usual bound.
    pub queue_bytes: Option<usize>,
}

/// Under which names secrets are expected.
#[derive(Clone, Debug, PartialEq)]
pub struct RedactSettings {
    /// Patterns of such names.
    pub keys: Vec<NamePattern>,
    /// Whether the usual ones count as well.
    pub usual: bool,
}

/// A protocol of OTLP.
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

/// How much of prompts, answers, arguments and results spans carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentMode {
    /// All of it.
    #[default]
    Full,
    /// Of conversations only the last turn of each; all of arguments, answers and results.
    LastTurn,
    /// Nothing but names, counts and sizes.
    None,
}

/// Signed envelopes.
#[derive(Clone, Debug)]
pub struct EnvelopeSettings {
    /// The id of the key to sign with.
    pub sign_with: String,
    /// The keys that are accepted.
    pub keys: Vec<EnvelopeKeySettings>,
    /// How long an envelope can be given back.
    pub ttl: Duration,
}

/// A key of envelopes.
#[derive(Clone, Debug)]
pub struct EnvelopeKeySettings {
    /// Its name.
    pub id: String,
    /// What it is made of.
    pub material: KeyMaterial,
}

/// What a key of envelopes is made of.
#[derive(Clone, Debug)]
pub enum KeyMaterial {
    /// A secret that all nodes share.
    Hmac(SecretString),
    /// An Ed25519 key.
    Ed25519 {
        /// The key, private or public, in PEM or base64.
        key: SecretString,
        /// The secret that hides what is signed.
        seal: SecretString,
    },
}
