//! Hand-written journals of typical runs, for snapshots and for the external span checker.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use toolgate::core::chat::{Media, Message, Part, Reply, Usage, Usd};
use toolgate::core::error::{ErrorCode, Failure};
use toolgate::core::id::{ModelName, RunId, Tenant};
use toolgate::core::policy::{OnTimeout, Policy};
use toolgate::core::run::{
    Authorization, CallVerdict, Candidate, Decision, DecisionKind, ElicitationAnswer, Ending, Event, JournalEntry,
    Limits, ModelOptions, Output, OutputVerdict, Rejection, Run, RunRules, Spec, Started, ToolAccess, Trigger,
};
use toolgate::core::tool::{
    Annotations, ElicitationRequest, ElicitationResponse, ExternalTool, FailureKind, McpTool, Outcome, Problem,
    Question, ServerTools, TaskHandle, ToolCall, ToolOutput, Toolset, ToolsetRules,
};
use toolgate::core::trace::{Trace, TraceId};
use toolgate::ports::ModelIdentity;

/// A run and its journal.
pub(crate) struct Journal {
    pub(crate) run: RunId,
    pub(crate) events: Vec<JournalEntry>,
    pub(crate) now: Timestamp,
    trace: u8,
}

/// All journals of this file, each with its own traces.
pub(crate) fn all(start: Timestamp) -> Vec<Journal> {
    vec![
        plain_answer(start),
        parallel_calls(start),
        external_result(start),
        approved_call(start),
        mended_output(start),
        unknown_tool(start),
        cancelled(start),
        retried(start),
        fell_back(start),
        budget_used_up(start),
        picture(start),
        suspended(start),
        paused(start),
    ]
}

/// The identity of the fixture's models.
pub(crate) fn identity(name: &ModelName) -> Option<ModelIdentity> {
    let (provider, model) = match name.as_str() {
        "main" => ("openai", "gpt-5-mini"),
        "backup" => ("anthropic", "claude-haiku-4-5"),
        _ => return None,
    };
    Some(ModelIdentity {
        system: provider.into(),
        provider: provider.into(),
        model: model.into(),
        settings: json!({ "temperature": 0.2, "max_tokens": 1000 }),
    })
}

/// One question, one answer.
pub(crate) fn plain_answer(start: Timestamp) -> Journal {
    let mut journal = Journal::start("plain", 1, start, |_| {});
    journal.lists_no_tools();
    journal.model_says("The capital of France is Paris.");
    journal.completes("The capital of France is Paris.");
    journal
}

/// One question, one answer of a given length.
pub(crate) fn long_answer(start: Timestamp, text: &str) -> Journal {
    let mut journal = Journal::start("long", 9, start, |_| {});
    journal.lists_no_tools();
    journal.model_says(text);
    journal.completes(text);
    journal
}

/// Two MCP calls in flight together; the first one to end fails.
pub(crate) fn parallel_calls(start: Timestamp) -> Journal {
    let mut journal = Journal::start("parallel", 2, start, |_| {});
    journal.lists_tools();
    journal.model_calls([
        ToolCall::new("call_a", "mcp_weather_today", json!({ "city": "Oslo" })),
        ToolCall::new("call_b", "mcp_files_read", json!({ "path": "/nowhere" })),
    ]);
    journal.selects(0, &["call_a", "call_b"], &[]);
    journal.allows("call_a");
    journal.allows("call_b");
    journal.sends(&["call_a", "call_b"]);
    journal.settles("call_b", Outcome::Returned(ToolOutput::error("no such file: /nowhere")));
    journal.settles("call_a", Outcome::Returned(ToolOutput::text("{\"celsius\":4}")));
    journal.model_says("It is 4 degrees in Oslo; the file is missing.");
    journal.completes("It is 4 degrees in Oslo; the file is missing.");
    journal
}

