//! Management of grants: create grants before any call, list and revoke them.

use jiff::Timestamp;
use serde_json::{Map, Value};
use toolgate_core::id::{AgentName, GrantId, Principal, SessionId, Tenant};
use toolgate_core::policy::Condition;
use toolgate_core::run::{Budget, Channel};
use toolgate_core::tool::{Arguments, Problem, Tool, summary, summary_of_any};
use toolgate_driver::DriveError;
use toolgate_ports::{Grant, GrantFilter, InputFindings, Revoked};

use super::{AgentRunner, RunnerError};

/// A grant for future calls.
#[derive(Clone, Debug)]
pub struct NewGrant {
    /// The agent whose calls it covers.
    pub agent: AgentName,
    /// The tool, by the name that the model sees. The grant is bound to its current definition.
    pub tool: String,
    /// The only conversation in which it is valid; `None` for all.
    pub session: Option<SessionId>,
    /// The principal of the calls; `None` covers only calls without a principal.
    pub principal: Option<Principal>,
    /// The only arguments it covers; `None` for any.
    pub arguments: Option<Map<String, Value>>,
    /// The condition that covered calls meet, in the language of policies; `None` without one.
    pub when: Option<String>,
    pub reason: Option<String>,
    /// The expiry time; `None` means until it is revoked.
    pub expires_at: Option<Timestamp>,
}

impl AgentRunner {
    /// Allows calls of a tool without approval from now on, in runs of that tenant. Calls that the policy denies stay
    /// denied.
    pub async fn grant(
        &self,
        new: NewGrant,
        tenant: Tenant,
        by: impl Into<String>,
        via: Channel,
    ) -> Result<Grant, RunnerError> {
        // Its arguments and reason would stay after the deletion of everything else of the session.
        if let Some(session) = &new.session {
            self.check_session_not_deleted(&tenant, session).await?;
        }
        let tools = self.tools(&new.agent, None).await?;
        let Some(tool) = tools.get(&new.tool) else {
            return Err(RunnerError::NoSuchTool { agent: new.agent, tool: new.tool });
        };
        if let Some(arguments) = &new.arguments {
            self.fits(tool, arguments).await?;
        }
        if let Some(when) = &new.when {
            if new.arguments.is_some() {
                let reason = "a grant has `arguments` or a condition, not both".to_owned();
                return Err(RunnerError::UnusableCondition(reason));
            }
            Condition::for_grant(when).map_err(|error| RunnerError::UnusableCondition(error.to_string()))?;
        }
        let arguments = new.arguments.map(Arguments::Object);
        let grant = Grant {
            id: format!("grant_{}", self.inner.ids.trace_id()).into(),
            session: new.session,
            tenant,
            agent: new.agent,
            principal: new.principal,
            tool: tool.name.clone(),
            origin: tool.origin.clone(),
            definition: tool.hash.clone(),
            summary: match &arguments {
                Some(these) => summary(&tool.origin, these),
                None => summary_of_any(&tool.origin),
            },
            arguments: arguments.map(|arguments| arguments.hash()),
            when: new.when,
            asked_by: None,
            by: by.into(),
            via,
            reason: new.reason,
            given_with: None,
            created_at: self.now(),
            expires_at: new.expires_at,
            revoked: None,
        };
        let approvals = self.inner.ports.approvals.clone();
        let unit = async move { approvals.grant(&grant).await.map(|()| grant) };
        Ok(self.to_completion(unit).await?.map_err(DriveError::from)?)
    }

    /// Grants, newest first.
    pub async fn grants(&self, filter: &GrantFilter) -> Result<Vec<Grant>, RunnerError> {
        Ok(self.inner.ports.approvals.grants(filter, self.now()).await.map_err(DriveError::from)?)
    }

    /// Revokes a grant. Calls that rely on it and were not sent yet require approval again. `None` if there is no such
    /// grant; a revoked grant stays unchanged.
    pub async fn revoke(&self, grant: &GrantId, by: impl Into<String>) -> Result<Option<Grant>, RunnerError> {
        let revoked = Revoked { at: self.now(), by: by.into() };
        let (approvals, grant) = (self.inner.ports.approvals.clone(), grant.clone());
        // A cache in front of the store must drop its entries once the store has the revocation.
        let unit = async move { approvals.revoke(&grant, &revoked).await };
        Ok(self.to_completion(unit).await?.map_err(DriveError::from)?)
    }

    /// Validates the arguments: invalid ones would never match a call.
    async fn fits(&self, tool: &Tool, arguments: &Map<String, Value>) -> Result<(), RunnerError> {
        match self.inner.ports.check_arguments(tool, arguments, &Budget::default()).await {
            InputFindings::Valid => Ok(()),
            InputFindings::Invalid(problems) => {
                let problems = Problem::feedback("no call can have these arguments:", &problems).replace('\n', " ");
                Err(RunnerError::InvalidArguments { tool: tool.name.to_string(), problems })
            }
        }
    }
}
