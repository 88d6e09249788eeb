//! A model and servers that answer at once. They record the time of each turn.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};
use toolgate::core::chat::{Part, Reply, Stop};
use toolgate::core::id::{GrantId, RunId, ServerId};
use toolgate::core::run;
use toolgate::core::tool::{DeliveredReply, McpTool, Outcome, Progress, ServerTools, ToolCall, ToolOutput};
use toolgate::core::trace::SpanContext;
use toolgate::ports::{
    ApprovalCache, Conversation, DeltaSink, Grant, GrantContext, GrantFilter, GuardedTool, McpCall, McpServers, Model,
    ModelFailure, ModelIdentity, ModelRequest, Revoked, StoreError,
};

use crate::scenario::Scenario;

const SERVER: &str = "files";

/// The time between two model calls, for each turn of each run.
pub type Turns = Arc<Mutex<Vec<Vec<Duration>>>>;

/// A model that calls tools for this many turns, then answers.
pub struct Loquacious {
    identity: ModelIdentity,
    scenario: Scenario,
    turns: Turns,
}

impl Loquacious {
    pub fn new(scenario: Scenario, turns: Turns) -> Self {
        let [system, provider, model] = ["bench"; 3].map(str::to_owned);
        Self { identity: ModelIdentity { system, provider, model, settings: Value::Null }, scenario, turns }
    }
}

impl Model for Loquacious {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn converse(&self) -> Box<dyn Conversation> {
        let Scenario { turns, .. } = self.scenario;
        Box::new(Talk { scenario: self.scenario, asked: Vec::with_capacity(turns + 1), turns: self.turns.clone() })
    }
}

struct Talk {
    scenario: Scenario,
    asked: Vec<Instant>,
    turns: Turns,
}

#[async_trait]
impl Conversation for Talk {
    async fn reply(&mut self, _request: &ModelRequest<'_>, _deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        self.asked.push(Instant::now());
        let turn = self.asked.len();
        if turn <= self.scenario.turns {
            return Ok(asks(turn, &self.scenario));
        }
        let lengths = self.asked.windows(2).map(|pair| pair[1].duration_since(pair[0])).collect();
        self.turns.lock().unwrap().push(lengths);
        Ok(Reply::text("Everything is read."))
    }
}

fn asks(turn: usize, scenario: &Scenario) -> Reply {
    let call = |n: usize| {
        let tool = format!("mcp_{SERVER}_tool_{:03}", (turn * scenario.calls + n) % scenario.tools);
        let arguments = json!({"path": format!("src/module_{turn}/file_{n}.rs"), "lines": [1, 400]});
        ToolCall::new(format!("call_{turn}_{n}"), tool, arguments).into_part()
    };
    let words = Part::text("I will read the next file and compare it.");
    let content = [words].into_iter().chain((0..scenario.calls).map(call)).collect();
    Reply { content, stop: Stop::ToolCalls, ..Reply::empty() }
}

/// One server with many tools.
pub struct Files {
    tools: Arc<Vec<McpTool>>,
}

impl Files {
    pub fn new(scenario: &Scenario) -> Self {
        Self { tools: Arc::new((0..scenario.tools).map(tool).collect()) }
    }

    pub fn id() -> ServerId {
        SERVER.into()
    }
}

fn tool(number: usize) -> McpTool {
    McpTool {
        name: format!("tool_{number:03}"),
        description: "Reads part of a file and returns it with line numbers. Long files are cut.".into(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Path below the root of the project"},
                "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 2},
            },
            "required": ["path"],
        }),
        output_schema: None,
        annotations: Default::default(),
        pinned: None,
    }
}

#[async_trait]
impl McpServers for Files {
    async fn list(&self, servers: &[ServerId], _trace: &SpanContext) -> Vec<ServerTools> {
        let offers = |server: &ServerId| ServerTools {
            server: server.clone(),
            trusted: true,
            endpoint: None,
            tools: self.tools.clone(),
            left_out: Vec::new(),
            stale: None,
            authorization: None,
        };
        servers.iter().map(offers).collect()
    }

    async fn call(&self, call: McpCall<'_>, _progress: &(dyn Fn(Progress) + Send + Sync)) -> DeliveredReply {
        let text = format!("{}: {}", call.tool, "    1  fn main() {}\n".repeat(10));
        Outcome::Returned(ToolOutput::text(text)).into()
    }

    async fn release(&self, _run: &RunId, _trace: &SpanContext) {}
}

/// An approval cache that grants everything.
pub struct Granted;

#[async_trait]
impl ApprovalCache for Granted {
    async fn granted(
        &self,
        _: &GrantContext,
        tools: &[GuardedTool],
        _: Timestamp,
    ) -> Result<Vec<run::ToolGrant>, StoreError> {
        let each = tools.iter().map(|guarded| run::ToolGrant {
            tool: guarded.tool.clone(),
            grant: "grant_all".into(),
            arguments: None,
            when: None,
            asked_by: None,
            expires_at: None,
        });
        Ok(each.collect())
    }

    async fn hold(&self, grants: &[GrantId], _: Timestamp) -> Result<Vec<bool>, StoreError> {
        Ok(vec![true; grants.len()])
    }

    async fn grant(&self, _: &Grant) -> Result<(), StoreError> {
        Ok(())
    }

    async fn grants(&self, _: &GrantFilter, _: Timestamp) -> Result<Vec<Grant>, StoreError> {
        Ok(Vec::new())
    }

    async fn revoke(&self, _: &GrantId, _: &Revoked) -> Result<Option<Grant>, StoreError> {
        Ok(None)
    }
}
