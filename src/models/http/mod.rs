//! Shared HTTP shell of all provider adapters: connection, key, deadlines, server-sent events, size limits, errors, and
//! a conversation that is rendered once and only grows. Providers differ in their [`ProviderProtocol`]: pure functions from the
//! neutral conversation to bytes and back. So each recorded answer of a provider is a test without a network, split at
//! any byte, and an adapter is little more than its wire types. One call is one attempt: this module never retries.

mod answer;
mod author;
mod call_ids;
mod conversation;
mod deadlines;
mod declaration;
mod endpoint;
mod error_body;
mod errors;
mod fault;
mod keys;
mod members;
mod model;
mod object;
mod protocol;
mod retry_hints;
mod secrets;
mod settings;
mod sse;
mod tool_block;
mod transcript;

pub use answer::{Answer, Head, Progress};
pub use call_ids::CallIds;
pub use keys::{Key, KeyCommand, KeySource};
pub use model::HttpModel;
pub use settings::{MediaKind, PromptCache, Proxy, Reasoning, Settings, SettingsError, Timeouts, ToolChoice};

pub(in crate::models) use declaration::{Declaration, Declared};
pub(in crate::models) use endpoint::{Address, KeyHeader};
pub(in crate::models) use error_body::ErrorBody;
pub(in crate::models) use fault::{Fault, read};
pub(in crate::models) use members::Members;
pub(in crate::models) use object::{Object, RequestPrefix};
pub(in crate::models) use protocol::{Fold, ProviderProtocol, RenderedParts};
pub(in crate::models) use tool_block::keep_first;
