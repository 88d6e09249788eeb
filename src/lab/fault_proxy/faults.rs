//! Table of the faults that the proxy injects: names, values, transports, effects, and what a client should make of each.
//!
//! A fault with the same meaning as one of the fault server has its name, without the moment (`slow-call` is `slow`).

use std::time::Duration;

use crate::message_flaws::Flaw;

/// A fault with its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    Slow(Duration),
    Hang,
    LateReply,
    Die,
    DieInAnswer,
    ConnectionReset,
    RestartsInside,
    ToolsChange,
    HugeResult(u64),
    Malformed,
    OutOfOrder,
    DuplicateReplies,
    WrongIds,
    IsError,
    RpcError,
    ResultNull,
    StdoutGarbage,
    Flawed(Flaw),
    /// The proxy answers in place of the server, which receives nothing.
    Refused(Refusal),
}

/// The HTTP response of a request that does not reach the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refusal {
    /// HTTP 404 for this session from now on.
    LostSession,
    Unauthorized,
    InternalError,
    /// A status with `Retry-After`.
    RetryAfter(u16, Duration),
    /// HTTP 200 and a web page.
    Html,
}

/// The transports of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultTransport {
    Both,
    Stdio,
    Http,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct FaultKind {
    pub name: &'static str,
    pub transport: FaultTransport,
    value: Value,
    /// What the proxy does, as a sentence without its end.
    pub effect: &'static str,
    /// What a correct client does then.
    pub client: &'static str,
}

/// How a fault is built from its value.
#[derive(Clone, Copy, Debug)]
enum Value {
    Nothing(Fault),
    Seconds(fn(Duration) -> Fault, u64),
    Mebibytes(fn(u64) -> Fault, u64),
}

impl FaultTransport {
    /// Whether a fault with these transports can be injected into this one.
    pub fn includes(self, other: Self) -> bool {
        self == Self::Both || self == other
    }
}

impl FaultKind {
    /// The name with its value, as the help writes it.
    pub fn usage(&self) -> String {
        match self.value {
            Value::Nothing(_) => self.name.to_owned(),
            Value::Seconds(..) => format!("{}[=SECONDS]", self.name),
            Value::Mebibytes(..) => format!("{}[=MIB]", self.name),
        }
    }

    /// The fault with this value, or with the default one.
    ///
    /// # Errors
    /// The expected form of the value.
    pub fn fault(&self, value: Option<&str>) -> Result<Fault, &'static str> {
        match self.value {
            Value::Nothing(fault) => value.map_or(Ok(fault), |_| Err("it takes no value")),
            Value::Seconds(make, default) => {
                let Some(value) = value else { return Ok(make(Duration::from_secs(default))) };
                let time = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                time.map(make).ok_or("expected seconds, such as 2 or 0.5")
            }
            Value::Mebibytes(make, default) => {
                let number = value.map_or(Some(default), |value| value.parse().ok());
                number.filter(|number| *number <= MOST_MIB).map(make).ok_or("expected MiB, from 0 to 512")
            }
        }
    }
}

impl Fault {
    /// Whether the server receives the request.
    pub(super) fn reaches_server(self) -> bool {
        !matches!(self, Self::Refused(_))
    }

    /// Whether the client gets no result of the request that has a meaning. A retry may then execute it twice.
    pub(super) fn loses_answer(self) -> bool {
        match self {
            Self::Flawed(flaw) => flaw.loses_answer(),
            Self::Hang
            | Self::LateReply
            | Self::Die
            | Self::DieInAnswer
            | Self::ConnectionReset
            | Self::Malformed
            | Self::WrongIds
            | Self::RpcError
            | Self::ResultNull => true,
            Self::Slow(_)
            | Self::RestartsInside
            | Self::ToolsChange
            | Self::HugeResult(_)
            | Self::OutOfOrder
            | Self::DuplicateReplies
            | Self::IsError
            | Self::StdoutGarbage
            | Self::Refused(_) => false,
        }
    }

    /// Whether a stdio session ends with this fault. Schedules leave it out.
    pub(super) fn ends_session(self) -> bool {
        matches!(self, Self::Die | Self::DieInAnswer)
    }
}

/// The largest result.
const MOST_MIB: u64 = 512;
const FLAWED_ANSWER: &str = "reads an answer that has one meaning; otherwise fails this request alone, at once";
const FAILED_REQUEST: &str = "reports the error of this request, and keeps the connection";
const UNKNOWN_OUTCOME: &str = "reports that the outcome is unknown; repeats no call that may have had effects";

/// The row of a name.
pub(super) fn kind(name: &str) -> Option<FaultKind> {
    kinds().find(|kind| kind.name == name)
}

