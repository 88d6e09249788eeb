//! The approvals that stand, for people: given before anything is called, listed, and taken back.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{AgentRunner, RunnerError};
use crate::core::id::{AgentName, GrantId, Principal, SessionId, Tenant};
use crate::core::run::{Budget, Channel};
use crate::core::tool::{Arguments, Problem, Tool, summary, summary_of_any};
use crate::driver::DriveError;
use crate::ports::{Grant, GrantFilter, InputFindings, Revoked};

/// A standing approval for calls that are to come.
#[derive(Clone, Debug)]
pub struct NewGrant {
    /// The agent whose calls it covers.
    pub agent: AgentName,
    /// The tool, by the name the model sees. The grant is bound to its definition as it is now.
    pub tool: String,
    /// The only conversation it holds in; `None` for all.
    pub session: Option<SessionId>,
    /// On whose behalf the calls are made; `None` covers those that nobody is named for.
    pub principal: Option<Principal>,
    /// The only arguments it covers; `None` for any.
    pub arguments: Option<Map<String, Value>>,
    /// Why.
    pub reason: Option<String>,
    /// Until when it holds; `None` until it is taken back.
    pub expires_at: Option<Timestamp>,
}

impl AgentRunner {
    /// Lets calls of a tool run without a person from now on, in runs of that tenant. What the policy denies is denied all the
    /// same.
    pub async fn grant(
        &self,
        new: NewGrant,
        tenant: Tenant,
        by: impl Into<String>,
        via: Channel,
    ) -> Result<Grant, RunnerError> {
        let tools = self.tools(&new.agent).await?;
        let Some(tool) = tools.get(&new.tool) else {
            return Err(RunnerError::NoSuchTool { agent: new.agent, tool: new.tool });
        };
        if let Some(arguments) = &new.arguments {
            self.fits(tool, arguments).await?;
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

    /// Standing approvals, newest first.
    pub async fn grants(&self, filter: &GrantFilter) -> Result<Vec<Grant>, RunnerError> {
        Ok(self.inner.ports.approvals.grants(filter, self.now()).await.map_err(DriveError::from)?)
    }

    /// Takes a standing approval back. Calls that rest on it and were not sent yet are asked about again. `None` if there
    /// is no such approval; one that was taken back before stays as it is.
    pub async fn revoke(&self, grant: &GrantId, by: impl Into<String>) -> Result<Option<Grant>, RunnerError> {
        let revoked = Revoked { at: self.now(), by: by.into() };
        let (approvals, grant) = (self.inner.ports.approvals.clone(), grant.clone());
        // A cache in front of the store has to drop what it holds once the store has the revocation.
        let unit = async move { approvals.revoke(&grant, &revoked).await };
        Ok(self.to_completion(unit).await?.map_err(DriveError::from)?)
    }

    /// Arguments that no call can have would never be met.
    async fn fits(&self, tool: &Tool, arguments: &Map<String, Value>) -> Result<(), RunnerError> {
        match self.inner.ports.inputs.check(tool, arguments, &Budget::default()).await {
            InputFindings::Valid => Ok(()),
            InputFindings::Invalid(problems) => {
                let problems = Problem::feedback("no call can have these arguments:", &problems).replace('\n', " ");
                Err(RunnerError::InvalidArguments { tool: tool.name.to_string(), problems })
            }
        }
    }
}
