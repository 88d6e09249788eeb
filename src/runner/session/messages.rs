//! Messages of a session: those of its ended runs as the next run reads them, and those of its live run so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolgate_core::chat::Message;
use toolgate_core::id::{RunId, SessionId, Tenant};
use toolgate_core::run::{Predecessor, Segment};
use toolgate_driver::DriveError;

use crate::{AgentRunner, RunnerError};

/// A message of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionMessage {
    /// The run that added it.
    pub run: RunId,
    pub message: Arc<Message>,
}

impl AgentRunner {
    /// The messages of a session, oldest first. An ended run adds its messages as the next run reads them, and nothing once
    /// it was deleted.
    pub async fn session_messages(&self, tenant: &Tenant, id: &SessionId) -> Result<Vec<SessionMessage>, RunnerError> {
        self.session_messages_page(tenant, id, 0, usize::MAX).await
    }

    /// A page of the messages of a session, oldest first: at most `limit` from this index on. Reads only the runs that have
    /// them.
    pub async fn session_messages_page(
        &self,
        tenant: &Tenant,
        id: &SessionId,
        from: usize,
        limit: usize,
    ) -> Result<Vec<SessionMessage>, RunnerError> {
        let Some(head) = self.known_session(tenant, id).await?.head else { return Ok(Vec::new()) };
        let store = &self.inner.ports.store.runs;
        let end = from.saturating_add(limit);
        let (mut start, mut shown) = (0_usize, Vec::new());
        for (run, length) in store.segment_lengths(tenant, &head.run).await.map_err(DriveError::from)? {
            // The length of a run that has no segment yet is only known once it was read.
            let length = match length {
                None if run == head.run => usize::MAX,
                length => usize::try_from(length.unwrap_or_default()).unwrap_or(usize::MAX),
            };
            let next = start.saturating_add(length);
            if start < end && from < next {
                shown.push((start, run));
            }
            start = next;
        }
        let runs: Vec<RunId> = shown.iter().map(|(_, run)| run.clone()).collect();
        let mut segments: BTreeMap<RunId, Segment> =
            store.segments(tenant, &runs).await.map_err(DriveError::from)?.into_iter().collect();
        let mut page = Vec::new();
        for (start, run) in shown {
            let added = match segments.remove(&run) {
                Some(segment) => segment.messages,
                None if head.status.is_ended() => self.segment(&run).await?.unwrap_or_default().messages,
                None => self.load(&run).await?.messages(),
            };
            let before = from.saturating_sub(start);
            let added = added.into_iter().skip(before).take(end.saturating_sub(start.max(from)));
            let run = Predecessor::shown_as(&run);
            page.extend(added.map(|message| SessionMessage { run: run.clone(), message }));
        }
        Ok(page)
    }
}
