//! Log export: sends the log records of this process over OTLP, through a queue as that of spans.

use std::time::{Duration, SystemTime};

use opentelemetry::logs::{AnyValue, LogRecord as _, Logger as _, LoggerProvider as _, Severity};
use opentelemetry::trace::{SpanId, TraceFlags, TraceId};
use opentelemetry::{InstrumentationScope, Key};
use opentelemetry_otlp::LogExporter;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, LogExporter as _, SdkLogRecord, SdkLogger, SdkLoggerProvider};

use super::resource::resource;
use super::runtime::ExportRuntime;
use super::sender::{BatchExporter, ExportSender};
use super::settings::LogExportPlan;
use super::{ExportError, Signal};
use crate::spans::Redaction;

/// The export of log records.
pub struct LogExport {
    sender: ExportSender<SdkLogRecord>,
    /// Creates records. It processes none: the queue does.
    logger: SdkLogger,
    redaction: Redaction,
}

/// A log record to export.
#[derive(Debug)]
pub(crate) struct LogLine {
    pub(crate) level: tracing::Level,
    pub(crate) target: &'static str,
    pub(crate) message: String,
    /// The trace and the span that hold the rest, as hexadecimal text.
    pub(crate) trace_id: Option<String>,
    pub(crate) span_id: Option<String>,
    pub(crate) fields: Vec<(&'static str, FieldValue)>,
}

#[derive(Clone, Debug)]
pub(crate) enum FieldValue {
    Text(String),
    Number(i64),
    Real(f64),
    Flag(bool),
}

impl LogExport {
    /// Starts exporting. Call it anywhere, also within an async runtime.
    pub fn start(plan: LogExportPlan) -> Result<Self, ExportError> {
        let LogExportPlan { transport, service_name, batching, redaction } = plan;
        let runtime = ExportRuntime::start()?;
        let (mut exporter, reachability) = transport.log_exporter(&runtime)?;
        exporter.set_resource(&resource(service_name.as_deref()));
        let scope = InstrumentationScope::builder("toolgate").with_version(env!("CARGO_PKG_VERSION")).build();
        let exporter = (LogRecords { exporter, scope }, reachability);
        let sender = ExportSender::start(Signal::Logs, exporter, transport.address(), batching, runtime);
        let logger = SdkLoggerProvider::builder().build().logger("toolgate");
        Ok(Self { sender, logger, redaction })
    }

    /// Sends the remaining records for at most that time and stops, as the export of spans does.
    pub fn finish(&self, limit: Duration) -> Result<(), ExportError> {
        self.sender.finish(limit)
    }

    /// Queues a record. Never waits.
    pub(crate) fn offer(&self, line: LogLine) {
        let mut record = self.logger.create_log_record();
        let now = SystemTime::now();
        record.set_timestamp(now);
        record.set_observed_timestamp(now);
        record.set_target(line.target);
        let (severity, name) = severity(line.level);
        record.set_severity_number(severity);
        record.set_severity_text(name);
        record.set_body(AnyValue::from(self.redaction.text(line.message)));
        let trace = line.trace_id.and_then(|id| TraceId::from_hex(&id).ok());
        let span = line.span_id.and_then(|id| SpanId::from_hex(&id).ok());
        if let Some(trace) = trace {
            record.set_trace_context(trace, span.unwrap_or(SpanId::INVALID), Some(TraceFlags::SAMPLED));
        }
        for (name, value) in line.fields {
            let value = match value {
                FieldValue::Text(text) => AnyValue::from(self.redaction.text(text)),
                FieldValue::Number(number) => AnyValue::from(number),
                FieldValue::Real(real) => AnyValue::from(real),
                FieldValue::Flag(flag) => AnyValue::from(flag),
            };
            record.add_attribute(Key::from_static_str(name), value);
        }
        self.sender.offer(record);
    }
}

impl std::fmt::Debug for LogExport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogExport").finish_non_exhaustive()
    }
}

fn severity(level: tracing::Level) -> (Severity, &'static str) {
    match level {
        tracing::Level::ERROR => (Severity::Error, "ERROR"),
        tracing::Level::WARN => (Severity::Warn, "WARN"),
        tracing::Level::INFO => (Severity::Info, "INFO"),
        tracing::Level::DEBUG => (Severity::Debug, "DEBUG"),
        tracing::Level::TRACE => (Severity::Trace, "TRACE"),
    }
}

/// The exporter of the SDK, with the scope of all records.
struct LogRecords {
    exporter: LogExporter,
    scope: InstrumentationScope,
}

impl BatchExporter for LogRecords {
    type Item = SdkLogRecord;

    async fn export_batch(&self, records: Vec<SdkLogRecord>) -> OTelSdkResult {
        let batch: Vec<_> = records.iter().map(|record| (record, &self.scope)).collect();
        self.exporter.export(LogBatch::new(&batch)).await
    }
}
