//! Observer of a proxy: what the client and the server did after each injected fault, as facts of the wire, and the few
//! judgements that the specification allows.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use serde_json::Value;
use toolgate_core::redact::Secrets;

use super::faults::{Fault, Refusal};
use super::plan::ChosenFault;
use super::report::{ClientFact, Injection, ProxyFinding, Report, ServerFact};
use crate::check::Severity;
use crate::check::wire::answer::seconds;

/// The most injections that are recorded; the others are counted.
const MOST_INJECTIONS: usize = 1_000;
/// The most facts of one side of an injection.
const MOST_FACTS: usize = 8;
/// The most failures of the server that are listed.
const MOST_FAILURES: usize = 100;
/// The most tools whose annotations are remembered.
const MOST_TOOLS: usize = 10_000;
/// Requests that a client sent at the same time as one that lost the session.
const IN_FLIGHT: Duration = Duration::from_millis(20);

/// The record of one client. Several clients of an HTTP proxy are not told apart, because a new session has a new id.
pub(super) struct Observer {
    began: Instant,
    secrets: Secrets,
    /// The report so far, without its injections.
    report: Report,
    /// By the number of the request.
    observed: BTreeMap<u64, Observed>,
    /// The tools that declare that a repetition has no effect, and all that were listed.
    harmless: BTreeSet<String>,
    listed: BTreeSet<String>,
}

/// An injection, and what later messages are compared with.
struct Observed {
    injection: Injection,
    fault: Fault,
    at: Duration,
    session: String,
    id: Value,
    params: u64,
    is_cancelled: bool,
}

impl Observer {
    pub(super) fn new(secrets: Secrets) -> Self {
        Self {
            began: Instant::now(),
            secrets,
            report: Report { started: jiff::Timestamp::now(), ..Report::default() },
            observed: BTreeMap::new(),
            harmless: BTreeSet::new(),
            listed: BTreeSet::new(),
        }
    }

    fn clean(&self, text: &str) -> String {
        self.secrets.redacted(text).chars().take(200).collect()
    }

    /// The name and the version at the first of these places that has a name.
    fn implementation(&self, message: &Value, places: [&str; 2]) -> Option<String> {
        let mut found = places.iter().filter_map(|place| message.pointer(place));
        let info = found.find(|info| !text(info, "/name").is_empty())?;
        Some(self.clean(&format!("{} {}", text(info, "/name"), text(info, "/version"))))
    }

    /// Records a request of the client, and the fault that is injected into it. Returns the number of the injection.
    pub(super) fn request(&mut self, session: &str, message: &Value, chosen: Option<&ChosenFault>) -> Option<u64> {
        self.report.requests += 1;
        let now = self.began.elapsed();
        let method = text(message, "/method");
        if self.report.client.is_none() {
            let places = ["/params/clientInfo", "/params/_meta/io.modelcontextprotocol~1clientInfo"];
            self.report.client = self.implementation(message, places);
        }
        let params = hash_of_params(message);
        let reaches = chosen.is_none_or(|chosen| chosen.fault.reaches_server());
        let tool = text(message, "/params/name");
        let has_effects = method == "tools/call" && !self.harmless.contains(tool);
        let is_listed = self.listed.contains(tool);
        let shown = self.clean(method);
        for observed in self.observed.values_mut() {
            let after = now.saturating_sub(observed.at);
            let same = observed.injection.method == method && observed.params == params;
            observed.client_request(after, &shown, same, reaches);
            if same {
                observed.judge_repetition(after, reaches, has_effects, is_listed);
            }
            observed.judge_session(after, session, &shown);
        }
        let chosen = chosen?;
        if self.observed.len() == MOST_INJECTIONS {
            self.report.omitted += 1;
            return None;
        }
        let mut injection = Injection {
            fault: chosen.written.clone(),
            time: jiff::Timestamp::now(),
            ms: millis(now),
            method: shown,
            id: self.clean(&message.get("id").unwrap_or(&Value::Null).to_string()),
            tool: (!tool.is_empty()).then(|| self.clean(tool)),
            client: Vec::new(),
            server: Vec::new(),
            findings: Vec::new(),
        };
        if !chosen.fault.reaches_server() {
            injection.server.push(ServerFact::NotReached);
        }
        let observed = Observed {
            injection,
            fault: chosen.fault,
            at: now,
            session: session.to_owned(),
            id: message.get("id").cloned().unwrap_or_default(),
            params,
            is_cancelled: false,
        };
        self.observed.insert(self.report.requests, observed);
        Some(self.report.requests)
    }

