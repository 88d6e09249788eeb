//! Deletion of a session: it is marked as deleted, so that no run continues it, and then its grants are revoked and the
//! content of its runs is deleted. A deletion that was interrupted is finished by the next one.

use toolgate_core::id::{SessionId, Tenant};
use toolgate_core::run::Status;
use toolgate_driver::DriveError;
use toolgate_ports::{GrantFilter, RunFilter, SessionHead, SessionRow, SessionSaved};

use super::record::{WRITE_ATTEMPTS, check_version};
use crate::{AgentRunner, RunnerError};

impl AgentRunner {
    /// Permanently deletes the content of a session without a live run: title, metadata, and its runs, as
    /// [`purge`](Self::purge) does. Grants for the session are revoked in the name `by`. The row stays, so that the id is
    /// not used again. Deleting twice changes nothing, and finishes a deletion that was interrupted. `seen` is the
    /// version that the session must have, where one is given.
    pub async fn delete_session(
        &self,
        tenant: &Tenant,
        id: &SessionId,
        by: &str,
        seen: Option<u64>,
    ) -> Result<(), RunnerError> {
        let (runner, tenant, id, by) = (self.clone(), tenant.clone(), id.clone(), by.to_owned());
        let unit = async move {
            runner.mark_deleted(&tenant, &id, seen).await?;
            runner.revoke_grants_of(&tenant, &id, &by).await?;
            runner.purge_runs_of(&tenant, &id).await
        };
        self.to_completion(unit).await?
    }

    async fn mark_deleted(&self, tenant: &Tenant, id: &SessionId, seen: Option<u64>) -> Result<(), RunnerError> {
        let mut seen = seen;
        for _ in 0..WRITE_ATTEMPTS {
            let row = self.session(tenant, id).await?.ok_or_else(|| RunnerError::NoSuchSession(id.clone()))?;
            if row.deleted_at.is_some() {
                return Ok(());
            }
            check_version(&row, seen)?;
            // A head that is over its deadline is ended first.
            self.ended_head(&row).await?;
            self.check_no_live_call(tenant, id).await?;
            let now = self.inner.ports.clock.now();
            if row.version == 0 {
                // The session of a run that was started without one: the row records that its id is used.
                let saved = self.inner.ports.store.runs.save_session(0, &row).await.map_err(DriveError::from)?;
                seen = seen.map(|_| if saved == SessionSaved::Saved { 1 } else { 0 });
                continue;
            }
            let marked = SessionRow {
                title: String::new(),
                settings: Default::default(),
                updated_at: now,
                deleted_at: Some(now),
                ..row.clone()
            };
            let saved = self.inner.ports.store.runs.save_session(row.version, &marked).await;
            if saved.map_err(DriveError::from)? == SessionSaved::Saved {
                return Ok(());
            }
        }
        Err(RunnerError::SessionChanging(id.clone()))
    }

    /// A tool call with the session's id is no part of its conversation, but it is deleted with it.
    async fn check_no_live_call(&self, tenant: &Tenant, id: &SessionId) -> Result<(), RunnerError> {
        for status in [Status::Running, Status::Pending] {
            let filter = RunFilter { statuses: vec![status], limit: 1, ..runs_of(tenant, id) };
            if let Some(live) = self.list(&filter).await?.pop() {
                let head = SessionHead::from_run(live);
                return Err(RunnerError::SessionBusy { session: id.clone(), head: head.into() });
            }
        }
        Ok(())
    }

    async fn revoke_grants_of(&self, tenant: &Tenant, id: &SessionId, by: &str) -> Result<(), RunnerError> {
        let filter = GrantFilter { tenant: Some(tenant.clone()), session: Some(id.clone()), ..GrantFilter::default() };
        let grants = self.grants(&filter).await?;
        for grant in grants.iter().filter(|grant| grant.session.as_ref() == Some(id)) {
            self.revoke(&grant.id, by).await?;
        }
        Ok(())
    }

    async fn purge_runs_of(&self, tenant: &Tenant, id: &SessionId) -> Result<(), RunnerError> {
        loop {
            // A deleted run is in no list.
            let page = self.list(&runs_of(tenant, id)).await?;
            if page.is_empty() {
                return Ok(());
            }
            for row in page {
                self.purge(&row.id).await?;
            }
        }
    }
}

fn runs_of(tenant: &Tenant, id: &SessionId) -> RunFilter {
    RunFilter { session: Some(id.clone()), tenant: Some(tenant.clone()), ..RunFilter::default() }
}