/// A server requests input, gets the answer during another call, turns the call into a task, and ends it in the next
/// execution.
pub(crate) fn suspended(start: Timestamp) -> Journal {
    let mut journal = Journal::start("suspended", 12, start, |_| {});
    journal.lists_tools();
    journal.model_calls([
        ToolCall::new("call_i", "mcp_weather_today", json!({ "city": "Bergen" })),
        ToolCall::new("call_j", "mcp_files_read", json!({ "path": "/a" })),
    ]);
    journal.selects(0, &["call_i", "call_j"], &[]);
    journal.allows("call_i");
    journal.allows("call_j");
    journal.sends(&["call_i", "call_j"]);
    let question = Question::Url { message: "Agree to the terms.".into(), url: "https://weather.example/terms".into() };
    let questions = BTreeMap::from([("terms".to_owned(), question)]);
    let needed =
        ElicitationRequest { questions, state: Some("opaque".into()), task: None, restarts: false, interrupted: false };
    journal.then(Event::InputRequired { call: "call_i".into(), needed: Arc::new(needed), wire: None });
    let reactions = BTreeMap::from([("terms".to_owned(), ElicitationResponse::done())]);
    journal.then(Event::InputGiven {
        call: "call_i".into(),
        given: ElicitationAnswer { reactions, by: "ann".into(), via: Default::default(), repeat: false },
    });
    journal.sends(&["call_i"]);
    let task = TaskHandle { id: "task_1".into(), message: None, poll_ms: Some(500), ttl_ms: None };
    journal.then(Event::TaskStarted { call: "call_i".into(), task: Arc::new(task), wire: None });
    journal.settles("call_j", Outcome::Returned(ToolOutput::text("a")));
    journal.resumes();
    journal.settles("call_i", Outcome::Returned(ToolOutput::text("rain")));
    journal.model_says("It rains in Bergen.");
    journal.completes("It rains in Bergen.");
    journal
}

/// The run is paused while its model replies, and continued an execution later.
pub(crate) fn paused(start: Timestamp) -> Journal {
    let mut journal = Journal::start("paused", 13, start, |_| {});
    journal.lists_tools();
    journal.asks(1, ToolAccess::Enabled);
    journal.then(Event::Paused { by: "ann".into(), via: Default::default(), reason: Some("lunch".into()) });
    let call = ToolCall::new("call_k", "mcp_weather_today", json!({ "city": "Riga" }));
    journal.then(Event::ModelReplied { reply: Arc::new(answered(Reply::calling([call]))) });
    journal.resumes();
    journal.then(Event::Unpaused { by: "ann".into(), via: Default::default(), limits: None });
    journal.selects(0, &["call_k"], &[]);
    journal.allows("call_k");
    journal.sends(&["call_k"]);
    journal.settles("call_k", Outcome::Returned(ToolOutput::text("snow")));
    journal.model_says("It snows in Riga.");
    journal.completes("It snows in Riga.");
    journal
}

/// An MCP call runs, the run waits for the caller's own tool, and resumes with its result.
pub(crate) fn external_result(start: Timestamp) -> Journal {
    let mut journal = Journal::start("external", 3, start, |_| {});
    journal.lists_tools();
    journal.model_calls([
        ToolCall::new("call_c", "mcp_weather_today", json!({ "city": "Rome" })),
        ToolCall::new("call_d", "ext_ask_user", json!({ "question": "Which day?" })),
    ]);
    journal.selects(0, &["call_c", "call_d"], &[]);
    journal.allows("call_c");
    journal.allows("call_d");
    journal.sends(&["call_c"]);
    journal.settles("call_c", Outcome::Returned(ToolOutput::text("sunny")));
    journal.settles("call_d", Outcome::Returned(ToolOutput::text("Tuesday")));
    journal.resumes();
    journal.model_says("On Tuesday it is sunny in Rome.");
    journal.completes("On Tuesday it is sunny in Rome.");
    journal
}

/// A guarded call requires approval and is approved.
pub(crate) fn approved_call(start: Timestamp) -> Journal {
    let mut journal = Journal::start("approved", 4, start, |_| {});
    journal.lists_tools();
    journal.then(Event::ApprovalsResolved { granted: Arc::default() });
    journal.model_calls([ToolCall::new("call_e", "mcp_files_read", json!({ "path": "/etc/hosts" }))]);
    journal.selects(0, &["call_e"], &[]);
    journal.then(Event::CallChecked {
        call: "call_e".into(),
        advisory: Vec::new(),
        verdict: CallVerdict::Ask {
            rule: Some("files".into()),
            reason: "files are private".into(),
            policy: None,
            answer_timeout_s: None,
            on_timeout: OnTimeout::Expire,
            may_be_denied: false,
        },
    });
    journal
        .then(Event::ApprovalDecided { call: "call_e".into(), decision: Decision::new(DecisionKind::Approve, "ann") });
    journal.resumes();
    journal.sends(&["call_e"]);
    journal.settles("call_e", Outcome::Returned(ToolOutput::text("127.0.0.1 localhost")));
    journal.model_says("localhost is 127.0.0.1.");
    journal.completes("localhost is 127.0.0.1.");
    journal
}

