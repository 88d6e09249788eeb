//! Grants of one tenant.

use std::time::Duration;

use toolgate_core::id::{GrantId, Principal, SessionId};
use toolgate_ports::{Grant, GrantFilter};
use toolgate_runner::{NewGrant, RunnerError};

use super::authorize::Caller;
use super::error::ServiceError;
use super::name_rules::require_name;
use super::runs::TenantRunner;

/// How long a grant is valid by default.
const DEFAULT_VALIDITY: Duration = Duration::from_secs(90 * 24 * 60 * 60);

impl TenantRunner {
    /// Grants of the tenant, newest first.
    pub async fn grants(&self, filter: GrantFilter) -> Result<Vec<Grant>, ServiceError> {
        let tenant = Some(self.caller.tenant.clone());
        Ok(self.runner.grants(&GrantFilter { tenant, ..filter }).await?)
    }

    /// Creates a grant for runs of the tenant, in the name of the caller. Without a time it expires after 90 days.
    pub async fn grant(&self, new: NewGrant) -> Result<Grant, ServiceError> {
        require_name("/session_id", new.session.as_ref().map(SessionId::as_str))?;
        require_name("/principal", new.principal.as_ref().map(Principal::as_str))?;
        let now = self.now();
        let expires_at = new.expires_at.or_else(|| now.checked_add(DEFAULT_VALIDITY).ok());
        if expires_at.is_some_and(|until| until <= now) {
            return Err(ServiceError::invalid("/expires_at", "this time has passed; give one in the future"));
        }
        let new = NewGrant { expires_at, ..new };
        self.require_others_runs(new.principal.as_ref())?;
        let Caller { tenant, name, .. } = &self.caller;
        let granted = self.runner.grant(new, tenant.clone(), name.as_ref(), self.via).await;
        granted.map_err(|error| {
            let is_about_tool = matches!(error, RunnerError::NoSuchTool { .. });
            let error = ServiceError::of_named_agent(error);
            if is_about_tool { error.of_field("/tool_name") } else { error }
        })
    }

    /// Revokes a grant of the tenant.
    pub async fn revoke(&self, id: &str) -> Result<Grant, ServiceError> {
        let missing = || ServiceError::not_found("grant", id);
        let grant = GrantId::from(id);
        let ours = GrantFilter { id: Some(grant.clone()), ended: true, ..GrantFilter::default() };
        if self.grants(ours).await?.is_empty() {
            return Err(missing());
        }
        self.runner.revoke(&grant, self.caller.name.as_ref()).await?.ok_or_else(missing)
    }
}
