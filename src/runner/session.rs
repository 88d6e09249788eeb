//! Session of a new run: the run continues the conversation of the session's head and takes its place, in one commit.

mod compaction;
mod deletion;
mod limits;
mod messages;
mod record;
mod restart;

use std::sync::Arc;

use toolgate_core::chat::{Message, Usage};
use toolgate_core::id::{RunId, SessionId, Tenant};
use toolgate_core::run::{JournalEntry, Predecessor, Segment, Started, Status, Trigger};
use toolgate_driver::{DriveError, fold, title_of};
use toolgate_ports::{RunFilter, RunRow, SessionClaim, SessionFilter, SessionHead, SessionRow, SessionSettings};

use super::envelope::EnvelopeError;
use super::fork::RunCopy;
use super::resume_input::require_mode;
use super::{Agent, AgentRunner, Execution, RunnerError};

use limits::{Spent, within_session};
use record::{WRITE_ATTEMPTS, check_not_deleted, check_version};
use restart::runtime_of;

pub use compaction::SessionCompaction;
pub use messages::SessionMessage;
pub use record::{MemberChange, NewSession, SessionChange, SessionLimitsChange};

/// A new run at its place in its session, and the claim of the session.
struct PlacedRun {
    started: Started,
    claim: SessionClaim,
}

impl AgentRunner {
    /// The session with this id. A run that was started without a session is one of its own, under the run's id: without
    /// a row in the store, at version 0, until another run continues it or a caller changes it.
    pub async fn session(&self, tenant: &Tenant, id: &SessionId) -> Result<Option<SessionRow>, RunnerError> {
        match self.inner.ports.store.runs.session(tenant, id).await.map_err(DriveError::from)? {
            Some(row) => Ok(Some(row)),
            None => self.adopted(tenant, id).await,
        }
    }

    /// The sessions that match the filter, newest first.
    pub async fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, RunnerError> {
        Ok(self.inner.ports.store.runs.sessions(filter).await.map_err(DriveError::from)?)
    }

    /// Launches a run that continues its session, if the session is at the version that the caller saw, where one is
    /// given. If another run claimed the session first, begins again.
    pub(super) async fn launch_in_session(
        &self,
        id: &RunId,
        started: Started,
        agent: Arc<Agent>,
        seen: Option<u64>,
    ) -> Result<Execution, RunnerError> {
        for _ in 0..WRITE_ATTEMPTS {
            let PlacedRun { started, claim } = self.place(id, started.clone(), &agent, seen).await?;
            match self.launch_started(id, started, Some(claim), agent.clone()).await {
                Err(RunnerError::Drive(DriveError::SessionChanged)) => {}
                launched => return launched,
            }
        }
        Err(RunnerError::SessionChanging(started.session))
    }

    /// Launches a single call that uses the grants of a session, without a place in its conversation. An unknown session
    /// begins with it, so that it belongs to the principal of the call.
    pub(super) async fn launch_beside_session(
        &self,
        id: &RunId,
        started: Started,
        agent: Arc<Agent>,
    ) -> Result<Execution, RunnerError> {
        for _ in 0..WRITE_ATTEMPTS {
            if !self.is_open_to(&started).await? {
                let row = SessionRow { version: 1, ..self.new_session(&started) };
                // If another writer created it first, that session is looked at.
                self.inner.ports.store.runs.save_session(0, &row).await.map_err(DriveError::from)?;
                continue;
            }
            match self.launch_started(id, started.clone(), None, agent.clone()).await {
                Err(RunnerError::Drive(DriveError::SessionChanged)) => {}
                launched => return launched,
            }
        }
        Err(RunnerError::SessionChanging(started.session))
    }

    /// Whether there is a session for a new run. One of another agent or principal, or a deleted one, refuses the run.
    async fn is_open_to(&self, new: &Started) -> Result<bool, RunnerError> {
        let row = self.session(&new.tenant, &new.session).await?;
        if row.is_none() {
            self.check_no_run_of_another_session(&new.tenant, &new.session).await?;
        }
        row.map(|row| self.check_access(new, &row)).transpose().map(|checked| checked.is_some())
    }

    /// Launches a retry, which takes the place of its source at the head of their session.
    pub(super) async fn launch_retry(&self, source: &RunId, copy: &RunCopy) -> Result<Execution, RunnerError> {
        for _ in 0..WRITE_ATTEMPTS {
            // Compare and set of the head: a run after the source would lose the conversation that it answered
            // (decision 0038).
            let claim = self.claim_of_retry(source, copy).await?;
            match self.launch_copy(copy, Some(claim)).await {
                Err(RunnerError::Drive(DriveError::SessionChanged)) => {}
                launched => return launched,
            }
        }
        Err(RunnerError::SessionChanging(copy.started.session.clone()))
    }

    /// The claim of its session by a retry. The session has the segment of the retry's predecessor since the claim of the
    /// source.
    async fn claim_of_retry(&self, source: &RunId, copy: &RunCopy) -> Result<SessionClaim, RunnerError> {
        let new = &copy.started;
        let row = self.session(&new.tenant, &new.session).await?.unwrap_or_else(|| self.new_session(new));
        self.check_access(new, &row)?;
        if row.head.as_ref().is_none_or(|head| head.run != *source) {
            return Err(RunnerError::NotTheHead { run: source.clone(), head: row.head.map(Box::new) });
        }
        self.claim_of(&copy.id, new, row, None)
    }

