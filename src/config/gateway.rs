//! The HTTP gateway as it is used: where it listens, whom it lets in, how much they may ask for.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;

/// The HTTP gateway.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// Where it listens.
    pub listen: std::net::SocketAddr,
    /// The address people know it by, without a trailing slash.
    pub public_url: Option<String>,
    /// Where Prometheus reads, if it may.
    pub metrics_listen: Option<std::net::SocketAddr>,
    /// How long runs under way may go on when the server is stopped.
    pub drain: Duration,
    /// How many runs it takes on.
    pub runs: RunsSettings,
    /// Whether whoever shows nothing may do everything; it listens on the loopback address then.
    pub anonymous: bool,
    /// Names that an anonymous gateway is asked by besides those of the loopback address.
    pub hosts: Vec<String>,
    /// The origins of pages that may ask.
    pub origins: Vec<String>,
    /// The issuer whose tokens let people in, if there is one.
    pub oidc: Option<OidcSettings>,
    /// The addresses that are told what happens to runs.
    pub webhooks: Vec<WebhookSettings>,
    /// Where webhooks of tenants may go.
    pub webhook_egress: WebhookEgressSettings,
    /// Hosts of media URLs in requests besides those of the public internet.
    pub media_hosts: MediaHostSettings,
    /// How much one caller may ask for.
    pub limits: GatewayLimits,
    /// Whether whoever started a run must not be the one who approves its calls.
    pub four_eyes: bool,
}

/// An address that is told what happens to runs.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// Where messages are posted.
    pub url: String,
    /// What they are signed with.
    pub secret: SecretString,
    /// The names of what is told; none means everything.
    pub events: Vec<String>,
    /// Whose runs it is told of.
    pub tenant: String,
}

/// Hosts of image and audio URLs in requests besides those of the public internet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaHostSettings {
    /// This machine.
    pub loopback: bool,
    /// Private networks.
    pub private: bool,
}

/// Where webhooks of tenants may go besides `https://` addresses of the public internet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookEgressSettings {
    /// `http://` addresses.
    pub http: bool,
    /// This machine.
    pub loopback: bool,
    /// Private networks.
    pub private: bool,
}

/// How many runs the gateway takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsSettings {
    /// At most so many are driven at once.
    pub max_active: usize,
    /// At most so many of one tenant.
    pub max_active_per_tenant: usize,
    /// At most so many wait for their turn.
    pub max_queued: usize,
}

/// An OpenID Connect issuer whose tokens let people in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcSettings {
    /// The issuer, exactly as its tokens write it.
    pub issuer: String,
    /// For whom a token has to be.
    pub audience: String,
    /// The claim that names scopes.
    pub scope_claim: String,
    /// The claim that names the tenant.
    pub tenant_claim: Option<String>,
    /// The names of the scopes that values of the scope claim mean.
    pub scopes_of: Option<BTreeMap<String, Vec<String>>>,
}

/// How much one caller may ask for. None is zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayLimits {
    /// Requests in a minute.
    pub requests_per_minute: u32,
    /// Requests at one moment.
    pub burst: u32,
    /// Requests under way at once.
    pub requests_at_once: u64,
    /// Event streams open at once.
    pub streams_at_once: u64,
    /// Lists and runs being read at once.
    pub reads_at_once: u64,
    /// Credentials that do not hold, from one address in a minute.
    pub failures_per_minute: u32,
    /// The largest body.
    pub body_bytes: u64,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
}
