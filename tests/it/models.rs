//! Model adapters, seen through the `Model` port.

mod anthropic_requests;
mod asking;
mod fixtures;
mod gemini_requests;
mod keys;
mod model_server;
mod openai_chat;
mod openai_requests;
mod openai_responses_requests;
mod scripted;
mod wire_fixtures;
