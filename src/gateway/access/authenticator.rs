//! Authenticator: the port for one kind of credentials.

use async_trait::async_trait;
use axum::http::request::Parts;
use toolgate_service::Caller;

use crate::problem::Problem;

/// An authenticator for one kind of credentials.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// Authenticates a request. `None` if it has credentials of another kind, or none.
    ///
    /// # Errors
    /// A problem if the credentials are of this kind and are not valid.
    async fn authenticate(&self, request: &Parts) -> Result<Option<Caller>, Problem>;
}
