//! Steps of scenarios: listing, calling, and answering the questions of a call.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::run::{AnsweredElicitation, ElicitationAnswer};
use toolgate::core::tool::{CallReply, ElicitationRequest, ElicitationResponse, McpTool, Outcome, Question};
use toolgate::core::trace::{SpanContext, Trace, TraceId};
use toolgate::mcp::{ServerSettings, Servers};
use toolgate::ports::{McpCall, McpServers};

use crate::arguments::{filled_in, smallest};

/// The id of the server.
const SERVER: &str = "server";
const TRACE: TraceId = TraceId(*b"conformance test");
/// How many rounds of questions one call may have.
const ROUNDS: usize = 5;

/// One server, for one scenario.
pub(super) struct ScenarioRun {
    servers: Servers,
    server: ServerId,
    trace: SpanContext,
}

/// A call with an open question.
struct PendingCall {
    tool: String,
    arguments: Map<String, Value>,
    needed: ElicitationRequest,
}

/// The question of the scenario SEP-1034, in which every property has a default.
pub(super) fn defaults_question() -> Question {
    Question::Form {
        message: "Test client default value handling - please accept with defaults".into(),
        schema: json!({"type": "object", "required": [], "properties": {
            "name": {"type": "string", "description": "User name", "default": "John Doe"},
            "age": {"type": "integer", "description": "User age", "default": 30},
            "score": {"type": "number", "description": "User score", "default": 95.5},
            "status": {
                "type": "string", "description": "User status", "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "description": "Verification status", "default": true},
        }}),
    }
}

impl ScenarioRun {
    pub(super) fn begin(settings: ServerSettings) -> Self {
        let server = ServerId::from(SERVER);
        let trace = Trace::new(TRACE, false);
        Self { servers: Servers::new([(server.clone(), settings)]), server, trace: trace.context("conformance") }
    }

    pub(super) async fn end(&self) {
        self.servers.close().await;
    }

    /// The tools of the server. Tools that were left out are reported; a server without tools and with a reason is an
    /// error.
    pub(super) async fn tools(&self) -> Result<Vec<McpTool>, String> {
        let listed = self.servers.list(std::slice::from_ref(&self.server), &self.trace).await;
        let mut tools = Vec::new();
        for server in listed {
            for left_out in server.left_out {
                match left_out.tool {
                    Some(tool) => eprintln!("tool `{tool}` left out: {}", left_out.reason),
                    None => return Err(left_out.reason),
                }
            }
            tools.extend(server.tools.iter().cloned());
        }
        Ok(tools)
    }

    /// Calls every tool, then answers the questions: several calls are suspended at the same time.
    pub(super) async fn every_tool(&self) -> Result<(), String> {
        let mut asking = Vec::new();
        for tool in self.tools().await? {
            let arguments = smallest(&tool.input_schema);
            asking.extend(self.call(&tool.name, arguments, None).await);
        }
        for asking in asking {
            self.answer(asking).await?;
        }
        Ok(())
    }

    /// Makes these calls, objects with a `name` and `arguments`.
    pub(super) async fn calls(&self, calls: &[Value]) -> Result<(), String> {
        self.tools().await?;
        for call in calls {
            let name = call.get("name").and_then(Value::as_str).ok_or("a call of the scenario has no `name`")?;
            let arguments = call.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
            if let Some(asking) = self.call(name, arguments, None).await {
                self.answer(asking).await?;
            }
        }
        Ok(())
    }

    /// Calls every tool like a run that was asked this question before, and accepted its defaults.
    pub(super) async fn with_answer(&self, question: Question) -> Result<(), String> {
        let reaction = question.with_defaults(ElicitationResponse::accept(Map::new()));
        let key = "asked before".to_owned();
        let needed = ElicitationRequest {
            questions: BTreeMap::from([(key.clone(), question)]),
            state: None,
            task: None,
            restarts: true,
            interrupted: false,
        };
        let given = ElicitationAnswer {
            reactions: BTreeMap::from([(key, reaction)]),
            by: "conformance".into(),
            via: Default::default(),
            repeat: false,
        };
        let answered = AnsweredElicitation { needed: needed.into(), given: given.into() };
        for tool in self.tools().await? {
            if let Some(asking) = self.call(&tool.name, smallest(&tool.input_schema), Some(&answered)).await {
                let questions: Vec<&str> = asking.needed.questions.values().map(Question::message).collect();
                return Err(format!("`{}` asks something else than was expected: {questions:?}", asking.tool));
            }
        }
        Ok(())
    }

    /// Sends the schema of one tool, as it was listed, to another as its argument `schema`.
    pub(super) async fn echo_schema(&self, of: &str, to: &str) -> Result<(), String> {
        let tools = self.tools().await?;
        let tool = tools.into_iter().find(|tool| tool.name == of).ok_or_else(|| format!("there is no tool `{of}`"))?;
        self.call(to, Map::from_iter([("schema".to_owned(), tool.input_schema)]), None).await;
        Ok(())
    }

    async fn answer(&self, asking: PendingCall) -> Result<(), String> {
        let mut asking = asking;
        for _ in 0..ROUNDS {
            let reactions = asking.needed.questions.iter().map(|(key, question)| (key.clone(), accepted(question)));
            let given = ElicitationAnswer {
                reactions: reactions.collect(),
                by: "conformance".into(),
                via: Default::default(),
                repeat: false,
            };
            let answered = AnsweredElicitation { needed: asking.needed.into(), given: given.into() };
            match self.call(&asking.tool, asking.arguments, Some(&answered)).await {
                Some(again) => asking = again,
                None => return Ok(()),
            }
        }
        Err(format!("`{}` asked {ROUNDS} times", asking.tool))
    }

    /// Makes a call. The suite judges the outcome.
    async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        answered: Option<&AnsweredElicitation>,
    ) -> Option<PendingCall> {
        let (run, call) = (RunId::from("conformance"), CallId::from(tool));
        let made = McpCall {
            run: &run,
            call: &call,
            server: &self.server,
            tool,
            arguments: &arguments,
            is_repeatable: false,
            trace: &self.trace,
            deadline: None,
            answered,
            elicitation: None,
        };
        match self.servers.call(made, &|_| {}).await.reply {
            CallReply::Ended { outcome: Outcome::Returned(_), .. } => None,
            CallReply::Ended { outcome, .. } => {
                eprintln!("call of `{tool}` failed: {outcome:?}");
                None
            }
            CallReply::NeedsInput(needed) => Some(PendingCall { tool: tool.to_owned(), arguments, needed }),
            CallReply::Task(task) => {
                eprintln!("call of `{tool}` created task `{}`", task.id);
                None
            }
        }
    }
}

fn accepted(question: &Question) -> ElicitationResponse {
    match question {
        Question::Form { schema, .. } => ElicitationResponse::accept(filled_in(schema)),
        Question::Url { .. } => ElicitationResponse::done(),
    }
}
