//! Export errors: invalid settings and lost telemetry. Each message names the setting and the fix.

use std::path::PathBuf;

use opentelemetry_otlp::ExporterBuildError;

/// Why the settings are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A protocol that OTLP does not have.
    #[error("{name} is `{value}`: set it to `http/protobuf`, `http/json` or `grpc`")]
    Protocol { name: String, value: String },
    /// An invalid address. It may contain secrets, so the message does not repeat it.
    #[error("the address in {name} {why}; give one such as http://localhost:4318, or http://localhost:4317 for gRPC")]
    Endpoint {
        /// The variable or key.
        name: String,
        /// The problem of the address.
        why: &'static str,
    },
    /// A header that cannot be sent. Its value is a secret, so the message does not repeat it.
    #[error(
        "{0} is not a valid header: give NAME=VALUE pairs in the variable, separated by commas, \
         or `NAME: VALUE` in the file"
    )]
    Header(String),
    /// A compression that is not built in.
    #[error("{name} is `{value}`: set it to `gzip` or `none`")]
    Compression { name: String, value: String },
    /// Only one of the client's certificate and key.
    #[error("{name} is set without its counterpart: set OTEL_EXPORTER_OTLP_{other} too")]
    HalfIdentity {
        /// The variable that is set.
        name: String,
        /// The end of the name of the variable that is not set.
        other: &'static str,
    },
    /// An exporter that is not built in, or `none` with others.
    #[error("OTEL_TRACES_EXPORTER is `{0}`: set it to `none`, or to `otlp`, `console` or both, separated by a comma")]
    Exporter(String),
    /// An exporter of log records that is not built in.
    #[error("OTEL_LOGS_EXPORTER is `{0}`: set it to `otlp` or `none`; standard error has the log records in any case")]
    LogExporter(String),
    /// A sampler that is not built in.
    #[error(
        "sampler `{0}` is not supported: set OTEL_TRACES_SAMPLER to `always_on`, `always_off` or `traceidratio`, \
         alone or after `parentbased_`"
    )]
    Sampler(String),
    /// A switch that is neither `true` nor `false`.
    #[error("{name} is `{value}`: set it to `true` or `false`")]
    Switch { name: String, value: String },
    /// A value that is not a number, or a number that is too small.
    #[error("{name} is `{value}`: give a whole number, at least {least}")]
    Number {
        name: String,
        value: String,
        /// The smallest number allowed.
        least: usize,
    },
    /// A value that is not a length.
    #[error("OPENINFERENCE_BASE64_IMAGE_MAX_LENGTH is `{0}`: give a number of characters")]
    ImageLength(String),
    /// A value that is not a ratio.
    #[error("OTEL_TRACES_SAMPLER_ARG is `{0}`: give a number from 0 to 1")]
    SamplerArgument(String),
}

/// Why telemetry cannot be exported, or was lost.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The exporter cannot be built.
    #[error("telemetry cannot be exported: {0}")]
    Build(#[from] ExporterBuildError),
    /// The HTTP client cannot be built.
    #[error("telemetry cannot be exported: no HTTP client: {0}")]
    Client(String),
    /// The export thread cannot be started.
    #[error("telemetry cannot be exported: the export thread cannot be started: {0}")]
    Runtime(#[from] std::io::Error),
    /// A certificate or key cannot be used.
    #[error("{variable} names `{path}`, which {why}: name a file in PEM")]
    Certificate {
        variable: String,
        path: PathBuf,
        /// The problem of the file.
        why: String,
    },
    /// Some spans or log records never arrived.
    #[error(
        "{lost} {what} were lost on the way to {address}: {reason}. Check that a collector listens there \
         (`telemetry.otlp_endpoint`, or OTEL_EXPORTER_OTLP_ENDPOINT), with this protocol and these headers."
    )]
    Lost {
        /// The number of lost items.
        lost: u64,
        /// What the items are.
        what: &'static str,
        address: String,
        /// Why the last of them were lost.
        reason: String,
    },
}
