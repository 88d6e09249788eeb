//! Fair admission of reads. A list or a journal costs processor time and a read connection of the store, so only a few
//! are read at once, and tenants take turns: a tenant with many readers delays its own reads, and those of other
//! tenants by one read each.

use std::num::NonZero;
use std::ops::Deref;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::time::timeout;
use toolgate_core::id::Tenant;
use toolgate_runner::{Admission, Capacity, Permit};

use super::concurrency::{ConcurrencyLimiter, ConcurrencyPermit, Kind, Who};
use super::refusal::{PERMIT_PAUSE, limited};
use crate::problem::Problem;

/// How long a read waits in the queue. A read that waits longer has many others of its tenant before it.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The queue of reads.
pub(super) struct Reads(Arc<Admission>);

/// Permission to read a list or a journal, until it is dropped.
pub(super) struct ReadPermit {
    _admission: Permit,
    _concurrency: ConcurrencyPermit,
}

/// What a list or a journal is read from, with the permission to read. A handler takes it as a parameter after those
/// that check the request, so that a request that is refused does not wait.
pub(crate) struct Admitted<T> {
    pub(super) source: T,
    pub(super) _permit: ReadPermit,
}

impl<T> Deref for Admitted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.source
    }
}

/// The permission to begin a stream, which reads a journal once. Another limit bounds the streams of a caller. After a
/// restart all of them reconnect at once: they take turns, and the queue refuses no stream.
pub(crate) struct StreamPermit {
    _admission: Permit,
}

impl Reads {
    /// A queue for this machine.
    pub(super) fn new() -> Self {
        let cores = cores();
        let capacity = Capacity { driven: cores, driven_per_tenant: cores / 2, waiting: usize::MAX };
        Self(Arc::new(Admission::new(capacity)))
    }

    /// The queue itself, for streams that read more than once.
    pub(super) fn turns(&self) -> Arc<Admission> {
        self.0.clone()
    }

    /// Waits for a permit for a caller.
    pub(super) async fn permit(&self, limiter: &ConcurrencyLimiter, who: &Who) -> Result<ReadPermit, Problem> {
        let (tenant, _): &(Tenant, _) = who;
        let full = || limited("too many concurrent reads with these credentials", PERMIT_PAUSE);
        let permit = limiter.take(who, Kind::Read).ok_or_else(full)?;
        let mut turn = self.0.enter(tenant.clone());
        match timeout(LONGEST_WAIT, turn.granted()).await {
            Ok(()) => Ok(ReadPermit { _admission: turn, _concurrency: permit }),
            Err(_) => Err(limited("too many concurrent reads by this tenant", PERMIT_PAUSE)),
        }
    }

    /// Waits for a permit to begin a stream.
    pub(super) async fn stream_permit(&self, tenant: Tenant) -> StreamPermit {
        let mut turn = self.0.enter(tenant);
        turn.granted().await;
        StreamPermit { _admission: turn }
    }
}

/// The cores to share. One tenant may keep half of them busy: its other work, and other tenants, need the rest.
fn cores() -> usize {
    available_parallelism().map_or(2, NonZero::get).max(2)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn who(tenant: &str, name: &str) -> Who {
        (tenant.into(), name.into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_with_many_readers_leaves_room_for_another() {
        let (reads, limiter) = (Reads::new(), ConcurrencyLimiter::new(None, None, None));
        let of_tenant = cores() / 2;
        let mut held = Vec::new();
        for number in 0..of_tenant {
            held.push(reads.permit(&limiter, &who("acme", &format!("key:{number}"))).now_or_never().unwrap().unwrap());
        }
        let (waits, free) = (who("acme", "key:more"), who("brim", "key:other"));
        let mut next = Box::pin(reads.permit(&limiter, &waits));
        assert!((&mut next).now_or_never().is_none(), "its tenant has all it may have");
        assert!(reads.permit(&limiter, &free).now_or_never().unwrap().is_ok());
        held.pop();
        assert!(next.await.is_ok());
        let refused = reads.permit(&limiter, &waits);
        held.push(reads.permit(&limiter, &waits).await.ok().unwrap());
        assert!(refused.await.is_err());
    }

    #[tokio::test]
    async fn a_caller_has_a_limited_number_of_waiting_reads() {
        let (reads, limiter) = (Reads::new(), ConcurrencyLimiter::new(None, None, Some(1)));
        let ann = who("acme", "ann");
        let first = reads.permit(&limiter, &ann).await.ok().unwrap();
        assert!(reads.permit(&limiter, &ann).await.is_err());
        assert!(reads.permit(&limiter, &who("brim", "ann")).await.is_ok());
        drop(first);
        assert!(reads.permit(&limiter, &ann).await.is_ok());
    }
}
