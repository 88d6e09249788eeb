//! Browser interface: shows an authorization page to a person or a substitute.

use std::fmt::Debug;

use async_trait::async_trait;

/// Shows an authorization page and waits for its redirect.
#[async_trait]
pub trait Browser: Debug + Send + Sync {
    /// The redirect address for authorization servers.
    fn redirect_uri(&self) -> String;

    /// Shows the page. Returns the complete address of the redirect, or the reason for its absence.
    async fn visit(&self, page: &str) -> Result<String, String>;
}