/// An answer that does not match its schema, and one that does.
pub(crate) fn mended_output(start: Timestamp) -> Journal {
    let mut journal = Journal::start("mended", 5, start, |spec| {
        spec.rules.output_schema = Some(json!({ "type": "object", "required": ["n"] }));
        spec.rules.validate_output = true;
    });
    journal.lists_no_tools();
    journal.model_says("{\"m\":1}");
    let problem =
        Problem { received: Some(json!({ "m": 1 })), ..Problem::whole("required", "\"n\" is a required property") };
    journal.then(Event::OutputValidated { verdict: OutputVerdict::Invalid { problems: vec![problem] } });
    journal.model_says("{\"n\":1}");
    journal.then(Event::OutputValidated { verdict: OutputVerdict::Valid { value: Some(json!({ "n": 1 })) } });
    journal.completes("{\"n\":1}");
    journal
}

/// The model calls a tool that does not exist, and one of lower priority that is deferred.
pub(crate) fn unknown_tool(start: Timestamp) -> Journal {
    let mut journal = Journal::start("unknown", 6, start, |_| {});
    journal.lists_tools();
    journal.model_calls([ToolCall::new("call_f", "make_coffee", json!({}))]);
    journal.then(Event::CallChecked {
        call: "call_f".into(),
        advisory: Vec::new(),
        verdict: CallVerdict::Rejected {
            reason: Rejection::Unknown,
            message: "There is no tool `make_coffee`.".into(),
            problems: Vec::new(),
        },
    });
    journal.model_says("I cannot make coffee.");
    journal.completes("I cannot make coffee.");
    journal
}

/// The run is cancelled during a call.
pub(crate) fn cancelled(start: Timestamp) -> Journal {
    let mut journal = Journal::start("cancelled", 7, start, |_| {});
    journal.lists_tools();
    journal.model_calls([ToolCall::new("call_g", "mcp_weather_today", json!({ "city": "Bonn" }))]);
    journal.selects(0, &["call_g"], &[]);
    journal.allows("call_g");
    journal.sends(&["call_g"]);
    journal.settles("call_g", Outcome::failed(FailureKind::Cancelled, "the run was cancelled"));
    journal.then(Event::Ended {
        ending: Ending::Cancelled { reason: Some("changed my mind".into()), partial_reply: None },
    });
    journal
}

/// The provider fails once, replies on the retry, and then fails permanently.
pub(crate) fn retried(start: Timestamp) -> Journal {
    let mut journal = Journal::start("retried", 8, start, |_| {});
    journal.lists_tools();
    journal.asks(1, ToolAccess::Enabled);
    journal.fails(ErrorCode::ProviderUnavailable);
    journal.asks(2, ToolAccess::Enabled);
    let call = ToolCall::new("call_h", "mcp_weather_today", json!({ "city": "Graz" }));
    journal.then(Event::ModelReplied { reply: Arc::new(answered(Reply::calling([call]))) });
    journal.selects(0, &["call_h"], &[]);
    journal.allows("call_h");
    journal.sends(&["call_h"]);
    journal.settles("call_h", Outcome::Returned(ToolOutput::text("rain\0y")));
    journal.asks(1, ToolAccess::Enabled);
    journal.fails(ErrorCode::ProviderAuth);
    let error = Failure::new(ErrorCode::ProviderAuth, "the provider says no");
    journal.then(Event::Ended { ending: Ending::Failed { error } });
    journal
}

/// The model replies with an image and no text.
pub(crate) fn picture(start: Timestamp) -> Journal {
    let mut journal = Journal::start("picture", 12, start, |_| {});
    journal.lists_no_tools();
    let picture = Media::at("image/png", format!("media://sha256-{}", "0a".repeat(32)));
    let content = vec![Part::Image(picture.clone())];
    journal.asks(1, ToolAccess::Enabled);
    journal.then(Event::ModelReplied { reply: Arc::new(answered(Reply { content, ..Reply::empty() })) });
    let output = Output { media: vec![picture], ..Output::default() };
    journal.then(Event::Ended { ending: Ending::Completed { output } });
    journal
}

