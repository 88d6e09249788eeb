//! Write health: whether the file is writable. The store learns this from its own writes, and from a small test write
//! when it has not written recently.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::SqliteConnection;
use tokio::time::Instant;
use toolgate_ports::StoreError;

use super::units::now_ms;
use super::writer::{Write, Writer};

/// How long a successful write proves that the file is writable.
const FRESH: Duration = Duration::from_secs(10);
/// How long the result of a failed check is reused.
const STALE: Duration = Duration::from_secs(2);
/// How much a failing store must be able to write before it counts as writable: more than one small append.
const ROOM: i64 = 256 * 1024;

const WRITE: &str = concat!(
    "INSERT INTO write_check (id, checked_at, filler) VALUES (1, ",
    now_ms!(),
    ", zeroblob(?1)) ON CONFLICT (id) DO UPDATE SET checked_at = excluded.checked_at, filler = excluded.filler"
);

/// The state of the last writes.
#[derive(Debug, Default)]
pub(super) struct WriteHealth(Mutex<State>);

#[derive(Clone, Debug, Default)]
enum State {
    #[default]
    Unknown,
    Healthy {
        since: Instant,
    },
    /// A small append that happens to fit does not clear this state. Only a check does.
    Failing {
        error: StoreError,
        checked_at: Option<Instant>,
    },
}

impl WriteHealth {
    /// Records a committed transaction.
    pub(super) fn succeeded(&self) {
        let mut state = self.state();
        if !matches!(*state, State::Failing { .. }) {
            *state = State::Healthy { since: Instant::now() };
        }
    }

    /// Records a transaction that failed because of the file, and not because of its data.
    pub(super) fn failed(&self, error: &StoreError) {
        let mut state = self.state();
        let checked_at = match &*state {
            State::Failing { checked_at, .. } => *checked_at,
            State::Unknown | State::Healthy { .. } => {
                tracing::error!(%error, "store not writable");
                None
            }
        };
        *state = State::Failing { error: error.clone(), checked_at };
    }

    /// Whether the file is writable. Writes to it at most every few seconds, and only if the store has not written
    /// itself.
    pub(super) async fn check(&self, writer: &Writer) -> Result<(), StoreError> {
        let state = self.state().clone();
        let filler = match state {
            State::Healthy { since } if since.elapsed() < FRESH => return Ok(()),
            State::Failing { error, checked_at: Some(at) } if at.elapsed() < STALE => return Err(error),
            State::Unknown | State::Healthy { .. } => 0,
            State::Failing { error, .. } => {
                // Concurrent callers get this result.
                *self.state() = State::Failing { error, checked_at: Some(Instant::now()) };
                ROOM
            }
        };
        writer.make(Check { filler }).await?;
        let mut state = self.state();
        if matches!(*state, State::Failing { .. }) {
            tracing::info!("store writable again");
        }
        *state = State::Healthy { since: Instant::now() };
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write of this many bytes to the row reserved for checks.
struct Check {
    filler: i64,
}

#[async_trait]
impl Write for Check {
    type Answer = ();

    async fn apply(&self, db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        sqlx::query(WRITE).bind(self.filler).execute(db).await?;
        Ok(())
    }
}
