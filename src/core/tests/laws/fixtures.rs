//! Fixtures: tools, specs, replies and results of the simulated world.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use serde_json::{Value, json};
use toolgate_core::blob::BlobHandle;
use toolgate_core::chat::{Media, Message, Part, ProviderState, Reply, Stop, Usage, Usd};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::id::{CallId, Tenant};
use toolgate_core::policy::{Match, Policy, Rule, StopCondition, Verdict};
use toolgate_core::run::{
    Candidate, Compaction, Event, Limits, ModelOptions, OnDeny, OnExceed, OnToolError, OnUnknownOutcome, Predecessor,
    RunRules, Segment, Spec, Started, ToolAccess, Trigger,
};
use toolgate_core::tool::result::{MIN_RESULT_BYTES, OverflowStorage, bounded};
use toolgate_core::tool::{
    Annotations, Arguments, Builtin, Endpoint, ExternalTool, FailureKind, McpTool, Origin, Outcome, Problem,
    ServerTools, TierMode, ToolCall, ToolOutput, Toolset, ToolsetRules, Undo,
};
use toolgate_core::trace::{Trace, TraceId};

use crate::choices::Tape;

/// Any time of day.
pub(crate) fn noon() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

pub(crate) fn trace(number: u8) -> Trace {
    Trace::new(TraceId([number.max(1); 16]), true)
}

pub(crate) fn external(name: &str, priority: i32) -> ExternalTool {
    ExternalTool {
        name: name.into(),
        description: format!("runs {name}"),
        input_schema: json!({"type": "object"}),
        result_schema: None,
        priority,
        deadline_s: None,
    }
}

pub(crate) fn mcp(name: &str, read_only: Option<bool>, idempotent: Option<bool>) -> McpTool {
    McpTool {
        name: name.into(),
        description: format!("does {name}"),
        input_schema: json!({"type": "object"}),
        output_schema: None,
        annotations: Annotations { read_only_hint: read_only, idempotent_hint: idempotent, ..Annotations::default() },
        pinned: None,
    }
}

pub(crate) fn externals() -> Vec<ExternalTool> {
    vec![external("order", 0), external("ask_order", 0), external("first_order", 5), external("low_order", -5)]
}

/// Tools whose names determine their treatment: `ask_` requires approval, `deny_` is refused, `first_` has priority 5,
/// `low_` has -5. Only `files` is trusted; only its `read`, `first_read` and `low_sync` may be repeated.
pub(crate) fn servers() -> Vec<ServerTools> {
    let files = vec![
        mcp("read", Some(true), None),
        mcp("write", None, None),
        mcp("first_read", Some(true), None),
        mcp("ask_write", None, None),
        mcp("low_sync", None, Some(true)),
        mcp("deny_wipe", None, None),
    ];
    let web = vec![mcp("fetch", Some(true), None), mcp("ask_post", None, None), mcp("first_post", None, None)];
    let server = |name: &str, trusted, tools| ServerTools {
        server: name.into(),
        trusted,
        endpoint: Some(Endpoint { fingerprint: format!("sha256:{name}"), description: format!("program {name}") }),
        tools: Arc::new(tools),
        left_out: Vec::new(),
        stale: None,
        authorization: None,
    };
    vec![server("files", true, files), server("web", false, web)]
}

pub(crate) fn rule(id: &str, verdict: Verdict, tool: &str) -> Rule {
    let matches = Match { tool: Some(tool.into()), ..Match::default() };
    Rule::new(id, verdict, "the test says so", matches, Vec::new(), Vec::new()).unwrap()
}

pub(crate) fn rules() -> ToolsetRules {
    let rules = vec![rule("ask", Verdict::Ask, "*ask_*"), rule("deny", Verdict::Deny, "*deny_*")];
    ToolsetRules {
        policy: Arc::new(Policy { rules, ..Policy::allow_always() }),
        priorities: vec![("mcp_*first_*".into(), 5), ("mcp_*low_*".into(), -5)],
        undos: undos(),
        ..ToolsetRules::default()
    }
}

/// Undos that a policy allows, asks about or denies, and one that finds no argument in most results.
fn undos() -> BTreeMap<Origin, Undo> {
    let undos = [
        ("files", "write", "write", "/arguments/n"),
        ("files", "first_read", "low_sync", "/result"),
        ("files", "low_sync", "ask_write", "/arguments/n"),
        ("files", "ask_write", "deny_wipe", "/arguments/n"),
        ("web", "fetch", "first_post", "/result/price"),
    ];
    let undo = |(server, tool, undo, pointer): (&str, &str, &str, &str)| {
        let arguments = BTreeMap::from([("n".to_owned(), pointer.to_owned())]);
        (Origin::Mcp { server: server.into(), tool: tool.into() }, Undo { tool: undo.into(), arguments })
    };
    undos.map(undo).into()
}

