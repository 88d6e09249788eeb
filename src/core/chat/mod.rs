//! What is said: messages, a model's reply, and what it cost. Neutral between providers; adapters translate.

mod message;
mod reply;
mod usage;

pub(crate) use message::UNKNOWN_TYPE;
pub use message::{Media, Message, Part, ProviderState, Role};
pub use reply::{Reply, Stop};
pub use usage::Usage;
