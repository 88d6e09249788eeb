//! Metric definitions: name, shape, unit, description and buckets of every metric, in one table. They follow
//! OpenTelemetry GenAI and MCP 1.41.1; `toolgate.*` is our own namespace. A snapshot test holds the table, because
//! users build dashboards on the names.
//!
//! Metrics that 1.41.1 lacks are left out: `gen_ai.invoke_agent.*`, `gen_ai.execute_tool.duration` and the counters
//! that will follow `gen_ai.client.token.usage` are still changing.

use crate::spans::names as span;

/// The kind of instrument of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A sum of whole numbers.
    Count,
    /// A sum of fractions.
    Amount,
    /// A distribution of fractions.
    Distribution,
    /// A distribution of whole numbers.
    Sizes,
    /// A sum kept elsewhere and read by a callback.
    ObservedCount,
    /// A current value, read by a callback.
    Level,
}

/// The definition of one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Definition {
    /// The metric name.
    pub name: &'static str,
    /// The kind of instrument.
    pub shape: Shape,
    /// The unit, in UCUM.
    pub unit: &'static str,
    /// The description that readers of metrics show.
    pub description: &'static str,
    /// The upper bounds of its buckets; empty for a metric without buckets.
    pub buckets: &'static [f64],
}

macro_rules! metrics {
    ($($metric:ident: $name:literal, $shape:ident, $unit:literal, $buckets:expr, $description:literal;)*) => {
        /// The metrics.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Metric {
            $($metric,)*
        }

        impl Metric {
            /// All metrics, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$metric,)*];

            /// The definition of the metric.
            pub fn definition(self) -> Definition {
                match self {
                    $(Self::$metric => Definition {
                        name: $name,
                        shape: Shape::$shape,
                        unit: $unit,
                        description: $description,
                        buckets: $buckets,
                    },)*
                }
            }
        }
    };
}

/// The buckets of the GenAI conventions.
const SECONDS_OF_MODELS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// The buckets of the GenAI conventions.
const TOKENS: &[f64] = &[
    1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0,
    67108864.0,
];
/// The buckets of the MCP conventions.
const SECONDS_OF_SERVERS: &[f64] = &[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
/// The buckets of the HTTP conventions.
const SECONDS_OF_REQUESTS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// From a quick answer to a week: runs also wait for people.
const SECONDS_OF_PEOPLE: &[f64] =
    &[1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0, 259200.0, 604800.0];
const SECONDS_OF_RUNS: &[f64] =
    &[0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0, 604800.0];
const TURNS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0, 200.0];
const NONE: &[f64] = &[];

