//! One suite for every store, and tests of the file.

mod agreement;
mod conformance;
mod crash;
mod file;
pub(crate) mod journals;

use std::sync::Arc;

use tempfile::TempDir;
use toolgate::stores::{Durability, MemoryStore, SqliteStore};

use self::conformance::{Opened, conforms};

conforms!(memory, || async { Opened { store: Arc::new(MemoryStore::new()), _directory: None } });
conforms!(sqlite_that_survives_a_power_cut, || sqlite(Durability::PowerCut));
conforms!(sqlite_that_survives_a_crash, || sqlite(Durability::ProcessCrash));

async fn sqlite(durability: Durability) -> Opened<SqliteStore> {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open_with_durability(&directory.path().join("runs.db"), durability).await.unwrap();
    Opened { store: Arc::new(store), _directory: Some(directory) }
}
