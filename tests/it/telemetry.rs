//! What is told of a run: snapshots over hand-written journals, and the laws that projections keep.

mod around_calls;
mod export;
mod feedback;
mod journals;
mod lifecycle;
mod limits;
mod logging;
mod metrics;
mod readers;
pub(crate) mod receiver;
mod review;
mod span_positions;
mod spans;
mod tls;
mod waits;
