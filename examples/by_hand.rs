//! A run without a runner, a store or async: the core decides the next step, and this program executes it.
//!
//! `cargo run --example by_hand`
//!
//! Every fact is an [`Event`] that the run accepts or rejects. Store the events anywhere: the run is their fold, and
//! [`Run::replay`] restores it after a crash.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, json};
use toolgate::core::chat::{Message, Reply};
use toolgate::core::policy::Policy;
use toolgate::core::run::{
    Authorization, CallVerdict, Event, Limits, ModelOptions, OutputVerdict, Run, RunRules, Spec, Started, Step, Trigger,
};
use toolgate::core::tool::{
    Annotations, McpTool, Outcome, ServerTools, ToolCall, ToolFilter, ToolOutput, Toolset, ToolsetRules,
};
use toolgate::core::trace::{Trace, TraceId};

fn main() -> Result<(), Box<dyn Error>> {
    let first = Event::Started(Arc::new(started("What is the sum of 2 and 3?")));
    let mut journal = vec![first];
    loop {
        // Replayed for each step, to show that only the journal matters. A driver applies each event once.
        let run = Run::replay(&journal)?.ok_or("a journal has at least one event")?;
        let step = run.next();
        println!("{:>2} events, next: {}", journal.len(), name(&step));
        let events = match step {
            Step::Record(events) => events,
            Step::ListTools => vec![Event::ToolsListed { toolset: Arc::new(toolset()) }],
            Step::ResolveApprovals(_) => vec![Event::ApprovalsResolved { granted: Arc::default() }],
            Step::CallModel { attempt, tool_access, .. } => {
                let model_name = run.candidate(Timestamp::now()).clone();
                let asked = Event::ModelCalled { model: model_name, attempt, tool_access };
                vec![asked, Event::ModelReplied { reply: Arc::new(model(&run)) }]
            }
            Step::Compact { .. } => return Err("a run without `compaction` is not compacted".into()),
            Step::CheckCalls(calls) => {
                let run = CallVerdict::Run { by: Authorization::Policy { rule: None, policy: None } };
                calls
                    .into_iter()
                    .map(|call| Event::CallChecked { call, verdict: run.clone(), advisory: Vec::new() })
                    .collect()
            }
            Step::RunTier(calls) => {
                let results = calls.iter().map(|call| Event::CallCompleted {
                    call: call.clone(),
                    outcome: add(&run, call),
                    stderr: Vec::new(),
                    wire: None,
                });
                [Event::CallsStarted { calls: calls.clone() }].into_iter().chain(results.collect::<Vec<_>>()).collect()
            }
            Step::ValidateOutput(_) => vec![Event::OutputValidated { verdict: OutputVerdict::Valid { value: None } }],
            Step::Wait(items) => return Err(format!("no application is here for {} pending items", items.len()).into()),
            Step::Done(ending) => {
                println!("{}", ending.output().map_or("", |output| &output.text));
                return Ok(());
            }
        };
        journal.extend(events);
    }
}

/// A minimal model: it requests the sum, then reports it.
fn model(run: &Run) -> Reply {
    match run.budget().iterations {
        0 => Reply::calling([ToolCall::new("call_1", "mcp_calculator_add", json!({"a": 2, "b": 3}))]),
        _ => Reply::text("The sum is 5."),
    }
}

/// The tool `add`.
fn add(run: &Run, call: &toolgate::core::id::CallId) -> Arc<Outcome> {
    let number = |name: &str| run.call(call)?.arguments().as_object()?.get(name)?.as_i64();
    Arc::new(match (number("a"), number("b")) {
        (Some(a), Some(b)) => Outcome::Returned(ToolOutput::text((a + b).to_string())),
        _ => Outcome::Returned(ToolOutput::error("a and b have to be integers")),
    })
}

fn toolset() -> Toolset {
    let add = McpTool {
        name: "add".into(),
        description: "Adds two integers.".into(),
        input_schema: json!({"type": "object", "required": ["a", "b"]}),
        output_schema: None,
        annotations: Annotations::default(),
        pinned: None,
    };
    let server = ServerTools {
        server: "calculator".into(),
        trusted: true,
        endpoint: None,
        tools: Arc::new(vec![add]),
        left_out: Vec::new(),
        stale: None,
        authorization: None,
    };
    let rules = ToolsetRules { policy: Arc::new(Policy::allow_always()), ..ToolsetRules::default() };
    Toolset::assemble(&[], &[server], &rules)
}

fn started(question: &str) -> Started {
    Started {
        predecessor: None,
        restart: None,
        spec: Spec {
            agent: "by-hand".into(),
            principal: None,
            model: "few-words".into(),
            fallback: Vec::new(),
            model_options: ModelOptions::default(),
            cooldown_s: 0,
            system: String::new(),
            working_directory: None,
            mode: None,
            servers: Vec::new(),
            required: Vec::new(),
            injected: Vec::new(),
            external_tools: Vec::new(),
            tools: ToolFilter::default(),
            rules: RunRules::default(),
            limits: Limits::default(),
        },
        history: Vec::new(),
        input: Message::user(question),
        files: Default::default(),
        session: "session".into(),
        tenant: toolgate::core::id::Tenant::default(),
        by: None,
        trigger: Trigger::Manual,
        trace: Trace::new(TraceId([1; 16]), false),
        metadata: Map::new(),
    }
}

fn name(step: &Step) -> &'static str {
    match step {
        Step::Record(_) => "record what follows from the journal",
        Step::ListTools => "list the tools",
        Step::ResolveApprovals(_) => "ask the approval cache",
        Step::Compact { .. } => "summarize the conversation",
        Step::CallModel { .. } => "ask the model",
        Step::ValidateOutput(_) => "check the answer",
        Step::CheckCalls(_) => "check the calls",
        Step::RunTier(_) => "run the tier",
        Step::Wait(_) => "wait",
        Step::Done(_) => "nothing, it is done",
    }
}