    /// Removes an injection that changed nothing; `None` for one that is only counted.
    pub(super) fn withdraw(&mut self, injection: Option<u64>) {
        match injection {
            Some(injection) => drop(self.observed.remove(&injection)),
            None => self.report.omitted = self.report.omitted.saturating_sub(1),
        }
    }

    /// Records that the client cancelled a request.
    pub(super) fn cancelled(&mut self, session: &str, id: &Value) {
        let now = self.began.elapsed();
        let mut observed = self.observed.values_mut().rev();
        if let Some(observed) = observed.find(|observed| observed.session == session && observed.id == *id) {
            observed.is_cancelled = true;
            observed.client_fact(ClientFact::Cancelled { after_ms: observed.ms_until(now) });
        }
    }

    /// Records that the client closed the HTTP connection before the end of the answer.
    pub(super) fn disconnected(&mut self, injection: u64) {
        let now = self.began.elapsed();
        if let Some(observed) = self.observed.get_mut(&injection) {
            observed.client_fact(ClientFact::Disconnected { after_ms: observed.ms_until(now) });
        }
    }

    /// Records an answer of the server.
    pub(super) fn answered(&mut self, method: &str, injection: Option<u64>, message: &Value) {
        if self.report.server.is_none() {
            let places = ["/result/serverInfo", "/result/_meta/io.modelcontextprotocol~1serverInfo"];
            self.report.server = self.implementation(message, places);
        }
        if method == "tools/list" {
            self.remember_tools(message);
        }
        let now = self.began.elapsed();
        if let Some(observed) = injection.and_then(|number| self.observed.get_mut(&number)) {
            let after_ms = observed.ms_until(now);
            let fact = match observed.is_cancelled {
                true => ServerFact::AnsweredAfterCancel { after_ms },
                false => ServerFact::Answered { after_ms },
            };
            observed.server_fact(fact);
        }
    }

    fn remember_tools(&mut self, message: &Value) {
        let tools = message.pointer("/result/tools").and_then(Value::as_array);
        for tool in tools.into_iter().flatten().take(MOST_TOOLS.saturating_sub(self.listed.len())) {
            let hint = |name: &str| tool.pointer(name).and_then(Value::as_bool).unwrap_or_default();
            let name = text(tool, "/name").to_owned();
            if hint("/annotations/readOnlyHint") || hint("/annotations/idempotentHint") {
                self.harmless.insert(name.clone());
            }
            self.listed.insert(name);
        }
    }

    /// Records what happened to the process of the server, for this injection, or for all without an answer.
    pub(super) fn process(&mut self, injection: Option<u64>, fact: impl Fn(u64) -> ServerFact) {
        let now = self.began.elapsed();
        for (number, observed) in &mut self.observed {
            if injection.map_or(observed.injection.server.is_empty(), |injection| injection == *number) {
                observed.server_fact(fact(observed.ms_until(now)));
            }
        }
    }

    /// Records a failure of the server: for its injection, or for the report if no fault was injected.
    pub(super) fn server_failed(&mut self, injection: Option<u64>, reason: &str) {
        if injection.is_some_and(|number| self.observed.contains_key(&number)) {
            self.process(injection, |after_ms| ServerFact::Failed { after_ms, reason: reason.to_owned() });
        } else if self.report.failures.len() < MOST_FAILURES {
            self.report.failures.push(reason.to_owned());
        }
    }

    /// The report. `closed` says that the client closed the connection.
    pub(super) fn finish(&mut self, target: &str, closed: bool) -> Report {
        let now = self.began.elapsed();
        let observed = std::mem::take(&mut self.observed);
        let injections: Vec<Injection> = observed.into_values().map(|observed| observed.finish(now, closed)).collect();
        let target = self.secrets.redacted(target).into_owned();
        Report { target, ms: millis(now), injections, ..std::mem::take(&mut self.report) }
    }
}

impl Observed {
    fn client_fact(&mut self, fact: ClientFact) {
        push_bounded(&mut self.injection.client, fact);
    }

    fn server_fact(&mut self, fact: ServerFact) {
        push_bounded(&mut self.injection.server, fact);
    }

