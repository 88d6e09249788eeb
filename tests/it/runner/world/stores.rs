//! Stores of a world.

use std::sync::Arc;

use tempfile::TempDir;
use toolgate::ports::{FileStore, RunStore, UsageCounters, Webhooks};
use toolgate::stores::{Durability, MemoryStore, SqliteStore};

/// The kinds of stores.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept {
    InMemory,
    InAFile,
}

/// An open store.
pub(crate) enum Place {
    Memory(Arc<MemoryStore>),
    File { directory: TempDir, store: Arc<SqliteStore> },
}

/// Runs each scenario in memory, with paused time, and on a file.
macro_rules! on_every_store {
    ($($(#[$note:meta])* async fn $name:ident($kept:ident: Kept) $body:block)*) => {
        mod in_memory {
            use super::*;
            $($(#[$note])* #[tokio::test(start_paused = true)] async fn $name() { let $kept = Kept::InMemory; $body })*
        }
        mod in_a_file {
            use super::*;
            $($(#[$note])* #[tokio::test] async fn $name() { let $kept = Kept::InAFile; $body })*
        }
    };
}
pub(crate) use on_every_store;

impl Kept {
    pub(crate) async fn open(self) -> Place {
        match self {
            Self::InMemory => Place::Memory(Arc::new(MemoryStore::new())),
            Self::InAFile => {
                let directory = TempDir::new().unwrap();
                let store = open(&directory).await;
                Place::File { directory, store }
            }
        }
    }
}

impl Place {
    pub(crate) fn store(&self) -> Arc<dyn RunStore> {
        match self {
            Self::Memory(store) => store.clone(),
            Self::File { store, .. } => store.clone(),
        }
    }

    /// The uploaded files in the store.
    pub(crate) fn files(&self) -> Arc<dyn FileStore> {
        match self {
            Self::Memory(store) => store.clone(),
            Self::File { store, .. } => store.clone(),
        }
    }

    /// The usage that the store counts for quotas.
    pub(crate) fn usage(&self) -> Arc<dyn UsageCounters> {
        match self {
            Self::Memory(store) => store.clone(),
            Self::File { store, .. } => store.clone(),
        }
    }

    /// The webhooks in the store.
    pub(crate) fn webhooks(&self) -> Arc<dyn Webhooks> {
        match self {
            Self::Memory(store) => store.clone(),
            Self::File { store, .. } => store.clone(),
        }
    }

    /// The same journals as another process opens them.
    pub(crate) async fn open_again(&self) -> Arc<dyn RunStore> {
        match self {
            Self::Memory(store) => store.clone(),
            Self::File { directory, .. } => open(directory).await,
        }
    }
}

async fn open(directory: &TempDir) -> Arc<SqliteStore> {
    Arc::new(
        SqliteStore::open_with_durability(&directory.path().join("runs.db"), Durability::ProcessCrash).await.unwrap(),
    )
}
