//! Telemetry of runs, as the settings and the environment enable it.

mod catch_up;
mod metrics;
mod spans;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;

use self::catch_up::CatchUp;
use self::metrics::ProcessMetrics;
pub use self::spans::redaction;
use self::spans::{Spans, export_settings};
use super::error::AppError;
use super::propagation::propagation;
use super::stay::Stay;
use crate::config::Settings;
use crate::core::id::RunId;
use crate::core::run::JournalEntry;
use crate::gateway::Gateway;
use crate::mcp;
use crate::ports::{EventSink, Feedback, RequestMeter, RunStore};
use crate::runner::Sampler;
use crate::telemetry::export::{LogExport, misspelt};
use crate::telemetry::logging::{self, RunLogFiles};
use crate::telemetry::spans::IdentityOf;
use crate::telemetry::{BackgroundSink, SampledSink, Sampler as TraceSampler};

/// All exporters of the process.
pub(super) struct Telemetry {
    spans: Option<Spans>,
    store: Arc<dyn RunStore>,
    metrics: Option<ProcessMetrics>,
    logs: Option<Arc<LogExport>>,
    run_files: Option<Arc<BackgroundSink>>,
    sampler: Sampler,
}

/// Whether the telemetry settings and variables are valid. Opens nothing.
pub fn check_telemetry(settings: &Settings) -> Result<(), AppError> {
    let env = |name: &str| std::env::var(name).ok();
    all_switches_known()?;
    settings.log.as_deref().map_or(Ok(()), logging::check_filter).map_err(|error| AppError::telemetry(&error))?;
    TraceSampler::from_env(env).map_err(|error| AppError::telemetry(&error))?;
    export_settings(settings)?.resolve(env).map_err(|error| AppError::telemetry(&error))?;
    export_settings(settings)?.resolve_logs(env).map_err(|error| AppError::telemetry(&error))?;
    propagation()?;
    metrics::plan(settings, Stay::AsServer).map(drop)
}

/// The address of the receiver of spans, without secrets. `None` if spans are not sent.
pub fn span_receiver(settings: &Settings) -> Result<Option<String>, AppError> {
    let export = export_settings(settings)?.resolve(|name| std::env::var(name).ok());
    Ok(export.map_err(|error| AppError::telemetry(&error))?.and_then(|export| export.receiver()))
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
        logging::redact(export_settings(settings)?.redaction);
        let sampler = TraceSampler::from_env(env).map_err(|error| AppError::telemetry(&error))?;
        let sampler: Sampler = Arc::new(move |trace, parent| sampler.sampled(trace, parent));
        let export = export_settings(settings)?.resolve(env).map_err(|error| AppError::telemetry(&error))?;
        let spans = export.map(|export| Spans::start(&export, identity_of, store)).transpose()?;
        let metrics = ProcessMetrics::start(settings, stay, identity_of, store)?;
        if let (Some(metrics), Some(spans)) = (&metrics, &spans) {
            metrics.look_after(spans);
        }
        let logs = export_settings(settings)?.resolve_logs(env).map_err(|error| AppError::telemetry(&error))?;
        let logs = logs.map(LogExport::start).transpose().map_err(|error| AppError::telemetry(&error))?.map(Arc::new);
        if logs.is_some() {
            logging::export_to(logs.clone());
        }
        let run_files = settings.log_folder.as_deref().map(|folder| run_files(folder, settings)).transpose()?;
        Ok(Self { spans, store: store.clone(), metrics, logs, run_files, sampler })
    }

    /// Whether the spans of a new trace are recorded.
    pub(super) fn sampler(&self) -> Sampler {
        Sampler::clone(&self.sampler)
    }

    /// The sinks for events of runs.
    pub(super) fn sinks(&self) -> Vec<Arc<dyn EventSink>> {
        let spans =
            self.spans.iter().map(|spans| Arc::new(SampledSink::new(spans.background.clone())) as Arc<dyn EventSink>);
        let run_files = self.run_files.iter().map(|files| files.clone() as Arc<dyn EventSink>);
        spans.chain(self.metrics.iter().map(ProcessMetrics::sink)).chain(run_files).collect()
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

    /// The catch-up of spans, if the marks of runs move.
    pub(super) fn catch_up(&self) -> Option<CatchUp> {
        let spans = self.spans.as_ref().filter(|spans| spans.sink.is_marking())?;
        Some(CatchUp { sink: spans.sink.clone(), store: self.store.clone() })
    }

    /// Exports all spans of a run from its journal and the feedback on it. `None` if spans are not exported.
    pub(super) fn send_again(&self, run: &RunId, journal: &[JournalEntry], feedback: &[Feedback]) -> Option<usize> {
        self.spans.as_ref().map(|spans| spans.sink.send_again(run, journal, feedback))
    }

    /// Exports the rest, spans and log records for at most that time. Returns failures as sentences.
    pub(super) async fn close(self, limit: Duration) -> Vec<String> {
        let spans = self.spans.map(|spans| spawn_blocking(move || spans.finish(limit)));
        if self.logs.is_some() {
            logging::export_to(None);
        }
        let logs =
            self.logs.map(|logs| spawn_blocking(move || logs.finish(limit).err().map(|error| error.to_string())));
        let mut complaints = match spans {
            None => Vec::new(),
            Some(finished) => {
                finished.await.unwrap_or_else(|error| vec![format!("the last spans may be lost: {error}")])
            }
        };
        if let Some(finished) = logs {
            complaints.extend(
                finished.await.unwrap_or_else(|error| Some(format!("the last log records may be lost: {error}"))),
            );
        }
        if let Some(files) = self.run_files {
            complaints.extend(match spawn_blocking(move || files.finish()).await {
                Ok(0) => None,
                Ok(dropped) => Some(format!(
                    "{dropped} events are missing in log files of runs, because they arrived faster than they could be written"
                )),
                Err(error) => Some(format!("the last lines of log files of runs may be lost: {error}")),
            });
        }
        // Metrics last, because they count exported and dropped spans.
        if let Some(metrics) = self.metrics {
            complaints.extend(metrics.finish().await);
        }
        complaints
    }
}

/// The log files of runs in this folder.
fn run_files(folder: &Path, settings: &Settings) -> Result<Arc<BackgroundSink>, AppError> {
    let redaction = export_settings(settings)?.redaction;
    let refused = |error: std::io::Error| {
        AppError::telemetry(&format!("the folder `{}` of `log_folder` cannot be used: {error}", folder.display()))
    };
    let files = RunLogFiles::in_folder(folder.to_owned(), redaction).map_err(refused)?;
    Ok(Arc::new(BackgroundSink::new(Arc::new(files)).map_err(refused)?))
}

fn all_switches_known() -> Result<(), AppError> {
    match misspelt(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())) {
        None => Ok(()),
        Some(name) => {
            Err(AppError::telemetry(&format!("`{name}` has no effect: unknown variable; see docs/configuration.md")))
        }
    }
}
