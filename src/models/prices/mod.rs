//! What the models of the well-known providers charge, as far as a small reviewed list says, and the decorator that
//! puts a cost on every reply.
//!
//! The list is looked up by exact names. It does not guess from a similar name what something costs: a price that is not
//! known is unknown, and then so is the cost. A price that the provider itself tells with a reply always wins.

mod list;
mod priced;

pub use list::price_of;
pub use priced::Priced;
