//! How much and how long: counts, distributions and levels over all runs, for dashboards and alarms.
//!
//! A second projection beside the lifecycle: facts in, measurements out (`meter`, pure), instruments of OpenTelemetry after
//! that. No attribute ever names a run, a session, a call or a person; names that somebody else chooses are told apart up
//! to a number (`vocabulary`). What is the state of the store and not of a run is read from its index (`backlog`).
//!
//! Recording never fails and never waits. A fact is counted once, wherever a run goes on: what is history to whoever takes
//! it up was counted by whoever saw it happen.

mod backlog;
mod endpoint;
mod http;
mod instruments;
mod measurement;
mod meter;
mod names;
mod pipeline;
mod pushed;
mod settings;
mod sink;
mod vocabulary;

pub use backlog::Backlog;
pub use endpoint::MetricsEndpoint;
pub use http::{HttpAnswer, HttpMeter};
pub use measurement::{Measurement, Word};
pub use names::{Definition, Metric, Shape};
pub use pipeline::{McpOperation, Metrics, MetricsBuilder, MetricsError, PROMETHEUS_TEXT};
pub use settings::{Listen, MetricsPlan, MetricsSettings, MetricsSettingsError};
pub use sink::MetricSink;
