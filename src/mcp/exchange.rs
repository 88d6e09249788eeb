//! Request and response over a live connection: time limits, progress, and cancellation at the server when the caller
//! stops waiting.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientRequest, ErrorCode, ErrorData, JsonObject, MetaObject,
    RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use toolgate_core::run::AnsweredElicitation;
use toolgate_core::tool::Progress;
use toolgate_ports::ElicitationHandler;

use super::call_transport::LastRequest;
use super::connection::Connection;
use super::elicitation_exchange::ElicitationExchange;
use super::elicitation_router::{InFlightCall, NextElicitation, Origin};
use super::fault::{self, Fault};
use super::http;
use super::limits::Limits;
use super::negotiation::Era;
use super::result_json::raw;
use super::session_loss;
use super::transport::{JsonFlaw, ResponseFinding};

/// The JSON-RPC error for a protocol revision that the server does not support, or no longer supports.
const UNSUPPORTED_REVISION: i32 = -32022;

const NO_ANSWER: &str = "the stream ended before the answer";

/// How long to read on after a question: messages that the server wrote with it, without waiting for the answer,
/// arrive in this time.
const ELICITATION_GRACE: Duration = Duration::from_millis(250);

/// The receiver of progress reports.
pub(super) type ProgressReceiver<'a> = &'a (dyn Fn(Progress) + Send + Sync);

impl Connection {
    /// Sends a request and returns its result, unparsed. When the wait ends early, by a limit or because the future
    /// was dropped, the server is notified of the cancellation.
    pub(super) async fn exchange(
        &self,
        request: ClientRequest,
        meta: JsonObject,
        limits: Limits,
        sent: &LastRequest,
    ) -> Result<Value, Fault> {
        let (result, flaws) = self.exchange_leniently(request, meta, limits, sent).await?;
        flawless(result, &flaws)
    }

    /// Like `exchange`, and also returns the parts of the result that are not JSON values and were read as `null`.
    pub(super) async fn exchange_leniently(
        &self,
        request: ClientRequest,
        meta: JsonObject,
        limits: Limits,
        sent: &LastRequest,
    ) -> Result<(Value, Vec<JsonFlaw>), Fault> {
        self.carry_out(request, meta, limits, (&|_| {}, sent), None).await
    }

    /// Waits until a call may be sent, with its answers from an earlier suspension.
    pub(super) async fn turn(&self, answered: Option<&AnsweredElicitation>) -> NextElicitation {
        // In the modern era a server does not send requests: its result contains the questions.
        let is_identified = self.is_over_http() || self.era() == Era::Modern;
        let origin = if is_identified { Origin::Identified } else { Origin::Unidentified };
        self.client_handler.router().turn(answered, origin).await
    }

