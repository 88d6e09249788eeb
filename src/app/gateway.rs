//! Construction of the HTTP gateway. It checks authentication before the gateway listens.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::SignedDuration;
use secrecy::ExposeSecret as _;

use super::App;
use super::backends::Adapters;
use super::error::{AppError, GatewayError};
use super::propagation::propagation;
use crate::config::{
    self, FileSettings, GatewayLimits, MediaHostSettings, RetentionSettings, Settings, WebhookEgressSettings,
    WebhookSettings,
};
use crate::core::address::AllowedClasses;
use crate::core::run::Channel;
use crate::gateway::{Claims, Gateway, GatewaySettings, Limits, OidcAuthenticator, OidcSettings, Origins, Rate};
use crate::ports::{FileQuota, WebhookKind};
use crate::service::{
    Caller, ConfiguredWebhook, FileConfig, FileLimits, Operator, RetentionRule, Scope, Scopes, Service, WebhookConfig,
    WebhookEgress,
};

/// Whether a gateway can be built from the settings. Opens nothing and does not look for API keys.
pub fn check_gateway(settings: &Settings) -> Result<(), AppError> {
    settings.gateway.oidc.as_ref().map_or(Ok(()), |oidc| claims(oidc).map(drop))?;
    ConfiguredWebhook::check(&webhooks(settings)?).map_err(GatewayError::Webhook)?;
    Ok(())
}

impl App {
    /// Builds the configured gateway over this program's runner, for that listen address. The store contains the
    /// webhooks of these settings afterwards, so bind the address before the call.
    ///
    /// # Errors
    /// Without any authentication, or with anonymous access on a network. The store is unchanged then.
    pub async fn gateway(&self, listen: SocketAddr) -> Result<Gateway, AppError> {
        let written = &self.settings.gateway;
        let settings = GatewaySettings {
            public_url: written.public_url.clone().unwrap_or_default(),
            propagation: propagation()?,
            body_bytes: usize::try_from(written.limits.body_bytes).unwrap_or(usize::MAX),
            body_timeout: written.limits.body_timeout,
            limits: limits(&written.limits),
            ..GatewaySettings::default()
        };
        let own = written.public_url.iter().filter_map(|url| origin_of(url));
        let origins = Origins {
            allowed: written.origins.iter().cloned().chain(own).collect(),
            hosts: written.anonymous.then(|| written.hosts.clone()),
        };
        let mut builder = Gateway::builder(self.service())
            .settings(settings)
            .backends(Arc::new(Adapters::new(&self.settings, &self.models, &self.servers)))
            .origins(origins)
            .keys(self.store.clone())
            .idempotency(self.store.clone())
            .stream_tickets(self.store.clone());
        if let Some(meter) = self.telemetry.request_meter() {
            builder = builder.measured(meter);
        }
        if let Some(oidc) = &written.oidc {
            builder = builder.authenticator(Arc::new(issuer(oidc)?));
        }
        if written.anonymous {
            if !listen.ip().is_loopback() {
                return Err(GatewayError::Everybody(listen).into());
            }
            builder = builder.anonymous(Caller::local());
        } else if written.oidc.is_none() && !self.has_a_key().await? {
            return Err(GatewayError::NoAuthentication.into());
        }
        let gateway = builder.build();
        // The last step that can fail: other processes on this store see the change at once.
        self.configure_webhooks(&self.settings).await?;
        self.telemetry.watch(&gateway);
        Ok(gateway)
    }

    /// A new service over this program's runner, with a stop signal of its own.
    fn service(&self) -> Service {
        let settings = &self.settings.gateway;
        let MediaHostSettings { loopback, private } = settings.media_hosts;
        Service::new(self.runner.clone())
            .four_eyes(settings.four_eyes)
            .media_hosts(AllowedClasses { loopback, private })
            .webhooks(self.webhook_config())
            .retention(settings.retention.iter().map(retention).collect())
            .usage(self.store.clone())
            .files(FileConfig::new(self.store.clone(), file_limits(&settings.files)))
    }

