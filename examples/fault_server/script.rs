//! Scripts: the actions that the server decided on, before their execution.

use std::time::Duration;

use serde_json::Value;

/// The source of a message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// The HTTP session; empty without one.
    pub(crate) session: String,
    /// The exchange that it opened: a number that the transport uses to route the answer.
    pub(crate) exchange: u64,
}

/// The actions for one message, in order. Scripts of different messages run concurrently.
#[derive(Debug)]
pub(crate) struct Script {
    /// The exchange. It ends with the script, unless the script ends with [`Action::Hold`].
    pub(crate) exchange: u64,
    pub(crate) actions: Vec<Action>,
}

/// An action.
#[derive(Debug)]
pub(crate) enum Action {
    /// Sends a message.
    Send { to: Target, message: Value },
    /// Sends bytes in place of an answer.
    SendBytes(Vec<u8>),
    /// Sends a message repeatedly, as fast as the client reads.
    Repeat(Repeat),
    /// Writes text to stdout that is not a message.
    Print(String),
    /// Writes a line to stderr.
    Complain(String),
    /// Writes that many MiB to stderr.
    Flood { mebibytes: usize },
    /// Writes the environment to stderr.
    Betray,
    /// Waits.
    Wait(Duration),
    /// Leaves the exchange open: an answer follows later, or never.
    Hold,
    /// Answers the HTTP request with a response that is not MCP.
    AnswerHttp(HttpAnswer),
    /// Forgets all HTTP sessions, as a restart does.
    ForgetSessions,
    /// Breaks the connection and stays alive.
    BreakConnection,
    /// Breaks all connections, as a restart does.
    BreakEverything,
    /// Stops the script of that exchange.
    Cancel { exchange: u64 },
    /// Starts a process that outlives this one.
    SpawnGrandchild,
    /// Exits.
    Exit(i32),
}

/// The number of messages after which the log reports a flood.
pub(crate) const FLOODED: u64 = 1024;

/// A message that is sent without end.
#[derive(Clone, Debug)]
pub(crate) struct Repeat {
    pub(crate) to: Target,
    /// The text, in which `@` is replaced by the count.
    pub(crate) message: String,
    /// The answer to the exchange, sent after that many messages. A process that never answers stops reading.
    pub(crate) answer: Option<(u64, Value)>,
}

/// The destination of a message. Over stdio all of them are the same stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The exchange of the script.
    Here,
    /// Another exchange.
    Exchange(u64),
    /// No exchange: an unsolicited message.
    Unasked,
}

/// A complete HTTP response.
#[derive(Clone, Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) headers: &'static [(&'static str, &'static str)],
    pub(crate) body: String,
}

impl Action {
    /// Sends to the exchange of the script.
    pub(crate) fn answer(message: Value) -> Self {
        Self::Send { to: Target::Here, message }
    }
}
