//! Spans on their way out, over OTLP.
//!
//! The sink folds runs into spans where the driver calls it, which costs microseconds, and hands finished spans to the
//! SDK's batch processor: a bounded queue and a thread that sends. A full queue drops spans, a dead collector loses
//! them; a run notices neither (law 9).

mod convert;
mod sampler;
mod settings;
mod sink;
mod split;
mod switches;

pub use sampler::Sampler;
pub use settings::{Export, ExportSettings, SettingsError};
pub use sink::{ExportError, SpanSink};
