//! Execution loop of one run: waits for a permit, then drives the run until it is idle, or until the process stops.

use std::collections::BTreeSet;

use toolgate_core::id::CallId;
use toolgate_core::run::{Event, Run, Step};
use toolgate_driver::{Agent, DriveError, Driver, Journal, LoopState, Ports, WakeSignal};

use super::AgentRunner;
use super::admission::Permit;

impl AgentRunner {
    /// Waits for a permit and executes the run until it is idle, or until the process stops.
    pub(super) async fn drive_when_permitted(
        &self,
        journal: &mut Journal,
        ports: &Ports,
        agent: &Agent,
        wake: &WakeSignal,
        mut turn: Permit,
        unpolled: &BTreeSet<CallId>,
    ) -> Result<ExecutionEnd, DriveError> {
        if let Some(end) = self.queued(journal, wake, &mut turn).await? {
            return Ok(end);
        }
        let driven = async {
            let mut driver = Driver::new(ports, agent, wake);
            if self.drive_to_idle(&mut driver, journal).await? == ExecutionEnd::Released {
                return Ok(ExecutionEnd::Released);
            }
            if self.poll_open_tasks(journal, unpolled, wake).await? {
                return self.drive_to_idle(&mut driver, journal).await;
            }
            Ok(ExecutionEnd::Idle)
        };
        let drain = &self.inner.drain;
        tokio::pin!(driven);
        tokio::select! {
            biased;
            driven = &mut driven => return driven,
            // A process that stops waits for runs, but not for users.
            () = drain.begun.cancelled() => wake.release_all(),
        }
        tokio::select! {
            biased;
            driven = driven => driven,
            () = drain.cut.cancelled() => Ok(ExecutionEnd::Released),
        }
    }

    /// Waits for a permit. `None` means that the run has one. The first commit detects events that other processes write in
    /// the meantime.
    async fn queued(
        &self,
        journal: &mut Journal,
        wake: &WakeSignal,
        turn: &mut Permit,
    ) -> Result<Option<ExecutionEnd>, DriveError> {
        let was_queued = !turn.is_granted();
        loop {
            tokio::select! {
                biased;
                () = turn.granted() => break,
                () = self.inner.drain.begun.cancelled() => return Ok(Some(ExecutionEnd::Released)),
                () = wake.notified() => journal.catch_up().await?,
            }
            if journal.run().ending().is_some() || journal.run().pause().is_some() {
                return Ok(Some(ExecutionEnd::Idle));
            }
        }
        if was_queued {
            journal.stage(Event::Admitted)?;
        }
        Ok(None)
    }

    async fn drive_to_idle(&self, driver: &mut Driver<'_>, journal: &mut Journal) -> Result<ExecutionEnd, DriveError> {
        loop {
            // A run whose only remaining step records that it is idle may take that step.
            let is_at_work = |run: &Run| !matches!(run.next(), Step::Wait(_) | Step::Done(_) | Step::Record(_));
            if self.inner.drain.releasing.is_cancelled() && is_at_work(journal.run()) {
                return Ok(ExecutionEnd::Released);
            }
            if driver.step(journal).await? == LoopState::Idle {
                return Ok(ExecutionEnd::Idle);
            }
        }
    }
}

/// Stages the fact that the execution waits for admission, unless it has its permit.
pub(super) fn stage_queued(journal: &mut Journal, permit: &Permit) -> Result<(), DriveError> {
    if permit.is_granted() { Ok(()) } else { journal.stage(Event::Queued) }
}

/// Why this process stops executing a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExecutionEnd {
    Idle,
    /// The process stops and another one resumes the run.
    Released,
}
