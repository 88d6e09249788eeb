//! Model adapters, seen through the `Model` port.

mod asking;
mod scripted;
