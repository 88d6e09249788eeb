//! Metrics of tool calls: how they end and how long they take. Time spent waiting for people is counted apart from the
//! call.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_core::id::CallId;
use toolgate_core::run::{CallVerdict, Decision, DecisionKind, Rejection};
use toolgate_core::tool::{Builtin, CallTransport, Origin, Outcome, Tool};

use super::{Meter, seconds};
use crate::metrics::measurement::{AttributeValue, Measurement, OTHER};
use crate::metrics::names::{self, Metric};

/// The state of a call that later facts need.
#[derive(Clone, Debug)]
pub(super) struct MeteredCall {
    /// Its tool; `None` if the model made the tool up.
    tool: Option<(AttributeValue, Origin)>,
    /// The time it was sent to its server.
    pub(super) sent: Option<Timestamp>,
    /// The time since which it is held open for an answer to its server.
    pub(super) held_since: Option<Timestamp>,
    /// The time at which its approval was requested.
    asked: Option<Timestamp>,
}

impl MeteredCall {
    pub(super) fn new(tool: Option<&Tool>) -> Self {
        let tool = tool.map(|tool| (AttributeValue::Name(Arc::from(tool.name.as_str())), tool.origin.clone()));
        Self { tool, sent: None, held_since: None, asked: None }
    }

    pub(super) fn was_checked(&mut self, verdict: &CallVerdict, at: Timestamp) {
        self.asked = matches!(verdict, CallVerdict::Ask { .. }).then_some(at);
    }

    /// The server has its answers: the time until then does not count as the server's.
    pub(super) fn was_held_until(&mut self, at: Timestamp) {
        if let (Some(sent), Some(since)) = (self.sent, self.held_since.take()) {
            self.sent = Some(sent.saturating_add(at.duration_since(since)).unwrap_or(sent));
        }
    }

    fn origin(&self) -> Option<&Origin> {
        self.tool.as_ref().map(|(_, origin)| origin)
    }
}

impl Meter {
    pub(super) fn checked(&self, id: &CallId, verdict: &CallVerdict) -> Vec<Measurement> {
        match verdict {
            CallVerdict::Run { .. } => match self.calls.get(id).and_then(MeteredCall::origin) {
                Some(origin) if Builtin::from_origin(origin) == Some(Builtin::AskHuman) => {
                    vec![self.one(Metric::QuestionsAsked)]
                }
                Some(_) | None => Vec::new(),
            },
            CallVerdict::Ask { .. } => vec![self.of_call(Metric::ApprovalsRequested, id)],
            CallVerdict::Rejected { reason, .. } => {
                let rejected = self.of_call(Metric::ToolRejections, id).fixed(names::REASON, reason.as_str());
                let invalid = (*reason == Rejection::InvalidArguments).then(|| self.invalid("arguments"));
                invalid.into_iter().chain([rejected]).collect()
            }
        }
    }

    pub(super) fn decided(&self, id: &CallId, decision: &Decision, at: Timestamp) -> Vec<Measurement> {
        let answer = match decision.answer {
            DecisionKind::Approve => "approve",
            DecisionKind::Deny => "deny",
        };
        self.approval(id, answer, at)
    }

    /// A call that expired before a decision, an answer or a result.
    pub(super) fn expired(&self, id: &CallId, at: Timestamp) -> Vec<Measurement> {
        let call = self.calls.get(id);
        let kind = match call.and_then(MeteredCall::origin) {
            _ if call.is_some_and(|call| call.asked.is_some()) => "approval",
            Some(Origin::External { .. }) => "external_result",
            Some(Origin::Builtin { .. }) => "question",
            Some(Origin::Mcp { .. }) | None => "approval",
        };
        let mut measured = vec![self.one(Metric::Expired).fixed(names::PENDING_KIND, kind)];
        if kind == "approval" {
            measured.extend(self.approval(id, "expired", at));
        }
        measured
    }

    pub(super) fn completed(
        &self,
        id: &CallId,
        outcome: &Outcome,
        wire: Option<&CallTransport>,
        at: Timestamp,
    ) -> Vec<Measurement> {
        let error = outcome.error_type();
        let mut measured: Vec<_> =
            self.answered(id, error, wire, at).filter(|_| *outcome != Outcome::Unknown).into_iter().collect();
        measured.push(self.of_call(Metric::ToolCalls, id).fixed(names::OUTCOME, error.unwrap_or("ok")));
        if !outcome.problems().is_empty() {
            measured.push(self.invalid("result"));
        }
        measured
    }

    /// A request to an MCP server with its answer: a result, a question, or a task.
    pub(super) fn answered(
        &self,
        id: &CallId,
        error: Option<&'static str>,
        wire: Option<&CallTransport>,
        at: Timestamp,
    ) -> Option<Measurement> {
        let call = self.calls.get(id)?;
        let (sent, (tool, Origin::Mcp { server, .. })) = (call.sent?, call.tool.as_ref()?) else { return None };
        let request = Measurement::new(Metric::McpDuration, seconds(sent, call.held_since.unwrap_or(at)))
            .fixed(names::MCP_METHOD, "tools/call")
            .fixed(names::OPERATION, "execute_tool")
            .word(names::TOOL, tool.clone())
            .name(names::SERVER, server.as_str())
            .fixed_if(names::ERROR_TYPE, error);
        Some(match wire {
            Some(wire) => by_way_of(wire, request),
            None => request,
        })
    }

    /// A measurement of 1 for a call.
    pub(super) fn of_call(&self, metric: Metric, id: &CallId) -> Measurement {
        match self.calls.get(id).and_then(|call| call.tool.as_ref()) {
            Some((name, origin)) => {
                let measurement = self.one(metric).word(names::TOOL, name.clone());
                match origin {
                    Origin::Mcp { server, .. } => {
                        measurement.fixed(names::TOOL_KIND, "mcp").name(names::SERVER, server.as_str())
                    }
                    Origin::External { .. } => measurement.fixed(names::TOOL_KIND, "external"),
                    Origin::Builtin { .. } => measurement.fixed(names::TOOL_KIND, "builtin"),
                }
            }
            None => self.one(metric).word(names::TOOL, OTHER),
        }
    }

    fn approval(&self, id: &CallId, answer: &'static str, at: Timestamp) -> Vec<Measurement> {
        let decided = self.of_call(Metric::ApprovalsDecided, id).fixed(names::ANSWER, answer);
        let asked = self.calls.get(id).and_then(|call| call.asked);
        let wait = asked.map(|asked| {
            let wait = Measurement { value: seconds(asked, at), ..self.one(Metric::ApprovalWait) };
            wait.fixed(names::ANSWER, answer)
        });
        [decided].into_iter().chain(wait).collect()
    }
}

/// The transport and protocol version of a request. Addresses and ports are left out, because they are unbounded.
fn by_way_of(wire: &CallTransport, request: Measurement) -> Measurement {
    let request = request.fixed(names::NETWORK_TRANSPORT, wire.transport.as_str());
    match &wire.protocol_version {
        Some(version) => request.name(names::MCP_PROTOCOL, version),
        None => request,
    }
}