/// The provider rejects the key; a fallback model replies, and continues while the first one cools down.
pub(crate) fn fell_back(start: Timestamp) -> Journal {
    let backup = Candidate { model: "backup".into(), attempts: None };
    let by_backup = |reply| Reply { model: Some("claude-haiku-4-5".into()), ..answered(reply) };
    let mut journal = Journal::start("fell_back", 13, start, |spec| spec.fallback = vec![backup]);
    journal.lists_tools();
    journal.asks(1, ToolAccess::Enabled);
    journal.fails(ErrorCode::ProviderAuth);
    journal.asks_model("backup", 2, ToolAccess::Enabled);
    let call = ToolCall::new("call_n", "mcp_weather_today", json!({ "city": "Graz" }));
    journal.then(Event::ModelReplied { reply: Arc::new(by_backup(Reply::calling([call]))) });
    journal.selects(0, &["call_n"], &[]);
    journal.allows("call_n");
    journal.sends(&["call_n"]);
    journal.settles("call_n", Outcome::Returned(ToolOutput::text("rainy")));
    journal.asks_model("backup", 1, ToolAccess::Enabled);
    journal.then(Event::ModelReplied { reply: Arc::new(by_backup(Reply::text("Rainy."))) });
    journal.completes("Rainy.");
    journal
}

/// The tool budget is used up, and the model answers with the results it has.
pub(crate) fn budget_used_up(start: Timestamp) -> Journal {
    let mut journal = Journal::start("budget", 9, start, |spec| spec.limits.max_tool_interactions = 1);
    journal.lists_tools();
    journal.model_calls([
        ToolCall::new("call_i", "ext_ask_user", json!({ "question": "Really?" })),
        ToolCall::new("call_j", "mcp_weather_today", json!({ "town": "Graz" })),
    ]);
    journal.selects(0, &["call_i", "call_j"], &[]);
    journal.then(Event::CallChecked {
        call: "call_j".into(),
        advisory: Vec::new(),
        verdict: CallVerdict::Rejected {
            reason: Rejection::InvalidArguments,
            message: "The arguments do not fit: {\"town\":\"Graz\"} lacks `city`".into(),
            problems: Vec::new(),
        },
    });
    journal.allows("call_i");
    journal.resumes();
    journal.settles("call_i", Outcome::Returned(ToolOutput::from_value(json!({ "answer": "yes" }))));
    journal.asks(1, ToolAccess::BudgetExhausted);
    journal.then(Event::ModelReplied { reply: Arc::new(answered(Reply::text("Then yes."))) });
    journal.completes("Then yes.");
    journal
}

impl Journal {
    /// A run with its first fact.
    pub(crate) fn start(name: &str, trace: u8, start: Timestamp, shape: impl FnOnce(&mut Spec)) -> Self {
        let mut spec = Spec {
            agent: "assistant".into(),
            principal: None,
            model: "main".into(),
            system: "You are helpful.".into(),
            working_directory: None,
            mode: None,
            servers: vec!["weather".into(), "files".into()],
            required: Vec::new(),
            injected: Vec::new(),
            external_tools: vec![],
            tools: Default::default(),
            rules: RunRules::default(),
            fallback: Vec::new(),
            model_options: ModelOptions::default(),
            cooldown_s: 60,
            limits: Limits::default(),
        };
        shape(&mut spec);
        let started = Started {
            predecessor: None,
            restart: None,
            spec,
            history: vec![],
            input: Message::user("A question."),
            files: Default::default(),
            session: "session_1".into(),
            tenant: Tenant::default(),
            by: None,
            trigger: Trigger::Manual,
            trace: trace_of(trace, 0, true),
            metadata: Default::default(),
        };
        let mut journal = Self { run: RunId::new(format!("run_{name}")), events: vec![], now: start, trace };
        journal.then(Event::Started(Arc::new(started)));
        journal
    }

    /// The next fact, 10 ms after the previous one.
    pub(crate) fn then(&mut self, event: Event) {
        let seq = self.events.len() as u64;
        self.events.push(JournalEntry { seq, at: self.now, event });
        self.now += SignedDuration::from_millis(10);
    }

    pub(crate) fn lists_no_tools(&mut self) {
        self.then(Event::ToolsListed { toolset: Arc::default() });
    }

    pub(crate) fn lists_tools(&mut self) {
        self.then(Event::ToolsListed { toolset: Arc::new(toolset()) });
    }

