//! Metrics of this process: the recorders and the enabled exporters.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::super::error::AppError;
use super::super::stay::Stay;
use super::spans::{Spans, destination, export_settings};
use crate::config::Settings;
use crate::gateway::Gateway;
use crate::mcp::{Exchange, ExchangeKind, Watcher};
use crate::ports::{EventSink, RequestMeter, RunStore};
use crate::telemetry::export::{ExportRuntime, Signal};
use crate::telemetry::metrics::{
    Listen, McpOperation, Metric, Metrics, MetricsBuilder, MetricsEndpoint, MetricsPlan, MetricsSettings,
};
use crate::telemetry::spans::IdentityOf;
use crate::telemetry::{SpanCounts, logging};

/// The interval of queries for the gauges of the store.
const REFRESH: Duration = Duration::from_secs(15);

/// The metrics and their exporters.
pub(super) struct ProcessMetrics {
    metrics: Arc<Metrics>,
    identity_of: IdentityOf,
    store: Arc<dyn RunStore>,
    is_on_console: bool,
    _endpoint: Option<MetricsEndpoint>,
    /// Aborted on drop.
    _tasks: JoinSet<()>,
}

impl ProcessMetrics {
    /// Starts the enabled exporters; `None` if no exporter is enabled. Must be called within an async runtime.
    pub(super) fn start(
        settings: &Settings,
        stay: Stay,
        identity_of: &IdentityOf,
        store: &Arc<dyn RunStore>,
    ) -> Result<Option<Self>, AppError> {
        let Some(plan) = plan(settings, stay)? else { return Ok(None) };
        let mut builder = MetricsBuilder::new(&plan).map_err(|error| AppError::telemetry(&error))?;
        if plan.otlp {
            let transport =
                destination(settings).resolve(Signal::Metrics, &env).map_err(|error| AppError::telemetry(&error))?;
            let runtime = ExportRuntime::start().map_err(|error| AppError::telemetry(&error))?;
            let exporter =
                transport.metric_exporter(&runtime, plan.timeout).map_err(|error| AppError::telemetry(&error))?;
            let exit_signal = exporter.exit_signal();
            builder = builder.push(exporter, exit_signal);
        }
        let metrics = Arc::new(builder.start());
        let endpoint = plan.prometheus.as_ref().map(|listen| MetricsEndpoint::open(listen, &metrics)).transpose();
        if stay == Stay::AsServer
            && let Err(error) = &endpoint
        {
            return Err(AppError::telemetry(error));
        }
        // Another command of this machine may use the port. That is no reason to fail this command.
        let endpoint = endpoint.unwrap_or_else(|error| {
            tracing::warn!(reason = %error, "failed to open metrics endpoint");
            None
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(keep_current(metrics.clone(), store.clone()));
        if plan.console {
            tasks.spawn(write_every(plan.interval, metrics.clone()));
        }
        Ok(Some(Self {
            metrics,
            identity_of: identity_of.clone(),
            store: store.clone(),
            is_on_console: plan.console,
            _endpoint: endpoint,
            _tasks: tasks,
        }))
    }

    /// The sink for events of runs.
    pub(super) fn sink(&self) -> Arc<dyn EventSink> {
        Arc::new(self.metrics.sink(IdentityOf::clone(&self.identity_of)))
    }

    /// Observes the span exporter.
    pub(super) fn look_after(&self, spans: &Spans) {
        let look_up = |metric, of: fn(SpanCounts) -> u64| {
            let sink = spans.sink.clone();
            self.metrics.observe(metric, move || Some(of(sink.span_counts())));
        };
        look_up(Metric::SpansQueued, |tally| tally.queued);
        look_up(Metric::SpanBytes, |tally| tally.queued_bytes);
        look_up(Metric::SpansExported, |tally| tally.exported);
        look_up(Metric::SpansDropped, |tally| tally.dropped);
        look_up(Metric::SpansFailed, |tally| tally.failed);
        let background = spans.background.clone();
        self.metrics.observe(Metric::FactsDropped, move || Some(background.dropped()));
    }

    /// The recorder of gateway requests.
    pub(super) fn request_meter(&self) -> Arc<dyn RequestMeter> {
        self.metrics.clone()
    }

    /// Observes a gateway.
    pub(super) fn watch(&self, gateway: &Gateway) {
        let look_up = |metric, of: fn(&Gateway) -> u64| {
            let gateway = gateway.clone();
            self.metrics.observe(metric, move || Some(of(&gateway)));
        };
        look_up(Metric::HttpStreams, Gateway::open_streams);
        self.metrics.observe(Metric::LogLinesDropped, || Some(logging::dropped()));
        look_up(Metric::RunsActive, |gateway| gateway.activity().driven as u64);
        look_up(Metric::RunsQueued, |gateway| gateway.activity().waiting as u64);
        look_up(Metric::RunsBlocked, |gateway| gateway.blocked_runs() as u64);
        let gateway = gateway.clone();
        self.metrics.observe_servers(Metric::McpServerUp, move || {
            gateway.servers_up().into_iter().map(|(server, is_up)| (server.to_string(), u64::from(is_up))).collect()
        });
    }

    /// The watcher of the MCP servers.
    pub(super) fn mcp_watcher(&self) -> Watcher {
        let metrics = self.metrics.clone();
        Arc::new(move |Exchange { server, kind, took, failed }: &Exchange| {
            let (method, error) = match kind {
                ExchangeKind::Session => (None, "disconnected"),
                ExchangeKind::ToolsList => (Some("tools/list"), "_OTHER"),
            };
            let (server, took, error) = (server.as_str(), *took, failed.then_some(error));
            metrics.mcp(&McpOperation { server, method, took, error });
        })
    }

    /// The metrics in the Prometheus format; `None` if they are not enabled.
    pub(super) fn prometheus(&self) -> Option<String> {
        self.metrics.is_readable().then(|| self.metrics.prometheus())
    }

    /// Exports the metrics one last time.
    pub(super) async fn finish(self) -> Option<String> {
        // The last values stay visible for long, so they should include the current backlog.
        let _ = self.metrics.store_gauges().refresh(&*self.store).await;
        if self.is_on_console {
            self.metrics.write_to_console();
        }
        let metrics = self.metrics.clone();
        match tokio::task::spawn_blocking(move || metrics.shutdown()).await {
            Ok(stopped) => stopped.err().map(|error| error.to_string()),
            Err(error) => Some(format!("the last metrics may be lost: {error}")),
        }
    }
}

/// The metrics plan of the settings and the environment.
pub(super) fn plan(settings: &Settings, stay: Stay) -> Result<Option<MetricsPlan>, AppError> {
    let service_name = Some(settings.telemetry.service_name.clone());
    let is_server = stay == Stay::AsServer;
    let is_exported =
        is_server && export_settings(settings)?.resolve(env).map_err(|error| AppError::telemetry(&error))?.is_some();
    let listen = settings.gateway.metrics_listen.filter(|_| is_server);
    let wanted = MetricsSettings { like_spans: is_exported, is_read_here: listen.is_some(), service_name };
    let plan = wanted.resolve(env).map_err(|error| AppError::telemetry(&error))?;
    Ok(plan.map(|mut plan| {
        plan.prometheus = listen.map(|at| Listen { host: at.ip().to_string(), port: at.port() }).or(plan.prometheus);
        plan
    }))
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Errors are ignored: a query that needs the store reports them.
async fn keep_current(metrics: Arc<Metrics>, store: Arc<dyn RunStore>) {
    loop {
        let _ = metrics.store_gauges().refresh(&*store).await;
        tokio::time::sleep(REFRESH).await;
    }
}

async fn write_every(interval: Duration, metrics: Arc<Metrics>) {
    loop {
        tokio::time::sleep(interval).await;
        metrics.write_to_console();
    }
}
