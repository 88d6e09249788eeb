//! Language models behind the `Model` port: each adapter translates the neutral conversation into one wire format and
//! the answer back. An adapter makes one attempt per reply and never retries, runs a tool, or decides what comes next;
//! that is the driver's. Adapters know only `core` and `ports`.

pub mod openai_chat;
pub mod prices;
pub mod scripted;
pub mod unusable;
