//! The sink that turns runs into spans and hands them over.

use std::time::Duration;

use jiff::Timestamp;
use opentelemetry::InstrumentationScope;
use opentelemetry_otlp::{ExporterBuildError, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SpanProcessor};
use secrecy::ExposeSecret;

use super::Export;
use super::convert::span_data;
use super::split::SplitBySize;
use crate::core::id::RunId;
use crate::core::run::{Event, Recorded};
use crate::ports::{EventSink, Update};
use crate::telemetry::per_run::PerRun;
use crate::telemetry::spans::{IdentityOf, Projector, Redaction, Span, SpanContent};

/// Spans that may wait to be sent. Roots end last, so a short queue loses whole trees when many runs end together.
const QUEUE: usize = 65_536;

/// How long the last spans may take to leave.
const SHUTDOWN: Duration = Duration::from_secs(30);

/// A watcher that exports the spans of every run.
pub struct SpanSink {
    runs: PerRun<Projector>,
    processor: BatchSpanProcessor,
    scope: InstrumentationScope,
    content: SpanContent,
    redaction: Redaction,
    identity_of: IdentityOf,
}

/// Why spans cannot be exported, or were not.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The exporter cannot be built.
    #[error("spans cannot be exported: {0}")]
    Build(#[from] ExporterBuildError),
    /// The HTTP client cannot be built.
    #[error("spans cannot be exported: no HTTP client: {0}")]
    Client(String),
    /// The last spans did not leave.
    #[error("the last spans may be lost: {0}. Check the OTLP endpoint.")]
    Flush(OTelSdkError),
}

impl SpanSink {
    /// Starts exporting. May be called anywhere, also within an async runtime.
    pub fn start(export: &Export, identity_of: IdentityOf) -> Result<Self, ExportError> {
        let retry = RetryPolicy::recommended().with_max_retries(8).with_max_delay(Duration::from_secs(10));
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_http_client(blocking_client(export.timeout)?)
            .with_retry_policy(retry)
            .with_headers(
                export.headers.iter().map(|(name, value)| (name.clone(), value.expose_secret().into())).collect(),
            );
        if let Some(url) = &export.url {
            exporter = exporter.with_endpoint(url);
        }
        let queue = match std::env::var_os("OTEL_BSP_MAX_QUEUE_SIZE") {
            Some(_) => BatchConfigBuilder::default(),
            None => BatchConfigBuilder::default().with_max_queue_size(QUEUE),
        };
        let exporter = SplitBySize(exporter.build()?);
        let mut processor = BatchSpanProcessor::builder(exporter).with_batch_config(queue.build()).build();
        processor.set_resource(&resource(export));
        Ok(Self {
            runs: PerRun::default(),
            processor,
            scope: InstrumentationScope::builder("toolgate").with_version(env!("CARGO_PKG_VERSION")).build(),
            content: export.content,
            redaction: export.redaction.clone(),
            identity_of,
        })
    }

    /// Sends what is left and stops. Blocks for up to half a minute: call it where blocking is allowed.
    pub fn shutdown(&self) -> Result<(), ExportError> {
        let flushed = self.processor.force_flush(); // shutdown says Ok even when the last export failed
        let stopped = self.processor.shutdown_with_timeout(SHUTDOWN);
        flushed.and(stopped).map_err(ExportError::Flush)
    }

    fn send(&self, spans: Vec<Span>) {
        for span in spans {
            self.processor.on_end(span_data(span, &self.scope));
        }
    }

    fn projector(&self, run: &RunId) -> Projector {
        let identity_of = IdentityOf::clone(&self.identity_of);
        Projector::new(run.clone(), self.content, identity_of).redacting(self.redaction.clone())
    }
}

impl EventSink for SpanSink {
    fn observe(&self, run: &RunId, update: &Update) {
        let Update::Recorded(recorded) = update else { return };
        let spans = if matches!(recorded.event, Event::Started(_)) {
            self.runs.with_new(run, || self.projector(run), |projector| projector.observe(recorded))
        } else {
            self.runs.with(run, |projector| projector.observe(recorded)).unwrap_or_default()
        };
        if matches!(recorded.event, Event::Ended { .. }) {
            self.runs.forget(run);
        }
        self.send(spans);
    }

    fn took_up(&self, run: &RunId, history: &[Recorded]) {
        let spans = self.runs.with_new(run, || self.projector(run), |projector| projector.catch_up(history));
        self.send(spans);
    }

    fn laid_down(&self, run: &RunId, at: Timestamp) {
        let spans = self.runs.with(run, |projector| projector.pause(at)).unwrap_or_default();
        self.runs.forget(run);
        self.send(spans);
    }
}

impl std::fmt::Debug for SpanSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpanSink").field("content", &self.content).finish_non_exhaustive()
    }
}

/// The client must be the blocking one, for the processor's thread has no async runtime; and it must be made where there
/// is none either, or it panics.
fn blocking_client(timeout: Duration) -> Result<reqwest::blocking::Client, ExportError> {
    let made = std::thread::scope(|scope| {
        scope.spawn(|| reqwest::blocking::Client::builder().timeout(timeout).build()).join()
    });
    match made {
        Ok(client) => client.map_err(|error| ExportError::Client(error.to_string())),
        Err(_) => Err(ExportError::Client("its thread panicked".to_owned())),
    }
}

/// What the process is called: the SDK reads `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.
fn resource(export: &Export) -> Resource {
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let mut resource = Resource::builder().with_attribute(version);
    if let Some(name) = &export.service_name {
        resource = resource.with_service_name(name.clone());
    }
    resource.build()
}
