//! Metrics: counts, distributions and levels over all runs, for dashboards and alarms.
//!
//! A second projection beside the lifecycle: the fold (`meter`, pure) turns facts into measurements, and OpenTelemetry
//! instruments record them. No attribute names a run, a session, a call or a person. Names that others choose are
//! limited in number (`cardinality`). The state of the store is read from its index (`store_gauges`).
//!
//! Recording never fails and never waits. Each fact is counted once, wherever the run is resumed: the process that
//! wrote it counts it, and a process that loads it as history does not.

mod cardinality;
mod endpoint;
mod instruments;
mod measurement;
mod meter;
mod names;
mod pipeline;
mod push_exporter;
mod settings;
mod sink;
mod store_gauges;

pub use endpoint::MetricsEndpoint;
pub use measurement::{AttributeValue, Measurement};
pub use names::{Definition, Metric, Shape};
pub use pipeline::{McpOperation, Metrics, MetricsBuilder, MetricsError, PROMETHEUS_TEXT};
pub use settings::{Listen, MetricsPlan, MetricsSettings, MetricsSettingsError};
pub use sink::MetricSink;
pub use store_gauges::StoreGauges;
