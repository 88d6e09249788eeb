//! The MCP servers, behind our own types.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::core::id::{CallId, RunId, ServerId};
use crate::core::run::Answered;
use crate::core::tool::{InputNeeded, Reactions, Replied, ServerTools, TaskHandle};
use crate::core::trace::SpanContext;

/// One `tools/call`.
#[derive(Clone, Debug)]
pub struct McpCall<'a> {
    /// The run it belongs to.
    pub run: &'a RunId,
    /// The call; `run/call` is its idempotency key.
    pub call: &'a CallId,
    /// The server.
    pub server: &'a ServerId,
    /// The server's name of the tool.
    pub tool: &'a str,
    /// Always sent, also when empty.
    pub arguments: &'a Map<String, Value>,
    /// The trace context for `_meta`.
    pub trace: &'a SpanContext,
    /// A deadline shorter than the server's own, if any.
    pub deadline: Option<Duration>,
    /// What the server asked when this call was suspended, and what it is told now that the call goes on.
    pub answered: Option<&'a Answered>,
    /// Answers what the server asks on the open call. Without it, a call that needs answers is cancelled and suspended.
    pub elicitation: Option<&'a dyn ElicitationHandler>,
}

/// Answers the questions that a server of the revisions up to 2025-11-25 asks on an open call (MCP elicitation).
#[async_trait]
pub trait ElicitationHandler: Send + Sync {
    /// Waits for the answers to all of these questions; the call is held open meanwhile, and its limits do not run. `None`:
    /// no answer can be waited for any longer, and the call is to be cancelled.
    async fn elicit(&self, needed: InputNeeded) -> Option<Reactions>;
}

impl fmt::Debug for dyn ElicitationHandler + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ElicitationHandler")
    }
}

/// A question about a call that a server goes on with by itself.
#[derive(Clone, Debug)]
pub struct McpTask<'a> {
    /// The run it belongs to.
    pub run: &'a RunId,
    /// The call that became the task.
    pub call: &'a CallId,
    /// The server.
    pub server: &'a ServerId,
    /// The server's name of the tool.
    pub tool: &'a str,
    /// The task.
    pub task: &'a TaskHandle,
    /// The trace context for `_meta`.
    pub trace: &'a SpanContext,
    /// What is wanted of it.
    pub wish: TaskWish,
}

/// What is wanted of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskWish {
    /// How it stands.
    News,
    /// That the server stops it, because nobody waits for it any more.
    Stop,
}

/// What a server says while it works.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// How far it is.
    pub progress: f64,
    /// How far there is to go, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The configured servers. Connections are the adapter's cache, never part of a run.
#[async_trait]
pub trait McpServers: Send + Sync {
    /// What each of these servers offers, in the order asked for, or offered last if it is away. Connects where needed, all servers at once; a server
    /// that is dead, slow or broken is answered with the reason and never delays the others beyond its own deadline.
    async fn list(&self, servers: &[ServerId], trace: &SpanContext) -> Vec<ServerTools>;

    /// A number that has grown when [`list`](Self::list) may say something else by now. Asks nobody.
    /// Servers whose offer never changes need not say.
    fn generation(&self, _servers: &[ServerId]) -> u64 {
        0
    }

    /// Makes sure, before calls leave, that what [`list`](Self::list) says of these servers is not older than the approval of
    /// their calls, which was given so long ago; `None` for calls without one. Which servers are asked again is their
    /// configuration. Takes no longer than a list may take, and changes nothing when a server does not answer.
    async fn confirm(&self, _servers: &[(ServerId, Option<Duration>)], _trace: &SpanContext) {}

    /// Makes a call, or goes on with one that was suspended. Never fails: what goes wrong is an outcome. Dropping the
    /// future cancels the call at the server.
    async fn call(&self, call: McpCall<'_>, progress: &(dyn Fn(Progress) + Send + Sync)) -> Replied;

    /// Asks about a task. It is still under way when the reply is a task again. The error says why the server could not
    /// be asked now; the task may be fine. Servers that never answer a call with a task are never
    /// asked.
    async fn task(&self, task: McpTask<'_>) -> Result<Replied, String> {
        Err(format!("the MCP server `{}` has no tasks", task.server))
    }

    /// The execution of this run is over, however it went; nothing of it is needed any more.
    async fn release(&self, run: &RunId);
}
