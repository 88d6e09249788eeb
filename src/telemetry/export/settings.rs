//! Span export settings, from the configuration and the standard `OTEL_*` variables.
//!
//! Without an endpoint no span is sent: a run makes no network requests for tracing unless the operator sets it up.

use super::SettingsError;
use super::batching::Batching;
use super::content_flags;
use super::limits::Limits;
use super::transport::{Destination, Signal, Transport};
use super::variables::Variables;
use crate::spans::{Redaction, SpanContent};

/// The export settings of the configuration.
#[derive(Clone, Debug, Default)]
pub struct ExportSettings {
    pub destination: Destination,
    /// The service name if the environment has no name; `toolgate` by default.
    pub service_name: Option<String>,
    /// How much of the content spans include.
    pub content: SpanContent,
    /// Content that spans never include.
    pub redaction: Redaction,
    /// The most bytes of spans that may wait, approximately; 64 MiB by default.
    pub queue_bytes: Option<usize>,
}

/// An enabled export: the settings completed from the environment.
#[derive(Clone, Debug)]
pub struct Export {
    /// `None`: no receiver.
    pub(super) transport: Option<Transport>,
    /// Whether spans are written to standard error.
    pub(super) console: bool,
    /// `None`: the SDK finds the name in the environment.
    pub(super) service_name: Option<String>,
    pub(super) batching: Batching,
    pub(super) limits: Limits,
    pub(super) content: SpanContent,
    pub(super) redaction: Redaction,
}

impl Export {
    /// The address of the receiver, without secrets. `None` if there is only the console.
    pub fn receiver(&self) -> Option<String> {
        self.transport.as_ref().map(Transport::address)
    }
}

impl ExportSettings {
    /// Completes the settings from the environment; `env` looks a variable up. `None` if no exporter is in use.
    pub fn resolve(self, env: impl Fn(&str) -> Option<String>) -> Result<Option<Export>, SettingsError> {
        let variables = Variables(&env);
        if variables.sdk_disabled()? {
            return Ok(None);
        }
        let named = self.destination.is_named(Signal::Traces, variables);
        let Exporters { otlp, console } = Exporters::resolve(named, variables)?;
        if !otlp && !console {
            return Ok(None);
        }
        let transport = if otlp { Some(self.destination.resolve(Signal::Traces, &env)?) } else { None };
        let request_bytes = transport.as_ref().map_or(usize::MAX, Transport::request_bytes);
        let service_name = self.service_name.unwrap_or_else(|| "toolgate".to_owned());
        Ok(Some(Export {
            transport,
            console,
            service_name: (!variables.name_the_service()).then_some(service_name),
            batching: Batching::resolve(self.queue_bytes, request_bytes, variables)?,
            limits: Limits::resolve(variables)?,
            content: content_flags::switched(self.content, &env)?,
            redaction: self.redaction,
        }))
    }
}

/// An enabled export of log records: the settings completed from the environment.
#[derive(Clone, Debug)]
pub struct LogExportPlan {
    pub(super) transport: Transport,
    /// `None`: the SDK finds the name in the environment.
    pub(super) service_name: Option<String>,
    pub(super) batching: Batching,
    pub(super) redaction: Redaction,
}

impl ExportSettings {
    /// The export of log records, which `OTEL_LOGS_EXPORTER=otlp` enables. `None` if it is not in use.
    pub fn resolve_logs(self, env: impl Fn(&str) -> Option<String>) -> Result<Option<LogExportPlan>, SettingsError> {
        let variables = Variables(&env);
        match variables.text("OTEL_LOGS_EXPORTER").as_deref() {
            None | Some("none") => return Ok(None),
            Some("otlp") => {}
            Some(other) => return Err(SettingsError::LogExporter(other.to_owned())),
        }
        if variables.sdk_disabled()? {
            return Ok(None);
        }
        let transport = self.destination.resolve(Signal::Logs, &env)?;
        let service_name = self.service_name.unwrap_or_else(|| "toolgate".to_owned());
        Ok(Some(LogExportPlan {
            batching: Batching::resolve(self.queue_bytes, transport.request_bytes(), variables)?,
            transport,
            service_name: (!variables.name_the_service()).then_some(service_name),
            redaction: self.redaction,
        }))
    }
}

