//! Service: everything that a surface needs to know about runs, once, without a protocol.
//!
//! A surface (the HTTP gateway, the command line) authenticates its caller, reads a request, and writes a response. What
//! lies between is here: which runs a caller may find and change, approvals and grants, the meaning of a resume, the
//! events of a run with their ids, webhooks, and the background work of a server.
//!
//! Not done here: HTTP, terminals, authentication, opening adapters (`app`), deciding what a run does (`core::run`).

mod answers;
mod approval_id;
mod authorize;
mod decisions;
mod error;
mod event_stream;
mod every_run;
mod field_pointers;
mod grants;
mod inbox;
mod operator;
mod runs;
mod shared;
mod tools;
mod webhooks;
mod worker;

pub use answers::{Answers, GivenResult, Verdict, coverage};
pub use approval_id::ApprovalId;
pub use authorize::{Caller, Scope, Scopes};
pub use decisions::binding_digest;
pub use error::{FieldError, ServiceError};
pub use event_stream::{EventId, FollowSettings, RunEvent, StreamItem, Tail, Until, events_of};
pub use field_pointers::FieldPointers;
pub use inbox::{Approval, ApprovalState, CallContext, Inbox, InboxFilter, InboxItem, UnreadableRun};
pub use operator::Operator;
pub use runs::{TenantRun, TenantRunner};
pub use shared::Service;
pub use webhooks::{
    ConfiguredWebhook, Dispatcher, EndpointChange, NewEndpoint, WebhookConfig, WebhookEgress, WebhookEndpoints,
    WebhookWakeSignal,
};
pub use worker::Worker;
