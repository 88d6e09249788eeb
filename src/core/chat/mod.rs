//! Chat types: messages, a model's reply, token usage and cost. Provider-neutral; adapters translate.

mod file_type;
mod image_format;
mod message;
mod money;
mod price;
mod reply;
mod usage;

pub use file_type::FileType;
pub use image_format::ImageFormat;
pub use message::{Media, Message, Part, ProviderState, Role};
pub use money::{NotAnAmount, Usd};
pub use price::{LongContext, Price, Rates};
pub use reply::{Reply, Stop};
pub use usage::{Costs, Usage};
