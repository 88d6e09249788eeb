//! Shared HTTP shell of all provider adapters: connection, key, deadlines, server-sent events, size limits, errors, and
//! a conversation that is rendered once and only grows. Providers differ in their [`ProviderProtocol`]: pure functions
//! from the neutral conversation to bytes and back. So each recorded answer of a provider is a test without a network,
//! split at any byte, and an adapter is little more than its wire types. One call is one attempt: this module never
//! retries.

mod answer;
mod author;
mod call_ids;
mod connection_remedy;
mod context_overflow;
mod conversation;
mod deadlines;
mod declaration;
mod egress;
mod endpoint;
mod error_body;
mod errors;
mod fault;
mod keys;
mod listing;
mod members;
mod model;
mod object;
mod protocol;
mod retry_hints;
mod secrets;
mod settings;
mod stop_reason;
mod tool_block;
mod transcript;

pub use answer::{Answer, Head, Progress};
pub use call_ids::CallIds;
pub use listing::{ListApi, ModelList, list_models};
pub use model::HttpModel;
pub use settings::SettingsError;
pub(crate) use settings::check_reserved;
pub use toolgate_settings::model::{
    Key, KeyCommand, KeySource, MediaKind, PromptCache, Proxy, Reasoning, Settings, Timeouts, ToolChoice,
};

pub(crate) use declaration::{Declaration, Declared};
pub use endpoint::OLLAMA_PORT;
pub(crate) use endpoint::{Address, KeyHeader};
pub(crate) use error_body::ErrorBody;
pub(crate) use fault::{Fault, read, read_event};
pub(crate) use members::Members;
pub(crate) use object::{Object, RequestPrefix};
pub(crate) use protocol::{Fold, ProviderProtocol, RenderedParts};
pub(crate) use stop_reason::StopReason;