    /// The operations of a user with access to the store.
    pub fn operator(&self) -> Operator {
        Operator::new(self.runner.clone(), Channel::CommandLine)
    }

    /// Replaces the webhooks of the previous configuration.
    pub(super) async fn configure_webhooks(&self, settings: &Settings) -> Result<(), GatewayError> {
        self.webhook_config().configure(&webhooks(settings)?).await.map_err(GatewayError::Webhook)
    }

    /// The settings of the webhook client.
    fn webhook_config(&self) -> WebhookConfig {
        let WebhookEgressSettings { http, loopback, private } = self.settings.gateway.webhook_egress;
        let egress = WebhookEgress { http, classes: AllowedClasses { private, loopback } };
        WebhookConfig::new(self.store.clone()).wake_signal(self.wake.clone()).egress(egress)
    }
}

fn retention(settings: &RetentionSettings) -> RetentionRule {
    let RetentionSettings { days, tenants, statuses } = settings;
    let tenants = tenants.iter().map(|tenant| tenant.as_str().into()).collect();
    RetentionRule { tenants, statuses: statuses.clone(), keep: SignedDuration::from_hours(24 * i64::from(*days)) }
}

fn file_limits(settings: &FileSettings) -> FileLimits {
    let FileSettings { max_bytes, max_total_bytes, max_files, expire_after } = *settings;
    FileLimits { max_bytes, quota: FileQuota { files: max_files, bytes: max_total_bytes }, expire_after }
}

fn webhooks(settings: &Settings) -> Result<Vec<ConfiguredWebhook>, GatewayError> {
    settings.gateway.webhooks.iter().map(webhook).collect()
}

fn webhook(written: &WebhookSettings) -> Result<ConfiguredWebhook, GatewayError> {
    let kind = |name: &String| {
        let known = WebhookKind::OF_RUNS.into_iter().find(|kind| kind.as_str() == name);
        known.ok_or_else(|| GatewayError::NoSuchEvent { name: name.clone() })
    };
    Ok(ConfiguredWebhook {
        tenant: written.tenant.as_str().into(),
        url: written.url.clone(),
        secret: written.secret.expose_secret().to_owned(),
        events: written.events.iter().map(kind).collect::<Result<_, _>>()?,
    })
}

fn issuer(oidc: &config::OidcSettings) -> Result<OidcAuthenticator, GatewayError> {
    let settings =
        OidcSettings { claims: claims(oidc)?, ..OidcSettings::new(oidc.issuer.as_str(), oidc.audience.as_str()) };
    Ok(OidcAuthenticator::new(settings)?)
}

fn claims(oidc: &config::OidcSettings) -> Result<Claims, GatewayError> {
    let scopes = |names: &Vec<String>| names.iter().map(|name| scope(name)).collect::<Result<Scopes, _>>();
    let table = oidc.scopes_of.as_ref().map(|table| {
        table.iter().map(|(value, names)| Ok((value.clone(), scopes(names)?))).collect::<Result<_, GatewayError>>()
    });
    Ok(Claims { scope: oidc.scope_claim.clone(), tenant: oidc.tenant_claim.clone(), scopes_of: table.transpose()? })
}

fn scope(name: &str) -> Result<Scope, GatewayError> {
    Scope::parse(name).ok_or_else(|| GatewayError::NoSuchScope { name: name.to_owned() })
}

fn limits(written: &GatewayLimits) -> Limits {
    let rate = |per_minute: u32, burst: u32| {
        Some(Rate { per_minute: NonZeroU32::new(per_minute)?, burst: NonZeroU32::new(burst)? })
    };
    let concurrent = |count: u64| usize::try_from(count).ok();
    Limits {
        requests: rate(written.requests_per_minute, written.burst),
        concurrent_requests: concurrent(written.concurrent_requests),
        concurrent_streams: concurrent(written.concurrent_streams),
        concurrent_reads: concurrent(written.concurrent_reads),
        failures: rate(written.failures_per_minute, written.failures_per_minute),
    }
}

/// The origin of the pages that the gateway itself serves.
fn origin_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    Some(format!("{scheme}://{authority}").to_lowercase())
}
