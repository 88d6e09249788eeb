//! What brings a person, or what stands for one, before an authorization page.

use std::fmt::Debug;

use async_trait::async_trait;

/// Shows an authorization page and waits for where it leads back to.
#[async_trait]
pub trait Browser: Debug + Send + Sync {
    /// The address that authorization servers must lead back to.
    fn redirect_uri(&self) -> String;

    /// Shows the page. Answers with the whole address that the browser was led back to, or says why there is none.
    async fn visit(&self, page: &str) -> Result<String, String>;
}
