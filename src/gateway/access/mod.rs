//! Who is let in, and what they may do.
//!
//! Every request has a [`Caller`] before a handler sees it: from a [`Door`] that knows the credentials it brings, from the
//! application that the router is nested in, or the anonymous one where the operator wants that. Why credentials do not
//! hold is nobody's business but the log's.

mod caller;

use std::sync::Arc;

use async_trait::async_trait;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;

pub use caller::{Caller, Scope, Scopes};

use super::problem::Problem;
use super::state::Gateway;
use crate::core::error::ErrorCode;

/// A kind of credentials.
#[async_trait]
pub trait Door: Send + Sync {
    /// Who shows these credentials. `None` if it is not for this door to say: they are of another kind, or there are none.
    ///
    /// # Errors
    /// A problem if they are of this kind and do not hold.
    async fn opened_by(&self, request: &Parts) -> Result<Option<Caller>, Problem>;
}

/// Every way in.
pub(super) struct Access {
    pub(super) doors: Vec<Arc<dyn Door>>,
    /// Who somebody is that shows nothing.
    pub(super) anonymous: Option<Caller>,
}

impl Access {
    async fn caller(&self, request: &Parts) -> Result<Caller, Problem> {
        if let Some(caller) = request.extensions.get::<Caller>() {
            return Ok(caller.clone());
        }
        for door in &self.doors {
            if let Some(caller) = door.opened_by(request).await? {
                return Ok(caller);
            }
        }
        let shows_something = request.headers.contains_key(axum::http::header::AUTHORIZATION);
        match &self.anonymous {
            Some(anonymous) if !shows_something => Ok(anonymous.clone()),
            _ => Err(Problem::new(ErrorCode::Unauthorized, "show a key: `Authorization: Bearer tg_…`")),
        }
    }
}

/// Lets whoever asks in, or refuses them.
pub(super) async fn let_in(State(gateway): State<Gateway>, request: Request, next: Next) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let caller = gateway.access().caller(&parts).await?;
    parts.extensions.insert(caller.clone());
    let mut response = next.run(Request::from_parts(parts, body)).await;
    // For whoever tells of the request.
    response.extensions_mut().insert(caller);
    Ok(response)
}
