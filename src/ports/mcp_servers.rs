//! MCP servers, in our own types.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Map, Value};
use toolgate_core::id::{CallId, RunId, ServerId};
use toolgate_core::run::AnsweredElicitation;
use toolgate_core::tool::{
    DeliveredReply, ElicitationRequest, ElicitationResponses, Progress, ServerTools, TaskHandle,
};
use toolgate_core::trace::SpanContext;

/// One `tools/call`.
#[derive(Clone, Debug)]
pub struct McpCall<'a> {
    /// The run it belongs to.
    pub run: &'a RunId,
    /// The call; `run/call` is its idempotency key.
    pub call: &'a CallId,
    pub server: &'a ServerId,
    /// The server's name of the tool.
    pub tool: &'a str,
    /// Always sent, even when empty.
    pub arguments: &'a Map<String, Value>,
    /// Whether a second arrival of the call changes nothing more: the hints of a trusted server say so.
    pub is_repeatable: bool,
    /// The trace context for `_meta`.
    pub trace: &'a SpanContext,
    /// A deadline shorter than the server's own, if any.
    pub deadline: Option<Duration>,
    /// The server's questions when this call was suspended, with their answers, to resume the call.
    pub answered: Option<&'a AnsweredElicitation>,
    /// Answers elicitation requests on the open call. Without it, a call that needs answers is cancelled and suspended.
    pub elicitation: Option<&'a dyn ElicitationHandler>,
}

/// Answers elicitation requests on an open call (MCP elicitation, protocol versions up to 2025-11-25).
#[async_trait]
pub trait ElicitationHandler: Send + Sync {
    /// Waits for the answers to all of these questions; the call is held open meanwhile, and its time limits do not
    /// run. `None`: no answer can be expected any longer, and the call is cancelled.
    async fn elicit(&self, needed: ElicitationRequest) -> Option<ElicitationResponses>;
}

impl fmt::Debug for dyn ElicitationHandler + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ElicitationHandler")
    }
}

/// A request about a task at a server.
#[derive(Clone, Debug)]
pub struct McpTask<'a> {
    /// The run it belongs to.
    pub run: &'a RunId,
    /// The call that became the task.
    pub call: &'a CallId,
    pub server: &'a ServerId,
    /// The server's name of the tool.
    pub tool: &'a str,
    pub task: &'a TaskHandle,
    /// The trace context for `_meta`.
    pub trace: &'a SpanContext,
    /// The requested action.
    pub action: TaskAction,
}

/// The requested action on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskAction {
    /// Return its state.
    Poll,
    /// Cancel it, because its result is no longer needed.
    Stop,
}

/// The configured servers. Connections are a cache of the adapter, never part of a run.
#[async_trait]
pub trait McpServers: Send + Sync {
    /// The tools of each of these servers, in the requested order; the last known ones of an unavailable server.
    /// Connects where needed, to all servers concurrently. A server that is down, slow or broken yields the reason and
    /// never delays the others beyond its own deadline.
    async fn list(&self, servers: &[ServerId], trace: &SpanContext) -> Vec<ServerTools>;

    /// A number that grows when [`list`](Self::list) may return other tools or another authorization status. Contacts no
    /// server. Implementations whose tools never change need not implement it.
    fn generation(&self, _servers: &[ServerId]) -> u64 {
        0
    }

    /// When the current connection to a server was opened. `None` if there is no connection, or connections are not
    /// distinguished. Contacts no server.
    fn connected_at(&self, _server: &ServerId) -> Option<Timestamp> {
        None
    }

    /// Before calls leave, ensures that the result of [`list`](Self::list) for these servers is not older than the
    /// approval of their calls, whose age is given; `None` for calls without one. The configuration decides which
    /// servers are listed again. Takes no longer than a listing may take, and changes nothing when a server does not
    /// answer.
    async fn confirm(&self, _servers: &[(ServerId, Option<Duration>)], _trace: &SpanContext) {}

    /// Makes a call, or resumes a suspended one. Never fails: errors are outcomes. Dropping the future cancels the call
    /// at the server.
    async fn call(&self, call: McpCall<'_>, progress: &(dyn Fn(Progress) + Send + Sync)) -> DeliveredReply;

    /// Polls a task. It is still running if the reply is a task again. The error states why the server could not be
    /// asked now; the task may be fine. Not called for servers that never answer a call with a task.
    async fn task(&self, task: McpTask<'_>) -> Result<DeliveredReply, String> {
        Err(format!("the MCP server `{}` has no tasks", task.server))
    }

    /// Releases all resources of the run: its execution is over, with any result. `trace`: the context of that execution,
    /// for requests that close something.
    async fn release(&self, run: &RunId, trace: &SpanContext);
}
