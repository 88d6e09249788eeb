//! What is wrong with how export is set up, and what became of it. Each message names the setting and says the remedy.

use std::path::PathBuf;

use opentelemetry_otlp::ExporterBuildError;

/// What is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A protocol that OTLP does not have.
    #[error("{name} is `{value}`: set it to `http/protobuf`, `http/json` or `grpc`")]
    Protocol {
        /// The variable.
        name: String,
        /// What it is set to.
        value: String,
    },
    /// An address that cannot be sent to. It may hold secrets, so it is not repeated.
    #[error("the address in {name} {why}; give one such as http://localhost:4318, or http://localhost:4317 for gRPC")]
    Endpoint {
        /// The variable or key.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A header that cannot be sent. Its value is a secret, so it is not repeated.
    #[error(
        "{0} is no header that can be sent: give NAME=VALUE pairs in the variable, separated by commas, \
         or `NAME: VALUE` in the file"
    )]
    Header(String),
    /// A compression that is not built in.
    #[error("{name} is `{value}`: set it to `gzip` or `none`")]
    Compression {
        /// The variable.
        name: String,
        /// What it is set to.
        value: String,
    },
    /// Of a client's certificate and key only one.
    #[error("{name} is set, but not the file that belongs to it: set OTEL_EXPORTER_OTLP_{other} too")]
    HalfIdentity {
        /// The variable that is set.
        name: String,
        /// The end of the one that is not.
        other: &'static str,
    },
    /// An exporter that is not built in, or `none` with others.
    #[error("OTEL_TRACES_EXPORTER is `{0}`: set it to `none`, or to `otlp`, `console` or both, separated by a comma")]
    Exporter(String),
    /// A sampler that is not built in.
    #[error(
        "sampler `{0}` is not supported: set OTEL_TRACES_SAMPLER to `always_on`, `always_off` or `traceidratio`, \
         alone or after `parentbased_`"
    )]
    Sampler(String),
    /// A switch that is neither on nor off.
    #[error("{name} is `{value}`: set it to `true` or `false`")]
    Switch {
        /// The variable.
        name: String,
        /// What it is set to.
        value: String,
    },
    /// A number that is none, or too small.
    #[error("{name} is `{value}`: give a whole number, at least {least}")]
    Number {
        /// The variable.
        name: String,
        /// What it is set to.
        value: String,
        /// The smallest that makes sense.
        least: usize,
    },
    /// A length that is none.
    #[error("OPENINFERENCE_BASE64_IMAGE_MAX_LENGTH is `{0}`: give a number of characters")]
    ImageLength(String),
    /// A ratio that is none.
    #[error("OTEL_TRACES_SAMPLER_ARG is `{0}`: give a number from 0 to 1")]
    SamplerArgument(String),
}

/// Why spans cannot be exported, or were not.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The exporter cannot be built.
    #[error("telemetry cannot be exported: {0}")]
    Build(#[from] ExporterBuildError),
    /// The HTTP client cannot be built.
    #[error("telemetry cannot be exported: no HTTP client: {0}")]
    Client(String),
    /// There is no thread for it.
    #[error("telemetry cannot be exported: its thread does not start: {0}")]
    Runtime(#[from] std::io::Error),
    /// A certificate or key is not usable.
    #[error("{variable} names `{path}`, which {why}: name a file in PEM")]
    Certificate {
        /// The variable.
        variable: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Some spans never arrived.
    #[error(
        "{spans} spans were lost on the way to {address}: {reason}. Check that a collector listens there \
         (`telemetry.otlp_endpoint`, or OTEL_EXPORTER_OTLP_ENDPOINT), with this protocol and these headers."
    )]
    Lost {
        /// How many.
        spans: u64,
        /// The receiver.
        address: String,
        /// Why the last of them were.
        reason: String,
    },
}
