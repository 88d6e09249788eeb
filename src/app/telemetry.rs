//! Telemetry of runs, as the settings and the environment enable it.

mod metrics;

use std::sync::Arc;

use self::metrics::ProcessMetrics;
use super::{AppError, Stay, secrets};
use crate::config::{self, Settings};
use crate::core::id::RunId;
use crate::core::run::JournalEntry;
use crate::gateway::Gateway;
use crate::mcp;
use crate::ports::{EventSink, RequestMeter, RunStore};
use crate::runner::Sampler;
use crate::telemetry::export::misspelt;
use crate::telemetry::spans::{IdentityOf, Redaction, USUAL_KEYS};
use crate::telemetry::{
    BackgroundSink, Destination, ExportSettings, Protocol, Sampler as TraceSampler, SpanContent, SpanSink,
};

/// All exporters of the process.
pub(super) struct Telemetry {
    spans: Option<Spans>,
    metrics: Option<ProcessMetrics>,
    sampler: Sampler,
}

/// The span exporter, and the thread that converts events to spans.
struct Spans {
    background: Arc<BackgroundSink>,
    sink: Arc<SpanSink>,
}

/// Whether the telemetry settings and variables are valid. Opens nothing.
pub fn check_telemetry(settings: &Settings) -> Result<(), AppError> {
    let env = |name: &str| std::env::var(name).ok();
    all_switches_known()?;
    TraceSampler::from_env(env).map_err(|error| unusable(&error))?;
    export_settings(settings)?.resolve(env).map_err(|error| unusable(&error))?;
    super::propagation()?;
    metrics::plan(settings, Stay::AsServer).map(drop)
}

impl Telemetry {
    /// Opens the enabled exporters. Must be called within an async runtime.
    pub(super) fn open(
        settings: &Settings,
        stay: Stay,
        identity_of: &IdentityOf,
        store: &Arc<dyn RunStore>,
    ) -> Result<Self, AppError> {
        let env = |name: &str| std::env::var(name).ok();
        all_switches_known()?;
        let sampler = TraceSampler::from_env(env).map_err(|error| unusable(&error))?;
        let sampler: Sampler = Arc::new(move |trace, parent| sampler.sampled(trace, parent));
        let export = export_settings(settings)?.resolve(env).map_err(|error| unusable(&error))?;
        let spans = export.map(|export| Spans::start(&export, identity_of)).transpose()?;
        let metrics = ProcessMetrics::start(settings, stay, identity_of, store)?;
        if let (Some(metrics), Some(spans)) = (&metrics, &spans) {
            metrics.look_after(spans);
        }
        Ok(Self { spans, metrics, sampler })
    }

    /// Whether the spans of a new trace are recorded.
    pub(super) fn sampler(&self) -> Sampler {
        Sampler::clone(&self.sampler)
    }

    /// The sinks for events of runs.
    pub(super) fn sinks(&self) -> Vec<Arc<dyn EventSink>> {
        let spans = self.spans.iter().map(|spans| spans.background.clone() as Arc<dyn EventSink>);
        spans.chain(self.metrics.iter().map(ProcessMetrics::sink)).collect()
    }

    /// The recorder of gateway requests, if there is one.
    pub(super) fn request_meter(&self) -> Option<Arc<dyn RequestMeter>> {
        self.metrics.as_ref().map(ProcessMetrics::request_meter)
    }

    /// Observes a gateway.
    pub(super) fn watch(&self, gateway: &Gateway) {
        self.metrics.iter().for_each(|metrics| metrics.watch(gateway));
    }

    /// The watcher of the MCP servers.
    pub(super) fn mcp_watcher(&self) -> Option<mcp::Watcher> {
        self.metrics.as_ref().map(ProcessMetrics::mcp_watcher)
    }

    /// The metrics in the Prometheus format.
    pub(super) fn prometheus(&self) -> Option<String> {
        self.metrics.as_ref().and_then(ProcessMetrics::prometheus)
    }

    /// Exports all spans of a run from its journal. `None` if spans are not exported.
    pub(super) fn send_again(&self, run: &RunId, journal: &[JournalEntry]) -> Option<usize> {
        self.spans.as_ref().map(|spans| spans.sink.send_again(run, journal))
    }

    /// Exports the rest. Returns failures as sentences.
    pub(super) async fn close(self) -> Vec<String> {
        let mut complaints = match self.spans {
            None => Vec::new(),
            Some(spans) => match tokio::task::spawn_blocking(move || spans.finish()).await {
                Ok(complaints) => complaints,
                Err(error) => vec![format!("the last spans may be lost: {error}")],
            },
        };
        // Metrics last, because they count exported and dropped spans.
        if let Some(metrics) = self.metrics {
            complaints.extend(metrics.finish().await);
        }
        complaints
    }
}

impl Spans {
    fn start(export: &crate::telemetry::Export, identity_of: &IdentityOf) -> Result<Self, AppError> {
        let sink = Arc::new(SpanSink::start(export, identity_of.clone()).map_err(|error| unusable(&error))?);
        let background = Arc::new(BackgroundSink::new(sink.clone()).map_err(|error| unusable(&error))?);
        Ok(Self { background, sink })
    }

    /// Converts the last events to spans and exports them. Blocks.
    fn finish(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        match self.background.finish() {
            0 => {}
            dropped => complaints
                .push(format!("{dropped} events were dropped because they arrived faster than spans could be built")),
        }
        complaints.extend(self.sink.shutdown().err().map(|error| error.to_string()));
        complaints
    }
}

fn export_settings(settings: &Settings) -> Result<ExportSettings, AppError> {
    let content = match settings.telemetry.content {
        config::ContentMode::Full => SpanContent::default(),
        config::ContentMode::LastTurn => SpanContent { last_turn_only: true, ..SpanContent::default() },
        config::ContentMode::None => SpanContent { hide_inputs: true, hide_outputs: true, ..SpanContent::default() },
    };
    Ok(ExportSettings {
        destination: destination(settings),
        content,
        service_name: Some(settings.telemetry.service_name.clone()),
        queue_bytes: settings.telemetry.queue_bytes,
        redaction: redaction(settings)?,
    })
}

/// The redaction rules: the secrets of the configuration, and values whose name marks a secret.
fn redaction(settings: &Settings) -> Result<Redaction, AppError> {
    let redact = &settings.telemetry.redact;
    let usual = USUAL_KEYS.iter().filter(|_| redact.usual).map(|key| (*key).to_owned());
    let keys = usual.chain(redact.keys.iter().map(ToString::to_string));
    Redaction::new(keys, secrets::known(settings)).map_err(|error| unusable(&format!("telemetry.redact.keys: {error}")))
}

fn destination(settings: &Settings) -> Destination {
    let protocol = settings.telemetry.protocol.map(|protocol| match protocol {
        config::OtlpProtocol::HttpProtobuf => Protocol::HttpProtobuf,
        config::OtlpProtocol::HttpJson => Protocol::HttpJson,
        config::OtlpProtocol::Grpc => Protocol::Grpc,
    });
    let (endpoint, headers) = (settings.telemetry.otlp_endpoint.clone(), settings.telemetry.headers.clone());
    Destination { endpoint, protocol, headers }
}

fn all_switches_known() -> Result<(), AppError> {
    match misspelt(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())) {
        None => Ok(()),
        Some(name) => Err(unusable(&format!("`{name}` has no effect: unknown variable; see docs/configuration.md"))),
    }
}

fn unusable(error: &dyn std::fmt::Display) -> AppError {
    AppError::Telemetry(error.to_string())
}