    /// Like `exchange`, for a request about which the server may ask. The call is held open while its handler waits
    /// for answers, and is cancelled when a question gets no answer.
    pub(super) async fn converse(
        &self,
        request: ClientRequest,
        meta: JsonObject,
        limits: Limits,
        (progress, sent): (ProgressReceiver<'_>, &LastRequest),
        asking: ElicitationContext<'_>,
    ) -> Result<Value, Fault> {
        let (result, flaws) = self.carry_out(request, meta, limits, (progress, sent), Some(asking)).await?;
        flawless(result, &flaws)
    }

    async fn carry_out(
        &self,
        request: ClientRequest,
        meta: JsonObject,
        mut limits: Limits,
        (progress, sent): (ProgressReceiver<'_>, &LastRequest),
        asking: Option<ElicitationContext<'_>>,
    ) -> Result<(Value, Vec<JsonFlaw>), Fault> {
        let options = PeerRequestOptions::no_options().with_meta(RequestMetaObject(MetaObject::from(meta)));
        let mut routes = self.client_handler.hold().await;
        let Ok(mut handle) = self.peer.send_cancellable_request(request, options).await else {
            drop(routes);
            return Err(Fault::NotSent(format!("is gone: {}", self.exit_report().await)));
        };
        sent.note(&handle.id);
        let mut updates = routes.register(handle.progress_token.clone());
        let enter = |asking: ElicitationContext<'_>| {
            self.client_handler.router().enter(handle.id.clone(), asking.elicitations.clone())
        };
        let mut present = asking.map(enter);
        drop(routes);
        let mut in_flight = InFlight { connection: self, request: Some(handle.id.clone()) };

        let mut progress_state = ProgressState { furthest: f64::NEG_INFINITY, progress };
        let silence = tokio::time::sleep(limits.silence);
        tokio::pin!(silence);
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => break answer.ok(),
                // A request that was handed over while the SDK ended is dropped without an answer.
                () = self.over.cancelled() => break None,
                Some(update) = updates.recv() => {
                    progress_state.report_progress(update);
                    silence.as_mut().reset(Instant::now() + limits.silence);
                }
                () = tokio::time::sleep_until(limits.deadline) => return Err(self.out_of_time(Fault::Late(limits.total))),
                () = &mut silence => return Err(self.out_of_time(Fault::Silent(limits.silence))),
                () = stuck(asking) => {
                    if let Ok(answer) = timeout(ELICITATION_GRACE, &mut handle.rx).await {
                        break answer.ok();
                    }
                    if !asking.is_some_and(|asking| asking.elicitations.is_stuck()) {
                        continue;
                    }
                    let held_since = Instant::now();
                    let held = held_open(asking, &mut handle.rx, &mut updates, &mut progress_state).await;
                    // The time that a person takes does not count against the server.
                    limits.deadline += held_since.elapsed();
                    match held {
                        HeldOutcome::Ended(answer) => break answer.ok(),
                        HeldOutcome::Answered | HeldOutcome::Withdrawn => silence.as_mut().reset(Instant::now() + limits.silence),
                        HeldOutcome::Unanswered => {
                            if let Some(asking) = asking {
                                asking.elicitations.suspending();
                            }
                            in_flight.cancel_request(limits).await?;
                            match handle.rx.try_recv() {
                                // The server finished without waiting for the cancellation.
                                Ok(result @ Ok(_)) => break Some(result),
                                Ok(Err(_)) | Err(_) => {
                                    settle(&mut present);
                                    return Err(Fault::CancelledForElicitation);
                                }
                            }
                        }
                    }
                }
            }
        };
        let finding = in_flight.request.take().and_then(|request| self.requests.take_finding(&request));
        settle(&mut present);
        while let Ok(update) = updates.try_recv() {
            progress_state.report_progress(update);
        }
        match answer {
            Some(Ok(result)) => {
                self.was_unanswered.store(false, Ordering::Relaxed);
                let flaws = if let Some(ResponseFinding::Flaws(flaws)) = finding { flaws } else { Vec::new() };
                Ok((raw(result)?, flaws))
            }
            Some(Err(ServiceError::McpError(error))) if matches!(finding, Some(ResponseFinding::Unreadable(_))) => {
                let why =
                    if let Some(ResponseFinding::Unreadable(why)) = finding { why } else { error.message.into_owned() };
                Err(Fault::Garbled(why))
            }
            Some(Err(error)) => Err(self.fault(error, finding).await),
            None => Err(Fault::Disconnected(self.exit_report().await)),
        }
    }

    async fn fault(&self, error: ServiceError, finding: Option<ResponseFinding>) -> Fault {
        if let ServiceError::McpError(error) = error {
            if self.era() == Era::Legacy && self.is_uninitialized(&error).await {
                self.give_up("it was restarted, and does not know the session".into());
                return Fault::SessionOver(format!(
                    "does not know the session any more: {}; the next request begins a new one",
                    fault::refusal(&error.message, error.code.0)
                ));
            }
            if error.code.0 == UNSUPPORTED_REVISION {
                self.give_up(format!("it no longer speaks the revision agreed on: {}", error.message));
                return Fault::NotSent(format!(
                    "no longer speaks the revision agreed on: {}; the next request negotiates again",
                    error.message
                ));
            }
            // The server may have read the request, so it is not made again. The next one begins a new session.
            if self.era() == Era::Legacy && self.is_over_http() && session_loss::is_unknown(&error.message) {
                self.give_up("it does not know the session any more".into());
            }
            return Fault::Refused { code: error.code.0, message: error.message.into_owned(), data: error.data };
        }
        if let (ServiceError::TransportSend(error), true) = (&error, self.is_over_http()) {
            if http::session_is_over(error) {
                self.give_up("it ended the session".into());
                return Fault::SessionOver("ended its session; the next request begins a new one".into());
            }
            if let Some(longest) = http::was_too_long(error) {
                return Fault::TooLong(longest);
            }
            if http::is_unreachable(error) {
                self.give_up(http::explain(error));
            }
            let fault = http::send_fault(error);
            if http::is_json_without_mcp(error) {
                self.unanswered(Some(&fault.to_string()));
            }
            return fault;
        }
        match finding {
            Some(ResponseFinding::Unanswered(words)) => {
                self.unanswered(words.as_deref());
                Fault::Disconnected(words.unwrap_or_else(|| NO_ANSWER.into()))
            }
            Some(ResponseFinding::Unreadable(_) | ResponseFinding::Flaws(_)) | None => {
                Fault::Disconnected(self.exit_report().await)
            }
        }
    }

    /// Records a response without an MCP answer. Some servers tell in this way that they do not know a session, so the
    /// next request begins a new one: at once if the server wrote something else, and the second time in a row if it
    /// wrote nothing, as a tool that fails may do.
    fn unanswered(&self, words: Option<&str>) {
        let is_second = self.was_unanswered.swap(true, Ordering::Relaxed);
        if self.era() == Era::Legacy && (words.is_some() || is_second) {
            self.give_up(words.unwrap_or(NO_ANSWER).into());
        }
    }

    /// Whether the server refused a request because it came before `initialize`. Servers of the Python SDK 1.x state
    /// the reason on stderr only.
    async fn is_uninitialized(&self, error: &ErrorData) -> bool {
        if session_loss::is_uninitialized(&error.message) {
            return true;
        }
        error.code == ErrorCode::INVALID_PARAMS
            && self.stderr().await.iter().any(|line| session_loss::is_uninitialized(line))
    }

    /// The error of a request that took too long. A process that left others behind and ended does not come back.
    fn out_of_time(&self, fault: Fault) -> Fault {
        if self.has_exited() {
            self.give_up("its process has ended, and the processes that it left behind do not answer".into());
        }
        fault
    }
}

