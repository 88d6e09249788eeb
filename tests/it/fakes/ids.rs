//! Ids that are the same in every test run.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use toolgate::core::id::{RunId, SessionId};
use toolgate::core::trace::TraceId;
use toolgate::ports::Ids;

/// `run_1`, `run_2`, …, `session_1`, … and trace ids that count up.
#[derive(Default)]
pub(crate) struct FakeIds {
    runs: AtomicU32,
    sessions: AtomicU32,
    traces: AtomicU8,
}

impl Ids for FakeIds {
    fn run_id(&self) -> RunId {
        RunId::from(format!("run_{}", self.runs.fetch_add(1, Ordering::SeqCst) + 1))
    }

    fn session_id(&self) -> SessionId {
        SessionId::from(format!("session_{}", self.sessions.fetch_add(1, Ordering::SeqCst) + 1))
    }

    fn trace_id(&self) -> TraceId {
        TraceId([self.traces.fetch_add(1, Ordering::SeqCst).wrapping_add(1); 16])
    }
}
