//! Export layer: passes the log records of toolgate to the OTLP export of this process, if there is one, whatever the level of
//! the log on standard error is. A record inside the span of a run names the run and its trace.

use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::export::{FieldValue, LogExport, LogLine};

/// The export of this process, as the subscriber is that of this process.
static EXPORT: RwLock<Option<Arc<LogExport>>> = RwLock::new(None);

/// Exports the log records of this process from now on, or no longer.
pub fn export_to(export: Option<Arc<LogExport>>) {
    *EXPORT.write().unwrap_or_else(PoisonError::into_inner) = export;
    tracing::callsite::rebuild_interest_cache();
}

fn export() -> Option<Arc<LogExport>> {
    EXPORT.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Whether a record or a span is exported while there is an export: toolgate's own ones, up to `info`.
fn is_wanted(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("toolgate") && *metadata.level() <= Level::INFO
}

/// The filter of the layer.
pub(super) struct ExportFilter;

impl<S> Filter<S> for ExportFilter {
    fn enabled(&self, metadata: &Metadata<'_>, _context: &Context<'_, S>) -> bool {
        is_wanted(metadata) && export().is_some()
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_wanted(metadata) && export().is_some() { Interest::always() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(if export().is_some() { LevelFilter::INFO } else { LevelFilter::OFF })
    }
}

pub(super) struct ExportLayer;

/// The fields of a run's span that its records repeat.
#[derive(Clone, Debug, Default)]
struct RunFields {
    run: Option<String>,
    trace_id: Option<String>,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for ExportLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let run = fields.take_text("run");
        if let (Some(span), true) = (context.span(id), run.is_some()) {
            span.extensions_mut().insert(RunFields { run, trace_id: fields.trace_id });
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(export) = export() else { return };
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut around = context.event_scope(event).into_iter().flatten();
        let around = around.find_map(|span| span.extensions().get::<RunFields>().cloned());
        if let Some(RunFields { run, trace_id }) = around {
            fields.trace_id = fields.trace_id.or(trace_id);
            if !fields.others.iter().any(|(name, _)| *name == "run") {
                fields.others.extend(run.map(|run| ("run", FieldValue::Text(run))));
            }
        }
        export.offer(LogLine {
            level: *event.metadata().level(),
            target: event.metadata().target(),
            message: fields.message,
            trace_id: fields.trace_id,
            span_id: fields.span_id,
            fields: fields.others,
        });
    }
}

/// The fields of a record.
#[derive(Default)]
struct Fields {
    message: String,
    trace_id: Option<String>,
    span_id: Option<String>,
    others: Vec<(&'static str, FieldValue)>,
}

impl Fields {
    fn take_text(&mut self, name: &str) -> Option<String> {
        let at = self.others.iter().position(|(known, _)| *known == name)?;
        if let (_, FieldValue::Text(text)) = self.others.swap_remove(at) { Some(text) } else { None }
    }

    fn text(&mut self, name: &'static str, text: String) {
        match name {
            "message" => self.message = text,
            "trace_id" => self.trace_id = Some(text),
            "span_id" => self.span_id = Some(text),
            _ => self.others.push((name, FieldValue::Text(text))),
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value.to_owned());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.others.push((field.name(), FieldValue::Number(value)));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.others.push((field.name(), FieldValue::Number(i64::try_from(value).unwrap_or(i64::MAX))));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.others.push((field.name(), FieldValue::Real(value)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.others.push((field.name(), FieldValue::Flag(value)));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field.name(), format!("{value:?}"));
    }
}