    fn asks(&mut self, attempt: u32, tool_access: ToolAccess) {
        self.asks_model("main", attempt, tool_access);
    }

    pub(crate) fn asks_model(&mut self, model: &str, attempt: u32, tool_access: ToolAccess) {
        self.then(Event::ModelCalled { model: model.into(), attempt, tool_access });
    }

    fn fails(&mut self, code: ErrorCode) {
        let error = Failure::new(code, "the provider says no");
        let run = Run::replay(self.events.iter().map(|recorded| &recorded.event)).unwrap().unwrap();
        self.then(run.model_failed(error, Usage::default(), self.now));
    }

    pub(crate) fn model_says(&mut self, text: &str) {
        self.asks(1, ToolAccess::Enabled);
        self.then(Event::ModelReplied { reply: Arc::new(answered(Reply::text(text))) });
    }

    pub(crate) fn model_calls<const N: usize>(&mut self, calls: [ToolCall; N]) {
        self.asks(1, ToolAccess::Enabled);
        let mut reply = answered(Reply::calling(calls));
        reply.content.insert(0, Part::Reasoning { text: "Let me look.".into() });
        self.then(Event::ModelReplied { reply: Arc::new(reply) });
    }

    pub(crate) fn selects(&mut self, priority: i32, run: &[&str], deferred: &[&str]) {
        let ids = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
        self.then(Event::TierSelected { priority, run: ids(run), deferred: ids(deferred) });
    }

    pub(crate) fn allows(&mut self, call: &str) {
        let verdict = CallVerdict::Run { by: Authorization::Policy { rule: None, policy: None } };
        self.then(Event::CallChecked { call: call.into(), verdict, advisory: Vec::new() });
    }

    pub(crate) fn sends(&mut self, calls: &[&str]) {
        self.then(Event::CallsStarted { calls: calls.iter().map(|name| (*name).into()).collect() });
    }

    pub(crate) fn settles(&mut self, call: &str, outcome: Outcome) {
        self.then(Event::CallCompleted {
            call: call.into(),
            outcome: Arc::new(outcome),
            stderr: Vec::new(),
            wire: None,
        });
    }

    pub(crate) fn resumes(&mut self) {
        let executions = self.events.iter().filter(|recorded| matches!(recorded.event, Event::Resumed { .. })).count();
        self.now += SignedDuration::from_secs(1);
        self.then(Event::Resumed { trace: trace_of(self.trace, executions as u8 + 1, true), limits: None });
    }

    pub(crate) fn completes(&mut self, text: &str) {
        let output = Output { text: text.into(), ..Output::default() };
        self.then(Event::Ended { ending: Ending::Completed { output } });
    }
}

fn trace_of(journal: u8, execution: u8, sampled: bool) -> Trace {
    let mut id = [0xab; 16];
    id[14] = journal;
    id[15] = execution;
    Trace::new(TraceId(id), sampled)
}

fn answered(reply: Reply) -> Reply {
    let usage = Usage {
        input_tokens: Some(120),
        output_tokens: Some(30),
        cache_read_tokens: Some(100),
        reasoning_tokens: Some(10),
        cost_usd: Usd::try_from(0.001).ok(),
        ..Usage::default()
    };
    Reply { usage, model: Some("gpt-5-mini-2026-05".into()), response_id: Some("resp_1".into()), ..reply }
}

fn toolset() -> Toolset {
    let tool = |name: &str, description: &str, input_schema: Value| McpTool {
        name: name.into(),
        description: description.into(),
        input_schema,
        output_schema: None,
        annotations: Annotations::default(),
        pinned: None,
    };
    let city = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let path = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let server = |name: &str, tool: McpTool| ServerTools {
        server: name.into(),
        trusted: false,
        endpoint: None,
        tools: Arc::new(vec![tool]),
        left_out: vec![],
        stale: None,
        authorization: None,
    };
    let external = ExternalTool {
        name: "ask_user".into(),
        description: "Asks the user.".into(),
        input_schema: json!({ "type": "object" }),
        result_schema: None,
        priority: 0,
        deadline_s: None,
    };
    let servers = [
        server("weather", tool("today", "Today's weather.", city)),
        server("files", tool("read", "Reads a file.", path)),
    ];
    let rules = ToolsetRules { policy: Arc::new(Policy::allow_always()), ..ToolsetRules::default() };
    Toolset::assemble(&[external], &servers, &rules)
}
