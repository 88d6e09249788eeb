//! Where spans are sent and whether they are, from the configuration and the standard `OTEL_*` variables.
//!
//! Without an endpoint nothing is sent: a run that nobody set up to be traced makes no network attempts. Headers,
//! timeout, compression and batching are read from the environment by the OpenTelemetry SDK itself; what it ignores or
//! cannot do is seen to here.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;

use super::switches;
use crate::telemetry::spans::{Redaction, SpanContent};

/// How spans are to be exported, as the configuration says it.
#[derive(Clone, Debug, Default)]
pub struct ExportSettings {
    /// The base URL of an OTLP/HTTP receiver; `/v1/traces` is appended unless it is there. It wins over the environment.
    pub endpoint: Option<String>,
    /// The name of the service, when the environment gives none; `toolgate` by default.
    pub service_name: Option<String>,
    /// HTTP headers for the receiver, besides those of the environment.
    pub headers: BTreeMap<String, SecretString>,
    /// How much of what is said spans repeat.
    pub content: SpanContent,
    /// What they do not repeat, wherever it is said.
    pub redaction: Redaction,
}

/// An export that is wanted: the settings completed by the environment.
#[derive(Clone, Debug)]
pub struct Export {
    /// `None`: the SDK finds the URL in the environment.
    pub(super) url: Option<String>,
    /// `None`: the SDK finds the name in the environment.
    pub(super) service_name: Option<String>,
    pub(super) headers: BTreeMap<String, SecretString>,
    pub(super) timeout: Duration,
    pub(super) content: SpanContent,
    pub(super) redaction: Redaction,
}

/// What is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A protocol that is not built in.
    #[error("OTLP protocol `{0}` is not supported: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")]
    Protocol(String),
    /// An exporter that is not built in.
    #[error("traces exporter `{0}` is not supported: set OTEL_TRACES_EXPORTER to `otlp` or `none`")]
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
    /// A length that is none.
    #[error("OPENINFERENCE_BASE64_IMAGE_MAX_LENGTH is `{0}`: give a number of characters")]
    ImageLength(String),
    /// A ratio that is none.
    #[error("OTEL_TRACES_SAMPLER_ARG is `{0}`: give a number from 0 to 1")]
    SamplerArgument(String),
}

impl ExportSettings {
    /// Completes the settings by what the environment says; `env` looks a variable up. `None` if nothing is to be sent.
    pub fn resolve(self, env: impl Fn(&str) -> Option<String>) -> Result<Option<Export>, SettingsError> {
        let set = |name: &str| env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let either = |name: &str| {
            set(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}")).or_else(|| set(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        if set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        match set("OTEL_TRACES_EXPORTER").as_deref() {
            None | Some("otlp") => {}
            Some("none") => return Ok(None),
            Some(other) => return Err(SettingsError::Exporter(other.to_owned())),
        }
        let configured = self.endpoint.filter(|url| !url.trim().is_empty());
        if configured.is_none() && either("ENDPOINT").is_none() {
            return Ok(None);
        }
        if let Some(other) = either("PROTOCOL").filter(|protocol| protocol != "http/protobuf") {
            return Err(SettingsError::Protocol(other));
        }
        let named_by_env = set("OTEL_SERVICE_NAME").is_some()
            || set("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| all.contains("service.name="));
        let service_name = self.service_name.unwrap_or_else(|| "toolgate".to_owned());
        let timeout = either("TIMEOUT").and_then(|ms| ms.parse().ok()).unwrap_or(DEFAULT_TIMEOUT_MS);
        Ok(Some(Export {
            url: configured.map(|url| traces_url(url.trim())),
            service_name: (!named_by_env).then_some(service_name),
            headers: self.headers,
            timeout: Duration::from_millis(timeout),
            content: switches::hidden(self.content, &env)?,
            redaction: self.redaction,
        }))
    }
}

/// What OpenTelemetry prescribes for one request.
const DEFAULT_TIMEOUT_MS: u64 = 10_000;

fn traces_url(base: &str) -> String {
    match base.trim_end_matches('/') {
        url if url.ends_with("/v1/traces") => url.to_owned(),
        url => format!("{url}/v1/traces"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(endpoint: Option<&str>, env: &[(&str, &str)]) -> Result<Option<Export>, SettingsError> {
        let settings = ExportSettings { endpoint: endpoint.map(str::to_owned), ..ExportSettings::default() };
        settings.resolve(|name| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn nothing_is_sent_unless_somebody_says_where_to() {
        assert!(matches!(resolve(None, &[]), Ok(None)));
        assert!(matches!(resolve(None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), Ok(None)));
        let export = resolve(None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://x:4318")]).expect("settings");
        assert_eq!(export.expect("wanted").url, None, "the SDK reads it");
    }

    #[test]
    fn the_standard_switches_turn_export_off() {
        for switch in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
            assert!(matches!(resolve(Some("http://x:4318"), &[switch]), Ok(None)), "{switch:?}");
        }
    }

    #[test]
    fn the_path_is_appended_to_a_configured_endpoint_once() {
        for (endpoint, url) in [
            ("http://x:4318", "http://x:4318/v1/traces"),
            ("http://x:4318/", "http://x:4318/v1/traces"),
            ("https://x/otlp/v1/traces", "https://x/otlp/v1/traces"),
        ] {
            let export = resolve(Some(endpoint), &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://y")]).expect("settings");
            assert_eq!(export.expect("wanted").url.as_deref(), Some(url));
        }
    }

    #[test]
    fn the_timeout_of_traces_wins_over_the_general_one() {
        let env = [("OTEL_EXPORTER_OTLP_TIMEOUT", "7"), ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "8")];
        let export = resolve(Some("http://x:4318"), &env).expect("settings").expect("wanted");
        assert_eq!(export.timeout, Duration::from_millis(8));
    }

    #[test]
    fn what_is_not_built_in_is_refused_by_name() {
        let on = Some("http://x:4318");
        let refused = resolve(on, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).expect_err("refused");
        assert_eq!(refused, SettingsError::Protocol("grpc".into()));
        let refused = resolve(on, &[("OTEL_TRACES_EXPORTER", "zipkin")]).expect_err("refused");
        assert_eq!(refused, SettingsError::Exporter("zipkin".into()));
    }

    #[test]
    fn the_service_is_toolgate_unless_the_environment_names_it() {
        let on = Some("http://x:4318");
        let name = |env: &[(&str, &str)]| resolve(on, env).expect("settings").expect("wanted").service_name;
        assert_eq!(name(&[]).as_deref(), Some("toolgate"));
        for named in [("OTEL_SERVICE_NAME", "mine"), ("OTEL_RESOURCE_ATTRIBUTES", "a=b,service.name=mine")] {
            assert_eq!(name(&[named]), None, "{named:?}");
        }
    }
}
