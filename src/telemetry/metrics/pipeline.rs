//! Metrics pipeline: the SDK's meter provider with one reader for each exporter.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::InstrumentationScope;
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{MeterProviderBuilder, PeriodicReader, SdkMeterProvider};
use prometheus::{Registry, TextEncoder};
use toolgate_ports::{AnsweredRequest, RequestMeter};

use super::instruments::{Instruments, observe, observe_servers};
use super::measurement::Measurement;
use super::names::{self, Metric};
use super::push_exporter::Exports;
use super::settings::MetricsPlan;
use super::sink::MetricSink;
use super::store_gauges::StoreGauges;
use crate::export::resource::resource;
use crate::logging::Stderr;
use crate::spans::IdentityOf;

/// The content type of `GET /metrics`.
pub const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of this process.
pub struct Metrics {
    provider: SdkMeterProvider,
    meter: Meter,
    instruments: Arc<Instruments>,
    store_gauges: Arc<StoreGauges>,
    registry: Option<Registry>,
    exports: Exports,
    exit_signal: Option<ExitSignal>,
}

/// Signals an exporter that the process ends.
type ExitSignal = Box<dyn Fn() + Send + Sync>;

/// Builder of [`Metrics`].
pub struct MetricsBuilder {
    provider: MeterProviderBuilder,
    registry: Option<Registry>,
    interval: Duration,
    exports: Exports,
    exit_signal: Option<ExitSignal>,
}

/// Why metrics could not be set up, or why the last ones may be lost.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// The Prometheus exporter cannot be registered.
    #[error("the Prometheus exporter cannot be set up: {0}")]
    Registry(String),
    /// The Prometheus endpoint cannot listen.
    #[error(
        "the metrics endpoint cannot listen on {address}: {reason}. Set OTEL_EXPORTER_PROMETHEUS_HOST and \
         OTEL_EXPORTER_PROMETHEUS_PORT to a free address of this machine."
    )]
    Listen { address: String, reason: String },
    /// The last export failed.
    #[error("the last metrics may be lost: {0}. Check the OTLP endpoint.")]
    Flush(String),
}

/// The result of a connection to an MCP server, or of a request to one.
#[derive(Clone, Debug, PartialEq)]
pub struct McpOperation<'a> {
    /// The name of the server in the configuration.
    pub server: &'a str,
    /// The method that was called; `None` for the connection as a whole.
    pub method: Option<&'static str>,
    pub took: Duration,
    /// The stable error word, if it failed.
    pub error: Option<&'static str>,
}

impl MetricsBuilder {
    /// A builder with the exporters of the plan that run locally. [`push`](Self::push) adds the ones over OTLP.
    pub fn new(plan: &MetricsPlan) -> Result<Self, MetricsError> {
        let mut provider = SdkMeterProvider::builder().with_resource(resource(plan.service_name.as_deref()));
        let is_read = plan.prometheus.is_some() || plan.console || plan.is_read_here;
        let registry = is_read.then(Registry::new);
        if let Some(registry) = &registry {
            let exporter = opentelemetry_prometheus::exporter().with_registry(registry.clone());
            let exporter = exporter.scope_info_enabled(false).build();
            provider = provider.with_reader(exporter.map_err(|error| MetricsError::Registry(error.to_string()))?);
        }
        let (interval, exports) = (plan.interval, Exports::default());
        Ok(Self { provider, registry, interval, exports, exit_signal: None })
    }

    /// Adds an exporter that sends metrics, and `exit_signal`, which is called when the process ends.
    pub fn push(mut self, exporter: impl PushMetricExporter, exit_signal: impl Fn() + Send + Sync + 'static) -> Self {
        self.exit_signal = Some(Box::new(exit_signal));
        let reader = PeriodicReader::builder(self.exports.wrap(exporter)).with_interval(self.interval).build();
        self.provider = self.provider.with_reader(reader);
        self
    }

