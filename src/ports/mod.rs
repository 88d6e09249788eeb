//! Ports: the loop's interfaces to the outside, one small trait per file. Adapters implement them, the driver calls
//! them, and every one has a strict fake in `tests/`.

mod access_keys;
mod approval_cache;
mod blob_store;
mod clock;
mod context_builder;
mod event_log;
mod event_sink;
mod feedback_store;
mod file_store;
mod governor;
mod idempotency_store;
mod mcp_servers;
mod model;
mod path_resolver;
mod quotas;
mod recent;
mod request_meter;
mod rule_counters;
mod run_store;
mod session_store;
mod span_marks;
mod store_error;
mod stream_tickets;
mod validators;
mod webhooks;

pub use access_keys::{AccessKey, AccessKeys, KeyFilter, KeyHash};
pub use approval_cache::{ApprovalCache, ApprovedCall, Grant, GrantContext, GrantFilter, GuardedTool, Revoked};
pub use blob_store::{BlobError, BlobInfo, BlobStore, MAX_BLOB_BYTES, check_blob_size};
pub use clock::{Clock, Ids};
pub use context_builder::{Context, ContextBuilder};
pub use event_log::{EventLog, LogPage, LoggedEvent};
pub use event_sink::{EventSink, Update};
pub use feedback_store::{Annotator, AnnotatorKind, Feedback, FeedbackStore, MAX_FEEDBACK};
pub use file_store::{FileError, FileFilter, FileQuota, FileStore, StoredFile};
pub use governor::{Governor, PlannedCall};
pub use idempotency_store::{
    IdempotencyRecord, IdempotencyStore, IdempotentRequest, MAX_REPLY_BYTES, RequestState, StoredResponse,
};
pub use mcp_servers::{ElicitationHandler, McpCall, McpServers, McpTask, TaskAction};
pub use model::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest, ToolFit};
pub use path_resolver::PathResolver;
pub use quotas::{
    DayUsage, DayUsages, Quota, QuotaExceeded, QuotaOwner, QuotaUnit, Quotas, UsageCounters, counted_caller,
    end_of_day, quota_day,
};
pub use recent::Recent;
pub use request_meter::{AnsweredRequest, RequestMeter};
pub use rule_counters::{CountAnswer, CountedUse, RuleCounter, RuleCounters};
pub use run_store::{
    Append, AppendError, Claim, ListOrder, MetadataValue, PendingKind, Purged, RunFilter, RunPosition, RunRow, RunStore,
};
pub use session_store::{
    ChainLink, SessionClaim, SessionFilter, SessionHead, SessionLimits, SessionRow, SessionRuntime, SessionSaved,
    SessionSettings, SessionStore,
};
pub use span_marks::{ClaimedSpans, SPAN_LEASE, SpanClaim, SpanMark};
pub use store_error::StoreError;
pub use stream_tickets::{StreamTicket, StreamTickets, TicketedStream};
pub use validators::{InputFindings, OutputValidator, ToolInputValidator};
pub use webhooks::{
    Announcement, Attempt, DeliveryFilter, DeliveryResult, DeliveryState, Disabled, DueEndpoint, EndpointFilter,
    EndpointHealth, EndpointRuns, EndpointSaved, EndpointSecrets, UnannouncedRun, WebhookDeliveries, WebhookDelivery,
    WebhookEndpoint, WebhookEndpoints, WebhookKind, WebhookOutbox, WebhookSecret, Webhooks,
};
