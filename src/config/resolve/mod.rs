//! From the file as written to the settings as used.

mod agents;
mod auth;
mod envelope;
mod environment;
mod generative;
mod models;
mod prices;
mod servers;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub(super) use servers::{http_transport, transport_of_stdio};

use super::error::{ConfigError, Fault};
use super::placed::Text;
use super::policy;
use super::scope::Scope;
use super::settings::{Settings, StoreSettings, TelemetrySettings};
use super::written::{Store, Telemetry, Written};
use crate::core::policy::Policy;

/// Short, because a local store has one machine's processes: whoever takes up the run of a killed one waits so long.
const LEASE_SECONDS: u64 = 5;
const DATABASE: &str = ".toolgate/toolgate.db";
const CREDENTIALS: &str = ".toolgate/credentials/tokens.json";

/// Fills in defaults, expands variables, checks references. Reports everything that is wrong at once.
pub(super) fn settings(written: &Written, file: Option<&Path>, mut scope: Scope<'_>) -> Result<Settings, ConfigError> {
    let policies = policies(written.policies.as_ref(), &mut scope);
    let models = models::resolve(written.models.as_ref(), &mut scope);
    let servers = servers::resolve(written.servers.as_ref(), &mut scope);
    let agents = agents::resolve(written.agents.as_ref(), &models, &servers, &policies, &mut scope);
    let settings = Settings {
        file: file.map(Path::to_owned),
        folder: scope.folder.clone(),
        store: store(written.store.as_ref(), &mut scope),
        lease: scope.seconds(written.lease_s.as_ref(), LEASE_SECONDS),
        prices: prices::resolve(written.prices.as_ref(), &models, &mut scope),
        models,
        servers,
        credentials: match &written.credentials {
            Some(path) => scope.path(path),
            None => scope.folder.join(CREDENTIALS),
        },
        policies,
        agents,
        envelope: envelope::resolve(written.envelope.as_ref(), &mut scope),
        telemetry: telemetry(written.telemetry.as_ref(), &mut scope),
        log: written.log.as_ref().map_or_else(|| "warn".into(), |log| scope.text(log)),
    };
    scope.finish(settings)
}

fn store(written: Option<&Store>, scope: &mut Scope<'_>) -> StoreSettings {
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

fn policies(written: Option<&BTreeMap<String, Text>>, scope: &mut Scope<'_>) -> BTreeMap<String, Arc<Policy>> {
    let mut policies = BTreeMap::new();
    for preset in policy::presets() {
        match preset {
            Ok(preset) => drop(policies.insert(preset.name.clone(), Arc::new(preset))),
            Err(error) => scope.absorb_error(&error, None),
        }
    }
    for (name, path) in written.into_iter().flatten() {
        scope.name("a policy", name, path.place());
        if policies.contains_key(name) {
            let fault = Fault::new(format!("`{name}` is the name of a preset"));
            scope.fault(fault.with_remedy("give your policy another name"), path.place());
            continue;
        }
        // One that cannot be used stands there all the same: what is wrong is the file, not whoever names it.
        policies.insert(name.clone(), Arc::default());
        match policy::policy_file(&scope.path(path)) {
            Ok(policy) if policy.name == *name => drop(policies.insert(name.clone(), Arc::new(policy))),
            Ok(policy) => {
                let fault = Fault::new(format!("the file calls this policy `{}`, not `{name}`", policy.name));
                scope.fault(fault.with_remedy("use one name in both places"), path.place());
            }
            Err(error) => scope.absorb_error(&error, path.place()),
        }
    }
    policies
}

fn telemetry(written: Option<&Telemetry>, scope: &mut Scope<'_>) -> TelemetrySettings {
    let unwritten = Telemetry::default();
    let written = written.unwrap_or(&unwritten);
    let from_env = |name: &str| (scope.env)(name).filter(|value| !value.is_empty());
    let (endpoint, service) = (from_env("OTEL_EXPORTER_OTLP_ENDPOINT"), from_env("OTEL_SERVICE_NAME"));
    TelemetrySettings {
        otlp_endpoint: written
            .otlp_endpoint
            .as_ref()
            .map(|url| scope.url(url).trim_end_matches('/').to_owned())
            .or(endpoint),
        headers: scope.secrets(written.headers.as_ref()),
        service_name: match &written.service_name {
            Some(name) => scope.text(name),
            None => service.unwrap_or_else(|| "toolgate".into()),
        },
        content: written.content.unwrap_or_default(),
    }
}
