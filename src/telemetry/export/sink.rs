//! Span sink: folds runs into spans and queues them for export.

use std::time::Duration;

use jiff::Timestamp;
use opentelemetry::InstrumentationScope;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use toolgate_core::id::RunId;
use toolgate_core::run::{Event, JournalEntry};
use toolgate_ports::{EventSink, Update};

use super::convert::span_data;
use super::limits::Limits;
use super::resource::resource;
use super::runtime::ExportRuntime;
use super::sender::ExportSender;
use super::{Export, ExportError, FLUSH, Signal, SpanCounts, console};
use crate::per_run::PerRun;
use crate::spans::{IdentityOf, Projector, Redaction, Span, SpanContent};

/// An event sink that exports the spans of every run.
pub struct SpanSink {
    runs: PerRun<Projector>,
    sender: Option<ExportSender<SpanData>>,
    console: bool,
    limits: Limits,
    scope: InstrumentationScope,
    content: SpanContent,
    redaction: Redaction,
    identity_of: IdentityOf,
}

impl SpanSink {
    /// Starts exporting. Call it anywhere, also within an async runtime.
    pub fn start(export: &Export, identity_of: IdentityOf) -> Result<Self, ExportError> {
        Ok(Self {
            runs: PerRun::default(),
            sender: sender(export)?,
            console: export.console,
            limits: export.limits,
            scope: InstrumentationScope::builder("toolgate").with_version(env!("CARGO_PKG_VERSION")).build(),
            content: export.content,
            redaction: export.redaction.clone(),
            identity_of,
        })
    }

    /// Sends the remaining spans and stops. Blocks as long as a receiver accepts spans, at most [`FLUSH`], or a few
    /// seconds if it accepts no spans. An error reports the number of spans lost since the start.
    pub fn shutdown(&self) -> Result<(), ExportError> {
        self.shutdown_within(FLUSH)
    }

    /// The same with another limit.
    pub fn shutdown_within(&self, limit: Duration) -> Result<(), ExportError> {
        self.sender.as_ref().map_or(Ok(()), |sender| sender.finish(limit))
    }

    /// Sends all spans of a run, from its journal. They have the ids of the original export, so a receiver that has
    /// them recognizes them. Returns the number of spans.
    pub fn send_again(&self, run: &RunId, journal: &[JournalEntry]) -> usize {
        let spans = self.projector(run).project_all(journal);
        let count = spans.len();
        self.send(spans);
        count
    }

    /// The outcomes of the spans so far.
    pub fn span_counts(&self) -> SpanCounts {
        self.sender.as_ref().map(ExportSender::span_counts).unwrap_or_default()
    }

    fn send(&self, spans: Vec<Span>) {
        for mut span in spans {
            let left_out = self.limits.apply(&mut span);
            if self.console {
                console::write(&span);
            }
            if let Some(sender) = &self.sender {
                sender.offer(span_data(span, left_out, &self.scope));
            }
        }
    }

    fn projector(&self, run: &RunId) -> Projector {
        let identity_of = IdentityOf::clone(&self.identity_of);
        Projector::new(run.clone(), self.content, identity_of).redacting(self.redaction.clone())
    }
}

fn sender(export: &Export) -> Result<Option<ExportSender<SpanData>>, ExportError> {
    let Some(transport) = &export.transport else { return Ok(None) };
    let runtime = ExportRuntime::start()?;
    let (mut exporter, reachability) = transport.span_exporter(&runtime)?;
    exporter.set_resource(&resource(export.service_name.as_deref()));
    let exporter = (exporter, reachability);
    Ok(Some(ExportSender::start(Signal::Traces, exporter, transport.address(), export.batching, runtime)))
}

impl EventSink for SpanSink {
    fn observe(&self, run: &RunId, update: &Update) {
        let Update::JournalEntry(recorded) = update else { return };
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

    fn claimed(&self, run: &RunId, history: &[JournalEntry]) {
        let spans = self.runs.with_new(run, || self.projector(run), |projector| projector.catch_up(history));
        self.send(spans);
    }

    fn released(&self, run: &RunId, _at: Timestamp) {
        let spans = self.runs.with(run, |projector| projector.pause()).unwrap_or_default();
        self.runs.forget(run);
        self.send(spans);
    }
}

impl std::fmt::Debug for SpanSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpanSink").field("content", &self.content).finish_non_exhaustive()
    }
}