    /// The claim of a session of its own by a fork, with a copy of the conversation before it. A single call has no
    /// conversation.
    pub(super) fn claim_of_fork(
        &self,
        copy: &RunCopy,
        settings: SessionSettings,
    ) -> Result<Option<SessionClaim>, RunnerError> {
        let new = &copy.started;
        if new.spec.is_direct_call() {
            return Ok(None);
        }
        let segment = new.prior_conversation().map(|prior| prior.as_ref().clone());
        let row = SessionRow { settings, title: self.session_title(copy.message()), ..self.new_session(new) };
        let mut claim = self.claim_of(&copy.id, new, row, segment)?;
        claim.row.authors.extend(new.authors());
        Ok(Some(claim))
    }

    /// The title that a message gives to a session. A title is cut, so secrets are replaced in the whole message.
    fn session_title(&self, message: &Message) -> String {
        title_of(&Message::user(self.inner.ports.store.secrets.redacted(&message.text()).into_owned()))
    }

    /// Places a new run into its session: after the head, if the head has ended, with the session's permission mode unless
    /// it has one, and within what is left of the session's limits.
    async fn place(
        &self,
        id: &RunId,
        mut new: Started,
        agent: &Agent,
        seen: Option<u64>,
    ) -> Result<PlacedRun, RunnerError> {
        let known = self.session(&new.tenant, &new.session).await?;
        if known.is_none() {
            self.check_no_run_of_another_session(&new.tenant, &new.session).await?;
        }
        let row = known.unwrap_or_else(|| self.new_session(&new));
        self.check_access(&new, &row)?;
        check_version(&row, seen)?;
        let row = SessionRow { head: self.ended_head(&row).await?, ..row };
        if let Some(mode) = new.spec.mode.is_none().then_some(row.settings.mode.as_ref()).flatten() {
            require_mode(agent, mode)?;
            new.spec.mode = Some(mode.clone());
        }
        let now = self.inner.ports.clock.now();
        new.spec.limits = within_session(&new.spec.limits, &row, &Spent::by_all(&row), now)?;
        new.restart = self.restart(&row, &new.spec, agent);
        let Some(head) = row.head.clone().filter(|_| new.restart.is_none()) else {
            return Ok(PlacedRun { claim: self.claim_of(id, &new, row, None)?, started: new });
        };
        if !new.history.is_empty() {
            return Err(RunnerError::SessionHasHistory(new.session));
        }
        let store = &self.inner.ports.store;
        let (mut segments, has_segment) = store.conversation(&new.tenant, &head.run).await.map_err(DriveError::from)?;
        let segment = if has_segment { None } else { self.segment(&head.run).await? };
        segments.extend(segment.clone());
        let conversation = Segment::join(segments);
        new.predecessor = Some(Predecessor {
            run: head.run,
            position: head.version,
            authors: row.authors.clone(),
            conversation: Some(conversation.into()),
        });
        Ok(PlacedRun { claim: self.claim_of(id, &new, row, segment)?, started: new })
    }

    /// The claim of its session by a run that began in another store; `None` for a run that has neither a session nor a
    /// predecessor. The session must not have continued here without the run.
    pub(super) async fn claim_of_import(
        &self,
        id: &RunId,
        started: &Started,
    ) -> Result<Option<SessionClaim>, RunnerError> {
        let is_alone = started.session.as_str() == id.as_str() && started.predecessor.is_none();
        if is_alone {
            return Ok(None);
        }
        if started.spec.is_direct_call() {
            self.is_open_to(started).await?;
            return Ok(None);
        }
        let row = self.session(&started.tenant, &started.session).await?.unwrap_or_else(|| self.new_session(started));
        self.check_access(started, &row)?;
        let predecessor = started.predecessor.as_ref();
        let head = row.head.as_ref().map(|head| &head.run);
        // The head is the run itself if the same envelope was imported a moment ago.
        let replaced = if let Trigger::Retry { run, .. } = &started.trigger { Some(run) } else { None };
        let is_next = row.version == 0
            || head == predecessor.map(|known| &known.run)
            || head == Some(id)
            || (replaced.is_some() && head == replaced);
        if !is_next {
            return Err(EnvelopeError::Diverged { run: id.clone() }.into());
        }
        let segment = match predecessor {
            // The store has the conversation before the predecessor, which the envelope repeats.
            Some(known) if self.row(&known.run).await?.is_some_and(|row| row.tenant == started.tenant) => {
                self.segment(&known.run).await?
            }
            Some(_) | None => started.prior_conversation().map(|prior| prior.as_ref().clone()),
        };
        let mut claim = self.claim_of(id, started, row, segment)?;
        claim.row.authors.extend(started.authors());
        Ok(Some(claim))
    }

