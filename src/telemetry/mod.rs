//! What is told of a run: lifecycle events, spans and log records, all projections of its journal.
//!
//! Telemetry listens. Nothing here decides anything, and nothing here can slow or fail a run (law 9): projections are
//! pure folds, and export happens on a thread of its own behind a bounded queue.

mod aside;
pub mod export;
pub mod lifecycle;
pub mod logging;
pub mod metrics;
mod per_run;
pub mod spans;

pub use aside::Aside;
pub use export::{Destination, Export, ExportError, ExportSettings, Protocol, Sampler, SpanSink, Tally};
pub use lifecycle::{Lifecycle, LifecycleEvent};
pub use logging::LogSink;
pub use spans::{Projector, Span, SpanContent};
