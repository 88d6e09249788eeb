//! Span export of this process, with the redaction of secrets.

use std::sync::Arc;
use std::time::Duration;

use super::super::error::AppError;
use crate::config::{self, Settings};
use crate::ports::RunStore;
use crate::telemetry::spans::{IdentityOf, Redaction, USUAL_NAMES};
use crate::telemetry::{BackgroundSink, Destination, Export, ExportSettings, Protocol, SpanContent, SpanSink};

/// The span exporter, and the thread that converts events to spans.
pub(super) struct Spans {
    pub(super) background: Arc<BackgroundSink>,
    pub(super) sink: Arc<SpanSink>,
}

impl Spans {
    pub(super) fn start(
        export: &Export,
        identity_of: &IdentityOf,
        store: &Arc<dyn RunStore>,
    ) -> Result<Self, AppError> {
        let sink = SpanSink::start(export, identity_of.clone(), Some(store.clone()));
        let sink = Arc::new(sink.map_err(|error| AppError::telemetry(&error))?);
        let background = Arc::new(BackgroundSink::new(sink.clone()).map_err(|error| AppError::telemetry(&error))?);
        Ok(Self { background, sink })
    }

    /// Converts the last events to spans and exports them for at most that time. Blocks.
    pub(super) fn finish(&self, limit: Duration) -> Vec<String> {
        let mut complaints = Vec::new();
        match self.background.finish() {
            0 => {}
            dropped => complaints
                .push(format!("{dropped} events were dropped because they arrived faster than spans could be built")),
        }
        complaints.extend(self.sink.shutdown_within(limit).err().map(|error| error.to_string()));
        complaints
    }
}

pub(super) fn export_settings(settings: &Settings) -> Result<ExportSettings, AppError> {
    let usual = SpanContent::default();
    let usual = SpanContent { value_bytes: settings.telemetry.value_bytes.unwrap_or(usual.value_bytes), ..usual };
    let content = match settings.telemetry.content {
        config::ContentMode::Full => usual,
        config::ContentMode::LastTurn => SpanContent { last_turn_only: true, ..usual },
        config::ContentMode::None => SpanContent { hide_inputs: true, hide_outputs: true, ..usual },
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
pub fn redaction(settings: &Settings) -> Result<Redaction, AppError> {
    let redact = &settings.telemetry.redact;
    let usual = USUAL_NAMES.iter().filter(|_| redact.usual).map(|key| (*key).to_owned());
    let keys = usual.chain(redact.keys.iter().map(ToString::to_string));
    Redaction::new(keys, settings.secrets())
        .map(|redaction| redaction.with_recognizable(redact.usual))
        .map_err(|error| AppError::telemetry(&format!("telemetry.redact.keys: {error}")))
}

pub(super) fn destination(settings: &Settings) -> Destination {
    let protocol = settings.telemetry.protocol.map(|protocol| match protocol {
        config::OtlpProtocol::HttpProtobuf => Protocol::HttpProtobuf,
        config::OtlpProtocol::HttpJson => Protocol::HttpJson,
        config::OtlpProtocol::Grpc => Protocol::Grpc,
    });
    let (endpoint, headers) = (settings.telemetry.otlp_endpoint.clone(), settings.telemetry.headers.clone());
    Destination { endpoint, protocol, headers }
}
