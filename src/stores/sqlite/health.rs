//! Write health: whether the file is writable. The store learns this from its own writes, and from a check when it has
//! not written recently.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolgate_ports::StoreError;

/// How long a successful write proves that the file is writable.
const FRESH: Duration = Duration::from_secs(10);
/// How long the result of a failed check is reused.
const STALE: Duration = Duration::from_secs(2);
/// How much a failing store must be able to write before it counts as writable: more than one small append.
const ROOM: i64 = 256 * 1024;

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

    /// How many bytes a check has to write. `None` if the file is known to be writable.
    ///
    /// # Errors
    /// The result of the last check, for a short time.
    pub(super) fn due(&self) -> Result<Option<i64>, StoreError> {
        let mut state = self.state();
        match &*state {
            State::Healthy { since } if since.elapsed() < FRESH => Ok(None),
            State::Failing { error, checked_at: Some(at) } if at.elapsed() < STALE => Err(error.clone()),
            State::Unknown | State::Healthy { .. } => Ok(Some(0)),
            State::Failing { error, .. } => {
                // Concurrent callers get this result.
                *state = State::Failing { error: error.clone(), checked_at: Some(Instant::now()) };
                Ok(Some(ROOM))
            }
        }
    }

    /// Records a check that succeeded.
    pub(super) fn checked(&self) {
        let mut state = self.state();
        if matches!(*state, State::Failing { .. }) {
            tracing::info!("store writable again");
        }
        *state = State::Healthy { since: Instant::now() };
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
