//! Telemetry of runs: spans, metrics and log records, all projected from the journal.
//!
//! Telemetry only observes. It decides nothing, and it cannot slow or fail a run (law 9): projections are pure folds,
//! and export runs on its own thread behind a bounded queue.

mod background;
pub mod export;
pub mod logging;
pub mod metrics;
mod per_run;
pub mod spans;

pub use background::BackgroundSink;
pub use export::{
    Destination, Export, ExportError, ExportSettings, Protocol, SampledSink, Sampler, SpanCounts, SpanSink,
};
pub use logging::LogSink;
pub use spans::{Projector, Span, SpanContent};
