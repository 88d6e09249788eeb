//! One `tools/call`: what is sent along, how often, and what the server's answer means for the call.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until};

use super::answer::{self, Answer};
use super::connection::Connection;
use super::dialogue::Dialogue;
use super::era::Era;
use super::exchange::Limits;
use super::fault::Fault;
use super::{elicitation, task};
use crate::core::run::Answered;
use crate::core::tool::{Action, CallReply, FailureKind, InputNeeded, Outcome};
use crate::core::trace::SpanContext;
use crate::ports::{McpCall, Progress};

/// How often a server may say "call again" without asking anything.
const ROUNDS: u32 = 10;
/// The pause before it is called again, doubled each time.
const PAUSE: Duration = Duration::from_millis(100);
const UNASKED: &str = "asks something in the middle of a call, although it was told that it may not; set its `elicitation` to \
                       true to let it";
/// Addresses have to be visited before the call is made again.
const VISITS_REQUIRED: i32 = -32042;

/// Makes the call, or goes on with it where it was put aside.
pub(super) async fn make(
    connection: &Connection,
    call: &McpCall<'_>,
    limits: Limits,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<CallReply, Fault> {
    match call.answered.and_then(|answered| Some((answered, answered.needed.task.as_ref()?))) {
        Some((answered, task)) => task::tell(connection, task, answered, trace_meta(call.trace), limits).await,
        None => send(connection, call, limits, progress).await,
    }
}

/// The trace context as `_meta` carries it (SEP-414). An empty `tracestate` is none.
pub(super) fn trace_meta(trace: &SpanContext) -> Map<String, Value> {
    let mut meta = Map::new();
    meta.insert("traceparent".into(), trace.traceparent().into());
    if let Some(state) = trace.state.as_ref().filter(|state| !state.trim().is_empty()) {
        meta.insert("tracestate".into(), state.clone().into());
    }
    meta
}

async fn send(
    connection: &Connection,
    call: &McpCall<'_>,
    limits: Limits,
    progress: &(dyn Fn(Progress) + Send + Sync),
) -> Result<CallReply, Fault> {
    let mut params = CallToolRequestParams::new(call.tool.to_owned()).with_arguments(call.arguments.clone());
    if let Some(answered) = call.answered.filter(|answered| is_understood(connection, answered)) {
        params.input_responses = Some(elicitation::responses(&answered.given.reactions));
        params.request_state = answered.needed.state.clone();
    }
    let mut meta = trace_meta(call.trace);
    meta.insert("io.toolgate/idempotency-key".into(), format!("{}/{}", call.run, call.call).into());

    let mut pause = PAUSE;
    for _ in 0..ROUNDS {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
        let dialogue = Dialogue::of(call.answered);
        let said = connection.converse(request, meta.clone(), limits, progress, &dialogue).await;
        let said = match said {
            Err(Fault::TakenBack) => {
                return dialogue.taken_back().map(CallReply::NeedsInput).ok_or(Fault::TakenBack);
            }
            Err(Fault::Refused { code: VISITS_REQUIRED, message, data }) => {
                return visits_required(connection, &dialogue, call.answered, message, data);
            }
            said => said?,
        };
        match answer::read(said)? {
            Answer::Output(output) => return Ok(Outcome::Returned(output).into()),
            Answer::Task(task) => return Ok(CallReply::Task(task)),
            Answer::Again { questions, state } if questions.is_empty() => {
                params.input_responses = None;
                params.request_state = state;
                rest(&mut pause, limits).await?;
            }
            Answer::Again { .. } if !connection.may_ask() => return Err(Fault::Demands(UNASKED.into())),
            Answer::Again { questions, state } => {
                return Ok(CallReply::NeedsInput(InputNeeded { questions, state, task: None, restarts: false }));
            }
        }
    }
    Err(Fault::Demands(format!("wanted to be called again {ROUNDS} times, without an answer and without a question")))
}

/// Whether the answers can be sent along: where a call starts afresh, and with servers of the legacy era, they are
/// given when the server asks.
fn is_understood(connection: &Connection, answered: &Answered) -> bool {
    connection.era() == Era::Modern && !answered.needed.restarts
}

async fn rest(pause: &mut Duration, limits: Limits) -> Result<(), Fault> {
    let until = Instant::now() + *pause;
    *pause *= 2;
    if until >= limits.deadline {
        return Err(Fault::Late(limits.total));
    }
    sleep_until(until).await;
    Ok(())
}

/// Whoever declined to go there need not be asked again.
fn visits_required(
    connection: &Connection,
    dialogue: &Dialogue,
    answered: Option<&Answered>,
    message: String,
    data: Option<Value>,
) -> Result<CallReply, Fault> {
    let questions = data.as_ref().map_or_else(|| Ok(BTreeMap::new()), elicitation::visits).map_err(Fault::Demands)?;
    if questions.is_empty() || !connection.may_ask() {
        return Err(Fault::Refused { code: VISITS_REQUIRED, message, data });
    }
    let reactions = answered.map(|answered| &answered.given.reactions);
    let declined = reactions.is_some_and(|reactions| {
        questions.keys().any(|key| reactions.get(key).is_some_and(|reaction| reaction.action != Action::Accept))
    });
    if declined {
        let told = format!("the server wants an address visited first, and that was declined: {message}");
        return Ok(Outcome::failed(FailureKind::Refused, told).into());
    }
    Ok(CallReply::NeedsInput(dialogue.put_aside(questions)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::trace::Trace;

    #[test]
    fn an_empty_tracestate_is_never_sent() {
        let mut trace =
            Trace::from_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").expect("valid");
        for (state, sent) in [(None, None), (Some(""), None), (Some(" "), None), (Some("a=1"), Some("a=1"))] {
            trace.state = state.map(str::to_owned);
            let meta = trace_meta(&trace.context("call"));
            assert_eq!(meta.get("tracestate").and_then(Value::as_str), sent);
            assert!(meta.contains_key("traceparent"));
        }
    }
}
