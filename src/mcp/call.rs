//! Execution of one `tools/call`: what is sent with it, how often, and what the server's answer means for the call.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until};
use toolgate_core::run::AnsweredElicitation;
use toolgate_core::tool::{Action, CallReply, ElicitationRequest, FailureKind, Outcome};
use toolgate_core::trace::{Propagation, SpanContext};
use toolgate_ports::McpCall;

use super::answer::{self, Answer};
use super::call_transport::LastRequest;
use super::connection::Connection;
use super::elicitation_exchange::ElicitationExchange;
use super::exchange::{ElicitationContext, ProgressReceiver};
use super::fault::{Fault, VISITS_REQUIRED};
use super::http::Delivery;
use super::limits::Limits;
use super::negotiation::Era;
use super::{elicitation, task};

/// How often a server may request a repetition without asking anything. The protocol allows it for load shedding.
const ROUNDS: u32 = 10;
/// The pause before a repetition, doubled each time, and its upper limit: eleven seconds in total.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const UNASKED: &str = "asks something in the middle of a call, although toolgate did not offer that; set its `elicitation` to \
                       true to let it";

/// Makes the call, or resumes it where it was suspended. `meta` is sent with every request of the call.
pub(super) async fn make(
    connection: &Connection,
    call: &McpCall<'_>,
    meta: Map<String, Value>,
    limits: Limits,
    progress: ProgressReceiver<'_>,
    sent: &LastRequest,
) -> Result<CallReply, Fault> {
    match call.answered.and_then(|answered| Some((answered, answered.needed.task.as_ref()?))) {
        Some((answered, task)) => task::send_answers(connection, task, answered, meta, limits, sent).await,
        None => send(connection, call, meta, limits, (progress, sent)).await,
    }
}

/// The trace context as `_meta` carries it (SEP-414), limited to what the server may see.
pub(super) fn trace_meta(trace: &SpanContext, propagation: Propagation) -> Map<String, Value> {
    trace.fields(propagation).into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

async fn send(
    connection: &Connection,
    call: &McpCall<'_>,
    mut meta: Map<String, Value>,
    limits: Limits,
    (progress, sent): (ProgressReceiver<'_>, &LastRequest),
) -> Result<CallReply, Fault> {
    let mut params = CallToolRequestParams::new(call.tool.to_owned()).with_arguments(call.arguments.clone());
    if let Some(answered) = call.answered.filter(|answered| is_understood(connection, answered)) {
        params.input_responses = Some(elicitation::responses(&answered.given.reactions));
        params.request_state = answered.needed.state.clone();
    }
    meta.insert("io.toolgate/idempotency-key".into(), format!("{}/{}", call.run, call.call).into());

    let mut deferrals = DeferralCount::since(Instant::now());
    loop {
        let mut request = CallToolRequest::new(params.clone());
        if call.is_repeatable {
            request.extensions.insert(Delivery::AtLeastOnce);
        }
        let request = ClientRequest::CallToolRequest(request);
        let elicitations = ElicitationExchange::new(call.answered);
        let asking = ElicitationContext { elicitations: &elicitations, elicitation: call.elicitation };
        let result = connection.converse(request, meta.clone(), limits, (progress, sent), asking).await;
        let result = match result {
            Err(Fault::CancelledForElicitation) => {
                return elicitations
                    .withdrawn_questions()
                    .map(CallReply::NeedsInput)
                    .ok_or(Fault::CancelledForElicitation);
            }
            Err(Fault::Refused { code: VISITS_REQUIRED, message, data }) => {
                return visits_required(connection, &elicitations, call.answered, message, data);
            }
            result => result?,
        };
        match answer::read(result)? {
            Answer::Output(output) => return Ok(Outcome::Returned(output).into()),
            Answer::Task(task) => return Ok(CallReply::Task(task)),
            Answer::Again { questions, state } if questions.is_empty() => {
                params.input_responses = None;
                params.request_state = state;
                deferrals.once_more(limits).await?;
            }
            Answer::Again { .. } if !connection.may_ask() => return Err(Fault::Demands(UNASKED.into())),
            Answer::Again { questions, state } => {
                return Ok(CallReply::NeedsInput(ElicitationRequest {
                    questions,
                    state,
                    task: None,
                    restarts: false,
                    interrupted: false,
                }));
            }
        }
    }
}

/// Whether the answers can be sent with the call. Where a call starts again, and with servers of the legacy era, they
/// are sent when the server asks.
fn is_understood(connection: &Connection, answered: &AnsweredElicitation) -> bool {
    connection.era() == Era::Modern && !answered.needed.restarts
}

/// The count of requested repetitions.
struct DeferralCount {
    times: u32,
    begun: Instant,
    pause: Duration,
}

impl DeferralCount {
    fn since(begun: Instant) -> Self {
        Self { times: 0, begun, pause: PAUSE }
    }

    /// Waits before the next repetition, unless the limit is reached.
    async fn once_more(&mut self, limits: Limits) -> Result<(), Fault> {
        self.times += 1;
        let until = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        if self.times >= ROUNDS || until >= limits.deadline {
            return Err(Fault::Deferred { times: self.times, within: self.begun.elapsed() });
        }
        sleep_until(until).await;
        Ok(())
    }
}

/// The user is not asked again about an address that they declined to visit.
fn visits_required(
    connection: &Connection,
    elicitations: &ElicitationExchange,
    answered: Option<&AnsweredElicitation>,
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
        let message = format!("the server wants an address visited first, and that was declined: {message}");
        return Ok(Outcome::failed(FailureKind::Refused, message).into());
    }
    Ok(CallReply::NeedsInput(elicitations.suspend(questions)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn endless_requests_for_repetition_end_within_seconds() {
        let begun = Instant::now();
        for (total, times, within) in [(600, 10, 11_100), (5, 6, 3_100), (0, 1, 0)] {
            let limits = Limits::new(Duration::from_secs(60), Duration::from_secs(total));
            let mut deferrals = DeferralCount::since(Instant::now());
            let given_up = loop {
                if let Err(given_up) = deferrals.once_more(limits).await {
                    break given_up;
                }
            };
            assert_eq!(given_up, Fault::Deferred { times, within: Duration::from_millis(within) });
        }
        assert_eq!(begun.elapsed(), Duration::from_millis(14_200));
        let text = Fault::Deferred { times: 10, within: Duration::from_millis(11_100) }.to_string();
        assert!(text.starts_with("answered 10 times within 11.1 s that the call is to be made again"), "{text}");
    }
}
