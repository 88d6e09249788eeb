//! Push exporter that logs an unavailable receiver once, and not on every interval.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;

/// The results of the exports.
#[derive(Clone, Debug, Default)]
pub(super) struct Exports(Arc<Mutex<ExportHistory>>);

#[derive(Debug, Default)]
struct ExportHistory {
    /// The error of the last export, if it failed.
    failed: Option<String>,
    /// No more failures are logged: one was logged, or the end of the process reports the last one.
    is_quiet: bool,
}

/// An exporter whose failures are kept.
#[derive(Debug)]
pub(super) struct PushExporter<E> {
    exporter: E,
    exports: Exports,
}

impl Exports {
    /// An exporter that keeps its failures here.
    pub(super) fn wrap<E>(&self, exporter: E) -> PushExporter<E> {
        PushExporter { exporter, exports: self.clone() }
    }

    /// Stops logging before the last export: the process that shuts down reports its failure.
    pub(super) fn end(&self) {
        self.past().is_quiet = true;
    }

    /// The error of the last export, if it failed.
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
                    tracing::warn!(reason, "failed to send metrics; further failures are not logged");
                }
                past.failed = Some(reason);
            }
        }
    }

    fn past(&self) -> MutexGuard<'_, ExportHistory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: PushMetricExporter> PushMetricExporter for PushExporter<E> {
    /// Never fails for the SDK, which would log every failure.
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
