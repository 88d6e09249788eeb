//! Recorded servers: they list the recorded tools, and answer a call with the result of the recorded call that it fits.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use toolgate_core::id::{RunId, ServerId};
use toolgate_core::tool::{DeliveredReply, McpTool, Outcome, Progress, ServerTools, ToolOutput};
use toolgate_core::trace::SpanContext;
use toolgate_ports::{McpCall, McpServers};

use super::expected::Expected;
use super::file::{Part, RecordedCall, RecordedServer, RecordedTool, Recording};
use super::matcher::Members;

/// The servers of a recording, for one run.
#[derive(Debug)]
pub struct RecordedServers {
    recording: Recording,
    /// Which of the recorded calls have been answered.
    answered: Mutex<Vec<bool>>,
}

impl RecordedServers {
    /// The servers of this recording. The error names a matcher in a result that has no value to play.
    pub fn new(recording: Recording) -> Result<Self, String> {
        for call in recording.calls() {
            call.result.outcome().map_err(|error| format!("the result of {} ({}): {error}", call.id, call.tool))?;
        }
        let answered = Mutex::new(vec![false; recording.calls().count()]);
        Ok(Self { recording, answered })
    }

    /// The recorded call that a call fits: the first that was not answered yet, or else the last one.
    fn recorded(&self, call: &McpCall<'_>) -> Option<&RecordedCall> {
        let tools = &self.recording.servers.get(call.server.as_str())?.tools;
        let tool = tools.iter().find(|tool| tool.name == call.tool)?;
        let actual = Value::Object(call.arguments.clone());
        let fits = |recorded: &RecordedCall| {
            recorded.tool == tool.model_name && recorded.result.is_from_server() && self.takes(recorded, tool, &actual)
        };
        let fitting: Vec<(usize, &RecordedCall)> =
            self.recording.calls().enumerate().filter(|(_, recorded)| fits(recorded)).collect();
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = |(index, _): &&(usize, &RecordedCall)| answered.get(*index) == Some(&false);
        let (index, recorded) = *fitting.iter().find(is_open).or(fitting.last())?;
        if let Some(mark) = answered.get_mut(index) {
            *mark = true;
        }
        Some(recorded)
    }

    /// Whether the arguments are those of the recorded call, or those that its approver sent instead.
    fn takes(&self, recorded: &RecordedCall, tool: &RecordedTool, actual: &Value) -> bool {
        let edited = recorded.decision.as_ref().and_then(|decision| decision.edited_arguments.clone());
        let edited = edited.map(|arguments| Expected::literal(Value::Object(arguments)));
        let expected = edited.as_ref().unwrap_or(&recorded.arguments);
        let ignored = |path: &_| self.recording.ignores(&tool.model_name, Part::Arguments, path);
        expected.differences(actual, Members::Exact, &ignored).is_empty()
    }
}

#[async_trait]
impl McpServers for RecordedServers {
    async fn list(&self, servers: &[ServerId], _trace: &SpanContext) -> Vec<ServerTools> {
        let listed = |id: &ServerId| {
            let recorded = self.recording.servers.get(id.as_str());
            server_tools(id, recorded.unwrap_or(&RecordedServer::default()))
        };
        servers.iter().map(listed).collect()
    }

    async fn call(&self, call: McpCall<'_>, _progress: &(dyn Fn(Progress) + Send + Sync)) -> DeliveredReply {
        let outcome = match self.recorded(&call) {
            Some(recorded) => {
                recorded.result.outcome().unwrap_or_else(|error| Outcome::Returned(ToolOutput::error(error)))
            }
            None => Outcome::Returned(ToolOutput::error(format!(
                "the recording has no result of `{}` with these arguments",
                call.tool
            ))),
        };
        outcome.into()
    }

    async fn release(&self, _run: &RunId, _trace: &SpanContext) {}
}

fn server_tools(id: &ServerId, recorded: &RecordedServer) -> ServerTools {
    let tools = recorded.tools.iter().map(|tool| McpTool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        input_schema: tool.input_schema.clone(),
        output_schema: tool.output_schema.clone(),
        annotations: tool.annotations.clone(),
        pinned: None,
    });
    ServerTools {
        server: id.clone(),
        trusted: false,
        endpoint: None,
        tools: Arc::new(tools.collect()),
        left_out: Vec::new(),
        stale: None,
        authorization: None,
    }
}
