//! Start limiter. A start costs a processor a second or two, and servers that all start at once delay each other. A
//! few start at a time, and the budget of each begins with its permit.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The upper limit of concurrent starts.
const MOST: usize = 8;
/// Concurrent starts per processor.
const PER_PROCESSOR: usize = 2;
/// How long a start holds its permit. A longer start mostly waits for something and costs little CPU.
const LONGEST: Duration = Duration::from_secs(10);

/// The start permits, shared by servers that would start together.
#[derive(Clone, Debug)]
pub(crate) struct StartLimiter(Arc<Semaphore>);

pub(super) struct StartPermit {
    permit: Option<OwnedSemaphorePermit>,
}

impl StartLimiter {
    /// A limiter sized for this machine.
    pub(crate) fn new() -> Self {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        Self::with_permits((processors * PER_PROCESSOR).clamp(PER_PROCESSOR, MOST))
    }

    /// A limiter with this many permits.
    pub(super) fn with_permits(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places)))
    }

    /// Waits for a permit.
    pub(super) async fn turn(&self) -> StartPermit {
        // The semaphore is never closed.
        StartPermit { permit: self.0.clone().acquire_owned().await.ok() }
    }
}

impl StartPermit {
    /// Runs a start and releases the permit when it is done, or when it takes long.
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
