//! Elicitation on open calls: a server asks, the question is journaled, and the call is held until answers arrive or
//! the hold time is over.
//!
//! Answers are journaled too, whichever process receives them. The driver of the run finds them in the journal and
//! passes them to the open call, so that a call which had effects before it asked is not sent a second time.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use toolgate_core::id::{CallId, ServerId};
use toolgate_core::run::{Event, Run};
use toolgate_core::tool::{ElicitationRequest, ElicitationResponses, Origin};
use toolgate_ports::ElicitationHandler;

use super::results::oversize_reason;
use super::wake_signal::WakeSignal;
use super::{DriveError, Driver, Journal, Progress};

/// How long calls are held open for the answers to elicitation requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElicitationHold {
    /// For servers without a time of their own. With zero no call is held.
    pub usual: Duration,
    /// For single servers.
    pub servers: BTreeMap<ServerId, Duration>,
}

impl ElicitationHold {
    fn for_server(&self, server: &ServerId) -> Duration {
        self.servers.get(server).copied().unwrap_or(self.usual)
    }
}

/// An elicitation request on its way from the call to the driver.
pub(super) struct Elicitation {
    call: CallId,
    needed: ElicitationRequest,
    answer: oneshot::Sender<ElicitationResponses>,
}

/// The call's side of the channel for elicitation requests.
pub(super) struct Elicitor {
    pub(super) call: CallId,
    pub(super) driver: mpsc::UnboundedSender<Elicitation>,
}

#[async_trait]
impl ElicitationHandler for Elicitor {
    async fn elicit(&self, needed: ElicitationRequest) -> Option<ElicitationResponses> {
        let (answer, answered) = oneshot::channel();
        self.driver.send(Elicitation { call: self.call.clone(), needed, answer }).ok()?;
        answered.await.ok()
    }
}

/// The calls of a tier that are held open.
#[derive(Default)]
pub(super) struct HeldCalls {
    calls: BTreeMap<CallId, HeldCall>,
}

struct HeldCall {
    /// Dropping it ends the wait without an answer, so that the call is cancelled.
    answer: oneshot::Sender<ElicitationResponses>,
    /// Until when it is held; `None` while a person at the terminal is asked.
    until: Option<Timestamp>,
}

impl HeldCalls {
    /// The held calls.
    pub(super) fn calls(&self) -> impl Iterator<Item = &CallId> {
        self.calls.keys()
    }

    /// Whether this call is held.
    pub(super) fn contains(&self, call: &CallId) -> bool {
        self.calls.contains_key(call)
    }

    /// Passes on the answers from the journal. A call that has ended meanwhile needs no answer.
    pub(super) fn deliver_answers(&mut self, run: &Run) {
        let answered: Vec<CallId> = self.calls.keys().filter(|id| !is_asked(run, id)).cloned().collect();
        for id in answered {
            // The answer is a fact of the journal, whichever process recorded it (decision 0016).
            let (Some(held), Some(call)) = (self.calls.remove(&id), run.call(&id)) else { continue };
            if let Some(answer) = call.held.as_ref().and_then(|held| held.answer.as_ref()) {
                // The call may have ended in the meantime.
                let _ = held.answer.send(answer.reactions.clone());
            }
        }
    }

    /// Releases the calls whose hold is over, by time or by the wake signal.
    pub(super) fn release_expired(&mut self, wake: &WakeSignal, now: Timestamp) {
        self.calls.retain(|id, held| held.until.is_none_or(|until| now < until) && !wake.releases(id));
    }

    /// The earliest end of a hold.
    fn due(&self) -> Option<Timestamp> {
        self.calls.values().filter_map(|held| held.until).min()
    }
}

/// Whether the server of a call waits for answers on the open call, according to the journal.
fn is_asked(run: &Run, call: &CallId) -> bool {
    run.call(call).and_then(|call| call.held.as_ref()).is_some_and(|held| held.answer.is_none())
}

impl Driver<'_> {
    /// Holds a call open for its server's questions, if answers are possible. The question is journaled on return.
    pub(super) async fn hold(
        &self,
        journal: &mut Journal,
        held: &mut HeldCalls,
        elicitation: Elicitation,
    ) -> Result<(), DriveError> {
        let Elicitation { call, needed, answer } = elicitation;
        // A question that cannot be recorded is not asked on the open call either; the end of the call reports the
        // reason.
        let Some(limit) = self.hold_limit(journal.run(), &call).filter(|_| oversize_reason(&needed).is_none()) else {
            return Ok(());
        };
        let until = match limit {
            HoldLimit::Unlimited => None,
            HoldLimit::For(time) => self.ports.clock.now().checked_add(time).ok(),
        };
        let event = Event::InputRequested { call: call.clone(), needed: needed.into(), until };
        if journal.run().admit(&event).is_err() {
            return Ok(());
        }
        journal.stage(event)?;
        // Events of other writers come before it.
        while journal.commit().await? == Progress::CaughtUp {
            if journal.run().ending().is_some() {
                return Ok(());
            }
        }
        if !is_asked(journal.run(), &call) {
            // Events of other writers made the question impossible.
            return Ok(());
        }
        held.calls.insert(call, HeldCall { answer, until });
        held.release_expired(self.wake, self.ports.clock.now());
        Ok(())
    }

    fn hold_limit(&self, run: &Run, call: &CallId) -> Option<HoldLimit> {
        let call = run.call(call)?;
        let Origin::Mcp { server, .. } = &call.tool.as_ref()?.origin else { return None };
        match (self.wake.is_attended(), self.ports.hold.for_server(server)) {
            (true, _) => Some(HoldLimit::Unlimited),
            (false, time) => (!time.is_zero()).then_some(HoldLimit::For(time)),
        }
    }

    /// Waits until the hold of a call is over.
    pub(super) async fn hold_is_over(&self, held: &HeldCalls) {
        match held.due() {
            Some(due) => {
                let left = Duration::try_from(due.duration_since(self.ports.clock.now())).unwrap_or_default();
                self.ports.clock.sleep(left).await;
            }
            None => std::future::pending().await,
        }
    }
}

/// The duration of a hold.
enum HoldLimit {
    /// As long as the person at the terminal takes.
    Unlimited,
    For(Duration),
}
