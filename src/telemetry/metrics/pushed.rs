//! What is sent on its own accord: an exporter that complains once, and not every minute, of a receiver that is not there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;

/// How the exports went.
#[derive(Clone, Debug, Default)]
pub(super) struct Exports(Arc<Mutex<Past>>);

#[derive(Debug, Default)]
struct Past {
    /// Why the last one failed.
    failed: Option<String>,
    /// Nothing is told in the log any more: it was told, or whoever ends the process tells it.
    is_quiet: bool,
}

/// An exporter whose failures are kept.
#[derive(Debug)]
pub(super) struct Pushed<E> {
    exporter: E,
    exports: Exports,
}

impl Exports {
    /// An exporter whose failures are kept here.
    pub(super) fn of<E>(&self, exporter: E) -> Pushed<E> {
        Pushed { exporter, exports: self.clone() }
    }

    /// The last export follows. How it goes is told by whoever asks.
    pub(super) fn end(&self) {
        self.past().is_quiet = true;
    }

    /// Why the last export failed, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        self.past().failed.clone()
    }

    fn note(&self, exported: &OTelSdkResult) {
        let mut past = self.past();
        match exported {
            Ok(()) => past.failed = None,
            Err(error) => {
                let reason = reason(error);
                if !std::mem::replace(&mut past.is_quiet, true) {
                    tracing::warn!(reason, "metrics could not be sent; this is told once");
                }
                past.failed = Some(reason);
            }
        }
    }

    fn past(&self) -> MutexGuard<'_, Past> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: PushMetricExporter> PushMetricExporter for Pushed<E> {
    /// Never fails for the SDK, which would write each failure into the log.
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.exports.note(&self.exporter.export(metrics).await);
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}

fn reason(error: &OTelSdkError) -> String {
    match error {
        OTelSdkError::InternalFailure(reason) => reason.clone(),
        OTelSdkError::AlreadyShutdown | OTelSdkError::Timeout(_) => error.to_string(),
    }
}