    /// Starts recording.
    pub fn start(self) -> Metrics {
        let provider = self.provider.build();
        let scope = InstrumentationScope::builder("toolgate").with_version(env!("CARGO_PKG_VERSION")).build();
        let meter = provider.meter_with_scope(scope);
        let instruments = Arc::new(Instruments::new(&meter));
        let store_gauges = Arc::new(StoreGauges::default());
        store_gauges.observed_by(&meter);
        Metrics {
            provider,
            meter,
            instruments,
            store_gauges,
            registry: self.registry,
            exports: self.exports,
            exit_signal: self.exit_signal,
        }
    }
}

impl Metrics {
    /// An event sink that records what runs do.
    pub fn sink(&self, identity_of: IdentityOf) -> MetricSink {
        MetricSink::new(self.instruments.clone(), identity_of)
    }

    /// Records a result of an MCP server outside of runs.
    pub fn mcp(&self, operation: &McpOperation<'_>) {
        let metric = if operation.method.is_some() { Metric::McpDuration } else { Metric::McpSession };
        let measurement = Measurement::new(metric, operation.took.as_secs_f64())
            .fixed_if(names::MCP_METHOD, operation.method)
            .name(names::SERVER, operation.server)
            .fixed_if(names::ERROR_TYPE, operation.error);
        self.instruments.record(&measurement);
    }

    /// Registers a callback that reads a metric; it returns `None` while the value is unknown.
    pub fn observe(&self, metric: Metric, look_up: impl Fn() -> Option<u64> + Send + Sync + 'static) {
        observe(&self.meter, metric, look_up);
    }

    /// Registers a callback that reads a metric for each MCP server.
    pub fn observe_servers(&self, metric: Metric, look_up: impl Fn() -> Vec<(String, u64)> + Send + Sync + 'static) {
        observe_servers(&self.meter, metric, look_up);
    }

    /// The store gauges. The caller refreshes them.
    pub fn store_gauges(&self) -> &Arc<StoreGauges> {
        &self.store_gauges
    }

    /// All metrics in the Prometheus text format ([`PROMETHEUS_TEXT`]). Empty unless the plan has a reader in this
    /// process.
    pub fn prometheus(&self) -> String {
        let families = self.registry.as_ref().map(Registry::gather).unwrap_or_default();
        // The encoder fails only on metrics without a name or a value.
        TextEncoder::new().encode_to_string(&families).unwrap_or_default()
    }

    /// Whether [`prometheus`](Self::prometheus) returns metrics.
    pub fn is_readable(&self) -> bool {
        self.registry.is_some()
    }

    /// Writes all metrics to standard error in the Prometheus text format.
    pub fn write_to_console(&self) {
        // The user closed standard error, so the metrics are not wanted.
        let _ = Stderr.write_all(self.prometheus().as_bytes());
    }

    /// Exports a last time and stops. Blocks: call it where blocking is allowed.
    pub fn shutdown(&self) -> Result<(), MetricsError> {
        self.exports.end();
        if let Some(exit_signal) = &self.exit_signal {
            exit_signal();
        }
        let stopped = self.provider.shutdown().map_err(|error| MetricsError::Flush(error.to_string()));
        match self.exports.failure() {
            Some(reason) => Err(MetricsError::Flush(reason)),
            None => stopped,
        }
    }
}

impl RequestMeter for Metrics {
    fn answered(&self, request: &AnsweredRequest<'_>) {
        let measurement = Measurement::new(Metric::HttpDuration, request.duration.as_secs_f64())
            .fixed(names::HTTP_METHOD, request.method)
            .name(names::HTTP_ROUTE, request.route)
            .name(names::HTTP_STATUS, &request.status.to_string());
        self.instruments.record(&measurement);
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("backlog", &self.store_gauges).finish_non_exhaustive()
    }
}

impl fmt::Debug for MetricsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsBuilder").field("interval", &self.interval).finish_non_exhaustive()
    }
}
