//! Authorization status of one server, as its requests find it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolgate_core::id::ServerId;
use toolgate_core::tool::{AuthorizationStatus, ServerAuthorization};

use super::fault::AccessError;

/// The latest authorization status of a server. It outlives connections; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuthorizationRecord(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    /// The status; `None` until a request shows one.
    latest: Option<Latest>,
    /// How often the status changed.
    changes: u64,
}

#[derive(Debug)]
struct Latest {
    status: AuthorizationStatus,
    reason: Option<String>,
    /// Whether only a tool call can show that it is over, because the denial concerns calls.
    of_calls: bool,
}

/// The kind of an HTTP request to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// `tools/call`.
    Call,
    Other,
}

impl AuthorizationRecord {
    /// The latest status.
    pub(crate) fn latest_of(&self, server: &ServerId) -> Option<ServerAuthorization> {
        let recorded = self.recorded();
        let Latest { status, reason, .. } = recorded.latest.as_ref()?;
        Some(ServerAuthorization { server: server.clone(), status: *status, reason: reason.clone() })
    }

    /// How often the status changed, whatever its reason.
    pub(crate) fn changes(&self) -> u64 {
        self.recorded().changes
    }

    /// Records that the server accepted a token.
    pub(crate) fn accepted(&self, request: RequestKind) {
        self.succeeded(
            request,
            Some(Latest { status: AuthorizationStatus::Authorized, reason: None, of_calls: false }),
        );
    }

    /// Records that the server accepted a request without a token, which ends an earlier refusal.
    pub(crate) fn accepted_without_token(&self, request: RequestKind) {
        self.succeeded(request, None);
    }

    /// Records why a request has no access.
    pub(crate) fn denied(&self, error: &AccessError) {
        let (status, of_calls) = (error.status(), error.is_about_scopes());
        self.recorded().set(Some(Latest { status, reason: Some(error.to_string()), of_calls }));
    }

    /// Records that a server without OAuth settings answered HTTP 401.
    pub(crate) fn unauthorized(&self, request: RequestKind, reason: &str) {
        let (status, of_calls) = (AuthorizationStatus::Required, request == RequestKind::Call);
        self.recorded().set(Some(Latest { status, reason: Some(reason.to_owned()), of_calls }));
    }

    fn succeeded(&self, request: RequestKind, latest: Option<Latest>) {
        let mut recorded = self.recorded();
        let stays = recorded.latest.as_ref().is_some_and(|before| before.of_calls) && request != RequestKind::Call;
        if !stays {
            recorded.set(latest);
        }
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorded {
    fn set(&mut self, latest: Option<Latest>) {
        let status_of = |latest: &Option<Latest>| latest.as_ref().map(|latest| latest.status);
        self.changes += u64::from(status_of(&self.latest) != status_of(&latest));
        self.latest = latest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_of(record: &AuthorizationRecord) -> Option<AuthorizationStatus> {
        record.latest_of(&"crm".into()).map(|authorization| authorization.status)
    }

    #[test]
    fn missing_scopes_of_a_call_outlast_a_request_of_another_kind() {
        let record = AuthorizationRecord::default();
        record.denied(&AccessError::Insufficient(String::new()));
        record.accepted(RequestKind::Other);
        assert_eq!(status_of(&record), Some(AuthorizationStatus::Failed));
        record.accepted(RequestKind::Call);
        assert_eq!(status_of(&record), Some(AuthorizationStatus::Authorized));

        record.denied(&AccessError::Distrusted);
        record.accepted(RequestKind::Other);
        assert_eq!(status_of(&record), Some(AuthorizationStatus::Authorized), "the token was the problem");
    }

    #[test]
    fn a_request_that_succeeds_without_a_token_ends_a_refusal_of_its_kind() {
        let record = AuthorizationRecord::default();
        record.accepted_without_token(RequestKind::Other);
        assert_eq!((status_of(&record), record.changes()), (None, 0), "most servers require no token");
        record.unauthorized(RequestKind::Call, "it answered HTTP 401");
        record.accepted_without_token(RequestKind::Other);
        assert_eq!(status_of(&record), Some(AuthorizationStatus::Required));
        record.accepted_without_token(RequestKind::Call);
        assert_eq!(status_of(&record), None);
    }

    #[test]
    fn only_a_change_of_the_status_counts_and_not_another_reason() {
        let record = AuthorizationRecord::default();
        let failed = |why: &str| AccessError::Failed(why.into());
        record.denied(&failed("connection refused"));
        record.denied(&failed("connection reset"));
        assert_eq!(record.changes(), 1);
        assert!(record.latest_of(&"crm".into()).and_then(|now| now.reason).is_some_and(|why| why.contains("reset")));
    }
}