pub(crate) fn toolset() -> Arc<Toolset> {
    static TOOLSET: LazyLock<Arc<Toolset>> =
        LazyLock::new(|| Arc::new(Toolset::assemble(&externals(), &servers(), &rules())));
    TOOLSET.clone()
}

/// The same toolset, after a result had to be cut.
pub(crate) fn larger_toolset() -> Arc<Toolset> {
    static LARGER: LazyLock<Arc<Toolset>> = LazyLock::new(|| {
        let more = toolset().with_builtin(Builtin::ResultRead, &rules());
        Arc::new(more.with_builtin(Builtin::AskHuman, &rules()))
    });
    LARGER.clone()
}

/// The same toolset, after the server `web` has gone.
pub(crate) fn smaller_toolset() -> Arc<Toolset> {
    static SMALLER: LazyLock<Arc<Toolset>> =
        LazyLock::new(|| Arc::new(Toolset::assemble(&externals(), &servers()[..1], &rules())));
    SMALLER.clone()
}

pub(crate) fn spec(limits: Limits) -> Spec {
    Spec {
        agent: "tester".into(),
        principal: None,
        model: "first".into(),
        fallback: Vec::new(),
        model_options: ModelOptions::default(),
        cooldown_s: 60,
        system: String::new(),
        working_directory: None,
        mode: None,
        servers: vec!["files".into(), "web".into()],
        required: Vec::new(),
        injected: Vec::new(),
        external_tools: externals(),
        tools: Default::default(),
        rules: RunRules::default(),
        limits,
    }
}

pub(crate) fn started(spec: Spec) -> Arc<Started> {
    Arc::new(Started {
        spec,
        predecessor: None,
        restart: None,
        history: Vec::new(),
        input: Message::user("do it"),
        files: Default::default(),
        session: "session".into(),
        tenant: Tenant::default(),
        by: None,
        trigger: Trigger::Manual,
        trace: trace(1),
        metadata: Default::default(),
    })
}

/// A predecessor with that many messages. Its conversation was read.
pub(crate) fn predecessor(messages: u64) -> Predecessor {
    let conversation = Some(conversation_of(messages));
    Predecessor { run: "run_before".into(), position: messages, authors: ["ann".to_owned()].into(), conversation }
}

/// The conversation of the predecessor at this position. It may end with results, to which the input is joined.
fn conversation_of(position: u64) -> Arc<Segment> {
    let messages = conversation().into_iter().take(position as usize).map(Arc::new).collect();
    Arc::new(Segment { messages, ..Segment::default() })
}

/// An event that was read from a store, with the conversation before its run.
pub(crate) fn resolved(event: Event) -> Event {
    let Event::Started(started) = &event else { return event };
    let Some(predecessor) = &started.predecessor else { return event };
    event.with_conversation(Some(conversation_of(predecessor.position)))
}

fn conversation() -> Vec<Message> {
    let call = ToolCall::new("c0", "ext_order", json!({}));
    let answer = Part::ToolResult { tool_use_id: "c0".into(), content: vec![Part::text("old")], is_error: false };
    vec![
        Message::user("before"),
        Message { content: vec![call.into_part()], ..Message::assistant("") },
        Message { content: vec![answer], ..Message::user("") },
        Message::assistant("done before"),
    ]
}

/// Random limits, small enough to be reached.
pub(crate) fn any_limits(tape: &mut Tape) -> Limits {
    Limits {
        max_tool_interactions: *tape.pick(&[3, 0, 1, 2, 6, 30]),
        max_iterations: *tape.pick(&[6, 0, 1, 2, 4, 12]),
        max_mcp_calls: *tape.pick(&[None, Some(0), Some(1), Some(2), Some(3)]),
        max_tokens: *tape.pick(&[None, None, None, Some(50)]),
        max_cost_usd: tape.pick(&[None, None, None, Some(0.05)]).and_then(dollars),
        deadline_s: None,
        max_corrections: *tape.pick(&[2, 0, 1, 3]),
        max_attempts: *tape.pick(&[2, 0, 1, 3]),
        ..Limits::default()
    }
}

