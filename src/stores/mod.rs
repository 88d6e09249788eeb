//! Stores for journals, sessions, grants and blobs: memory for tests and throw-away runs, one SQLite file for everything
//! else.
//!
//! Both follow the same rules, and one suite (`tests/it/stores.rs`) checks both. The append position provides safety: a
//! store rejects an append if the journal does not have the length that the appender expects. A lease only prevents two
//! drivers from doing the same work, so the store checks it after the position. No store interprets events: it keeps
//! them in order and rejects an append that would leave a gap.

mod memory;
mod sqlite;
mod wellformed;

pub use memory::MemoryStore;
pub use sqlite::{Durability, SqliteStore};
