//! How telemetry travels: one answer for every signal, from what is configured and from the environment.
//!
//! `resolve` decides, purely; `build` makes the exporters of the OpenTelemetry SDK from the decision. The SDK would
//! read most of these variables itself, but it ignores what it does not understand, and a mistake in where to send
//! would only be seen by what never arrives.

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

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Measurements.
    Metrics,
}

impl Signal {
    /// As the names of variables have it.
    fn variable(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
        }
    }

    /// Where OTLP over HTTP takes it.
    fn path(self) -> &'static str {
        match self {
            Self::Traces => "/v1/traces",
            Self::Metrics => "/v1/metrics",
        }
    }
}

/// The protocols of OTLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Protobuf over HTTP: every receiver takes it, of any size.
    #[default]
    HttpProtobuf,
    /// JSON over HTTP: several times as large, and readable.
    HttpJson,
    /// gRPC.
    Grpc,
}

/// A receiver, as the configuration names it. What it leaves open, the environment says.
#[derive(Clone, Debug, Default)]
pub struct Destination {
    /// The base address of an OTLP receiver. Over HTTP the path of the signal is appended, unless it is there.
    pub endpoint: Option<String>,
    /// The protocol it speaks.
    pub protocol: Option<Protocol>,
    /// Headers for it, besides those of the environment.
    pub headers: BTreeMap<String, SecretString>,
}

/// A way to a receiver that was found to be sound.
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
    /// Whom to trust instead of the system's roots.
    authority: Option<Named>,
    /// Who we are.
    client: Option<(Named, Named)>,
}

/// A file and the variable that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    variable: String,
    path: PathBuf,
}

impl Transport {
    /// About how many bytes of spans, as protobuf, may be in one request. Receivers of gRPC refuse more than 4 MiB, and
    /// so do some of HTTP; as JSON short values take several times the space.
    pub(super) fn request_bytes(&self) -> usize {
        const PROTOBUF: usize = 3 * 1024 * 1024;
        match self.protocol {
            Protocol::HttpProtobuf | Protocol::Grpc => PROTOBUF,
            Protocol::HttpJson => PROTOBUF / 5,
        }
    }

    /// The address, fit to be shown: without what may be secret in it.
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
