//! Every metric there is: name, shape, unit, description and buckets, in one table. OpenTelemetry GenAI and MCP 1.41.1;
//! `toolgate.*` is ours. A test holds the table against a snapshot, for a name is a promise to people's dashboards.
//!
//! What 1.41.1 does not have is not here: `gen_ai.invoke_agent.*`, `gen_ai.execute_tool.duration` and the counters that are
//! to follow `gen_ai.client.token.usage` are still being changed.

use crate::telemetry::spans::names as span;

/// What is recorded of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A sum of whole numbers.
    Count,
    /// A sum of amounts.
    Amount,
    /// The distribution of amounts.
    Distribution,
    /// The distribution of whole numbers.
    Sizes,
    /// A sum that is kept elsewhere and looked up.
    ObservedCount,
    /// How much there is now, looked up.
    Level,
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    /// What is recorded of it.
    pub shape: Shape,
    /// Its unit, by UCUM.
    pub unit: &'static str,
    /// What it says.
    pub description: &'static str,
    /// The upper bounds of its buckets; empty where it has none.
    pub buckets: &'static [f64],
}

macro_rules! metrics {
    ($($metric:ident: $name:literal, $shape:ident, $unit:literal, $buckets:expr, $description:literal;)*) => {
        /// The metrics.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // the table below says of each what it is
        pub enum Metric {
            $($metric,)*
        }

        impl Metric {
            /// All of them, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$metric,)*];

            /// What is known of it.
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

/// As the GenAI conventions want it.
const SECONDS_OF_MODELS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// As the GenAI conventions want it.
const TOKENS: &[f64] = &[
    1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0,
    67108864.0,
];
/// As the MCP conventions want it.
const SECONDS_OF_SERVERS: &[f64] = &[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
/// As the HTTP conventions want it.
const SECONDS_OF_REQUESTS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// From a quick answer to a week: people are waited for, too.
const SECONDS_OF_PEOPLE: &[f64] =
    &[1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0, 259200.0, 604800.0];
const SECONDS_OF_RUNS: &[f64] =
    &[0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0, 604800.0];
const TURNS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0, 200.0];
const NONE: &[f64] = &[];

metrics! {
    ModelDuration: "gen_ai.client.operation.duration", Distribution, "s", SECONDS_OF_MODELS,
        "How long one attempt at a model took.";
    TokenUsage: "gen_ai.client.token.usage", Sizes, "{token}", TOKENS,
        "Tokens that one attempt at a model read and wrote.";
    TimeToFirstChunk: "gen_ai.client.operation.time_to_first_chunk", Distribution, "s", SECONDS_OF_MODELS,
        "How long a streamed reply took to begin.";

    McpDuration: "mcp.client.operation.duration", Distribution, "s", SECONDS_OF_SERVERS,
        "How long a request to an MCP server took, from its sending to the answer.";
    McpSession: "mcp.client.session.duration", Distribution, "s", SECONDS_OF_SERVERS,
        "How long a connection to an MCP server lasted.";

    HttpDuration: "http.server.request.duration", Distribution, "s", SECONDS_OF_REQUESTS,
        "How long a request to the gateway took, up to the head of its answer.";
    HttpStreams: "toolgate.http.streams", Level, "{stream}", NONE, "Streams of events that are open.";
    RunsDriven: "toolgate.runs.driven", Level, "{run}", NONE, "Runs that this process drives.";
    RunsQueued: "toolgate.runs.queued", Level, "{run}", NONE, "Runs of this process that wait for their turn.";

    Runs: "toolgate.runs", Count, "{run}", NONE, "Runs that ended.";
    RunDuration: "toolgate.run.duration", Distribution, "s", SECONDS_OF_RUNS,
        "From the first fact of a run to its last, waiting included.";
    RunTurns: "toolgate.run.turns", Sizes, "{turn}", TURNS, "Turns of a model in a run that ended.";

    Tokens: "toolgate.tokens", Count, "{token}", NONE,
        "Tokens by type. Those of the cache and of reasoning are counted in input and output as well.";
    Cost: "toolgate.cost", Amount, "{USD}", NONE, "What models cost, in US dollars, as far as prices are known.";
    ModelAttempts: "toolgate.model.attempts", Count, "{attempt}", NONE, "Attempts at models, by how they ended.";
    ModelFallbacks: "toolgate.model.fallbacks", Count, "{fallback}", NONE, "Changes to a model that stands in.";

    ToolCalls: "toolgate.tool.calls", Count, "{call}", NONE, "Calls that were run, by how they ended.";
    ToolRejections: "toolgate.tool.rejections", Count, "{call}", NONE, "Calls that were refused without being run.";
    ToolDeferrals: "toolgate.tool.deferrals", Count, "{call}", NONE,
        "Calls that gave way to calls of a higher priority.";
    ToolDrifts: "toolgate.tool.drifts", Count, "{call}", NONE,
        "Calls that were checked again, because what they were cleared for had changed.";
    BudgetExhausted: "toolgate.budget.exhausted", Count, "{run}", NONE, "Runs whose tool budget was used up.";
    ValidationFailures: "toolgate.validation.failures", Count, "{failure}", NONE,
        "Arguments, results and answers that did not fit their schema.";

    ApprovalsRequested: "toolgate.approvals.requested", Count, "{approval}", NONE, "Calls that people were asked about.";
    ApprovalsDecided: "toolgate.approvals.decided", Count, "{approval}", NONE,
        "Calls that were decided about, by the answer; `expired` is nobody's.";
    ApprovalWait: "toolgate.approval.wait", Distribution, "s", SECONDS_OF_PEOPLE,
        "From the question about a call to its answer.";
    QuestionsAsked: "toolgate.questions.asked", Count, "{question}", NONE, "Questions of models to people.";
    QuestionsAnswered: "toolgate.questions.answered", Count, "{question}", NONE, "Questions of models that were answered.";
    InputsRequested: "toolgate.inputs.requested", Count, "{input}", NONE, "Calls that a server put aside with questions.";
    InputsGiven: "toolgate.inputs.given", Count, "{input}", NONE, "Calls whose server had its questions answered.";
    Expired: "toolgate.pending.expired", Count, "{debt}", NONE, "Answers and results that did not come in time.";

    ApprovalsPending: "toolgate.approvals.pending", Level, "{approval}", NONE,
        "Calls in the store that wait for somebody's decision.";
    OldestApproval: "toolgate.approvals.oldest_age", Level, "s", NONE, "How long the oldest of them has been waiting.";
    RunsPending: "toolgate.runs.pending", Level, "{run}", NONE, "Runs in the store that wait for others.";

    SpansQueued: "toolgate.telemetry.spans.queued", Level, "{span}", NONE, "Spans that wait to be sent.";
    SpanBytes: "toolgate.telemetry.spans.queued_bytes", Level, "By", NONE, "The size of the spans that wait to be sent.";
    SpansExported: "toolgate.telemetry.spans.exported", ObservedCount, "{span}", NONE, "Spans that a receiver took.";
    SpansDropped: "toolgate.telemetry.spans.dropped", ObservedCount, "{span}", NONE,
        "Spans that were dropped because the queue was full.";
    SpansFailed: "toolgate.telemetry.spans.failed", ObservedCount, "{span}", NONE,
        "Spans that no receiver took, however often they were sent.";
    FactsDropped: "toolgate.telemetry.facts.dropped", ObservedCount, "{fact}", NONE,
        "Facts that came faster than spans could be made of them.";
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
pub(super) const DEBT: &str = "toolgate.pending.kind";
