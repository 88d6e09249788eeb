//! While a model or a tool is at work, somebody may end the run: in this process, or in another one.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::Notify;

use super::{Driver, Journal};
use crate::core::run::{Event, Recorded};

/// Wakes the driver of a run when somebody in this process writes to its journal. Only a hint: polling is the truth.
#[derive(Clone, Debug, Default)]
pub struct Hint(Arc<Notify>);

impl Hint {
    /// Something was written.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    /// Waits until somebody writes, or has written since anybody waited last.
    pub(crate) async fn heard(&self) {
        self.0.notified().await;
    }

    /// Waits until somebody writes from now on.
    pub(crate) async fn woken(&self) {
        // What was written before is known by now.
        let _ = self.0.notified().now_or_never();
        self.0.notified().await;
    }
}

/// How a step that was being waited for came out.
pub(super) enum Waited<T> {
    /// It finished.
    Done(T),
    /// The run was ended or taken over by somebody else, or its time is up; the step was dropped, which cancels it.
    Interrupted,
}

impl Driver<'_> {
    /// Waits for a step, unless the run ends before.
    pub(super) async fn unless_ended<T>(&self, journal: &Journal, step: impl Future<Output = T>) -> Waited<T> {
        tokio::select! {
            biased;
            done = step => Waited::Done(done),
            () = self.ended_elsewhere(journal) => Waited::Interrupted,
            () = self.out_of_time(journal) => Waited::Interrupted,
        }
    }

    async fn ended_elsewhere(&self, journal: &Journal) {
        loop {
            tokio::select! {
                () = self.hint.0.notified() => {}
                () = tokio::time::sleep(self.ports.poll) => {}
            }
            // A store that does not answer is found out by the next commit.
            let tail = self.ports.store.runs.load(journal.id(), journal.committed()).await.unwrap_or_default();
            // Only a driver writes that it took the run up: ours lost it, and whatever it waits for is in doubt to the other.
            let lost = |recorded: &Recorded| matches!(recorded.event, Event::Ended { .. } | Event::Resumed { .. });
            if tail.iter().any(lost) {
                return;
            }
        }
    }

    async fn out_of_time(&self, journal: &Journal) {
        match self.time_left(journal) {
            Some(left) => self.ports.clock.sleep(left.max(Duration::from_millis(1))).await,
            None => std::future::pending().await,
        }
    }
}
