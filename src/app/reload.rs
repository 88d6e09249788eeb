//! Reload of the configuration without a restart. New runs use the new configuration; active runs keep theirs. MCP
//! servers with unchanged settings keep their connections and processes. The others stop with the last run that uses
//! them. Webhooks and quotas switch to the new configuration at once.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};

use super::backends::Adapters;
use super::error::AppError;
use super::propagation::propagation;
use super::quotas::quotas;
use super::server_settings::server_settings;
use super::{App, capacity, configured, elicitation_hold, models};
use crate::config::{self, AuthSettings, Settings, TransportSettings};
use crate::core::id::ServerId;
use crate::gateway::Gateway;
use crate::mcp::auth::ClientProof;
use crate::mcp::{self, Servers, StdioSettings};

impl App {
    /// Applies another configuration to this program and its gateway. Returns the parts that take effect only after a
    /// restart.
    ///
    /// # Errors
    /// As [`App::open`]; the old configuration stays active then.
    pub async fn reload(&mut self, settings: Settings, gateway: &Gateway) -> Result<Vec<&'static str>, AppError> {
        let models = models::open(&settings)?;
        let servers = Arc::new(self.renewed_servers(&settings)?);
        let builder = configured(&settings, &models, &servers)?
            .capacity(capacity(&settings))
            .elicitation_hold(elicitation_hold(&settings));
        // The last step that can fail, and the first that other processes see.
        self.configure_webhooks(&settings).await?;
        let runner = self.runner.reconfigured(builder)?;
        self.store.set_quotas(quotas(&settings));
        let not_taken = not_taken(&self.settings, &settings);
        gateway.replace(runner.clone(), Arc::new(Adapters::new(&settings, &models, &servers)));
        self.identities.know(&models);
        servers.start();
        let old = std::mem::replace(&mut self.servers, servers);
        self.retired.retain(|servers| servers.strong_count() > 0);
        self.retired.push(Arc::downgrade(&old));
        (self.runner, self.models) = (runner, models);
        // Parts that were not applied keep their old values, so the next reload reports them again.
        let Settings { store, lease, gateway, telemetry, log, log_folder, .. } = self.settings.clone();
        self.settings = Settings {
            store,
            lease,
            telemetry,
            log,
            log_folder,
            gateway: with_new_parts(gateway, &settings),
            ..settings
        };
        Ok(not_taken)
    }

    fn renewed_servers(&self, settings: &Settings) -> Result<Servers, AppError> {
        let propagation = propagation()?;
        let is_kept = |id: &ServerId, server: &config::ServerSettings| {
            self.settings.servers.get(id).is_some_and(|before| is_same(before, server))
                && self.settings.credentials == settings.credentials
        };
        let wanted = settings.servers.iter().map(|(id, server)| {
            let changed =
                (!is_kept(id, server)).then(|| server_settings(id, server, &settings.credentials, propagation));
            (id.clone(), changed)
        });
        let wanted: Vec<(ServerId, Option<mcp::ServerSettings>)> = wanted.collect();
        Ok(self.servers.reconfigured(wanted, self.telemetry.mcp_watcher().as_ref()))
    }
}

fn with_new_parts(old: config::GatewaySettings, new: &Settings) -> config::GatewaySettings {
    let config::GatewaySettings { runs, drain, webhooks, quotas, .. } = new.gateway.clone();
    config::GatewaySettings { runs, drain, webhooks, quotas, ..old }
}

/// The parts that differ and need a restart. A change of a telemetry secret is not detected, because `Debug` redacts
/// secrets.
fn not_taken(old: &Settings, new: &Settings) -> Vec<&'static str> {
    let differ = |old: &dyn Debug, new: &dyn Debug| format!("{old:?}") != format!("{new:?}");
    let (before, now) = (&old.gateway, &new.gateway);
    let parts = [
        ("store", differ(&old.store, &new.store)),
        ("lease_s", old.lease != new.lease),
        ("gateway.listen", before.listen != now.listen),
        ("gateway.public_url", before.public_url != now.public_url),
        ("gateway.metrics_listen", before.metrics_listen != now.metrics_listen),
        ("gateway.anonymous", before.anonymous != now.anonymous),
        ("gateway.hosts", before.hosts != now.hosts),
        ("gateway.cors", before.origins != now.origins),
        ("gateway.oidc", before.oidc != now.oidc),
        ("gateway.webhook_egress", before.webhook_egress != now.webhook_egress),
        ("gateway.media_hosts", before.media_hosts != now.media_hosts),
        ("gateway.files", before.files != now.files),
        ("gateway.limits", before.limits != now.limits),
        ("gateway.retention", before.retention != now.retention),
        ("gateway.four_eyes", before.four_eyes != now.four_eyes),
        ("telemetry", differ(&old.telemetry, &new.telemetry)),
        ("log", old.log != new.log),
        ("log_folder", old.log_folder != new.log_folder),
    ];
    parts.into_iter().filter_map(|(part, is_other)| is_other.then_some(part)).collect()
}

fn is_same(old: &config::ServerSettings, new: &config::ServerSettings) -> bool {
    spelled(old).expose_secret() == spelled(new).expose_secret()
}

/// All settings of a server, including its secrets: `Debug` omits them, but a changed secret makes it a different
/// server.
fn spelled(server: &config::ServerSettings) -> SecretString {
    let mut text = format!("{server:?}");
    let mut add = |secret: &SecretString| {
        // Writing to a string does not fail. The length separates neighbouring values.
        let _ = write!(text, "\n{} {}", secret.expose_secret().len(), secret.expose_secret());
    };
    match &server.transport {
        TransportSettings::Stdio(StdioSettings { env, .. }) => env.values().for_each(&mut add),
        TransportSettings::Http { headers, auth, .. } => {
            headers.values().for_each(&mut add);
            match auth {
                AuthSettings::Headers => {}
                AuthSettings::Person { client, .. } => {
                    client.iter().filter_map(|client| client.secret.as_ref()).for_each(&mut add);
                }
                AuthSettings::Client { proof: ClientProof::Secret(secret), .. } => add(secret),
                AuthSettings::Client { proof: ClientProof::PrivateKey { pem, .. }, .. } => add(pem),
            }
        }
        TransportSettings::Unavailable { .. } => {}
    }
    text.into()
}
