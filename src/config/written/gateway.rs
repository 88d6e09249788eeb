//! Written form of the HTTP gateway.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Runs, seconds};
use crate::config::spanned::{Located, Text};

/// The HTTP gateway.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Gateway {
    /// The listen address: an IP address and a port. Default: `127.0.0.1:8484`.
    pub(in crate::config) listen: Option<Text>,
    /// The public address of the gateway, such as `https://toolgate.example.com`. Default: none; links are paths.
    pub(in crate::config) public_url: Option<Text>,
    /// The listen address of `/metrics` for Prometheus: its own IP address and port, without authentication. Default:
    /// metrics are not served.
    pub(in crate::config) metrics_listen: Option<Text>,
    /// How long running runs may continue when the server stops, in seconds. After that the server releases them
    /// between two steps, and another process claims them. Default: 30.
    #[schemars(schema_with = "crate::config::written::seconds")]
    pub(in crate::config) drain_s: Option<Text>,
    /// How many runs the gateway executes and queues.
    pub(in crate::config) runs: Option<Located<Runs>>,
    /// Whether requests without credentials have every right. Requires a loopback listen address. Default: false.
    pub(in crate::config) anonymous: Option<Located<bool>>,
    /// Host names that an anonymous gateway accepts besides `localhost` and loopback addresses.
    pub(in crate::config) hosts: Vec<Text>,
    /// Access for pages in browsers. Default: none.
    pub(in crate::config) cors: Option<Cors>,
    /// An OpenID Connect issuer whose tokens authenticate callers. Default: none.
    pub(in crate::config) oidc: Option<Located<Oidc>>,
    /// Webhook endpoints for events of runs (Standard Webhooks), besides those that tenants create over the API.
    pub(in crate::config) webhooks: Vec<Located<Webhook>>,
    /// Where the webhooks of tenants may be sent, besides `https://` addresses of the public internet. Default:
    /// nowhere.
    pub(in crate::config) webhook_egress: WebhookEgress,
    /// Allowed hosts of image and audio URLs in requests, besides those of the public internet. Default: none.
    pub(in crate::config) media_hosts: MediaHosts,
    /// Limits per caller.
    pub(in crate::config) limits: GatewayLimits,
    /// Whether the user who started a run may not approve its calls. Default: false.
    pub(in crate::config) four_eyes: Option<bool>,
}

/// A webhook endpoint for events of runs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Webhook {
    /// The URL that messages are posted to. Any address is allowed.
    pub(in crate::config) url: Text,
    /// The signing secret: `whsec_` and the Base64 of 24 to 64 bytes.
    pub(in crate::config) secret: Text,
    /// The events to send, such as `run.pending` or `approval.requested`. Default: every event.
    #[serde(default)]
    pub(in crate::config) events: Vec<Text>,
    /// The tenant whose runs are reported. Default: `default`.
    pub(in crate::config) tenant: Option<Text>,
}

/// Where the webhooks of tenants may be sent, besides `https://` addresses of the public internet.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct WebhookEgress {
    /// `http://` addresses. Default: false.
    pub(in crate::config) http: bool,
    /// This machine. Default: false.
    pub(in crate::config) loopback: bool,
    /// Private networks. Default: false.
    pub(in crate::config) private: bool,
}

/// Allowed hosts of image and audio URLs in requests, besides those of the public internet.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct MediaHosts {
    /// This machine. Default: false.
    pub(in crate::config) loopback: bool,
    /// Private networks. Default: false.
    pub(in crate::config) private: bool,
}

/// Access for pages in browsers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Cors {
    /// The allowed CORS origins, such as `https://app.example.com`.
    pub(in crate::config) origins: Vec<Text>,
}

/// An OpenID Connect issuer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Oidc {
    /// The issuer URL, exactly as in its tokens.
    pub(in crate::config) issuer: Text,
    /// The required audience of a token.
    pub(in crate::config) audience: Text,
    /// The claim that contains the scopes, as space-separated text or as a list. Default: `scope`.
    pub(in crate::config) scope_claim: Option<Text>,
    /// The claim that contains the tenant. Default: none; every token belongs to the tenant `default`.
    pub(in crate::config) tenant_claim: Option<Text>,
    /// The scopes of each value of the scope claim, such as `operators: [approvals:read, approvals:decide]`. Default:
    /// the values are scopes. Unknown values are ignored.
    pub(in crate::config) scopes_of: Option<BTreeMap<String, Vec<Text>>>,
}

/// Limits per caller; all keys with the same name in a tenant count as one caller.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct GatewayLimits {
    /// Requests per minute. Default: 60000.
    pub(in crate::config) requests_per_minute: Option<Located<u32>>,
    /// Requests in a burst. Default: a tenth of `requests_per_minute`.
    pub(in crate::config) burst: Option<Located<u32>>,
    /// Concurrent requests, including those that wait for a run. Default: 1024.
    pub(in crate::config) concurrent_requests: Option<Located<u64>>,
    /// Concurrent event streams. Default: 4096.
    pub(in crate::config) streams_at_once: Option<Located<u64>>,
    /// Concurrent reads of lists and runs, including those in the queue. Default: 100.
    pub(in crate::config) reads_at_once: Option<Located<u64>>,
    /// Failed authentications per minute from one address. Default: 60.
    pub(in crate::config) failures_per_minute: Option<Located<u32>>,
    /// The maximum size of a body, in bytes. Default: 4194304, 4 MiB.
    pub(in crate::config) body_bytes: Option<Located<u64>>,
    /// How long a body may take to arrive, in seconds. Default: 30.
    #[schemars(schema_with = "seconds")]
    pub(in crate::config) body_timeout_s: Option<Text>,
}
