//! Metrics settings: the exporters in use, from the configuration and the standard `OTEL_*` variables. Pure.
//!
//! Metrics are off until the operator turns them on. Receivers that accept only traces reject metrics, and the metrics
//! of a process that lives for one command say little. A configured receiver of spans is therefore no reason to send
//! metrics there, except for a server.

use std::time::Duration;

use crate::export::variables::Variables;

/// The metrics settings of the configuration.
#[derive(Clone, Debug, Default)]
pub struct MetricsSettings {
    /// Whether metrics follow the spans' OTLP endpoint unless a setting says otherwise: for long-running processes.
    pub like_spans: bool,
    /// Whether this process reads [`Metrics::prometheus`](super::Metrics::prometheus).
    pub is_read_here: bool,
    /// The service name if the environment has no name; `toolgate` by default.
    pub service_name: Option<String>,
}

/// The exporters in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsPlan {
    /// Whether metrics are sent over OTLP.
    pub otlp: bool,
    /// Whether metrics are written to standard error.
    pub console: bool,
    /// The Prometheus endpoint, if there is one.
    pub prometheus: Option<Listen>,
    /// The interval of exports.
    pub interval: Duration,
    /// The time limit of one export.
    pub timeout: Duration,
    /// Whether this process reads the metrics.
    pub(super) is_read_here: bool,
    /// `None`: the SDK finds the name in the environment.
    pub(super) service_name: Option<String>,
}

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// A host name or an address of this machine.
    pub host: String,
    /// The port; 0 selects a free one.
    pub port: u16,
}

/// Why the settings are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricsSettingsError {
    /// An exporter that is not built in.
    #[error(
        "metrics exporter `{0}` is not supported: set OTEL_METRICS_EXPORTER to `otlp`, `prometheus`, `console` or `none`, \
         or to several of them with commas"
    )]
    Exporter(String),
    /// A value that is not the number required.
    #[error("{name} is `{value}`: give {wanted}")]
    Number {
        name: &'static str,
        value: String,
        /// The values allowed.
        wanted: &'static str,
    },
}

const INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";
const TIMEOUT: &str = "OTEL_METRIC_EXPORT_TIMEOUT";
const PORT: &str = "OTEL_EXPORTER_PROMETHEUS_PORT";

impl MetricsSettings {
    /// Completes the settings from the environment; `env` looks a variable up. `None` if no exporter is in use.
    pub fn resolve(self, env: impl Fn(&str) -> Option<String>) -> Result<Option<MetricsPlan>, MetricsSettingsError> {
        let variables = Variables(&env);
        let set = |name: &str| variables.text(name);
        if set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let milliseconds = |name, default| match set(name) {
            None => Ok(Duration::from_millis(default)),
            Some(value) => match value.parse() {
                Ok(number) if number > 0 => Ok(Duration::from_millis(number)),
                Ok(_) | Err(_) => {
                    Err(MetricsSettingsError::Number { name, value, wanted: "a number of milliseconds above 0" })
                }
            },
        };
        let mut plan = MetricsPlan {
            otlp: false,
            console: false,
            prometheus: None,
            interval: milliseconds(INTERVAL, 60_000)?,
            timeout: milliseconds(TIMEOUT, 30_000)?,
            is_read_here: self.is_read_here,
            service_name: (!variables.name_the_service())
                .then(|| self.service_name.unwrap_or_else(|| "toolgate".to_owned())),
        };
        match set("OTEL_METRICS_EXPORTER") {
            None => {
                let of = |name: &str| set(name).is_some();
                plan.otlp = self.like_spans || of("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
            }
            Some(list) => {
                for exporter in list.split(',').map(str::trim).filter(|exporter| !exporter.is_empty()) {
                    match exporter {
                        "otlp" => plan.otlp = true,
                        "console" => plan.console = true,
                        "prometheus" => plan.prometheus = Some(listen(&set)?),
                        "none" => {}
                        other => return Err(MetricsSettingsError::Exporter(other.to_owned())),
                    }
                }
            }
        }
        let is_wanted = plan.otlp || plan.console || plan.prometheus.is_some() || plan.is_read_here;
        Ok(is_wanted.then_some(plan))
    }
}

/// The Prometheus address. Loopback unless the environment sets a host: metrics name agents, tools and models.
fn listen(set: &dyn Fn(&str) -> Option<String>) -> Result<Listen, MetricsSettingsError> {
    let host = set("OTEL_EXPORTER_PROMETHEUS_HOST").unwrap_or_else(|| "localhost".to_owned());
    let port = match set(PORT) {
        None => 9464,
        Some(value) => match value.parse() {
            Ok(port) => port,
            Err(_) => {
                return Err(MetricsSettingsError::Number { name: PORT, value, wanted: "a port from 0 to 65535" });
            }
        },
    };
    Ok(Listen { host, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(like_spans: bool, env: &[(&str, &str)]) -> Result<Option<MetricsPlan>, MetricsSettingsError> {
        let settings = MetricsSettings { like_spans, ..MetricsSettings::default() };
        settings.resolve(|name| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn no_metrics_are_recorded_without_a_destination() {
        assert_eq!(resolve(false, &[]), Ok(None));
        assert_eq!(resolve(true, &[("OTEL_METRICS_EXPORTER", "none")]), Ok(None));
        assert_eq!(resolve(true, &[("OTEL_SDK_DISABLED", "true"), ("OTEL_METRICS_EXPORTER", "prometheus")]), Ok(None));
        assert_eq!(resolve(false, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://x:4318")]), Ok(None), "only for spans");
        let named = resolve(false, &[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://x:4318")]);
        assert!(named.expect("settings").expect("wanted").otlp);
        assert!(resolve(true, &[]).expect("settings").expect("wanted").otlp);
    }

    #[test]
    fn a_list_names_several_exporters_and_rejects_unknown_ones() {
        let plan =
            resolve(true, &[("OTEL_METRICS_EXPORTER", "prometheus, console")]).expect("settings").expect("wanted");
        assert_eq!((plan.otlp, plan.console), (false, true));
        assert_eq!(plan.prometheus, Some(Listen { host: "localhost".into(), port: 9464 }));
        let refused = resolve(true, &[("OTEL_METRICS_EXPORTER", "otlp,statsd")]).expect_err("refused");
        assert_eq!(refused, MetricsSettingsError::Exporter("statsd".into()));
    }

    #[test]
    fn an_invalid_number_is_rejected_by_name() {
        for (name, value) in [(INTERVAL, "soon"), (INTERVAL, "0"), (TIMEOUT, "-1"), (PORT, "99999")] {
            let env = [("OTEL_METRICS_EXPORTER", "prometheus"), (name, value)];
            let refused = resolve(false, &env).expect_err("refused").to_string();
            assert!(refused.contains(name) && refused.contains(value), "{refused}");
        }
    }
}