metrics! {
    ModelDuration: "gen_ai.client.operation.duration", Distribution, "s", SECONDS_OF_MODELS,
        "Duration of one attempt at a model.";
    TokenUsage: "gen_ai.client.token.usage", Sizes, "{token}", TOKENS,
        "Tokens read and written by one attempt at a model.";
    TimeToFirstChunk: "gen_ai.client.operation.time_to_first_chunk", Distribution, "s", SECONDS_OF_MODELS,
        "Time to the first chunk of a streamed reply.";

    McpDuration: "mcp.client.operation.duration", Distribution, "s", SECONDS_OF_SERVERS,
        "Duration of a request to an MCP server, from sending it to its response.";
    McpSession: "mcp.client.session.duration", Distribution, "s", SECONDS_OF_SERVERS,
        "Duration of a connection to an MCP server.";

    McpServerUp: "toolgate.mcp.server.up", Level, "{server}", NONE,
        "1 if the MCP server is connected and its tools are known, 0 if it is away.";

    HttpDuration: "http.server.request.duration", Distribution, "s", SECONDS_OF_REQUESTS,
        "Duration of a request to the gateway, up to the head of its response.";
    HttpStreams: "toolgate.http.streams", Level, "{stream}", NONE, "Open event streams.";
    RunsActive: "toolgate.runs.active", Level, "{run}", NONE, "Runs that this process executes.";
    RunsQueued: "toolgate.runs.queued", Level, "{run}", NONE, "Runs of this process that wait for a slot.";
    RunsBlocked: "toolgate.runs.blocked", Level, "{run}", NONE,
        "Runs that this process cannot execute, because its configuration lacks their agent or server.";

    Runs: "toolgate.runs", Count, "{run}", NONE, "Runs that ended.";
    RunDuration: "toolgate.run.duration", Distribution, "s", SECONDS_OF_RUNS,
        "Time from the first fact of a run to its last, waiting included.";
    RunTurns: "toolgate.run.turns", Sizes, "{turn}", TURNS, "Model turns of a run that ended.";

    Tokens: "toolgate.tokens", Count, "{token}", NONE,
        "Tokens by type. Cache and reasoning tokens are counted in input and output as well.";
    Cost: "toolgate.cost", Amount, "{USD}", NONE, "Cost of models in US dollars, as far as prices are known.";
    ModelAttempts: "toolgate.model.attempts", Count, "{attempt}", NONE, "Attempts at models, by outcome.";
    ModelFallbacks: "toolgate.model.fallbacks", Count, "{fallback}", NONE, "Switches to a fallback model.";

    ToolCalls: "toolgate.tool.calls", Count, "{call}", NONE, "Calls that were run, by outcome.";
    ToolRejections: "toolgate.tool.rejections", Count, "{call}", NONE, "Calls that were rejected without being run.";
    ToolDeferrals: "toolgate.tool.deferrals", Count, "{call}", NONE,
        "Calls deferred in favor of calls of a higher priority.";
    ToolDrifts: "toolgate.tool.drifts", Count, "{call}", NONE,
        "Calls checked again because they changed after their approval.";
    BudgetExhausted: "toolgate.budget.exhausted", Count, "{run}", NONE, "Runs whose tool budget was used up.";
    ValidationFailures: "toolgate.validation.failures", Count, "{failure}", NONE,
        "Arguments, results and answers that do not match their schema.";

    ApprovalsRequested: "toolgate.approvals.requested", Count, "{approval}", NONE, "Calls that required approval.";
    ApprovalsDecided: "toolgate.approvals.decided", Count, "{approval}", NONE,
        "Decisions on calls, by answer; `expired` means that no decision came in time.";
    ApprovalWait: "toolgate.approval.wait", Distribution, "s", SECONDS_OF_PEOPLE,
        "Time from an approval request to its decision.";
    QuestionsAsked: "toolgate.questions.asked", Count, "{question}", NONE, "Questions that models asked users.";
    QuestionsAnswered: "toolgate.questions.answered", Count, "{question}", NONE,
        "Questions of models that users answered.";
    InputsRequested: "toolgate.inputs.requested", Count, "{input}", NONE,
        "Calls that a server suspended with questions.";
    InputsGiven: "toolgate.inputs.given", Count, "{input}", NONE, "Calls whose server got answers to its questions.";
    Expired: "toolgate.pending.expired", Count, "{item}", NONE, "Pending items that expired.";

    ApprovalsPending: "toolgate.approvals.pending", Level, "{approval}", NONE,
        "Calls in the store that require approval.";
    OldestApproval: "toolgate.approvals.oldest_age", Level, "s", NONE, "Age of the oldest call that requires approval.";
    RunsPending: "toolgate.runs.pending", Level, "{run}", NONE, "Pending runs in the store.";

    SpansQueued: "toolgate.telemetry.spans.queued", Level, "{span}", NONE, "Spans that wait to be sent.";
    SpanBytes: "toolgate.telemetry.spans.queued_size", Level, "By", NONE,
        "The size of the spans that wait to be sent.";
    SpansExported: "toolgate.telemetry.spans.exported", ObservedCount, "{span}", NONE,
        "Spans that a receiver accepted.";
    SpansDropped: "toolgate.telemetry.spans.dropped", ObservedCount, "{span}", NONE,
        "Spans that were dropped because the queue was full.";
    SpansFailed: "toolgate.telemetry.spans.failed", ObservedCount, "{span}", NONE,
        "Spans that no receiver accepted, after all retries.";
    FactsDropped: "toolgate.telemetry.facts.dropped", ObservedCount, "{fact}", NONE,
        "Facts dropped because they came faster than they could be turned into spans.";
    LogLinesDropped: "toolgate.log.lines.dropped", ObservedCount, "{line}", NONE,
        "Log lines that were dropped because standard error was not read in time.";
}

pub(super) const AGENT: &str = span::GEN_AI_AGENT;
pub(super) const OPERATION: &str = span::OPERATION;
pub(super) const PROVIDER: &str = span::PROVIDER;
pub(super) const REQUEST_MODEL: &str = span::REQUEST_MODEL;
pub(super) const RESPONSE_MODEL: &str = span::RESPONSE_MODEL;
pub(super) const HTTP_METHOD: &str = "http.request.method";
pub(super) const HTTP_ROUTE: &str = "http.route";
pub(super) const HTTP_STATUS: &str = "http.response.status_code";
pub(super) const TOKEN_TYPE: &str = "gen_ai.token.type";
pub(super) const ERROR_TYPE: &str = span::ERROR_TYPE;
pub(super) const TOOL: &str = span::GEN_AI_TOOL;
pub(super) const MCP_METHOD: &str = span::MCP_METHOD;
pub(super) const MCP_PROTOCOL: &str = span::MCP_PROTOCOL;
pub(super) const NETWORK_TRANSPORT: &str = span::NETWORK_TRANSPORT;
pub(super) const SERVER: &str = span::SERVER;
pub(super) const TOOL_KIND: &str = span::SERVER_KIND;
pub(super) const RUN_OUTCOME: &str = span::RUN_OUTCOME;
pub(super) const MODEL: &str = "toolgate.model";
pub(super) const INSTEAD_OF: &str = span::INSTEAD_OF;
pub(super) const OUTCOME: &str = "toolgate.outcome";
pub(super) const REASON: &str = "toolgate.rejection.reason";
pub(super) const ANSWER: &str = "toolgate.approval.answer";
pub(super) const TARGET: &str = "toolgate.validation.target";
pub(super) const PENDING_KIND: &str = "toolgate.pending.kind";
