//! The right to start. A start costs a processor for a second or two, and servers that all start at once make each other
//! late: few have their turn at a time, and the budget of each begins with its turn.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The most servers that start at the same time.
const MOST: usize = 8;
/// How many starts a processor bears.
const PER_PROCESSOR: usize = 2;
/// How long a start keeps others from theirs. One that takes longer mostly waits for something, and costs nothing.
const LONGEST: Duration = Duration::from_secs(10);

/// The right to start, shared by servers that would start together.
#[derive(Clone, Debug)]
pub(in crate::mcp) struct Starts(Arc<Semaphore>);

/// A start that has its turn.
pub(super) struct Turn {
    permit: Option<OwnedSemaphorePermit>,
}

impl Starts {
    /// For as many at a time as this machine bears.
    pub(in crate::mcp) fn new() -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        Self::of((processors * PER_PROCESSOR).clamp(PER_PROCESSOR, MOST))
    }

    /// For so many at a time.
    pub(super) fn of(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places)))
    }

    /// Waits for a turn.
    pub(super) async fn turn(&self) -> Turn {
        // It is never closed.
        Turn { permit: self.0.clone().acquire_owned().await.ok() }
    }
}

impl Turn {
    /// Does the work of a start, and lets the next one start when that is done, or takes long.
    pub(super) async fn start<T>(self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        match timeout(LONGEST, &mut work).await {
            Ok(done) => done,
            Err(_) => {
                drop(self.permit);
                work.await
            }
        }
    }
}
