//! Approvals that were given before: asked in one batch, before each turn.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::core::id::SessionId;
use crate::core::tool::ToolName;

/// What an approval stands for. A tool whose definition changed is another tool, and is not covered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ApprovalKey {
    /// The conversation it holds in.
    pub session: SessionId,
    /// The name the model sees.
    pub tool: ToolName,
    /// The hash of the tool's definition.
    pub hash: String,
}

/// A standing approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What it covers.
    pub key: ApprovalKey,
    /// Who gave it.
    pub by: String,
}

/// The memory of approvals. Losing it costs questions, never safety: what is not found is asked.
#[async_trait]
pub trait ApprovalCache: Send + Sync {
    /// For each key, in order, whether a grant covers it. One call a turn.
    async fn granted(&self, keys: &[ApprovalKey]) -> Result<Vec<bool>, StoreError>;

    /// Remembers a grant. Granting twice is granting once.
    async fn grant(&self, grant: &Grant) -> Result<(), StoreError>;
}