    fn finding(&mut self, severity: Severity, text: String) {
        let finding = ProxyFinding { severity, text };
        if !self.injection.findings.contains(&finding) {
            push_bounded(&mut self.injection.findings, finding);
        }
    }

    /// Whether the client did this.
    fn client_did(&self, this: fn(&ClientFact) -> bool) -> bool {
        self.injection.client.iter().any(this)
    }

    /// Whether this injection ended a session.
    fn lost_session(&self) -> bool {
        self.fault == Fault::Refused(Refusal::LostSession) && !self.session.is_empty()
    }

    /// The time from the request until now, in milliseconds.
    fn ms_until(&self, now: Duration) -> u64 {
        millis(now.saturating_sub(self.at))
    }

    /// The first request after the fault, each repetition, and the first new session.
    fn client_request(&mut self, after: Duration, method: &str, same: bool, reached_server: bool) {
        let after_ms = millis(after);
        if method == "tools/list" && self.fault == Fault::ToolsChange {
            self.client_fact(ClientFact::Listed { after_ms });
        } else if same {
            self.client_fact(ClientFact::Repeated { after_ms, reached_server });
        } else if method == "initialize" {
            if !self.client_did(|fact| matches!(fact, ClientFact::Initialized { .. })) {
                self.client_fact(ClientFact::Initialized { after_ms });
            }
        } else if !self.client_did(|fact| matches!(fact, ClientFact::Continued { .. })) {
            self.client_fact(ClientFact::Continued { after_ms, method: method.to_owned() });
        }
    }

    fn judge_repetition(&mut self, after: Duration, reached: bool, has_effects: bool, is_listed: bool) {
        if let Fault::Refused(Refusal::RetryAfter(_, wait)) = self.fault
            && after < wait
        {
            let text = format!("repeated after {}, although Retry-After says {}", seconds(after), seconds(wait));
            self.finding(Severity::Warning, text);
        }
        if has_effects && reached && self.fault.loses_answer() {
            let declared = match is_listed {
                true => "it declares neither readOnlyHint nor idempotentHint",
                false => "its annotations are not known",
            };
            let text = format!(
                "the same call reached the server again after its result was lost: it may have been executed twice, and {declared}"
            );
            self.finding(Severity::Warning, text);
        }
    }

    /// The specification, transports: after HTTP 404 for its session, a client MUST initialize a new one.
    fn judge_session(&mut self, after: Duration, session: &str, method: &str) {
        if self.lost_session() && self.session == session && after > IN_FLIGHT && method != "initialize" {
            self.finding(Severity::Error, format!("sent {method} in the session that HTTP 404 had ended"));
        }
    }

    fn finish(mut self, now: Duration, closed: bool) -> Injection {
        let ms = self.ms_until(now);
        let is_active = self.client_did(|fact| {
            matches!(fact, ClientFact::Repeated { .. } | ClientFact::Continued { .. } | ClientFact::Initialized { .. })
        });
        match (is_active, closed) {
            (true, _) => {}
            (false, true) => self.client_fact(ClientFact::Closed { after_ms: ms }),
            (false, false) => self.client_fact(ClientFact::Silent { for_ms: ms }),
        }
        let listed = self.client_did(|fact| matches!(fact, ClientFact::Listed { .. }));
        if self.fault == Fault::ToolsChange && !listed {
            self.client_fact(ClientFact::NotListed { for_ms: ms });
        }
        let initialized = self.client_did(|fact| matches!(fact, ClientFact::Initialized { .. }));
        if self.lost_session() && self.injection.findings.is_empty() && !initialized {
            self.finding(Severity::Warning, "sent no new initialize after HTTP 404".into());
        }
        if self.injection.server.is_empty() {
            self.injection.server.push(ServerFact::Silent { for_ms: ms });
        }
        self.injection
    }
}

fn push_bounded<T>(facts: &mut Vec<T>, fact: T) {
    if facts.len() < MOST_FACTS {
        facts.push(fact);
    }
}

/// A hash of the parameters without `_meta`, whose progress token differs in a repetition.
fn hash_of_params(message: &Value) -> u64 {
    let params = message.get("params").and_then(Value::as_object).into_iter().flatten();
    let params: BTreeMap<&String, &Value> = params.filter(|(name, _)| *name != "_meta").collect();
    let mut hasher = DefaultHasher::new();
    for (name, value) in params {
        (name, value.to_string()).hash(&mut hasher);
    }
    hasher.finish()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