fn settle(present: &mut Option<InFlightCall>) {
    if let Some(present) = present {
        present.settle();
    }
}

async fn stuck(asking: Option<ElicitationContext<'_>>) {
    match asking {
        Some(asking) => asking.elicitations.stuck().await,
        None => std::future::pending().await,
    }
}

/// The result, if every part of it is a JSON value.
fn flawless(result: Value, flaws: &[JsonFlaw]) -> Result<Value, Fault> {
    match flaws {
        [] => Ok(result),
        [first] => Err(Fault::Unreadable(first.to_string())),
        [first, more @ ..] => Err(Fault::Unreadable(format!("{first}, and {} more", more.len()))),
    }
}

/// The elicitation context of a request.
#[derive(Clone, Copy)]
pub(super) struct ElicitationContext<'a> {
    /// The questions and answers of the call.
    pub(super) elicitations: &'a Arc<ElicitationExchange>,
    /// The handler for answers on the open call. Without it the call is not held open.
    pub(super) elicitation: Option<&'a dyn ElicitationHandler>,
}

impl ElicitationContext<'_> {
    /// Waits for the answers to all open questions, and sends them to the server. `false` if there are none.
    async fn answered_in_place(&self) -> bool {
        let (Some(handler), Some(needed)) = (self.elicitation, self.elicitations.to_be_answered()) else {
            return false;
        };
        let reactions = handler.elicit(needed).await;
        reactions.inspect(|reactions| self.elicitations.answer_in_place(reactions)).is_some()
    }
}

type Answer = oneshot::Receiver<Result<ServerResult, ServiceError>>;

/// The outcome of a call that was held open for answers.
enum HeldOutcome {
    /// It ended without them.
    Ended(Box<Result<Result<ServerResult, ServiceError>, oneshot::error::RecvError>>),
    /// The server received the answers and continues.
    Answered,
    /// The server withdrew its questions and continues.
    Withdrawn,
    /// There are no answers, and the call is no longer held open.
    Unanswered,
}

