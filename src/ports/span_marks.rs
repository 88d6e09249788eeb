//! Span marks: which spans of a run a collector has, and which process exports the others (decision 0057).

use std::time::Duration;

use toolgate_core::id::RunId;

/// The lease of an exporter without renewal.
pub const SPAN_LEASE: Duration = Duration::from_secs(10);

/// The progress of an exporter that holds the lease of a run's spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanMark {
    pub run: RunId,
    /// A collector has every span that the facts before this position finish.
    pub sent: u64,
    /// The lease from now on; zero releases it.
    pub lease: Duration,
}

/// A request for the lease of a run's spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanClaim {
    pub run: RunId,
    /// If no span before this position is missing, the claim succeeds although another exporter has the lease.
    pub at: u64,
    /// The process that held the lease is dead: the claim succeeds in any case.
    pub is_abandoned: bool,
    /// The duration of the lease.
    pub lease: Duration,
}

/// The answer to a [`SpanClaim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimedSpans {
    /// The claimant has the lease. A collector has the spans before this position.
    From(u64),
    /// Another exporter has it, and may still send spans.
    Held,
    /// The run has no mark: its first process exported no spans.
    Unmarked,
}
