//! Approval cache: the store of grants. It is queried in one batch before each turn, and again before a call that a
//! grant authorizes is sent.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_core::id::{AgentName, CallId, GrantId, Principal, RunId, SessionId, Tenant};
use toolgate_core::run::{AskedBy, Channel, ToolGrant};
use toolgate_core::tool::{Origin, ToolName};

use super::StoreError;

/// A grant (saved approval): later calls of a tool run without a question, as long as the tool's definition is
/// unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its id. The same decision has the same id, however often it is written.
    pub id: GrantId,
    /// The only session it applies to; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The tenant whose runs it applies to.
    #[serde(default, skip_serializing_if = "Tenant::is_default")]
    pub tenant: Tenant,
    /// The agent whose calls it covers.
    pub agent: AgentName,
    /// The principal of the calls; `None` covers calls without a principal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// The name the model sees.
    pub tool: ToolName,
    pub origin: Origin,
    /// Hash of the tool's definition. A tool with a changed definition is not covered.
    pub definition: String,
    /// Hash of the only arguments it covers; `None` if it covers any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The condition that covered calls meet; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What asked about the approved call; `None` if it was given for future calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<AskedBy>,
    /// A summary of the approved call, or of the tool, in one line.
    pub summary: String,
    /// The person who gave it.
    pub by: String,
    pub via: Channel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The call it was given with; `None` if it was given for future calls.
    #[serde(flatten)]
    pub given_with: Option<ApprovedCall>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revoked>,
}

impl Grant {
    /// Deletes what it quotes of a call: the summary and the reason. It stays valid.
    pub fn blank(&mut self) {
        self.summary = self.tool.to_string();
        self.reason = None;
    }
}

/// The call whose approval created the grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedCall {
    pub run: RunId,
    pub call: CallId,
}

/// A revocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// When it happened.
    pub at: Timestamp,
    /// The person who revoked it.
    pub by: String,
}

/// The run whose grants are looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GrantContext {
    pub tenant: Tenant,
    pub session: SessionId,
    pub agent: AgentName,
    /// The principal on whose behalf it acts.
    pub principal: Option<Principal>,
}

/// A tool whose grants are looked up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GuardedTool {
    /// The name the model sees.
    pub tool: ToolName,
    /// Hash of its definition.
    pub definition: String,
}

/// A filter of grants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantFilter {
    /// Only this one.
    pub id: Option<GrantId>,
    /// Only of this tenant.
    pub tenant: Option<Tenant>,
    /// Only of this agent.
    pub agent: Option<AgentName>,
    /// Only those that apply to this session, including those for all sessions.
    pub session: Option<SessionId>,
    /// Only for the tool that the model sees under this name.
    pub tool: Option<String>,
    /// Whether ended grants are listed too.
    pub ended: bool,
    /// Only those after this one in the list.
    pub after: Option<GrantId>,
    /// The maximum number; `None` for all.
    pub limit: Option<usize>,
}

/// The store of grants. A loss costs questions, never safety: a call without a stored grant requires approval.
#[async_trait]
pub trait ApprovalCache: Send + Sync {
    /// The grants that hold now and cover these tools, for any arguments. Called once a turn.
    async fn granted(
        &self,
        context: &GrantContext,
        tools: &[GuardedTool],
        now: Timestamp,
    ) -> Result<Vec<ToolGrant>, StoreError>;

    /// For each grant, in order, whether it holds now. Called once before a tier with granted calls is sent.
    async fn hold(&self, grants: &[GrantId], now: Timestamp) -> Result<Vec<bool>, StoreError>;

    /// Stores a grant. A repetition changes nothing, and does not restore a revoked grant.
    async fn grant(&self, grant: &Grant) -> Result<(), StoreError>;

    /// Grants, newest first. Empty after a grant that does not exist.
    async fn grants(&self, filter: &GrantFilter, now: Timestamp) -> Result<Vec<Grant>, StoreError>;

    /// Revokes a grant. `None` if there is no such grant; an earlier revocation stays as it is.
    async fn revoke(&self, grant: &GrantId, revoked: &Revoked) -> Result<Option<Grant>, StoreError>;
}

impl Grant {
    /// Whether it holds at that time.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && self.expires_at.is_none_or(|until| now < until)
    }

    /// Whether it applies to calls of that run.
    pub fn is_of(&self, context: &GrantContext) -> bool {
        self.tenant == context.tenant
            && self.agent == context.agent
            && self.principal == context.principal
            && self.session.as_ref().is_none_or(|session| *session == context.session)
    }

    /// The form that the run records.
    pub fn granted(&self, tool: &ToolName) -> ToolGrant {
        ToolGrant {
            tool: tool.clone(),
            grant: self.id.clone(),
            arguments: self.arguments.clone(),
            when: self.when.clone(),
            asked_by: self.asked_by.clone(),
            expires_at: self.expires_at,
        }
    }
}

impl GrantFilter {
    /// Whether a grant matches, regardless of the page.
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
