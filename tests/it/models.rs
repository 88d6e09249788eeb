//! Model adapters, seen through the `Model` port.

mod asking;
mod fixtures;
pub(crate) mod model_server;
mod openai_chat;
mod openai_fixtures;
mod openai_requests;
mod prices;
mod scripted;
