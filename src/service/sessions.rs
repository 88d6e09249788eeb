//! Sessions of one tenant.

use jiff::Timestamp;
use toolgate_core::id::{Principal, RunId, SessionId};
use toolgate_core::trace::Trace;
use toolgate_ports::{SessionFilter, SessionRow};
use toolgate_runner::{
    AgentRunner, Execution, NewSession, RunnerError, SessionChange, SessionCompaction, SessionMessage,
};

use super::authorize::Caller;
use super::error::ServiceError;
use super::name_rules::require_name;
use super::runs::TenantRunner;

/// A session of the caller's tenant: to hold one means that the caller may find it.
pub struct TenantSession {
    pub(crate) runner: AgentRunner,
    pub(crate) caller: Caller,
    /// The session at the time of the lookup.
    pub row: SessionRow,
}

impl TenantRunner {
    /// Creates a session for the tenant, in the name of the caller.
    pub async fn create_session(&self, new: NewSession) -> Result<TenantSession, ServiceError> {
        require_name("/id", new.id.as_ref().map(SessionId::as_str))?;
        // No run could act for an invalid one.
        require_name("/principal", new.principal.as_ref().map(Principal::as_str))?;
        let Caller { tenant, name, .. } = &self.caller;
        let (tenant, by) = (tenant.clone(), Some(name.as_ref().to_owned()));
        let principal = self.caller.principal_of(new.principal)?;
        let created = self.runner.create_session(NewSession { tenant, by, principal, ..new }).await;
        let row = created.map_err(|error| {
            let is_about_id = matches!(error, RunnerError::RunOfAnotherSession { .. });
            let error = ServiceError::of_named_agent(error);
            if is_about_id { error.of_field("/id") } else { error }
        })?;
        Ok(self.found_session(row))
    }

    /// A session of the tenant.
    pub async fn session(&self, id: &str) -> Result<TenantSession, ServiceError> {
        let session = self.session_even_if_deleted(id).await?;
        match session.row.deleted_at {
            None => Ok(session),
            Some(at) => Err(RunnerError::SessionDeleted { session: session.row.id, at }.into()),
        }
    }

    /// A session of the tenant, or the row of one that was deleted.
    pub async fn session_even_if_deleted(&self, id: &str) -> Result<TenantSession, ServiceError> {
        let row = self.session_row(id).await?.ok_or_else(|| ServiceError::not_found("session", id))?;
        Ok(self.found_session(row))
    }

    /// Refuses a session that was deleted. There may be no such session.
    pub async fn require_not_deleted(&self, id: &SessionId) -> Result<(), ServiceError> {
        Ok(self.runner.check_session_not_deleted(&self.caller.tenant, id).await?)
    }

    /// When a session expires: its next run begins afresh then. `None` for never.
    pub fn session_expires_at(&self, row: &SessionRow) -> Option<Timestamp> {
        self.runner.session_expires_at(row)
    }

    /// The row of a session of the tenant, even if the session was deleted.
    pub async fn session_row(&self, id: &str) -> Result<Option<SessionRow>, ServiceError> {
        Ok(self.runner.session(&self.caller.tenant, &id.into()).await?)
    }

    /// Sessions of the tenant, newest first.
    pub async fn sessions(&self, filter: SessionFilter) -> Result<Vec<SessionRow>, ServiceError> {
        let tenant = self.caller.tenant.clone();
        Ok(self.runner.sessions(&SessionFilter { tenant, ..filter }).await?)
    }

    fn found_session(&self, row: SessionRow) -> TenantSession {
        TenantSession { runner: self.runner.clone(), caller: self.caller.clone(), row }
    }
}

impl TenantSession {
    /// Changes title and settings, if the session is at the version that the client saw, where one is given.
    pub async fn change(&self, change: SessionChange, seen: Option<u64>) -> Result<Self, ServiceError> {
        self.require_same_principal()?;
        let (runner, caller) = (self.runner.clone(), self.caller.clone());
        let row = runner.change_session(&caller.tenant, &self.row.id, change, seen).await?;
        Ok(Self { runner, caller, row })
    }

    /// Deletes the session and the content of its runs, if it is at the version that the client saw, where one is given.
    pub async fn delete(&self, seen: Option<u64>) -> Result<(), ServiceError> {
        self.require_same_principal()?;
        Ok(self.runner.delete_session(&self.caller.tenant, &self.row.id, &self.caller.name, seen).await?)
    }

    /// Refuses a new run of the session's agent if this process does not have the agent.
    pub fn require_agent(&self) -> Result<(), ServiceError> {
        Ok(self.runner.agent(&self.row.agent).map(drop)?)
    }

    /// Compacts its conversation: starts a run for it, with this id, if the session is at the version that the client
    /// saw, where one is given.
    pub async fn compact(
        &self,
        seen: Option<u64>,
        keep_tokens: Option<u64>,
        id: Option<RunId>,
        trace: Option<Trace>,
    ) -> Result<Execution, ServiceError> {
        self.require_same_principal()?;
        let (tenant, by) = (self.caller.tenant.clone(), Some(self.caller.name.as_ref().to_owned()));
        let session = self.row.id.clone();
        let compaction = SessionCompaction { tenant, session, session_version: seen, keep_tokens, by, id, trace };
        Ok(self.runner.compact(compaction).await?)
    }

    /// A page of the messages of its runs, oldest first: at most `limit` from this index on.
    pub async fn messages(&self, from: usize, limit: usize) -> Result<Vec<SessionMessage>, ServiceError> {
        Ok(self.runner.session_messages_page(&self.caller.tenant, &self.row.id, from, limit).await?)
    }
}
