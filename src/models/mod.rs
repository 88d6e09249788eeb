//! Language models behind the `Model` port: each adapter translates the neutral conversation into one wire format, and
//! the answer back. An adapter makes one attempt per reply. It never retries, runs a tool, or decides the next step;
//! the driver does. Adapters depend only on `core` and `ports`.

pub mod anthropic;
mod attachment;
pub mod gemini;
mod http;
pub mod openai_chat;
mod openai_content;
pub mod openai_images;
pub mod openai_responses;
mod openai_schema;
mod openai_usage;
pub mod prices;
pub mod scripted;
pub mod unusable_model;

pub use http::{
    Answer, CallIds, Head, HttpModel, Key, KeyCommand, KeySource, ListApi, MediaKind, ModelList, OLLAMA_PORT, Progress,
    PromptCache, Proxy, Reasoning, Settings, SettingsError, Timeouts, ToolChoice, list_models,
};