/// The exporters in use.
struct Exporters {
    otlp: bool,
    console: bool,
}

impl Exporters {
    /// The exporters of `OTEL_TRACES_EXPORTER`. A listed `otlp` is used whether or not an address is `named`.
    fn resolve(named: bool, variables: Variables<'_>) -> Result<Self, SettingsError> {
        let Some(list) = variables.text("OTEL_TRACES_EXPORTER") else {
            return Ok(Self { otlp: named, console: false });
        };
        if list == "none" {
            return Ok(Self { otlp: false, console: false });
        }
        let listed = list.split(',').map(str::trim);
        if listed.clone().any(|exporter| !matches!(exporter, "otlp" | "console")) {
            return Err(SettingsError::Exporter(list));
        }
        Ok(Self { otlp: listed.clone().any(|one| one == "otlp"), console: listed.clone().any(|one| one == "console") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(endpoint: Option<&str>, env: &[(&str, &str)]) -> Result<Option<Export>, SettingsError> {
        let destination = Destination { endpoint: endpoint.map(str::to_owned), ..Destination::default() };
        let settings = ExportSettings { destination, ..ExportSettings::default() };
        settings.resolve(|name| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    /// The destinations of spans: the address, and whether the console.
    fn ways(endpoint: Option<&str>, env: &[(&str, &str)]) -> Option<(Option<String>, bool)> {
        let export = resolve(endpoint, env).expect("sound")?;
        Some((export.transport.map(|transport| transport.address()), export.console))
    }

    #[test]
    fn no_spans_are_sent_without_a_destination() {
        assert_eq!(ways(None, &[]), None);
        assert_eq!(ways(None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), None);
        let traces = Some("http://x:4318/v1/traces".to_owned());
        assert_eq!(ways(None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://x:4318")]), Some((traces, false)));
        let local = Some("http://localhost:4318/v1/traces".to_owned());
        assert_eq!(ways(None, &[("OTEL_TRACES_EXPORTER", "otlp")]), Some((local, false)), "asked for by name");
    }

    #[test]
    fn the_standard_switches_turn_export_off() {
        for switch in [("OTEL_SDK_DISABLED", "True"), ("OTEL_TRACES_EXPORTER", "none")] {
            assert_eq!(ways(Some("http://x:4318"), &[switch]), None, "{switch:?}");
        }
        assert!(ways(Some("http://x:4318"), &[("OTEL_SDK_DISABLED", "false")]).is_some());
    }

    #[test]
    fn spans_go_to_each_exporter_that_is_listed() {
        let on = Some("http://x:4318");
        let receiver = Some("http://x:4318/v1/traces".to_owned());
        for (list, expected) in
            [("otlp", (receiver.clone(), false)), ("console", (None, true)), ("otlp, console", (receiver, true))]
        {
            assert_eq!(ways(on, &[("OTEL_TRACES_EXPORTER", list)]), Some(expected), "{list}");
        }
        for list in ["zipkin", "otlp,none", "otlp,,console"] {
            let refused = resolve(on, &[("OTEL_TRACES_EXPORTER", list)]).expect_err("refused");
            assert_eq!(refused, SettingsError::Exporter(list.into()));
        }
    }

    #[test]
    fn row_2_56_log_records_are_exported_only_by_name() {
        let resolve = |env: &[(&str, &str)]| {
            let look_up =
                |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            let plan = ExportSettings::default().resolve_logs(look_up)?;
            Ok::<_, SettingsError>(plan.map(|plan| plan.transport.address()))
        };
        let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://x:4318");
        let named = ("OTEL_LOGS_EXPORTER", "otlp");
        assert_eq!(resolve(&[general]), Ok(None));
        assert_eq!(resolve(&[general, ("OTEL_LOGS_EXPORTER", "none")]), Ok(None));
        assert_eq!(resolve(&[general, named]), Ok(Some("http://x:4318/v1/logs".to_owned())));
        assert_eq!(resolve(&[named]), Ok(Some("http://localhost:4318/v1/logs".to_owned())));
        assert_eq!(resolve(&[named, ("OTEL_SDK_DISABLED", "true")]), Ok(None));
        let other = resolve(&[("OTEL_LOGS_EXPORTER", "console")]);
        assert_eq!(other, Err(SettingsError::LogExporter("console".to_owned())));
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
