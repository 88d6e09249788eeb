//! Messages of a session: those of its ended runs as the next run reads them, and those of its live run so far.

use std::sync::Arc;

use toolgate_core::chat::Message;
use toolgate_core::id::{RunId, SessionId, Tenant};
use toolgate_driver::DriveError;

use crate::{AgentRunner, RunnerError};

/// A message of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionMessage {
    /// The run that added it.
    pub run: RunId,
    /// The message.
    pub message: Arc<Message>,
}

impl AgentRunner {
    /// The messages of a session, oldest first. An ended run adds its messages up to its last answered turn, and nothing
    /// once it was deleted.
    pub async fn session_messages(&self, tenant: &Tenant, id: &SessionId) -> Result<Vec<SessionMessage>, RunnerError> {
        let Some(head) = self.known_session(tenant, id).await?.head else { return Ok(Vec::new()) };
        let links = self.inner.ports.store.runs.conversation(tenant, &head.run).await.map_err(DriveError::from)?;
        let mut messages = Vec::new();
        for link in links {
            let added = match link.segment {
                Some(segment) => segment.messages,
                None if link.run != head.run => Vec::new(),
                None if head.status.is_ended() => self.segment(&head.run).await?.unwrap_or_default().messages,
                None => self.load(&head.run).await?.messages(),
            };
            messages.extend(added.into_iter().map(|message| SessionMessage { run: link.run.clone(), message }));
        }
        Ok(messages)
    }
}
