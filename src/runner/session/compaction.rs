//! Compaction of a session on request: a run whose only step it is.

use toolgate_core::chat::Message;
use toolgate_core::id::{RunId, SessionId, Tenant};
use toolgate_core::run::{Compaction, Spec, Started, Trigger};
use toolgate_core::trace::Trace;

use crate::{AgentRunner, Execution, RunnerError};

/// A compaction of a session.
#[derive(Clone, Debug)]
pub struct SessionCompaction {
    pub tenant: Tenant,
    pub session: SessionId,
    /// The version that the session must have, if the caller saw one.
    pub session_version: Option<u64>,
    /// The most tokens at the end of the conversation that are kept. Default: those of the agent.
    pub keep_tokens: Option<u64>,
    /// The authenticated name of the caller.
    pub by: Option<String>,
    /// The id of the run, from [`AgentRunner::fresh_id`]. Default: a new one.
    pub id: Option<RunId>,
    /// The parent trace.
    pub trace: Option<Trace>,
}

impl SessionCompaction {
    /// A compaction of a session of the default tenant, as its agent is configured.
    pub fn new(session: impl Into<SessionId>) -> Self {
        Self {
            tenant: Tenant::default(),
            session: session.into(),
            session_version: None,
            keep_tokens: None,
            by: None,
            id: None,
            trace: None,
        }
    }
}

impl AgentRunner {
    /// Compacts the conversation of a session: starts a run that continues it, whose output is the summary. The output is
    /// empty if there is nothing to replace. Later runs of the session read the summary in place of the replaced messages;
    /// [`AgentRunner::session_messages`] returns every message.
    pub async fn compact(&self, compaction: SessionCompaction) -> Result<Execution, RunnerError> {
        let SessionCompaction { tenant, session, session_version: seen, keep_tokens, by, id, trace } = compaction;
        let row = self.known_session(&tenant, &session).await?;
        let agent = self.agent(&row.agent)?;
        let mut spec = Spec { principal: row.principal, ..agent.spec() };
        let known = spec.rules.compaction.take().unwrap_or_default();
        spec.rules.compaction = Some(Compaction { keep_tokens: keep_tokens.unwrap_or(known.keep_tokens), ..known });
        let id = id.unwrap_or_else(|| self.fresh_id());
        let started = Started {
            spec,
            predecessor: None,
            restart: None,
            history: Vec::new(),
            input: Message::user(""),
            files: Default::default(),
            session,
            tenant,
            by,
            trigger: Trigger::Compaction,
            trace: self.trace(trace),
            metadata: Default::default(),
        };
        let runner = self.clone();
        self.to_completion(async move { runner.launch_in_session(&id, started, agent, seen).await }).await?
    }
}
