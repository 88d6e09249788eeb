//! Telemetry export over OTLP: spans, metrics and log records.
//!
//! The span sink folds runs into spans and puts them into a bounded queue, which takes microseconds. A separate thread
//! sends them. A full queue drops spans, and an unavailable collector loses them. Neither affects a run (law 9), and
//! each loss is counted.

use std::time::Duration;

mod batching;
mod console;
mod content_flags;
mod convert;
mod error;
mod limits;
mod logs;
mod marked_span;
mod marks;
mod queue;
mod reachability;
mod rejections;
pub(crate) mod resource;
mod runtime;
mod sampled_sink;
mod sampler;
mod sender;
mod settings;
mod sink;
mod size;
mod transport;
pub(crate) mod variables;

/// How long an ending process sends spans and log records to a receiver that accepts them.
pub const FLUSH: Duration = Duration::from_secs(30);

pub use content_flags::misspelt;
pub use error::{ExportError, SettingsError};
pub use logs::LogExport;
pub(crate) use logs::{FieldValue, LogLine};
pub use queue::SpanCounts;
pub use runtime::ExportRuntime;
pub use sampled_sink::SampledSink;
pub use sampler::Sampler;
pub use settings::{Export, ExportSettings, LogExportPlan};
pub use sink::SpanSink;
pub use transport::{Destination, MetricExport, Protocol, Signal, Transport};
