//! Gateway builder.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_util::task::TaskTracker;
use toolgate_ports::{AccessKeys, IdempotencyStore, RequestMeter, StreamTickets};
use toolgate_service::{Caller, Service};

use super::backends::{Backends, NoBackends};
use super::request_metrics::RequestMetrics;
use super::settings::GatewaySettings;
use super::state::{Gateway, Shared};
use crate::access::{Access, ApiKeyAuthenticator, Authenticator, Limiter, Origins};

/// Collects the parts of a gateway besides its service.
pub struct Builder {
    service: Service,
    settings: GatewaySettings,
    authenticators: Vec<Arc<dyn Authenticator>>,
    keys: Option<Arc<ApiKeyAuthenticator>>,
    anonymous: Option<Caller>,
    origins: Option<Origins>,
    backends: Arc<dyn Backends>,
    request_metrics: RequestMetrics,
    idempotency: Option<Arc<dyn IdempotencyStore>>,
    stream_tickets: Option<Arc<dyn StreamTickets>>,
}

impl Gateway {
    /// A builder for a gateway over a service, or over a runner with the defaults of one.
    pub fn builder(service: impl Into<Service>) -> Builder {
        Builder::new(service.into())
    }
}

impl Builder {
    fn new(service: Service) -> Self {
        Self {
            service,
            settings: GatewaySettings::default(),
            authenticators: Vec::new(),
            keys: None,
            anonymous: None,
            origins: None,
            backends: Arc::new(NoBackends),
            request_metrics: RequestMetrics::default(),
            idempotency: None,
            stream_tickets: None,
        }
    }

    /// Sets the settings that apply to every request.
    #[must_use]
    pub fn settings(mut self, settings: GatewaySettings) -> Self {
        self.settings = settings;
        self
    }

    /// Adds an authenticator; authenticators are tried in the order they were added.
    #[must_use]
    pub fn authenticator(mut self, authenticator: Arc<dyn Authenticator>) -> Self {
        self.authenticators.push(authenticator);
        self
    }

    /// Adds authentication by API key, and `/v1/keys` to manage keys.
    #[must_use]
    pub fn keys(mut self, store: Arc<dyn AccessKeys>) -> Self {
        let authenticator = Arc::new(ApiKeyAuthenticator::new(store));
        self.keys = Some(authenticator.clone());
        self.authenticator(authenticator)
    }

    /// Sets the rules for browsers. Without them, the application that nests the router is responsible.
    #[must_use]
    pub fn origins(mut self, origins: Origins) -> Self {
        self.origins = Some(origins);
        self
    }

    /// Sets the store of idempotency records; without it, requests with an idempotency key are refused.
    #[must_use]
    pub fn idempotency(mut self, store: Arc<dyn IdempotencyStore>) -> Self {
        self.idempotency = Some(store);
        self
    }

    /// Sets the store of stream tickets; without it, the gateway has none.
    #[must_use]
    pub fn stream_tickets(mut self, store: Arc<dyn StreamTickets>) -> Self {
        self.stream_tickets = Some(store);
        self
    }

    /// Sets the caller for requests without credentials; without it, such requests are refused.
    #[must_use]
    pub fn anonymous(mut self, caller: Caller) -> Self {
        self.anonymous = Some(caller);
        self
    }

    /// Sets the source of information that only adapters have.
    #[must_use]
    pub fn backends(mut self, backends: Arc<dyn Backends>) -> Self {
        self.backends = backends;
        self
    }

    /// Sets the meter for requests.
    #[must_use]
    pub fn measured(mut self, meter: Arc<dyn RequestMeter>) -> Self {
        self.request_metrics.meter = Some(meter);
        self
    }

    /// Builds the gateway.
    pub fn build(self) -> Gateway {
        let access = Access {
            authenticators: self.authenticators,
            keys: self.keys,
            anonymous: self.anonymous,
            origins: self.origins,
            limiter: Limiter::new(&self.settings.limits),
        };
        Gateway::new(Shared {
            service: self.service,
            access,
            settings: self.settings,
            backends: ArcSwap::from_pointee(self.backends),
            request_metrics: self.request_metrics,
            idempotency: self.idempotency,
            stream_tickets: self.stream_tickets,
            requests: TaskTracker::new(),
        })
    }
}
