//! Model prices: a small reviewed list of well-known providers, and the decorator that adds a cost to every reply.
//!
//! The list is looked up by exact names. It never guesses a price from a similar name: if the price is unknown, so is
//! the cost. A price that the provider reports with a reply always wins.

mod list;
mod priced;

pub use list::price_of;
pub use priced::Priced;
