//! The approvals that stand, for people: listed and taken back.

use super::{AgentRunner, RunnerError};
use crate::core::id::GrantId;
use crate::driver::DriveError;
use crate::ports::{Grant, GrantFilter, Revoked};

impl AgentRunner {
    /// Standing approvals, newest first.
    pub async fn grants(&self, filter: &GrantFilter) -> Result<Vec<Grant>, RunnerError> {
        let ports = &self.inner.ports;
        Ok(ports.approvals.grants(filter, ports.clock.now()).await.map_err(DriveError::from)?)
    }

    /// Takes a standing approval back. Calls that rest on it and were not sent yet are asked about again. `None` if there
    /// is no such approval; one that was taken back before stays as it is.
    pub async fn revoke(&self, grant: &GrantId, by: impl Into<String>) -> Result<Option<Grant>, RunnerError> {
        let ports = &self.inner.ports;
        let revoked = Revoked { at: ports.clock.now(), by: by.into() };
        Ok(ports.approvals.revoke(grant, &revoked).await.map_err(DriveError::from)?)
    }
}
