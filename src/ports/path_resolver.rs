//! Links of paths, for policies that say where a tool may read and write.

use async_trait::async_trait;

use crate::core::id::ServerId;
use crate::core::policy::Links;

/// Resolves the links of paths as a server sees them.
#[async_trait]
pub trait PathResolver: Send + Sync {
    /// Where the links of absolute paths lead for the tools of a server. A path that does not exist yet is resolved as far as its
    /// folders do. A server whose files this process cannot see has [`Links::Unresolvable`] paths.
    async fn resolve(&self, server: &ServerId, paths: &[String]) -> Links;
}
