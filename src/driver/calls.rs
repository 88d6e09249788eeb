//! Step: run the calls of a tier concurrently, at servers in parallel and builtin calls here, and journal each result as it
//! arrives.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use toolgate_core::id::{CallId, RunId};
use toolgate_core::lifecycle::Delta;
use toolgate_core::policy::Verdict;
use toolgate_core::run::{AnsweredElicitation, Event, Limits, Run};
use toolgate_core::tool::{Builtin, DeliveredReply, FailureKind, Origin, Outcome, Tool, Toolset};
use toolgate_core::trace::SpanContext;
use toolgate_ports::{McpCall, Update};

use super::builtin::BuiltinCall;
use super::drift::DriftCheck;
use super::elicitation::{Elicitation, Elicitor, HeldCalls};
use super::interrupt::{Interruption, StepOutcome};
use super::{DriveError, Driver, Journal, Ports, Progress};

/// A call with everything it needs, so that it borrows nothing from the run.
struct PreparedCall {
    id: CallId,
    tool: Arc<Tool>,
    /// Why it is not sent, if so.
    blocker: Option<(FailureKind, String)>,
    /// Whether it was sent before, so that it must not be reported as not run.
    was_sent: bool,
    /// The builtin call, if toolgate runs it itself.
    builtin: Option<BuiltinCall>,
    limits: Limits,
    arguments: Map<String, Value>,
    trace: SpanContext,
    /// The remaining time of the run's deadline.
    deadline: Option<Duration>,
    /// The questions for which its server suspended the call, with the answers.
    answered: Option<AnsweredElicitation>,
}

impl Driver<'_> {
    /// Runs the calls of a tier. A call that is approved while others are in progress starts beside them.
    pub(super) async fn run_tier(&mut self, journal: &mut Journal, calls: Vec<CallId>) -> Result<(), DriveError> {
        let (ports, run) = (self.ports, journal.id().clone());
        let (asker, mut questions) = mpsc::unbounded_channel();
        let mut flight = FuturesUnordered::new();
        let mut held = HeldCalls::default();
        let compensates = journal.run().is_compensating();
        let is_stopped = |run: &Run| run.ending().is_some() || run.is_compensating() != compensates;
        let mut startable = calls;
        loop {
            let mut has_moved_on = false;
            if !startable.is_empty() {
                let StepOutcome::Done(started) = self.start_calls(journal, &startable).await? else {
                    record_arrived(journal, &mut flight)?;
                    return journal.catch_up().await;
                };
                // Another decision came while the tools were confirmed, or a call changed.
                has_moved_on = started.is_empty();
                flight.extend(started.into_iter().map(|call| make(ports, &run, call, asker.clone())));
            }
            if flight.is_empty() {
                return Ok(());
            }
            let happened = tokio::select! {
                biased;
                () = std::future::ready(()), if has_moved_on => CallEvent::Interruption(Interruption::ForCalls),
                Some(landed) = flight.next() => CallEvent::Landed(landed),
                Some(elicitation) = questions.recv() => CallEvent::Asked(elicitation),
                news = self.news(journal, &held) => CallEvent::Interruption(news),
                () = self.out_of_time(journal) => CallEvent::Interruption(Interruption::RunLost),
                () = self.hold_is_over(&held) => CallEvent::Interruption(Interruption::ForCalls),
            };
            match happened {
                CallEvent::Landed(landed) => record(journal, landed)?,
                CallEvent::Asked(elicitation) => self.hold(journal, &mut held, elicitation).await?,
                CallEvent::Interruption(Interruption::ForCalls) => journal.catch_up().await?,
                CallEvent::Interruption(Interruption::RunLost) => {
                    record_arrived(journal, &mut flight)?;
                    return journal.catch_up().await;
                }
            }
            record_arrived(journal, &mut flight)?;
            // The last result is committed with the next intent, which follows at once.
            if flight.is_empty() {
                return Ok(());
            }
            journal.commit().await?;
            if is_stopped(journal.run()) {
                return Ok(());
            }
            held.deliver_answers(journal.run());
            held.release_expired(self.wake, self.ports.clock.now());
            startable = journal.run().startable_calls();
        }
    }

    /// Records the start of these calls, once each was compared with what was authorized. Empty if a call changed or another
    /// writer was first: the run determines the next step.
    async fn start_calls(
        &mut self,
        journal: &mut Journal,
        calls: &[CallId],
    ) -> Result<StepOutcome<Vec<PreparedCall>>, DriveError> {
        let StepOutcome::Done(()) = self.unless_ended(journal, self.confirm_tools(journal, calls)).await else {
            return Ok(StepOutcome::Interrupted);
        };
        let StepOutcome::Done(live) = self.live_tools(journal).await else { return Ok(StepOutcome::Interrupted) };
        self.stage_waits(journal)?;
        match self.record_drift(journal, &live, calls).await? {
            DriftCheck::Same => {}
            DriftCheck::MovedOn => return Ok(StepOutcome::Done(Vec::new())),
        }
        let was_sent = |id: &&CallId| journal.run().call(id).is_some_and(|call| call.sent);
        let again: BTreeSet<CallId> = calls.iter().filter(was_sent).cloned().collect();
        journal.stage(Event::CallsStarted { calls: calls.to_vec() })?;
        if journal.commit().await? == Progress::CaughtUp {
            return Ok(StepOutcome::Done(Vec::new()));
        }
        let deadline = self.time_left(journal);
        let prepared = |id| PreparedCall::new(journal.run(), id, &live, deadline, again.contains(id));
        let prepared: Vec<PreparedCall> = calls.iter().filter_map(prepared).collect();
        let leaves = prepared.iter().filter(|call| call.blocker.is_none());
        self.remember(&self.begun(journal, leaves.map(|call| &call.id))).await;
        Ok(StepOutcome::Done(prepared))
    }
}

