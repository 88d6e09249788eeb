//! What the server decided to do, before anybody does it.

use std::time::Duration;

use serde_json::Value;

/// Where a message came from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// The HTTP session; empty where there is none.
    pub(crate) session: String,
    /// The exchange it opened: a number of the transport's, under which the answer finds its way back.
    pub(crate) exchange: u64,
}

/// What is done about one message, in this order. Scripts of different messages are played side by side.
#[derive(Debug)]
pub(crate) struct Script {
    /// The exchange it belongs to. It is over when the script is, unless that ends with [`Action::Hold`].
    pub(crate) exchange: u64,
    pub(crate) actions: Vec<Action>,
}

/// One thing to do.
#[derive(Debug)]
pub(crate) enum Action {
    /// Sends a message.
    Send { to: Target, message: Value },
    /// Sends bytes in the place of an answer.
    SendBytes(Vec<u8>),
    /// Sends a message again and again, as fast as it is taken.
    Repeat(Repeat),
    /// Writes to stdout what is no message.
    Print(String),
    /// Writes a line to stderr.
    Complain(String),
    /// Writes that many MiB to stderr.
    Flood { mebibytes: usize },
    /// Writes the environment to stderr.
    Betray,
    /// Does nothing for a while.
    Wait(Duration),
    /// Leaves the exchange open: more comes later, or never.
    Hold,
    /// Answers the HTTP request with something that is no MCP.
    AnswerHttp(HttpAnswer),
    /// Forgets all HTTP sessions, as a restart does.
    ForgetSessions,
    /// Breaks the connection and lives on.
    BreakConnection,
    /// Breaks all connections, as a restart does.
    BreakEverything,
    /// Stops playing the script of that exchange.
    Cancel { exchange: u64 },
    /// Starts a process that outlives this one.
    SpawnGrandchild,
    /// Dies.
    Exit(i32),
}

/// After how many messages a flood is noted in the log.
pub(crate) const FLOODED: u64 = 1024;

/// A message that is sent without end.
#[derive(Clone, Debug)]
pub(crate) struct Repeat {
    pub(crate) to: Target,
    /// Its text, in which `@` is the number of times so far.
    pub(crate) message: String,
    /// What the exchange is answered with, after that many times. A process that never answers reads nothing any more.
    pub(crate) answer: Option<(u64, Value)>,
}

/// Whom a message is for. Over stdio it is all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The exchange of the script.
    Here,
    /// Another exchange.
    Exchange(u64),
    /// Nobody in particular: what is said unasked.
    Unasked,
}

/// An HTTP response as it is.
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
