//! Report of a proxy: each injected fault with what the client and the server made of it, as text and as JSON.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::check::Severity;
use crate::check::wire::answer::seconds;

/// What a proxy observed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The command or the URL of the server.
    pub target: String,
    /// Name and version of the first client, from its `initialize`.
    pub client: Option<String>,
    /// Name and version of the server.
    pub server: Option<String>,
    pub started: jiff::Timestamp,
    /// How long the proxy worked, in milliseconds.
    pub ms: u64,
    /// The number of requests of the client.
    pub requests: u64,
    /// The seed that repeats the schedule.
    pub seed: Option<u64>,
    pub injections: Vec<Injection>,
    /// The number of injections that are not listed.
    pub omitted: u64,
    /// Failures of the server in requests without a fault.
    pub failures: Vec<String>,
    /// The planned faults that changed no answer: the request never came, or its answer had nothing to change.
    pub not_injected: Vec<String>,
}

/// An injected fault.
#[derive(Clone, Debug, Serialize)]
pub struct Injection {
    /// The fault as it was written.
    pub fault: String,
    pub time: jiff::Timestamp,
    /// The time since the start of the proxy, in milliseconds.
    pub ms: u64,
    pub method: String,
    /// The id of the request, as JSON.
    pub id: String,
    pub tool: Option<String>,
    pub client: Vec<ClientFact>,
    pub server: Vec<ServerFact>,
    pub findings: Vec<ProxyFinding>,
}

/// What a client did after a fault. Times are in milliseconds since the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum ClientFact {
    /// It sent the same request with the same parameters.
    Repeated { after_ms: u64, reached_server: bool },
    /// It sent `notifications/cancelled`.
    Cancelled { after_ms: u64 },
    /// It sent a new `initialize`.
    Initialized { after_ms: u64 },
    /// It sent another request.
    Continued { after_ms: u64, method: String },
    /// It listed the tools again after `tools-change`.
    Listed { after_ms: u64 },
    /// It did not list the tools again after `tools-change`.
    NotListed { for_ms: u64 },
    /// It closed the HTTP connection of the request before the end of the answer.
    Disconnected { after_ms: u64 },
    /// It closed the connection, and sent no request in between.
    Closed { after_ms: u64 },
    /// It sent no request until the proxy ended. Whether it still waited is not known.
    Silent { for_ms: u64 },
}

/// What a server did with a request into which a fault was injected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum ServerFact {
    /// The proxy answered in its place.
    NotReached,
    /// It answered.
    Answered { after_ms: u64 },
    /// It answered a request that the client had cancelled.
    AnsweredAfterCancel { after_ms: u64 },
    /// The proxy killed its process. Whether it executed the request is not known.
    Killed { after_ms: u64 },
    /// The proxy killed its process and started another one, before it sent the request.
    Restarted { after_ms: u64 },
    /// Its process ended.
    Exited { after_ms: u64, status: String },
    /// The HTTP request to it failed, or its answer broke off.
    Failed { after_ms: u64, reason: String },
    /// It did not answer until the proxy ended.
    Silent { for_ms: u64 },
}

/// A judgement about the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProxyFinding {
    pub severity: Severity,
    pub text: String,
}

impl Report {
    /// Whether a finding is an error.
    pub fn has_errors(&self) -> bool {
        let mut findings = self.injections.iter().flat_map(|injection| &injection.findings);
        findings.any(|finding| finding.severity == Severity::Error)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sides = [("client", &self.client), ("server", &self.server)];
        let sides = sides.map(|(side, name)| format!("{side} {}", name.as_deref().unwrap_or("unknown")));
        let count = |number: u64, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
        let faults = count(self.injections.len() as u64 + self.omitted, "fault");
        let requests = count(self.requests, "request");
        writeln!(f, "{}: {faults} in {requests}, {}", sides.join(", "), time(self.ms))?;
        if let Some(seed) = self.seed {
            writeln!(f, "repeat with --seed {seed}")?;
        }
        for injection in &self.injections {
            write!(f, "{injection}")?;
        }
        if self.omitted > 0 {
            writeln!(f, "{} more are not listed", self.omitted)?;
        }
        for failure in &self.failures {
            writeln!(f, "server: {failure}")?;
        }
        for fault in &self.not_injected {
            writeln!(f, "not injected: {fault} (no request with an answer that it changes)")?;
        }
        Ok(())
    }
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = self.tool.as_ref().map(|tool| format!(" {tool}")).unwrap_or_default();
        writeln!(f, "\n{}: {}{tool}, id {}, at {}", self.fault, self.method, self.id, time(self.ms))?;
        writeln!(f, "  client: {}", joined(&self.client))?;
        writeln!(f, "  server: {}", joined(&self.server))?;
        for finding in &self.findings {
            writeln!(f, "  {}: {}", finding.severity, finding.text)?;
        }
        Ok(())
    }
}

impl fmt::Display for ClientFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeated { after_ms, reached_server } => {
                let end = if *reached_server { "" } else { ", which the proxy refused" };
                write!(f, "sent the same request again after {}{end}", time(*after_ms))
            }
            Self::Cancelled { after_ms } => write!(f, "cancelled it after {}", time(*after_ms)),
            Self::Initialized { after_ms } => write!(f, "sent a new initialize after {}", time(*after_ms)),
            Self::Continued { after_ms, method } => write!(f, "continued with {method} after {}", time(*after_ms)),
            Self::Listed { after_ms } => write!(f, "listed the tools again after {}", time(*after_ms)),
            Self::NotListed { for_ms } => write!(f, "did not list the tools again for {}", time(*for_ms)),
            Self::Disconnected { after_ms } => write!(f, "closed the HTTP connection after {}", time(*after_ms)),
            Self::Closed { after_ms } => write!(f, "closed the connection after {}", time(*after_ms)),
            Self::Silent { for_ms } => write!(f, "sent no request for {}, until the proxy ended", time(*for_ms)),
        }
    }
}

impl fmt::Display for ServerFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReached => write!(f, "did not receive it"),
            Self::Answered { after_ms } => write!(f, "answered after {}", time(*after_ms)),
            Self::AnsweredAfterCancel { after_ms } => {
                write!(f, "answered after {}, although it was cancelled", time(*after_ms))
            }
            Self::Killed { after_ms } => {
                write!(f, "was killed after {}; whether it executed the request is not known", time(*after_ms))
            }
            Self::Restarted { after_ms } => write!(f, "was restarted after {}", time(*after_ms)),
            Self::Exited { after_ms, status } => write!(f, "ended after {} ({status})", time(*after_ms)),
            Self::Failed { after_ms, reason } => write!(f, "failed after {} ({reason})", time(*after_ms)),
            Self::Silent { for_ms } => write!(f, "did not answer for {}", time(*for_ms)),
        }
    }
}

fn joined(facts: &[impl fmt::Display]) -> String {
    facts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn time(ms: u64) -> String {
    seconds(Duration::from_millis(ms))
}