/// A random start: every option of a spec, with limits small enough to be reached.
pub(crate) fn any_start(tape: &mut Tape) -> Arc<Started> {
    let limits = any_limits(tape);
    let rules = RunRules {
        tiers: *tape.pick(&[TierMode::Defer, TierMode::Drop, TierMode::Sequential]),
        on_deny: *tape.pick(&[OnDeny::Report, OnDeny::Report, OnDeny::Report, OnDeny::Fail]),
        on_tool_error: *tape.pick(&[OnToolError::Report, OnToolError::Report, OnToolError::Report, OnToolError::Fail]),
        on_unknown_outcome: *tape.pick(&[OnUnknownOutcome::Report, OnUnknownOutcome::Ask]),
        compensate: tape.once_in(3),
        validate_output: tape.once_in(2),
        finish_with: if tape.once_in(5) { vec!["ext_order".into(), "mcp_*read".into()] } else { Vec::new() },
        on_exceed: *tape.pick(&[OnExceed::LastWord, OnExceed::LastWord, OnExceed::Fail, OnExceed::Ask, OnExceed::Warn]),
        stop_when: tape
            .once_in(5)
            .then(|| stop_when(tape.pick::<&str>(&["run.turns > 1", "run.calls[0].structured.done"]))),
        compaction: any_compaction(tape),
        ask_human: None,
        output_schema: None,
    };
    let spec = Spec {
        rules,
        required: if tape.once_in(4) { vec!["web".into()] } else { Vec::new() },
        fallback: any_fallback(tape),
        model_options: if tape.once_in(4) { any_options() } else { ModelOptions::default() },
        cooldown_s: *tape.pick(&[60, 0, 5]),
        ..spec(limits)
    };
    let mut started = Arc::unwrap_or_clone(started(spec));
    if started.spec.rules.compaction.is_some() && tape.once_in(4) {
        started.trigger = Trigger::Compaction;
        started.input = Message::user("");
        started.predecessor = Some(predecessor(3 + tape.below(2) as u64));
        return Arc::new(started);
    }
    if tape.once_in(4) {
        match tape.once_in(2) {
            true => started.history = conversation(),
            false => started.predecessor = Some(predecessor(3 + tape.below(2) as u64)),
        }
    }
    if tape.once_in(4) {
        // A handle gives access only if it is that of a file.
        let [own, foreign] = [b"own", b"not"].map(|bytes| BlobHandle::for_bytes(bytes));
        started.files.insert(own);
        let image = |handle: BlobHandle| Part::Image(Media::at("image/png", handle.to_string()));
        started.input.content.extend([image(own), image(foreign)]);
    }
    Arc::new(started)
}

pub(crate) fn stop_when(condition: &str) -> StopCondition {
    StopCondition::parse(condition).unwrap()
}

/// A compaction that is due early, later, or only after an error.
fn any_compaction(tape: &mut Tape) -> Option<Compaction> {
    let at_tokens = *tape.pick(&[None, Some(0), Some(4), Some(20), Some(30)]);
    let keep_tokens = *tape.pick(&[0, 1, 3, 8, 20]);
    let model = tape.once_in(4).then(|| "summarizer".into());
    tape.once_in(3).then_some(Compaction { at_tokens, keep_tokens, model })
}

fn any_fallback(tape: &mut Tape) -> Vec<Candidate> {
    let chain = [("second", *tape.pick(&[None, Some(2), Some(0)])), ("third", *tape.pick(&[Some(1), None]))];
    let chain = chain.map(|(model, attempts)| Candidate { model: model.into(), attempts });
    chain.into_iter().take(tape.below(3)).collect()
}

/// A random reply of a model, whatever tools were available. Ids are as bad as providers make them.
pub(crate) fn any_reply(tape: &mut Tape, tools: &Toolset, tool_access: ToolAccess) -> Reply {
    let usage = Usage {
        input_tokens: *tape.pick(&[None, Some(7), Some(20)]),
        output_tokens: *tape.pick(&[None, Some(3)]),
        cost_usd: tape.pick(&[None, Some(0.011), Some(0.02)]).and_then(dollars),
        ..Usage::default()
    };
    let stubborn = tool_access == ToolAccess::Enabled || tape.once_in(2);
    let reply = match tape.below(24) {
        1..=15 if stubborn => any_calls(tape, tools),
        16 | 17 => Reply { stop: Stop::Pause, ..Reply::text("one moment") },
        18 => Reply { stop: Stop::Pause, ..Reply::empty() },
        19 if tape.once_in(2) => Reply { content: vec![picture()], ..Reply::empty() },
        19 => Reply { stop: *tape.pick(&[Stop::End, Stop::ToolCalls, Stop::Unknown]), ..Reply::empty() },
        20 => Reply { stop: Stop::Refusal, ..Reply::text("no") },
        21 => Reply { stop: Stop::ContentFilter, ..Reply::empty() },
        22 => Reply { stop: Stop::MaxTokens, ..Reply::text("and so o") },
        // A context window that is too small ends a run like an output limit.
        23 if stubborn => Reply { stop: Stop::ContextWindow, ..Reply::text("and so") },
        23 => Reply { stop: Stop::ToolCalls, ..Reply::text("calls, but none") },
        _ if tape.once_in(4) => Reply { content: vec![Part::Reasoning { text: "hm".into() }], ..Reply::empty() },
        _ => Reply::text("the answer"),
    };
    let raw =
        || ProviderState { wire: "law".into(), model: "m".into(), origin: None, items: vec![json!({"raw": true})] };
    let provider_state = tape.once_in(5).then(raw);
    Reply { usage, provider_state, ..reply }
}

