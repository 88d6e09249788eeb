//! Model adapters, seen through the `Model` port.

mod anthropic_requests;
mod asking;
mod authors;
mod cut_calls;
mod declared_tools;
mod fixtures;
mod gemini_requests;
mod hostile;
mod keys;
mod listing;
pub(crate) mod model_server;
mod openai_chat;
mod openai_images;
mod openai_requests;
mod openai_responses_requests;
mod prices;
mod rubbish_media;
mod run_options;
mod scripted;
mod stop_reasons;
mod wire_fixtures;
