//! The SDK's exporters, made for a transport.
//!
//! All of them are asynchronous and belong to the export's own runtime: an export that waits, for an answer or to try
//! again, can then be broken off, which a sleeping thread cannot.

use std::time::Duration;

use opentelemetry_otlp::{
    Compression, MetricExporter, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig, WithTonicConfig,
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
use super::super::reach::Reach;
use super::super::runtime::ExportRuntime;
use super::client::{Client, Configured};
use super::{Protocol, Transport};

/// The longest pause between two attempts. Short, for at the end of a process there is little time.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How long the last export of a process may take.
const LAST_EXPORT: Duration = Duration::from_secs(2);

impl Transport {
    /// An exporter of spans, to be used on that runtime, and what its attempts teach.
    pub(in super::super) fn span_exporter(
        &self,
        runtime: &ExportRuntime,
    ) -> Result<(SpanExporter, Reach), ExportError> {
        let _within = runtime.enter();
        let reach = self.reach();
        let exporter = match self.protocol {
            Protocol::HttpProtobuf | Protocol::HttpJson => {
                self.over_http(SpanExporter::builder().with_http(), &reach)?.build()
            }
            Protocol::Grpc => self.over_grpc(SpanExporter::builder().with_tonic())?.build(),
        };
        Ok((exporter?, reach))
    }

    /// An exporter of measurements for a reader with a thread of its own, such as the SDK's periodic one.
    /// An export takes no longer than `within`.
    pub fn metric_exporter(&self, runtime: &ExportRuntime, within: Duration) -> Result<MetricExport, ExportError> {
        let _within = runtime.enter();
        let reach = self.reach();
        let exporter = match self.protocol {
            Protocol::HttpProtobuf | Protocol::HttpJson => {
                self.over_http(MetricExporter::builder().with_http(), &reach)?.build()
            }
            Protocol::Grpc => self.over_grpc(MetricExporter::builder().with_tonic())?.build(),
        };
        let (runtime, closing) = (runtime.clone(), watch::Sender::new(None));
        Ok(MetricExport { exporter: exporter?, runtime, within, closing, reach })
    }

    fn reach(&self) -> Reach {
        match self.protocol {
            Protocol::HttpProtobuf | Protocol::HttpJson => Reach::noted(&self.url),
            Protocol::Grpc => Reach::knocking(&self.url),
        }
    }

    fn over_http<B: WithExportConfig + WithHttpConfig>(&self, builder: B, reach: &Reach) -> Result<B, ExportError> {
        let http = self.tls.for_http(reqwest::Client::builder().timeout(self.timeout))?;
        let http = http.build().map_err(|error| ExportError::Client(error.to_string()))?;
        let builder = builder
            .with_protocol(match self.protocol {
                Protocol::HttpJson => opentelemetry_otlp::Protocol::HttpJson,
                Protocol::HttpProtobuf | Protocol::Grpc => opentelemetry_otlp::Protocol::HttpBinary,
            })
            .with_endpoint(self.url.as_str())
            .with_http_client(Client { http, headers: self.header_map(), reach: reach.clone() })
            .with_timeout(self.timeout)
            .with_retry_policy(retry());
        Ok(if self.compressed { builder.with_compression(Compression::Gzip) } else { builder })
    }

    fn over_grpc<B: WithExportConfig + WithTonicConfig>(&self, builder: B) -> Result<B, ExportError> {
        let builder = builder
            .with_endpoint(self.url.as_str())
            .with_interceptor(Configured(self.header_map()))
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

/// Attempts are bounded by the time of an export, not by their number.
fn retry() -> RetryPolicy {
    RetryPolicy::recommended().with_max_retries(usize::MAX).with_max_delay(LONGEST_PAUSE)
}

/// Sends measurements from whatever thread reads them.
#[derive(Debug)]
pub struct MetricExport {
    exporter: MetricExporter,
    runtime: ExportRuntime,
    within: Duration,
    closing: watch::Sender<Option<Instant>>,
    reach: Reach,
}

impl MetricExport {
    /// What to call when the process ends: from then on an export, also one under way, has little time left.
    pub fn hurry(&self) -> impl Fn() + Send + Sync + 'static {
        let closing = self.closing.clone();
        move || {
            closing.send_replace(Some(Instant::now()));
        }
    }

    async fn out_of_time(&self) {
        let mut closing = self.closing.subscribe();
        let last = async {
            // The sender is here, so it is not gone.
            let since = closing.wait_for(Option::is_some).await.ok().and_then(|since| *since);
            tokio::select! {
                () = sleep(LAST_EXPORT) => {}
                () = self.reach.hopeless(since.unwrap_or_else(Instant::now)) => {}
            }
        };
        tokio::select! {
            () = sleep(self.within) => {}
            () = last => {}
        }
    }
}

impl PushMetricExporter for MetricExport {
    /// Blocks the reader's thread, which has nothing else to do.
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.runtime.block_on(async {
            tokio::select! {
                exported = self.exporter.export(metrics) => {
                    if exported.is_ok() {
                        self.reach.answered();
                    }
                    exported
                }
                () = self.out_of_time() => Err(OTelSdkError::InternalFailure("the receiver did not take them in time".into())),
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