    /// The segment of an ended run, from its journal; `None` if its content was deleted.
    async fn segment(&self, run: &RunId) -> Result<Option<Segment>, RunnerError> {
        let journal = self.inner.ports.store.runs.load(run, 0).await.map_err(DriveError::from)?;
        let corrupt = |reason| DriveError::Corrupt { run: run.clone(), reason };
        Ok(Segment::from_journal(journal.iter().map(|recorded| &recorded.event)).map_err(corrupt)?)
    }

    /// The session of a run that was started without one, or before sessions had rows.
    async fn adopted(&self, tenant: &Tenant, id: &SessionId) -> Result<Option<SessionRow>, RunnerError> {
        let Some((latest, started)) = self.latest_run_of(tenant, id).await? else { return Ok(None) };
        Ok(Some(SessionRow {
            agent: latest.agent.clone(),
            runs: 1,
            title: latest.title.clone(),
            authors: started.authors(),
            created_at: latest.created_at,
            updated_at: latest.created_at,
            head: Some(SessionHead::from_run(latest)),
            runtime: self.agent_of(&started.spec).ok().map(|agent| runtime_of(&started.spec, &agent)),
            ..self.new_session(&started)
        }))
    }

    /// The latest run with this session id, and its parameters. A single call is no part of a conversation.
    async fn latest_run_of(
        &self,
        tenant: &Tenant,
        session: &SessionId,
    ) -> Result<Option<(RunRow, Arc<Started>)>, RunnerError> {
        let filter = RunFilter { session: Some(session.clone()), tenant: Some(tenant.clone()), ..RunFilter::default() };
        for latest in self.list(&filter).await? {
            let journal: Vec<JournalEntry> = self.journal(&latest.id).await?;
            let started = fold(&latest.id, journal.get(..1).unwrap_or_default())?.started().clone();
            if !started.spec.is_direct_call() {
                return Ok(Some((latest, started)));
            }
        }
        Ok(None)
    }

    fn new_session(&self, new: &Started) -> SessionRow {
        let now = self.inner.ports.clock.now();
        SessionRow {
            id: new.session.clone(),
            tenant: new.tenant.clone(),
            agent: new.spec.agent.clone(),
            principal: new.spec.principal.clone(),
            head: None,
            version: 0,
            runs: 0,
            usage: Usage::default(),
            iterations: 0,
            runtime: None,
            title: String::new(),
            settings: SessionSettings::default(),
            created_by: new.by.clone(),
            authors: Default::default(),
            created_at: now,
            updated_at: now,
            deleted_at: None,
        }
    }

    fn claim_of(
        &self,
        id: &RunId,
        new: &Started,
        row: SessionRow,
        segment: Option<Segment>,
    ) -> Result<SessionClaim, RunnerError> {
        let expected = row.version;
        let now = self.inner.ports.clock.now();
        let head = SessionHead {
            run: id.clone(),
            status: Status::Running,
            version: 0,
            usage: Usage::default(),
            iterations: 0,
            updated_at: now,
        };
        let mut row = SessionRow {
            usage: row.total_usage(),
            iterations: row.total_iterations(),
            runtime: Some(runtime_of(&new.spec, &*self.agent_of(&new.spec)?)),
            head: Some(head),
            agent: new.spec.agent.clone(),
            version: expected + 1,
            runs: row.runs + 1,
            updated_at: now,
            ..row
        };
        row.authors.extend(new.by.clone());
        if row.title.is_empty() {
            row.title = self.session_title(&new.input);
        }
        // The segment of the predecessor goes into the same commit, so no ending has a duty to the session (decision
        // 0037).
        Ok(SessionClaim { expected, row, segment })
    }

    /// Refuses a run in a deleted session, and a run of another agent or principal: its model would read a
    /// conversation that is not its own.
    fn check_access(&self, new: &Started, row: &SessionRow) -> Result<(), RunnerError> {
        check_not_deleted(row)?;
        if row.principal != new.spec.principal {
            return Err(RunnerError::SessionOfAnotherPrincipal(new.session.clone()));
        }
        // An agent that was renamed keeps its earlier names as aliases.
        let name_of = |name| self.agent(name).map_or_else(|_| name.clone(), |agent| agent.name.clone());
        if name_of(&row.agent) != name_of(&new.spec.agent) {
            return Err(RunnerError::SessionOfAnotherAgent { session: new.session.clone(), agent: row.agent.clone() });
        }
        Ok(())
    }

    /// The head of a session. A head that is over its deadline is ended first.
    async fn ended_head(&self, row: &SessionRow) -> Result<Option<SessionHead>, RunnerError> {
        let Some(head) = &row.head else { return Ok(None) };
        if head.status.is_ended() {
            return Ok(Some(head.clone()));
        }
        let journal = self.open_unless_over(&head.run).await?.0;
        let run = journal.run();
        let head = SessionHead {
            run: head.run.clone(),
            status: run.status(),
            version: run.length(),
            usage: run.budget().usage,
            iterations: run.budget().iterations.into(),
            updated_at: run.clock().unwrap_or(head.updated_at),
        };
        match head.status.is_ended() {
            true => Ok(Some(head)),
            false => Err(RunnerError::SessionBusy { session: row.id.clone(), head: head.into() }),
        }
    }
}
