//! Transport resolution: the destination and transport of a signal, from the configuration and the
//! `OTEL_EXPORTER_OTLP_*` variables. Pure.
//!
//! The configuration overrides the environment, and the variable of the signal overrides the general one. Invalid
//! settings are rejected by name. Values that may be secret (headers, addresses) are not repeated.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::ExposeSecret;

use super::super::SettingsError;
use super::super::variables::Variables;
use super::{Destination, NamedFile, Protocol, Signal, TlsFiles, Transport};

/// The OpenTelemetry default for one export, including retries.
const DEFAULT_TIMEOUT_MS: usize = 10_000;

impl Destination {
    /// Whether a setting names the destination of a signal.
    pub(crate) fn is_named(&self, signal: Signal, variables: Variables<'_>) -> bool {
        configured(self).is_some() || of_signal(signal, "ENDPOINT", variables).is_some()
    }

    /// The transport of a signal; to a collector on this machine if no setting names a destination. `env` looks a
    /// variable up.
    pub fn resolve(&self, signal: Signal, env: &dyn Fn(&str) -> Option<String>) -> Result<Transport, SettingsError> {
        let variables = Variables(env);
        let protocol = match self.protocol {
            Some(protocol) => protocol,
            None => protocol(signal, variables)?,
        };
        check_headers(self, signal, variables)?;
        Ok(Transport {
            protocol,
            url: url(self, signal, protocol, variables)?,
            headers: self.headers.clone(),
            timeout: timeout(signal, variables)?,
            compressed: compressed(signal, variables)?,
            tls: tls(signal, variables)?,
        })
    }
}

/// The value of a variable, with its name: the one of the signal, or else the one of all signals.
fn of_signal(signal: Signal, what: &str, variables: Variables<'_>) -> Option<(String, String)> {
    let read = |name: String| variables.text(&name).map(|value| (name, value));
    read(format!("OTEL_EXPORTER_OTLP_{}_{what}", signal.variable()))
        .or_else(|| read(format!("OTEL_EXPORTER_OTLP_{what}")))
}

fn configured(destination: &Destination) -> Option<&str> {
    destination.endpoint.as_deref().map(str::trim).filter(|endpoint| !endpoint.is_empty())
}

fn protocol(signal: Signal, variables: Variables<'_>) -> Result<Protocol, SettingsError> {
    let Some((name, value)) = of_signal(signal, "PROTOCOL", variables) else { return Ok(Protocol::default()) };
    match value.as_str() {
        "http/protobuf" => Ok(Protocol::HttpProtobuf),
        "http/json" => Ok(Protocol::HttpJson),
        "grpc" => Ok(Protocol::Grpc),
        _ => Err(SettingsError::Protocol { name, value }),
    }
}

fn url(
    destination: &Destination,
    signal: Signal,
    protocol: Protocol,
    variables: Variables<'_>,
) -> Result<Url, SettingsError> {
    let exact = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", signal.variable());
    let (name, text) = match (configured(destination), of_signal(signal, "ENDPOINT", variables)) {
        (Some(endpoint), _) => ("telemetry.otlp_endpoint".to_owned(), endpoint.to_owned()),
        (None, Some(named)) => named,
        (None, None) => ("the default address".to_owned(), default_address(protocol).to_owned()),
    };
    let refused = |why| SettingsError::Endpoint { name: name.clone(), why };
    let text = match protocol {
        Protocol::Grpc if !text.contains("://") => format!("{}://{text}", scheme(signal, variables)?),
        Protocol::Grpc | Protocol::HttpProtobuf | Protocol::HttpJson => text,
    };
    let mut url = Url::parse(&text).map_err(|_| refused("is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("is neither http:// nor https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("carries a user or a password: send them as a header instead"));
    }
    match protocol {
        Protocol::Grpc => url.set_path(""), // gRPC uses the service name as the path
        Protocol::HttpProtobuf | Protocol::HttpJson if name == exact => {}
        Protocol::HttpProtobuf | Protocol::HttpJson => {
            let base = url.path().trim_end_matches('/');
            let base = [Signal::Traces, Signal::Metrics, Signal::Logs]
                .iter()
                .find_map(|known| base.strip_suffix(known.path()))
                .unwrap_or(base);
            let path = format!("{base}{}", signal.path());
            url.set_path(&path);
        }
    }
    Ok(url)
}

fn default_address(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::HttpProtobuf | Protocol::HttpJson => "http://localhost:4318",
        Protocol::Grpc => "http://localhost:4317",
    }
}

/// The scheme of a gRPC address without one.
fn scheme(signal: Signal, variables: Variables<'_>) -> Result<&'static str, SettingsError> {
    let insecure = match of_signal(signal, "INSECURE", variables) {
        Some((name, _)) => variables.switch(&name)?.unwrap_or_default(),
        None => false,
    };
    Ok(if insecure { "http" } else { "https" })
}

fn timeout(signal: Signal, variables: Variables<'_>) -> Result<Duration, SettingsError> {
    let ms = match of_signal(signal, "TIMEOUT", variables) {
        Some((name, _)) => variables.number(&name, 1)?.unwrap_or(DEFAULT_TIMEOUT_MS),
        None => DEFAULT_TIMEOUT_MS,
    };
    Ok(Duration::from_millis(ms as u64))
}

fn compressed(signal: Signal, variables: Variables<'_>) -> Result<bool, SettingsError> {
    let Some((name, value)) = of_signal(signal, "COMPRESSION", variables) else { return Ok(false) };
    match value.to_ascii_lowercase().as_str() {
        "gzip" => Ok(true),
        "none" => Ok(false),
        _ => Err(SettingsError::Compression { name, value }),
    }
}

fn tls(signal: Signal, variables: Variables<'_>) -> Result<TlsFiles, SettingsError> {
    let file = |what| {
        of_signal(signal, what, variables).map(|(variable, path)| NamedFile { variable, path: PathBuf::from(path) })
    };
    let client = match (file("CLIENT_CERTIFICATE"), file("CLIENT_KEY")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(alone), None) => return Err(SettingsError::HalfIdentity { name: alone.variable, other: "CLIENT_KEY" }),
        (None, Some(alone)) => {
            return Err(SettingsError::HalfIdentity { name: alone.variable, other: "CLIENT_CERTIFICATE" });
        }
    };
    Ok(TlsFiles { authority: file("CERTIFICATE"), client })
}

/// Checks the headers. The SDK adds the headers of the environment itself and silently drops invalid ones. `client`
/// overrides them with headers of the same name from the configuration.
fn check_headers(destination: &Destination, signal: Signal, variables: Variables<'_>) -> Result<(), SettingsError> {
    for (name, value) in &destination.headers {
        if !is_header(name, value.expose_secret()) {
            return Err(SettingsError::Header(format!("telemetry.headers: `{name}`")));
        }
    }
    let Some((variable, all)) = of_signal(signal, "HEADERS", variables) else { return Ok(()) };
    for (position, pair) in all.split_terminator(',').enumerate() {
        let sound = pair.split_once('=').is_some_and(|(name, value)| is_header(name.trim(), value.trim()));
        if !sound {
            return Err(SettingsError::Header(format!("{variable}: entry {}", position + 1)));
        }
    }
    Ok(())
}

fn is_header(name: &str, value: &str) -> bool {
    let sound = HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_str(value).is_ok();
    sound && !value.is_empty()
}

#[cfg(test)]
mod tests;
