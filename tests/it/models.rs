//! Model adapters, seen through the `Model` port.

mod asking;
mod fixtures;
mod keys;
pub(crate) mod model_server;
mod openai_chat;
mod openai_images;
mod openai_requests;
mod scripted;
mod wire_fixtures;