/// All rows: those of the table, and one for each flaw of an answer.
pub fn kinds() -> impl Iterator<Item = FaultKind> {
    let flaws = Flaw::ALL.iter().map(|flaw| {
        let transport = if *flaw == Flaw::NoLineFeed { FaultTransport::Stdio } else { FaultTransport::Both };
        row(flaw.name(), transport, Value::Nothing(Fault::Flawed(*flaw)), flaw.effect(), FLAWED_ANSWER)
    });
    TABLE.iter().copied().chain(flaws)
}

const fn row(
    name: &'static str,
    transport: FaultTransport,
    value: Value,
    effect: &'static str,
    client: &'static str,
) -> FaultKind {
    FaultKind { name, transport, value, effect, client }
}

#[rustfmt::skip]
const TABLE: &[FaultKind] = {
    use FaultTransport::{Both, Http, Stdio};
    use Value::{Mebibytes, Nothing, Seconds};
    &[
        row("slow", Both, Seconds(Fault::Slow, 2), "the answer is that late (2)", "waits within its own time limit"),
        row("hang", Both, Nothing(Fault::Hang), "the server executes the request, and the answer never arrives", "cancels the request after its time limit"),
        row("late-reply", Both, Nothing(Fault::LateReply), "the answer arrives only after the client cancelled the request", "ignores the late answer"),
        row("die", Stdio, Nothing(Fault::Die), "the server is killed after it received the request, and the proxy ends with it", UNKNOWN_OUTCOME),
        row("die-in-answer", Both, Nothing(Fault::DieInAnswer), "half of the answer arrives, then the process or the connection ends", UNKNOWN_OUTCOME),
        row("connection-reset", Http, Nothing(Fault::ConnectionReset), "the server executes the request, and the connection breaks before the answer", UNKNOWN_OUTCOME),
        row("restarts-inside", Stdio, Nothing(Fault::RestartsInside), "the server is killed and started again before the request, without a handshake", "initializes again if the new process refuses requests"),
        row("lost-session", Http, Nothing(Fault::Refused(Refusal::LostSession)), "HTTP 404 for this request and for all others of its session", "initializes a new session, then repeats the request"),
        row("tools-change", Both, Nothing(Fault::ToolsChange), "list_changed before the answer; from then on the first tool has another description", "lists the tools again, and treats the tool as another one"),
        row("huge-result", Both, Mebibytes(Fault::HugeResult, 40), "the result has that many MiB of text (40)", "accepts or refuses it within a limit, and keeps the connection"),
        row("malformed", Both, Nothing(Fault::Malformed), "the answer is in Python's notation, which is not JSON", FLAWED_ANSWER),
        row("out-of-order", Stdio, Nothing(Fault::OutOfOrder), "the answer arrives behind the next one, or after 1 s", "assigns answers by id"),
        row("duplicate-replies", Both, Nothing(Fault::DuplicateReplies), "the answer arrives twice", "accepts it once"),
        row("wrong-ids", Both, Nothing(Fault::WrongIds), "the answer arrives under an id that no request used", "ignores it, and cancels the request after its time limit"),
        row("is-error", Both, Nothing(Fault::IsError), "the result has isError", "shows the error to the model"),
        row("rpc-error", Both, Nothing(Fault::RpcError), "an error of JSON-RPC in place of the result", FAILED_REQUEST),
        row("result-null", Both, Nothing(Fault::ResultNull), "the result is null", FAILED_REQUEST),
        row("stdout-garbage", Stdio, Nothing(Fault::StdoutGarbage), "a log line on stdout before the answer", "skips the line"),
        row("http-401", Http, Nothing(Fault::Refused(Refusal::Unauthorized)), "HTTP 401 with WWW-Authenticate; the server receives nothing", "authenticates again, or reports the refusal"),
        row("http-429", Http, Seconds(|time| Fault::Refused(Refusal::RetryAfter(429, time)), 1), "HTTP 429 with Retry-After (1); the server receives nothing", "waits as long as Retry-After says, or reports the status"),
        row("http-500", Http, Nothing(Fault::Refused(Refusal::InternalError)), "HTTP 500; the server receives nothing", UNKNOWN_OUTCOME),
        row("http-503-retry-after", Http, Seconds(|time| Fault::Refused(Refusal::RetryAfter(503, time)), 7), "HTTP 503 with Retry-After (7); the server receives nothing", "waits as long as Retry-After says, or reports the status"),
        row("http-html", Http, Nothing(Fault::Refused(Refusal::Html)), "HTTP 200 and a web page; the server receives nothing", "reports a page that is not MCP"),
    ]
};
