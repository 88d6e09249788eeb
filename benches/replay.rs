//! Replay speed: 10,000 events from memory and from JSON, and whether the cost of an event grows with the history.
//! Replay is the only way to load a run, so it bounds every resume.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use jiff::Timestamp;
use serde_json::json;
use toolgate::core::chat::{Message, Part, Reply};
use toolgate::core::policy::Policy;
use toolgate::core::run::{
    Authorization, CallVerdict, Event, Limits, ModelOptions, Run, RunRules, Spec, Started, Step, Trigger,
};
use toolgate::core::tool::{McpTool, Outcome, ServerTools, ToolCall, ToolOutput, Toolset, ToolsetRules};
use toolgate::core::trace::{Trace, TraceId};

const EVENTS: usize = 10_000;

fn started() -> Arc<Started> {
    let limits = Limits { max_tool_interactions: u32::MAX, max_iterations: u32::MAX, ..Limits::default() };
    Arc::new(Started {
        spec: Spec {
            agent: "bench".into(),
            principal: None,
            model: "scripted".into(),
            fallback: Vec::new(),
            model_options: ModelOptions::default(),
            cooldown_s: 0,
            system: String::new(),
            working_directory: None,
            mode: None,
            servers: vec!["files".into()],
            required: Vec::new(),
            injected: Vec::new(),
            external_tools: Vec::new(),
            tools: Default::default(),
            rules: RunRules::default(),
            limits,
        },
        predecessor: None,
        restart: None,
        history: Vec::new(),
        input: Message::user("read everything"),
        files: Default::default(),
        session: "bench".into(),
        tenant: toolgate::core::id::Tenant::default(),
        by: None,
        trigger: Trigger::Manual,
        trace: Trace::new(TraceId([7; 16]), true),
        metadata: Default::default(),
    })
}

fn toolset() -> Arc<Toolset> {
    let tool = |name: &str| McpTool {
        name: name.into(),
        description: "reads a file".into(),
        input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        output_schema: None,
        annotations: Default::default(),
        pinned: None,
    };
    let tools = Arc::new(vec![tool("read"), tool("search")]);
    let server = ServerTools {
        server: "files".into(),
        trusted: true,
        endpoint: None,
        tools,
        left_out: Vec::new(),
        stale: None,
        authorization: None,
    };
    let rules = ToolsetRules { policy: Arc::new(Policy::allow_always()), ..ToolsetRules::default() };
    Arc::new(Toolset::assemble(&[], &[server], &rules))
}

fn reply(turn: usize) -> Reply {
    let call = |n: usize, name: &str| {
        let path = format!("src/module_{turn}/file_{n}.rs");
        ToolCall::new(format!("call_{turn}_{n}"), name, json!({"path": path, "lines": [1, 400]})).into_part()
    };
    let words = Part::text("I will read the next two files and compare what they say about the interface.");
    Reply { content: vec![words, call(0, "mcp_files_read"), call(1, "mcp_files_search")], ..Reply::calling([]) }
}

/// The events of a long run: turns of two sequential calls with results of about a kilobyte.
fn journal() -> Vec<Event> {
    let outcome = Arc::new(Outcome::Returned(ToolOutput::text("let x = compute(y)?;\n".repeat(48))));
    let started = started();
    let mut run = Run::begin(started.clone());
    let mut journal = vec![Event::Started(started)];
    while journal.len() < EVENTS {
        let events = match run.next() {
            Step::Record(events) => events,
            Step::ListTools => vec![Event::ToolsListed { toolset: toolset() }],
            Step::CallModel { attempt, tool_access, .. } => {
                let reply = Arc::new(reply(journal.len()));
                let model = run.candidate(Timestamp::UNIX_EPOCH).clone();
                vec![Event::ModelCalled { model, attempt, tool_access }, Event::ModelReplied { reply }]
            }
            Step::CheckCalls(calls) => {
                let verdict = CallVerdict::Run { by: Authorization::Policy { rule: None, policy: None } };
                calls
                    .into_iter()
                    .map(|call| Event::CallChecked { call, verdict: verdict.clone(), advisory: Vec::new() })
                    .collect()
            }
            Step::RunTier(calls) => {
                let done =
                    |call| Event::CallCompleted { call, outcome: outcome.clone(), stderr: Vec::new(), wire: None };
                let results: Vec<Event> = calls.iter().cloned().map(done).collect();
                [Event::CallsStarted { calls }].into_iter().chain(results).collect()
            }
            other @ (Step::ResolveApprovals(_)
            | Step::Compact { .. }
            | Step::ValidateOutput(_)
            | Step::Wait(_)
            | Step::Done(_)) => {
                panic!("a run of plain calls asks for nothing else: {other:?}")
            }
        };
        for event in events {
            run.apply(&event).unwrap();
            journal.push(event);
        }
    }
    journal.truncate(EVENTS);
    journal
}

fn parse(lines: &[String]) -> Vec<Event> {
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn replay(criterion: &mut Criterion) {
    let journal = journal();
    let lines: Vec<String> = journal.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    let megabytes = lines.iter().map(String::len).sum::<usize>() as f64 / 1e6;
    println!("{} events, {megabytes:.1} MB of JSON", journal.len());

    let mut group = criterion.benchmark_group("replay");
    group.throughput(Throughput::Elements(EVENTS as u64)).sample_size(20).measurement_time(Duration::from_secs(3));
    group.bench_function("10k events in memory", |bench| {
        bench.iter_with_large_drop(|| Run::replay(black_box(&journal)).unwrap());
    });
    group.bench_function("10k events from JSON", |bench| {
        bench.iter_with_large_drop(|| Run::replay(&parse(black_box(&lines))).unwrap());
    });
    group.finish();
}

/// One turn at the end of a short and of a long history. Fails if the long one is clearly slower.
fn one_more_turn(criterion: &mut Criterion) {
    let journal = journal();
    let turn = 9;
    let mut group = criterion.benchmark_group("apply nine events");
    group.sample_size(20).measurement_time(Duration::from_secs(2));
    let mut costs = Vec::new();
    for history in [1_000, 9_900] {
        let (before, after) = journal.split_at(history);
        let run = Run::replay(before).unwrap().unwrap();
        let apply = |mut run: Run| {
            for event in after.iter().take(turn) {
                run.apply(event).unwrap();
                black_box(run.next());
            }
            run
        };
        costs.push(fastest(&run, apply));
        group.bench_function(format!("after {history}"), |bench| {
            bench.iter_batched(|| run.clone(), apply, BatchSize::PerIteration);
        });
    }
    group.finish();
    let [short, long] = costs[..] else { return };
    println!("nine events after 1,000: {short:?}; after 9,900: {long:?}");
    assert!(long < short * 4 + Duration::from_micros(20), "the cost of an event grows with the history");
}

/// The fastest of many attempts, without the copy and the drop of the run.
fn fastest(run: &Run, apply: impl Fn(Run) -> Run) -> Duration {
    let tries = (0..200).map(|_| {
        let copy = run.clone();
        let begun = Instant::now();
        let after = apply(copy);
        let took = begun.elapsed();
        drop(black_box(after));
        took
    });
    tries.min().unwrap_or_default()
}

criterion_group!(benches, replay, one_more_turn);
criterion_main!(benches);
