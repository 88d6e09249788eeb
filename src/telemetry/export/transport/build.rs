//! OTLP exporters: builds the SDK's exporters for a transport.
//!
//! All of them are asynchronous and run on the export runtime. An export that waits for a response or a retry can then
//! be cancelled; a sleeping thread cannot.

use std::time::Duration;

use opentelemetry_otlp::{
    Compression, LogExporter, MetricExporter, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig,
    WithTonicConfig,
};
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::super::ExportError;
use super::super::reachability::Reachability;
use super::super::runtime::ExportRuntime;
use super::client::{Client, HeaderInterceptor};
use super::{Protocol, Transport};

/// The longest pause between two attempts. It is short, because an ending process has little time.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The time limit for the last export of a process.
const LAST_EXPORT: Duration = Duration::from_secs(2);

impl Transport {
    /// A span exporter for that runtime, and the reachability that its attempts report.
    pub(in super::super) fn span_exporter(
        &self,
        runtime: &ExportRuntime,
    ) -> Result<(SpanExporter, Reachability), ExportError> {
        let _within = runtime.enter();
        let reachability = self.reachability();
        let exporter = match self.protocol {
            Protocol::HttpProtobuf | Protocol::HttpJson => {
                self.over_http(SpanExporter::builder().with_http(), &reachability)?.build()
            }
            Protocol::Grpc => self.over_grpc(SpanExporter::builder().with_tonic())?.build(),
        };
        Ok((exporter?, reachability))
    }

    /// An exporter of log records for that runtime, and the reachability that its attempts report.
    pub(in super::super) fn log_exporter(
        &self,
        runtime: &ExportRuntime,
    ) -> Result<(LogExporter, Reachability), ExportError> {
        let _within = runtime.enter();
        let reachability = self.reachability();
        let exporter = match self.protocol {
            Protocol::HttpProtobuf | Protocol::HttpJson => {
                self.over_http(LogExporter::builder().with_http(), &reachability)?.build()
            }
            Protocol::Grpc => self.over_grpc(LogExporter::builder().with_tonic())?.build(),
        };
        Ok((exporter?, reachability))
    }

    /// A metrics exporter for a reader with its own thread, such as the SDK's periodic reader. `within` limits the time
    /// of an export.
    pub fn metric_exporter(&self, runtime: &ExportRuntime, within: Duration) -> Result<MetricExport, ExportError> {
        let _within = runtime.enter();
        let reachability = self.reachability();
        let exporter = match self.protocol {
            Protocol::HttpProtobuf | Protocol::HttpJson => {
                self.over_http(MetricExporter::builder().with_http(), &reachability)?.build()
            }
            Protocol::Grpc => self.over_grpc(MetricExporter::builder().with_tonic())?.build(),
        };
        let (runtime, closing) = (runtime.clone(), watch::Sender::new(None));
        Ok(MetricExport { exporter: exporter?, runtime, within, closing, reachability })
    }

    fn reachability(&self) -> Reachability {
        match self.protocol {
            Protocol::HttpProtobuf | Protocol::HttpJson => Reachability::noted(&self.url),
            Protocol::Grpc => Reachability::probing(&self.url),
        }
    }

    fn over_http<B: WithExportConfig + WithHttpConfig>(
        &self,
        builder: B,
        reachability: &Reachability,
    ) -> Result<B, ExportError> {
        let http = self.tls.for_http(reqwest::Client::builder().timeout(self.timeout))?;
        let http = http.build().map_err(|error| ExportError::Client(error.to_string()))?;
        let builder = builder
            .with_protocol(match self.protocol {
                Protocol::HttpJson => opentelemetry_otlp::Protocol::HttpJson,
                Protocol::HttpProtobuf | Protocol::Grpc => opentelemetry_otlp::Protocol::HttpBinary,
            })
            .with_endpoint(self.url.as_str())
            .with_http_client(Client { http, headers: self.header_map(), reachability: reachability.clone() })
            .with_timeout(self.timeout)
            .with_retry_policy(retry());
        Ok(if self.compressed { builder.with_compression(Compression::Gzip) } else { builder })
    }

    fn over_grpc<B: WithExportConfig + WithTonicConfig>(&self, builder: B) -> Result<B, ExportError> {
        let builder = builder
            .with_endpoint(self.url.as_str())
            .with_interceptor(HeaderInterceptor(self.header_map()))
            .with_timeout(self.timeout)
            .with_retry_policy(retry());
        let builder = if self.compressed { builder.with_compression(Compression::Gzip) } else { builder };
        match self.url.scheme() {
            "https" => Ok(builder.with_tls_config(self.tls.for_grpc()?)),
            _ => Ok(builder),
        }
    }

    fn header_map(&self) -> HeaderMap {
        let sound = self.headers.iter().filter_map(|(name, value)| {
            let mut value = HeaderValue::from_str(value.expose_secret()).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
        });
        sound.collect()
    }
}

/// The retry policy. The time of an export bounds the attempts, not their number.
fn retry() -> RetryPolicy {
    RetryPolicy::recommended().with_max_retries(usize::MAX).with_max_delay(LONGEST_PAUSE)
}

/// Sends metrics from the thread of any reader.
#[derive(Debug)]
pub struct MetricExport {
    exporter: MetricExporter,
    runtime: ExportRuntime,
    within: Duration,
    closing: watch::Sender<Option<Instant>>,
    reachability: Reachability,
}

impl MetricExport {
    /// A signal for the end of the process: after it, an export has little time left, including one in flight.
    pub fn exit_signal(&self) -> impl Fn() + Send + Sync + 'static {
        let closing = self.closing.clone();
        move || {
            closing.send_replace(Some(Instant::now()));
        }
    }

    async fn out_of_time(&self) {
        let mut closing = self.closing.subscribe();
        let last = async {
            // `self` owns the channel, so it is open.
            let since = closing.wait_for(Option::is_some).await.ok().and_then(|since| *since);
            tokio::select! {
                () = sleep(LAST_EXPORT) => {}
                () = self.reachability.hopeless(since.unwrap_or_else(Instant::now)) => {}
            }
        };
        tokio::select! {
            () = sleep(self.within) => {}
            () = last => {}
        }
    }
}

impl PushMetricExporter for MetricExport {
    /// Blocks the reader's thread, which has no other work.
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.runtime.block_on(async {
            tokio::select! {
                exported = self.exporter.export(metrics) => {
                    if exported.is_ok() {
                        self.reachability.answered();
                    }
                    exported
                }
                () = self.out_of_time() => Err(OTelSdkError::InternalFailure("the receiver timed out".into())),
            }
        })
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
