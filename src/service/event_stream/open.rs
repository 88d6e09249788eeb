//! Opening of event streams.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::RunId;
use toolgate_core::lifecycle::Content;
use toolgate_core::run::JournalEntry;
use toolgate_runner::Watch;

use super::RunEvent;
use super::encoder::EventEncoder;
use super::id::EventId;
use super::run_watch::RunWatch;
use super::tail::{Tail, Until};
use crate::error::ServiceError;
use crate::operator::Operator;
use crate::runs::TenantRun;

/// How a stream follows its run.
#[derive(Clone, Debug)]
pub struct FollowSettings {
    /// How often the stream polls the journal of a run that another process drives.
    pub poll: Duration,
    /// Cancelled when the process stops; the stream then ends.
    pub stopping: CancellationToken,
}

impl FollowSettings {
    /// A stream that its reader stops.
    pub fn polling_every(poll: Duration) -> Self {
        Self { poll, stopping: CancellationToken::new() }
    }
}

/// The events of a run's journal, or of its first entries.
pub fn events_of<'a>(run: &RunId, journal: impl IntoIterator<Item = &'a JournalEntry>) -> Vec<RunEvent> {
    let mut encoder = EventEncoder::new(run.clone(), Content::Include, None);
    journal.into_iter().flat_map(|fact| encoder.project(fact)).collect()
}

impl Operator {
    /// A stream of the events of a run after `seen`: first those so far, then new ones until the run ends. `watch`: what
    /// an execution in this process has reported.
    pub fn follow(&self, run: &RunId, seen: Option<EventId>, watch: Option<Watch>, settings: FollowSettings) -> Tail {
        let FollowSettings { poll, stopping } = settings;
        let encoder = EventEncoder::new(run.clone(), Content::Include, seen);
        Tail::new(RunWatch::new(self.runner.subscription(run), watch, poll), encoder, Until::End, stopping)
    }
}

impl TenantRun {
    /// The events of the journal after `seen`. More than `most` only to show that there are more.
    pub async fn events_so_far(
        &self,
        content: Content,
        seen: Option<EventId>,
        most: usize,
    ) -> Result<Vec<RunEvent>, ServiceError> {
        let mut encoder = self.encoder(content, seen)?;
        let mut events = Vec::new();
        for fact in self.facts().await? {
            events.extend(encoder.project(&fact));
            if events.len() > most {
                break;
            }
        }
        Ok(events)
    }

    /// A stream of the events after `seen`: first those so far, then new ones.
    pub fn events(
        &self,
        content: Content,
        seen: Option<EventId>,
        until: Until,
        follow: FollowSettings,
    ) -> Result<Tail, ServiceError> {
        Ok(self.tail(self.encoder(content, seen)?, until, None, follow))
    }

    /// A stream of an execution's events, from the fact that began it until the run is pending or has ended.
    pub async fn events_of_execution(
        &self,
        content: Content,
        watch: Watch,
        follow: FollowSettings,
    ) -> Result<Tail, ServiceError> {
        let (begun, _) = self.load().await?.execution();
        let seen = begun.checked_sub(1).map(EventId::whole);
        let encoder = EventEncoder::new(self.id().clone(), content, seen);
        Ok(self.tail(encoder, Until::Idle, Some(watch), follow))
    }

    fn encoder(&self, content: Content, seen: Option<EventId>) -> Result<EventEncoder, ServiceError> {
        if let Some(seen) = seen.filter(|seen| seen.seq >= self.row.version) {
            let detail =
                format!("run `{}` has no event `{seen}`; its journal has {} entries", self.id(), self.row.version);
            return Err(ServiceError::new(ErrorCode::Validation, detail));
        }
        Ok(EventEncoder::new(self.id().clone(), content, seen))
    }

    fn tail(&self, encoder: EventEncoder, until: Until, watch: Option<Watch>, follow: FollowSettings) -> Tail {
        let FollowSettings { poll, stopping } = follow;
        Tail::new(RunWatch::new(self.subscription(), watch, poll), encoder, until, stopping)
    }
}
