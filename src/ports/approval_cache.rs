//! Approvals that stand: looked up in one batch before each turn, and once more before a call is sent on the strength of one.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::core::id::{AgentName, CallId, GrantId, Principal, RunId, SessionId, Tenant};
use crate::core::run::{Channel, Granted};
use crate::core::tool::{Origin, ToolName};

/// A standing approval: later calls of a tool run without a person, as long as the tool's definition stays what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its id. The same decision makes the same grant, however often it is written.
    pub id: GrantId,
    /// The only conversation it holds in; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Whose runs it holds in.
    #[serde(default, skip_serializing_if = "Tenant::is_default")]
    pub tenant: Tenant,
    /// The agent whose calls it covers.
    pub agent: AgentName,
    /// On whose behalf the calls are made; `None` covers those that nobody is named for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The name the model sees.
    pub tool: ToolName,
    /// Who runs it.
    pub origin: Origin,
    /// Hash of the tool's definition. A tool whose definition changed is another tool, and is not covered.
    pub definition: String,
    /// Hash of the only arguments it covers; `None` if it covers any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The call that was approved, or the tool, in one line.
    pub summary: String,
    /// Who gave it.
    pub by: String,
    /// Where they did.
    pub via: Channel,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The call it was given with; `None` if it was given for calls that are to come.
    #[serde(flatten)]
    pub given_with: Option<GivenWith>,
    /// When.
    pub created_at: Timestamp,
    /// Until when it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was taken back, and by whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revoked>,
}

/// The call that was approved for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenWith {
    /// Its run.
    pub run: RunId,
    /// The call.
    pub call: CallId,
}

/// That a grant was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: String,
}

/// Whose calls are looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Asker {
    /// Whose runs they are.
    pub tenant: Tenant,
    /// The conversation.
    pub session: SessionId,
    /// The agent.
    pub agent: AgentName,
    /// On whose behalf it acts.
    pub principal: Option<Principal>,
}

/// A tool that is looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Guarded {
    /// The name the model sees.
    pub tool: ToolName,
    /// Hash of its definition.
    pub definition: String,
}

/// Which grants to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantFilter {
    /// This one only.
    pub id: Option<GrantId>,
    /// Of this tenant only.
    pub tenant: Option<Tenant>,
    /// Of this agent only.
    pub agent: Option<AgentName>,
    /// Of this session, and those that hold in all.
    pub session: Option<SessionId>,
    /// For the tool that the model sees under this name only.
    pub tool: Option<String>,
    /// Whether those that no longer hold are listed too.
    pub ended: bool,
    /// Only those that come after this one in the list.
    pub after: Option<GrantId>,
    /// At most so many; `None` for all.
    pub limit: Option<usize>,
}

/// The memory of approvals. Losing it costs questions, never safety: what is not found is asked.
#[async_trait]
pub trait ApprovalCache: Send + Sync {
    /// The grants that hold now and cover these tools, whatever the arguments. One call a turn.
    async fn granted(&self, asker: &Asker, tools: &[Guarded], now: Timestamp) -> Result<Vec<Granted>, StoreError>;

    /// For each grant, in order, whether it holds now. One call before a tier with granted calls is sent.
    async fn hold(&self, grants: &[GrantId], now: Timestamp) -> Result<Vec<bool>, StoreError>;

    /// Remembers a grant. Granting twice is granting once, and does not bring back what was revoked.
    async fn grant(&self, grant: &Grant) -> Result<(), StoreError>;

    /// Grants, newest first. None after a grant that there is not.
    async fn grants(&self, filter: &GrantFilter, now: Timestamp) -> Result<Vec<Grant>, StoreError>;

    /// Takes a grant back. `None` if there is none of that id; one that was taken back before stays as it is.
    async fn revoke(&self, grant: &GrantId, revoked: &Revoked) -> Result<Option<Grant>, StoreError>;
}

impl Grant {
    /// Whether it holds at that time.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && self.expires_at.is_none_or(|until| now < until)
    }

    /// Whether it is about calls of theirs.
    pub fn is_of(&self, asker: &Asker) -> bool {
        self.tenant == asker.tenant
            && self.agent == asker.agent
            && self.principal == asker.principal
            && self.session.as_ref().is_none_or(|session| *session == asker.session)
    }

    /// What a run is told of it.
    pub fn granted(&self, tool: &ToolName) -> Granted {
        Granted {
            tool: tool.clone(),
            grant: self.id.clone(),
            arguments: self.arguments.clone(),
            expires_at: self.expires_at,
        }
    }
}

impl GrantFilter {
    /// Whether a grant is to be listed, wherever its page is.
    pub fn admits(&self, grant: &Grant, now: Timestamp) -> bool {
        let session = |wanted| grant.session.as_ref().is_none_or(|session| session == wanted);
        self.id.as_ref().is_none_or(|id| *id == grant.id)
            && self.tenant.as_ref().is_none_or(|tenant| *tenant == grant.tenant)
            && self.agent.as_ref().is_none_or(|agent| *agent == grant.agent)
            && self.session.as_ref().is_none_or(session)
            && self.tool.as_ref().is_none_or(|tool| tool == grant.tool.as_str())
            && (self.ended || grant.holds(now))
    }
}