/// Holds a call open until its questions are answered. Both time limits are paused meanwhile.
async fn held_open(
    asking: Option<ElicitationContext<'_>>,
    answer: &mut Answer,
    updates: &mut mpsc::Receiver<Progress>,
    progress_state: &mut ProgressState<'_>,
) -> HeldOutcome {
    let Some(asking) = asking else { return HeldOutcome::Unanswered };
    let answered = asking.answered_in_place();
    tokio::pin!(answered);
    loop {
        tokio::select! {
            biased;
            answer = &mut *answer => return HeldOutcome::Ended(Box::new(answer)),
            Some(update) = updates.recv() => progress_state.report_progress(update),
            () = asking.elicitations.unstuck() => return HeldOutcome::Withdrawn,
            was_answered = &mut answered => {
                return if was_answered { HeldOutcome::Answered } else { HeldOutcome::Unanswered };
            }
        }
    }
}

/// The last progress report. Reports can overtake one another; one that lags behind is dropped.
struct ProgressState<'a> {
    furthest: f64,
    progress: ProgressReceiver<'a>,
}

impl ProgressState<'_> {
    fn report_progress(&mut self, update: Progress) {
        if update.progress >= self.furthest {
            self.furthest = update.progress;
            (self.progress)(update);
        }
    }
}

/// A request in flight. Dropping it cancels the request at the server.
struct InFlight<'a> {
    connection: &'a Connection,
    request: Option<RequestId>,
}

impl InFlight<'_> {
    /// Cancels the request at the server, and returns when the notification is sent. A server that does not read is
    /// not notified in time.
    async fn cancel_request(&mut self, limits: Limits) -> Result<(), Fault> {
        if let Some(request) = self.request.clone() {
            let why = "it waits for an answer, and is made again when there is one";
            let notified = self.connection.peer.send_notification(cancelled(request, why).into());
            let notified = self.connection.over.run_until_cancelled(notified);
            let _ = timeout_at(limits.deadline, notified).await.map_err(|_| Fault::Late(limits.total))?;
            self.request = None;
        }
        Ok(())
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let (Some(request), Ok(runtime)) = (self.request.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let peer = self.connection.peer.clone();
        let cancel = async move {
            let _ = peer.send_notification(cancelled(request, "the caller stopped waiting").into()).await;
        };
        // The SDK forgets a notification that is handed over while it ends, and reports nothing.
        self.connection.tasks.spawn_on(self.connection.over.clone().run_until_cancelled_owned(cancel), &runtime);
    }
}

fn cancelled(request: RequestId, why: &str) -> CancelledNotification {
    CancelledNotification::new(CancelledNotificationParam::new(Some(request), Some(why.into())))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;

    use rmcp::RoleClient;
    use rmcp::model::{ClientJsonRpcMessage, PingRequest, ServerJsonRpcMessage};
    use rmcp::transport::Transport;
    use serde_json::json;
    use tokio_util::task::TaskTracker;

    use super::super::negotiation::NegotiationResult;
    use super::super::settings::ServerSettings;
    use super::super::transport::Requests;
    use super::*;

    /// Accepts each message, receives none, and does not end.
    struct Endless;

    impl Transport<RoleClient> for Endless {
        type Error = Infallible;

        async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
            pending().await
        }

        fn send(&mut self, _: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
            std::future::ready(Ok(()))
        }

        async fn close(&mut self) -> Result<(), Infallible> {
            pending().await
        }
    }

    /// A request that the server never answers, with the usual limits of a call.
    async fn ping(connection: &Connection) -> Result<Value, Fault> {
        let limits = Limits::new(Duration::from_secs(600), Duration::from_secs(600));
        let ping = ClientRequest::PingRequest(PingRequest::default());
        connection.exchange(ping, JsonObject::new(), limits, &LastRequest::default()).await
    }

    #[tokio::test(start_paused = true)]
    async fn requests_and_cancellations_end_with_their_connection_even_if_the_transport_does_not_end() {
        let tasks = TaskTracker::new();
        let peer =
            serde_json::from_value(json!({"protocolVersion": "2025-06-18", "capabilities": {}})).expect("a peer");
        let agreed = NegotiationResult { era: Era::Legacy, peer };
        let settings = ServerSettings::stdio("unused", [""; 0]);
        let connection = Connection::begin(agreed, Endless, Requests::default(), &settings, &tasks).await;
        let begun = Instant::now();
        let dropped = timeout(Duration::from_millis(100), ping(&connection));
        let (answer, dropped, ()) = tokio::join!(ping(&connection), dropped, connection.close());
        assert!(matches!(answer, Err(Fault::Disconnected(_))), "{answer:?}");
        assert!(dropped.is_err(), "{dropped:?}");
        tasks.close();
        tasks.wait().await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
}