/// An event during running calls.
enum CallEvent {
    Landed((CallId, DeliveredReply)),
    /// The server of a call sends an elicitation request.
    Asked(Elicitation),
    /// Another writer appended to the run, or a deadline passed.
    Interruption(Interruption),
}

impl PreparedCall {
    fn new(run: &Run, id: &CallId, live: &Toolset, deadline: Option<Duration>, was_sent: bool) -> Option<Self> {
        let call = run.call(id)?;
        let arguments = call.arguments().as_object()?.clone();
        let (tool, answered, trace) = (call.tool.clone()?, call.answered.clone(), run.call_context(id));
        let is_builtin = call.is_builtin();
        let builtin = is_builtin.then(|| BuiltinCall::new(Builtin::from_origin(&tool.origin), &arguments, run));
        let (limits, blocker) = (run.started().spec.limits.clone(), dispatch_blocker(&tool, live));
        Some(Self { id: id.clone(), tool, blocker, was_sent, builtin, limits, arguments, trace, deadline, answered })
    }
}

/// Stages a result. A result for a run that has ended meanwhile is dropped.
fn record(journal: &mut Journal, (call, reply): (CallId, DeliveredReply)) -> Result<(), DriveError> {
    let event = Event::of_reply(call, reply);
    if journal.run().admit(&event).is_ok() { journal.stage(event) } else { Ok(()) }
}

/// Stages the results that have arrived. One may be a task, which would continue without a purpose if the run is lost.
fn record_arrived(
    journal: &mut Journal,
    flight: &mut FuturesUnordered<impl Future<Output = (CallId, DeliveredReply)>>,
) -> Result<(), DriveError> {
    while let Some(Some(landed)) = flight.next().now_or_never() {
        record(journal, landed)?;
    }
    Ok(())
}

async fn make(
    ports: &Ports,
    run: &RunId,
    call: PreparedCall,
    asker: mpsc::UnboundedSender<Elicitation>,
) -> (CallId, DeliveredReply) {
    let reply = match (&call.blocker, &call.builtin) {
        (Some((kind, why)), _) => not_sent(*kind, why, call.was_sent).into(),
        (None, Some(builtin)) => caught(async { ports.run_builtin(builtin).await.into() }).await,
        (None, None) => {
            let sent = async {
                let DeliveredReply { reply, wire } = send(ports, run, &call, asker).await;
                DeliveredReply { reply: ports.fit(run, &call.limits, &call.tool, reply).await, wire }
            };
            caught(sent).await
        }
    };
    (call.id, reply)
}

/// A panic ends one call, and not its run.
async fn caught(call: impl Future<Output = DeliveredReply>) -> DeliveredReply {
    AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_panic| {
        let message = "the code that made this call panicked; this is a bug in toolgate";
        Outcome::failed(FailureKind::Panicked, message).into()
    })
}

async fn send(
    ports: &Ports,
    run: &RunId,
    call: &PreparedCall,
    asker: mpsc::UnboundedSender<Elicitation>,
) -> DeliveredReply {
    let Origin::Mcp { server, tool } = &call.tool.origin else {
        return Outcome::failed(FailureKind::Unavailable, "this tool has no server").into();
    };
    let show = |progress| {
        let delta = Delta::Progress { call: call.id.clone(), progress };
        let update = Update::Delta { delta, position: None };
        ports.sinks.iter().for_each(|sink| sink.observe(run, &update));
    };
    let elicitor = Elicitor { call: call.id.clone(), driver: asker };
    let request = McpCall {
        run,
        call: &call.id,
        server,
        tool,
        arguments: &call.arguments,
        is_repeatable: call.tool.is_repeatable(),
        trace: &call.trace,
        deadline: call.deadline,
        answered: call.answered.as_ref(),
        elicitation: Some(&elicitor),
    };
    ports.servers.call(request, &show).await
}

/// The reason not to send a call: its tool is gone, is now denied, or differs from the definition that the model saw. A
/// tool with another name and the same origin is the same tool.
fn dispatch_blocker(tool: &Tool, live: &Toolset) -> Option<(FailureKind, String)> {
    match live.by_origin(&tool.origin) {
        Some(now) if now.verdict == Verdict::Deny => {
            let why = "the policy now denies this tool";
            Some((FailureKind::Unavailable, why.to_owned()))
        }
        Some(now) if now.hash == tool.hash => None,
        Some(_) => {
            let why = "the definition of this tool changed after you called it. Look at it again before you call it";
            Some((FailureKind::Changed, why.to_owned()))
        }
        None => {
            let reason = live.left_out().iter().find(|left| left.server.as_ref() == tool.server());
            let why = reason.map_or("it is no longer offered", |left| left.reason.as_str());
            Some((FailureKind::Unavailable, format!("the tool is not available: {why}")))
        }
    }
}

/// The outcome that the model reads for a call that is not sent. If it was sent before, its outcome is unknown.
pub(super) fn not_sent(kind: FailureKind, why: &str, was_sent: bool) -> Outcome {
    let why = why.trim_end_matches('.');
    Outcome::failed(
        kind,
        match was_sent {
            false => format!("Not run: {why}."),
            true => format!(
                "Not sent again: {why}. The call was sent before, and its outcome is unknown: it may or may not have \
                 taken effect."
            ),
        },
    )
}
