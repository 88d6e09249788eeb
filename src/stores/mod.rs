//! Where journals, grants and blobs are kept: in memory for tests and throw-away runs, in one SQLite file for everything else.
//!
//! Both follow the same rules, and one suite (`tests/it/stores.rs`) holds them to it. The append position is the
//! safety: a journal that is not as long as the appender believes is never touched. A lease is only politeness, so that
//! two drivers do not do the same work; it is checked after the position. Nothing here interprets an event: a store
//! keeps facts in order and refuses whatever would leave a gap.

mod memory;
mod sqlite;
mod wellformed;

pub use memory::MemoryStore;
pub use sqlite::{Durability, SqliteStore};
