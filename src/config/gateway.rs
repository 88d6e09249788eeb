//! Resolved settings of the HTTP gateway: listen address, authentication and limits.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;
use toolgate_core::chat::Usd;
use toolgate_core::run::Status;

/// The HTTP gateway.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// The listen address.
    pub listen: std::net::SocketAddr,
    /// The public address of the gateway, without a trailing slash.
    pub public_url: Option<String>,
    /// The address of the metrics endpoint, if it is enabled.
    pub metrics_listen: Option<std::net::SocketAddr>,
    /// How long running runs may continue while the server shuts down.
    pub drain: Duration,
    /// How many runs the gateway executes and queues.
    pub runs: RunsSettings,
    /// Whether requests without credentials have every right. Requires the loopback address.
    pub anonymous: bool,
    /// Host names that an anonymous gateway accepts besides those of the loopback address.
    pub hosts: Vec<String>,
    /// The allowed CORS origins.
    pub origins: Vec<String>,
    /// The issuer whose tokens are accepted, if there is one.
    pub oidc: Option<OidcSettings>,
    /// Webhook endpoints from the configuration.
    pub webhooks: Vec<WebhookSettings>,
    /// Where the webhooks of tenants may be sent.
    pub webhook_egress: WebhookEgressSettings,
    /// Allowed hosts of media URLs in requests, besides those of the public internet.
    pub media_hosts: MediaHostSettings,
    /// Files that callers upload for runs.
    pub files: FileSettings,
    /// Limits per caller.
    pub limits: GatewayLimits,
    /// What runs may use in a UTC day.
    pub quotas: QuotaSettings,
    /// How long ended runs are kept; the first rule that concerns a run counts.
    pub retention: Vec<RetentionSettings>,
    /// Whether the user who started a run may not approve its calls.
    pub four_eyes: bool,
}

/// Daily quotas, by name; `*` is for all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaSettings {
    pub tenants: BTreeMap<String, Quota>,
    /// By the names of callers.
    pub keys: BTreeMap<String, Quota>,
}

/// The most that may be used in a UTC day; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Runs that begin.
    pub runs: Option<u64>,
    /// Input and output tokens.
    pub tokens: Option<u64>,
    pub cost_usd: Option<Usd>,
}

/// How long ended runs are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionSettings {
    /// The days after the last activity of the run's session.
    pub days: u32,
    /// The tenants whose runs it concerns; empty means all.
    pub tenants: Vec<String>,
    /// The statuses that it concerns; empty means those of all ended runs.
    pub statuses: Vec<Status>,
}

/// A webhook endpoint.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// The URL that messages are posted to.
    pub url: String,
    /// The signing secret.
    pub secret: SecretString,
    /// The names of the events to send; empty means every event.
    pub events: Vec<String>,
    /// The tenant whose runs are reported.
    pub tenant: String,
}

/// Allowed hosts of image and audio URLs in requests, besides those of the public internet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaHostSettings {
    pub loopback: bool,
    /// Private networks.
    pub private: bool,
}

/// Files that callers upload for runs. Each limit is at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSettings {
    /// The maximum size of a file.
    pub max_bytes: u64,
    /// The maximum of bytes of all files of a tenant.
    pub max_total_bytes: u64,
    /// The maximum of files of a tenant.
    pub max_files: u64,
    /// How long a file is stored at most, and by default.
    pub expire_after: Duration,
}

/// Where the webhooks of tenants may be sent, besides `https://` addresses of the public internet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookEgressSettings {
    /// `http://` addresses.
    pub http: bool,
    pub loopback: bool,
    /// Private networks.
    pub private: bool,
}

/// How many runs the gateway executes and queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsSettings {
    /// The maximum of concurrently active runs.
    pub max_active: usize,
    /// The same maximum for each tenant.
    pub max_active_per_tenant: usize,
    /// The maximum of queued runs.
    pub max_queued: usize,
}

/// An OpenID Connect issuer whose tokens are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcSettings {
    /// The issuer URL, exactly as in its tokens.
    pub issuer: String,
    /// The required audience of a token.
    pub audience: String,
    /// The claim that contains the scopes.
    pub scope_claim: String,
    /// The claim that contains the tenant.
    pub tenant_claim: Option<String>,
    /// The scopes that each value of the scope claim stands for.
    pub scopes_of: Option<BTreeMap<String, Vec<String>>>,
}

/// Limits per caller. Each is at least 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayLimits {
    pub requests_per_minute: u32,
    pub burst: u32,
    pub concurrent_requests: u64,
    /// Concurrent event streams.
    pub concurrent_streams: u64,
    /// Concurrent reads of lists and runs.
    pub concurrent_reads: u64,
    /// Failed authentications per minute from one address.
    pub failures_per_minute: u32,
    /// The maximum size of a body.
    pub body_bytes: u64,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
}
