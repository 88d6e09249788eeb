//! Service: everything that a surface needs to know about runs, once, without a protocol.
//!
//! A surface (the HTTP gateway, the command line) authenticates its caller, reads a request, and writes a response. What
//! lies between is here:
//!
//! | file | contents |
//! |---|---|
//! | `service` | [`Service`]: the runner and the settings that surfaces share |
//! | `authorize` | the [`Caller`], its scopes, principals, four eyes |
//! | `runs` | [`TenantRunner`] and [`TenantRun`]: the runs that a caller may find, and what it may do with them |
//! | `sessions` | [`TenantSession`]: the sessions of a tenant |
//! | `new_run`, `input_messages`, `media_url`, `name_rules` | checks of a run that a caller starts |
//! | `tools`, `grants`, `inbox` | tools, grants and approvals of a tenant; `approval_id` names an approval |
//! | `feedback` | feedback on runs of a tenant |
//! | `files`, `file_config` | uploaded files of a tenant, and their use as input |
//! | `answers`, `field_pointers` | the input of a resume, and the places of its errors |
//! | `strict_objects`, `tagged_object` | the reading of objects in requests |
//! | `api_keys`, `stream_tickets` | creation of API keys and of stream tickets |
//! | `event_stream` | the events of a run, with their ids |
//! | `webhooks` | endpoints, deliveries and the dispatcher |
//! | `quotas` | what a caller and its tenant may use in a day, and used |
//! | `worker`, `retention_rule` | background work: recovery, the deadline sweeper, polls of MCP tasks, retention |
//! | `operator` | [`Operator`]: the runs of all tenants, for the command line; its input for runs is in `decisions` |
//! | `error`, `error_reason` | [`ServiceError`], which each surface maps to its own form |
//!
//! Not done here: HTTP, terminals, authentication, opening adapters (`app`), deciding what a run does (`core::run`).

mod answers;
mod api_keys;
mod approval_id;
mod authorize;
mod decisions;
mod error;
mod error_reason;
mod event_stream;
mod feedback;
mod field_pointers;
mod file_config;
mod files;
mod grants;
mod inbox;
mod input_messages;
mod media_url;
mod name_rules;
mod new_run;
mod operator;
mod quotas;
mod retention_rule;
mod runs;
mod service;
mod sessions;
mod stream_tickets;
mod strict_objects;
mod tagged_object;
mod tools;
mod webhooks;
mod worker;

pub use self::service::Service;
pub use answers::{Answers, CoverageView, DecisionKindView, LimitsDescription, NewDecision, ScopeView, coverage};
pub use api_keys::{KEY_PREFIX, NewKey, ROTATION_OVERLAP, RequestedKey, mint, successor, successor_for};
pub use approval_id::ApprovalId;
pub use authorize::{Caller, Scope, Scopes};
pub use decisions::binding_digest;
pub use error::{CurrentState, FieldError, ServiceError};
pub use error_reason::ErrorReason;
pub use event_stream::{
    EventId, EventPage, EventSelection, EventTopic, FollowSettings, RunEvent, StreamItem, Tail, TenantStreamItem,
    TenantTail, Until, events_of,
};
pub use field_pointers::FieldPointers;
pub use file_config::{FileConfig, FileLimits};
pub use files::{FilePart, InputFiles, NewFile};
pub use inbox::{Approval, ApprovalState, CallContext, Inbox, InboxFilter, InboxItem, UnreadableRun};
pub use name_rules::check_name;
pub use operator::Operator;
pub use quotas::QuotaState;
pub use retention_rule::RetentionRule;
pub use runs::{TenantRun, TenantRunner};
pub use sessions::TenantSession;
pub use stream_tickets::{mint_ticket, unseal_ticket};
pub use strict_objects::StrictObjects;
pub use tagged_object::{TaggedObject, pointer, split_place};
pub use webhooks::{
    ConfiguredWebhook, Dispatcher, EndpointChange, NewEndpoint, RunWebhook, TenantWebhooks, WebhookConfig,
    WebhookEgress, WebhookWakeSignal,
};
pub use worker::Worker;
