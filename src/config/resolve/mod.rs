//! Resolution of the configuration: from the written form to validated settings.

mod agents;
mod auth;
mod egress;
mod envelope;
mod gateway;
mod generative;
mod instructions;
mod models;
mod policies;
mod prices;
mod project;
mod servers;
mod sessions;
mod stop_conditions;

use std::collections::BTreeSet;
use std::path::Path;

pub use models::{PROVIDERS, Provider};
pub(super) use servers::{http_transport, transport_of_stdio};

use super::error::ConfigError;
use super::resolver::Resolver;
use super::settings::{RedactSettings, Settings, StoreSettings, TelemetrySettings};
use super::written::{ConfigFile, Store, Telemetry};

/// Short, because the processes of a local store share a machine, and the process that recovers the run of a killed one
/// waits this long.
const LEASE_SECONDS: u64 = 5;

/// The smallest limit of a span attribute. A smaller one would not fit JSON that counts what is left out.
const MIN_VALUE_BYTES: usize = 1024;
const DATABASE: &str = ".toolgate/toolgate.db";
const CREDENTIALS: &str = ".toolgate/credentials/tokens.json";

/// Fills in defaults, expands variables, checks references. Reports everything that is wrong at once.
pub(super) fn settings(
    written: &ConfigFile,
    file: Option<&Path>,
    mut scope: Resolver<'_>,
) -> Result<Settings, ConfigError> {
    let policies = policies::resolve(written.policies.as_ref(), &mut scope);
    let models = models::resolve(written.models.as_ref(), &mut scope);
    let servers = servers::resolve(written.servers.as_ref(), &mut scope);
    let agents =
        agents::resolve(written.agents.as_ref(), written.variant.as_ref(), &models, &servers, &policies, &mut scope);
    let mut settings = Settings {
        file: file.map(Path::to_owned),
        folder: scope.folder.clone(),
        store: store(written.store.as_ref(), &mut scope),
        lease: scope.seconds(written.lease_s.as_ref(), LEASE_SECONDS),
        prices: scope.within(&["prices"], |scope| prices::resolve(written.prices.as_ref(), &models, scope)),
        models,
        servers,
        credentials: match &written.credentials {
            Some(path) => scope.path(path),
            None => scope.folder.join(CREDENTIALS),
        },
        policies,
        agents,
        envelope: scope.within(&["envelope"], |scope| envelope::resolve(written.envelope.as_ref(), scope)),
        gateway: scope.within(&["gateway"], |scope| gateway::resolve(written.gateway.as_ref(), scope)),
        telemetry: scope.within(&["telemetry"], |scope| telemetry(written.telemetry.as_ref(), scope)),
        log: written.log.as_ref().map(|log| scope.text(log)),
        log_folder: written.log_folder.as_ref().map(|folder| scope.path(folder)),
        places: std::mem::take(&mut scope.places),
        bare_variables: BTreeSet::new(),
    };
    scope.within(&["egress"], |scope| egress::apply(written.egress.as_ref(), &mut settings, scope));
    settings.bare_variables = std::mem::take(&mut scope.bare_variables);
    instructions::check_secrets(&settings, &mut scope);
    scope.finish(settings)
}

fn store(written: Option<&Store>, scope: &mut Resolver<'_>) -> StoreSettings {
    let (path, durability) = match written {
        Some(Store::Memory(_)) => return StoreSettings::Memory,
        Some(Store::Sqlite(sqlite)) => (sqlite.path.as_ref(), sqlite.durability),
        None => (None, None),
    };
    let path = match path {
        Some(path) => scope.path(path),
        None => scope.folder.join(DATABASE),
    };
    StoreSettings::Sqlite { path, durability: durability.unwrap_or_default() }
}

fn telemetry(written: Option<&Telemetry>, scope: &mut Resolver<'_>) -> TelemetrySettings {
    let unwritten = Telemetry::default();
    let written = written.unwrap_or(&unwritten);
    let service = (scope.env)("OTEL_SERVICE_NAME").filter(|value| !value.is_empty());
    let redacted = written.redact.iter().flat_map(|redact| &redact.keys).flatten();
    TelemetrySettings {
        otlp_endpoint: written.otlp_endpoint.as_ref().map(|url| scope.url(url).trim_end_matches('/').to_owned()),
        protocol: written.protocol,
        headers: scope.secrets(written.headers.as_ref()),
        service_name: match &written.service_name {
            Some(name) => scope.text(name),
            None => service.unwrap_or_else(|| "toolgate".into()),
        },
        content: written.content.unwrap_or_default(),
        redact: RedactSettings {
            keys: redacted.into_iter().map(|key| scope.pattern(key.value(), key.place())).collect(),
            usual: written.redact.as_ref().and_then(|redact| redact.usual).unwrap_or(true),
        },
        queue_bytes: written.queue_bytes.as_ref().map(|bytes| scope.at_least_one(Some(bytes), 1)),
        value_bytes: written.value_bytes.as_ref().map(|bytes| scope.at_least(bytes, MIN_VALUE_BYTES)),
    }
}
