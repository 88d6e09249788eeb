//! Partial rejections: spans or log records that a receiver rejected from an accepted batch. The SDK's exporters report
//! such an export as a success and the rest only in a log record, the same over HTTP and gRPC. This module captures that
//! record during an export.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_core::tool::escape_untrusted;
use tracing::field::{Field, Visit};
use tracing::instrument::WithSubscriber as _;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// The longest receiver message that is repeated, in characters.
const LONGEST: usize = 300;

/// The number of items of a batch that a receiver rejected, and the receiver's reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rejected {
    pub(super) items: u64,
    pub(super) message: String,
}

tokio::task_local! {
    /// The rejections of the export that this task awaits: several exports are in flight at once.
    static HEARD: Arc<Mutex<Option<Rejected>>>;
}

/// Captures the rejections of exports.
#[derive(Clone)]
pub(super) struct Rejections {
    dispatch: Dispatch,
}

impl Rejections {
    /// Starts capturing; all other records go to the current subscriber.
    pub(super) fn listen() -> Self {
        let others = tracing::dispatcher::get_default(Dispatch::clone);
        Self { dispatch: Dispatch::new(RejectionSubscriber { others }) }
    }

    /// Runs an export; returns its result and its rejections.
    pub(super) async fn during<T>(&self, export: impl Future<Output = T>) -> (T, Option<Rejected>) {
        let heard = Arc::default();
        let exported = HEARD.scope(Arc::clone(&heard), export.with_subscriber(self.dispatch.clone())).await;
        (exported, heard.lock().unwrap_or_else(PoisonError::into_inner).take())
    }
}

/// Captures rejection records and passes all others on.
struct RejectionSubscriber {
    others: Dispatch,
}

fn tells_of_rejections(metadata: &Metadata<'_>) -> bool {
    metadata.target() == "opentelemetry-otlp" && metadata.name().ends_with(".PartialSuccess")
}

impl Subscriber for RejectionSubscriber {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if tells_of_rejections(metadata) { Interest::always() } else { self.others.register_callsite(metadata) }
    }

    /// The level that this subscriber needs; the others registered theirs.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        tells_of_rejections(metadata) || self.others.enabled(metadata)
    }

    fn event(&self, event: &Event<'_>) {
        let mut rejected = Rejected::default();
        if tells_of_rejections(event.metadata()) {
            event.record(&mut rejected);
        }
        if rejected.items > 0 {
            // Only `during` makes this the subscriber.
            let _ = HEARD.try_with(|heard| *heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(rejected));
        } else if self.others.enabled(event.metadata()) {
            self.others.event(event);
        }
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.others.new_span(span)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.others.record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.others.record_follows_from(span, follows);
    }

    fn enter(&self, span: &Id) {
        self.others.enter(span);
    }

    fn exit(&self, span: &Id) {
        self.others.exit(span);
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.others.clone_span(id)
    }

    fn try_close(&self, id: Id) -> bool {
        self.others.try_close(id)
    }
}

impl Visit for Rejected {
    fn record_i64(&mut self, field: &Field, value: i64) {
        if matches!(field.name(), "rejected_spans" | "rejected_log_records") {
            self.items = u64::try_from(value).unwrap_or(0);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "error_message" {
            self.message = one_line(value);
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn Debug) {}
}

/// The message as one line of bounded length, without terminal escapes.
fn one_line(message: &str) -> String {
    let mut cut: String = message.chars().take(LONGEST).map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    if cut.len() < message.len() {
        cut.push('…');
    }
    escape_untrusted(&cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_one_line_of_bounded_length_without_escapes() {
        assert_eq!(one_line("quota\r\nreached"), "quota  reached");
        assert_eq!(one_line("\u{1b}[2Jgone"), "\\u{1b}[2Jgone");
        assert_eq!(one_line(&"ä".repeat(1_000)).chars().count(), LONGEST + 1);
    }
}
