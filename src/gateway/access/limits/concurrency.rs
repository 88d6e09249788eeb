//! Concurrency limiter: a permit is held while a request is worked on, or while a stream is open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_core::id::Tenant;

/// Who is counted: all keys of the same name in a tenant are one caller, as they are in journals.
pub(super) type Who = (Tenant, Arc<str>);

/// The kind of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Request,
    /// An event stream.
    Stream,
    /// A read of a list or a journal.
    Read,
}

/// The permits in use, and their limits.
pub(super) struct ConcurrencyLimiter {
    requests: Option<usize>,
    streams: Option<usize>,
    reads: Option<usize>,
    taken: Arc<PermitCounts>,
}

type PermitCounts = Mutex<HashMap<(Who, Kind), usize>>;

/// A permit, held until it is dropped.
pub(super) struct ConcurrencyPermit {
    taken: Arc<PermitCounts>,
    place: (Who, Kind),
}

impl ConcurrencyLimiter {
    pub(super) fn new(requests: Option<usize>, streams: Option<usize>, reads: Option<usize>) -> Self {
        Self { requests, streams, reads, taken: Arc::default() }
    }

    /// A permit, unless the caller has as many as its limit allows.
    pub(super) fn take(&self, who: &Who, kind: Kind) -> Option<ConcurrencyPermit> {
        let most = match kind {
            Kind::Request => self.requests,
            Kind::Stream => self.streams,
            Kind::Read => self.reads,
        };
        let place = (who.clone(), kind);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.get(&place).copied().unwrap_or_default();
        if most.is_some_and(|most| count >= most) {
            return None;
        }
        taken.insert(place.clone(), count + 1);
        Some(ConcurrencyPermit { taken: self.taken.clone(), place })
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get_mut(&self.place) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(taken.remove(&self.place)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_permit_is_free_and_streams_are_counted_apart() {
        let limiter = ConcurrencyLimiter::new(Some(1), Some(1), None);
        let ann: Who = (Tenant::default(), "ann".into());
        let request = limiter.take(&ann, Kind::Request).unwrap();
        assert!(limiter.take(&ann, Kind::Request).is_none());
        assert!(limiter.take(&(Tenant::default(), "bob".into()), Kind::Request).is_some());
        let stream = limiter.take(&ann, Kind::Stream).unwrap();
        assert!(limiter.take(&ann, Kind::Stream).is_none());
        drop((request, stream));
        assert!(limiter.taken.lock().unwrap().is_empty());
    }
}
