//! Path resolver: resolves links, for policies about the paths that a tool may read and write.

use async_trait::async_trait;
use toolgate_core::id::ServerId;
use toolgate_core::policy::Links;

/// Resolves the links of paths from a server's view.
#[async_trait]
pub trait PathResolver: Send + Sync {
    /// The targets of absolute paths for the tools of a server. A path that does not exist is resolved as far as its
    /// folders do. A server whose files this process cannot see has [`Links::Unresolvable`] paths.
    async fn resolve(&self, server: &ServerId, paths: &[String]) -> Links;
}
