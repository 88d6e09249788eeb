//! Observers of a connection's messages, handed to the HTTP client as one value.

use super::elsewhere::Elsewhere;
use super::replies::Replies;
use super::resumable::Resumable;
use super::session_stream::SessionStream;
use crate::auth::AuthorizationRecord;
use crate::headers::ToolHeaders;
use crate::task_only::TaskOnly;
use crate::traffic::Traffic;
use crate::transport::Requests;

/// Observations of one connection's messages on their way to the SDK. Clones share the same observations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The header annotations of its tools.
    pub(super) tools: ToolHeaders,
    /// Its tools that can be called as tasks only.
    pub(super) task_only: TaskOnly,
    /// The requests in flight.
    pub(super) requests: Requests,
    /// Its messages besides answers.
    pub(super) traffic: Traffic,
    /// The authorization status of its server.
    pub(super) authorization: AuthorizationRecord,
    /// The server's requests that wait for replies.
    pub(super) replies: Replies,
    /// Its streams that can be resumed.
    pub(super) resumable: Resumable,
    /// The answers that arrive on the response of another request.
    pub(super) elsewhere: Elsewhere,
    /// Whether the stream of its session is open.
    pub(super) session_stream: SessionStream,
}

impl Seen {
    /// Collects the observations in these values.
    pub(crate) fn with(
        tools: ToolHeaders,
        task_only: TaskOnly,
        requests: Requests,
        traffic: Traffic,
        authorization: AuthorizationRecord,
    ) -> Self {
        Self { tools, task_only, requests, traffic, authorization, ..Self::default() }
    }
}