/// An image as a reply holds it after its bytes were stored.
fn picture() -> Part {
    Part::Image(Media::at("image/png", format!("media://sha256-{}", "0a".repeat(32))))
}

fn any_calls(tape: &mut Tape, tools: &Toolset) -> Reply {
    let mut names: Vec<String> = tools.iter().map(|tool| tool.name.to_string()).collect();
    names.extend(["no_such_tool".to_owned(), "not a name!".to_owned()]);
    let mut content = Vec::new();
    if tape.once_in(3) {
        content.push(Part::text("let me see"));
    }
    if tape.once_in(6) {
        content.push(Part::Reasoning { text: "hm".into() });
    }
    for _ in 0..=tape.below(5) {
        let id = *tape.pick(&["c0", "", "c1", "c2", "call_1_0"]);
        let arguments = match tape.below(6) {
            4 => Arguments::Malformed("{\"half\":".into()),
            5 => Arguments::Malformed("{}".into()),
            3 => Arguments::from_value(json!({"n": 3, "path": "a", "content": "b"})),
            other => Arguments::from_value(json!({"n": other})),
        };
        let name = tape.pick(&names).clone();
        let arguments = match &arguments {
            Arguments::Object(_) if name == Builtin::AskHuman.name() && !tape.once_in(4) => {
                Arguments::from_value(json!({"question": "which?", "options": ["a", "b"]}))
            }
            Arguments::Object(_) | Arguments::Malformed(_) => arguments,
        };
        let call = ToolCall { id: id.into(), name, arguments };
        content.push(call.into_part());
    }
    let stop = *tape.pick(&[Stop::ToolCalls, Stop::End, Stop::MaxTokens]);
    Reply { content, stop, ..Reply::empty() }
}

pub(crate) fn any_failure(tape: &mut Tape) -> Failure {
    let code = *tape.pick(&[
        ErrorCode::ProviderUnavailable,
        ErrorCode::ProviderTimeout,
        ErrorCode::ProviderAuth,
        ErrorCode::ProviderRateLimit,
        ErrorCode::ContextWindow,
        ErrorCode::ContentFilter,
        ErrorCode::ModelRefused,
    ]);
    let failure =
        Failure::new(code, "the provider is unwell").after_ms(*tape.pick(&[None, Some(90_000), Some(200_000)]));
    if tape.once_in(4) { failure.retryable(true) } else { failure }
}

pub(crate) fn any_outcome(tape: &mut Tape) -> Outcome {
    match tape.below(10) {
        9 => Outcome::Returned(long_result()),
        1 => Outcome::Returned(ToolOutput::error("no such file")),
        2 => Outcome::Returned(ToolOutput::from_value(Value::Null)),
        3 => Outcome::Returned(ToolOutput::from_value(json!({"price": 0.1, "list": [1, 2.5e-7, "é"]}))),
        4 => Outcome::failed(FailureKind::Timeout, "no answer within 30 s"),
        5 => Outcome::failed(FailureKind::Abandoned, "the caller gave up"),
        6 => Outcome::Returned(ToolOutput::default()),
        _ => Outcome::Returned(ToolOutput::text("result")),
    }
}

/// A result that had to be cut.
pub(crate) fn long_result() -> ToolOutput {
    bounded(ToolOutput::text("far too long ".repeat(1000)), MIN_RESULT_BYTES, OverflowStorage::UpTo(1 << 20)).0
}

pub(crate) fn problem() -> Problem {
    Problem { path: "/n".into(), rule: "type".into(), message: "not a number".into(), received: Some(Value::Null) }
}

/// A call of the scripted scenarios.
pub(crate) fn call(id: &str, name: &str) -> ToolCall {
    ToolCall::new(CallId::from(id), name, json!({"of": id}))
}

fn dollars(amount: f64) -> Option<Usd> {
    Usd::try_from(amount).ok()
}

fn any_options() -> ModelOptions {
    let tool_choice = Some("required".to_owned().into());
    ModelOptions { tool_choice, parallel_tool_calls: Some(false), temperature: Some(0.5), max_output_tokens: Some(7) }
}
