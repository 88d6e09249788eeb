//! OTLP transport: protocol, address, headers and TLS of each signal, from the configuration and the environment.
//!
//! `resolve` decides, purely; `build` creates the exporters of the OpenTelemetry SDK from the decision. The SDK reads
//! most of these variables itself, but it ignores invalid values, and a wrong destination would only show as missing
//! data.

mod build;
mod client;
mod resolve;
mod tls;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;

pub use build::MetricExport;

/// The kind of telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Traces,
    Metrics,
    /// Log records.
    Logs,
}

impl Signal {
    /// Its part of the variable names.
    fn variable(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
            Self::Logs => "LOGS",
        }
    }

    /// Its path over OTLP/HTTP.
    fn path(self) -> &'static str {
        match self {
            Self::Traces => "/v1/traces",
            Self::Metrics => "/v1/metrics",
            Self::Logs => "/v1/logs",
        }
    }

    /// Its items, in words.
    pub(super) fn items(self) -> &'static str {
        match self {
            Self::Traces => "spans",
            Self::Metrics => "metrics",
            Self::Logs => "log records",
        }
    }
}

/// The protocols of OTLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Protobuf over HTTP: every receiver accepts it, at any size.
    #[default]
    HttpProtobuf,
    /// JSON over HTTP: readable, and several times as large.
    HttpJson,
    /// gRPC.
    Grpc,
}

/// A receiver in the configuration. The environment completes missing fields.
#[derive(Clone, Debug, Default)]
pub struct Destination {
    /// The base address of an OTLP receiver. Over HTTP the path of the signal is appended unless it is present.
    pub endpoint: Option<String>,
    /// The protocol of the receiver.
    pub protocol: Option<Protocol>,
    /// Headers, in addition to those of the environment.
    pub headers: BTreeMap<String, SecretString>,
}

/// A validated connection setup for a receiver.
#[derive(Clone)]
pub struct Transport {
    protocol: Protocol,
    url: Url,
    headers: BTreeMap<String, SecretString>,
    timeout: Duration,
    compressed: bool,
    tls: TlsFiles,
}

/// PEM files for TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TlsFiles {
    /// The certificate authority to trust instead of the system's roots.
    authority: Option<NamedFile>,
    /// The client's certificate and key.
    client: Option<(NamedFile, NamedFile)>,
}

/// A file and the variable that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedFile {
    variable: String,
    path: PathBuf,
}

impl Transport {
    /// The most bytes of spans in one request, approximately, as protobuf. gRPC receivers reject more than 4 MiB, and
    /// so do some HTTP receivers. In JSON, short values take several times the space.
    pub(super) fn request_bytes(&self) -> usize {
        const PROTOBUF: usize = 3 * 1024 * 1024;
        match self.protocol {
            Protocol::HttpProtobuf | Protocol::Grpc => PROTOBUF,
            Protocol::HttpJson => PROTOBUF / 5,
        }
    }

    /// The address without parts that may be secret.
    pub fn address(&self) -> String {
        let mut shown = self.url.clone();
        shown.set_query(None);
        shown.to_string().trim_end_matches('/').to_owned()
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("protocol", &self.protocol)
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}
