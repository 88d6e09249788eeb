//! What is said: messages, a model's reply, and what it cost. Neutral between providers; adapters translate.

mod message;
mod price;
mod reply;
mod usage;

pub use message::{Media, Message, Part, ProviderState, Role};
pub use price::{LongContext, Price, Rates};
pub use reply::{Reply, Stop};
pub use usage::{Costs, Usage};
