//! Written form of the HTTP gateway.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_core::chat::Usd;

use super::{dollars, seconds};
use crate::spanned::{Located, Text};

/// The HTTP gateway.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Gateway {
    /// The listen address: an IP address and a port. Default: `127.0.0.1:8484`.
    pub(crate) listen: Option<Text>,
    /// The public address of the gateway, such as `https://toolgate.example.com`. Default: none; links are paths.
    pub(crate) public_url: Option<Text>,
    /// The listen address of `/metrics` for Prometheus: its own IP address and port, without authentication. Default:
    /// metrics are not served.
    pub(crate) metrics_listen: Option<Text>,
    /// How long running runs may continue when the server stops, in seconds. After that the server releases them
    /// between two steps, and another process claims them. Default: 30.
    #[schemars(schema_with = "seconds")]
    pub(crate) drain_s: Option<Text>,
    /// How many runs the gateway executes and queues.
    pub(crate) runs: Option<Located<Runs>>,
    /// Whether requests without credentials have every right. Requires a loopback listen address. Default: false.
    pub(crate) anonymous: Option<Located<bool>>,
    /// Host names that an anonymous gateway accepts besides `localhost` and loopback addresses.
    pub(crate) hosts: Vec<Text>,
    /// Access for pages in browsers. Default: none.
    pub(crate) cors: Option<Cors>,
    /// An OpenID Connect issuer whose tokens authenticate callers. Default: none.
    pub(crate) oidc: Option<Located<Oidc>>,
    /// Webhook endpoints for events of runs (Standard Webhooks), besides those that tenants create over the API.
    pub(crate) webhooks: Vec<Located<Webhook>>,
    /// Where the webhooks of tenants may be sent, besides `https://` addresses of the public internet. Default:
    /// nowhere.
    pub(crate) webhook_egress: WebhookEgress,
    /// Allowed hosts of image and audio URLs in requests, besides those of the public internet. Default: none.
    pub(crate) media_hosts: MediaHosts,
    /// Files that callers upload for runs.
    pub(crate) files: Files,
    /// Limits per caller.
    pub(crate) limits: GatewayLimits,
    /// What runs may use in a UTC day, by tenant and by caller. Default: no quotas.
    pub(crate) quotas: Quotas,
    /// How long ended runs are kept. The first rule that concerns a run counts. Default: they are kept.
    pub(crate) retention: Vec<Retention>,
    /// Whether the user who started a run may not approve its calls. Default: false.
    pub(crate) four_eyes: Option<bool>,
}

/// Daily quotas, by UTC day. A run that would begin beyond one is rejected; runs that are executed continue.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Quotas {
    /// The quotas of tenants, each for all of its callers together. `*` is for every tenant without an entry.
    pub(crate) tenants: BTreeMap<String, Located<Quota>>,
    /// The quotas of callers by name, such as `key:ci`, in each tenant. `*` is for every caller without an entry.
    pub(crate) keys: BTreeMap<String, Located<Quota>>,
}

/// The most that may be used in a UTC day.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Quota {
    /// Runs that begin. Default: no limit.
    pub(crate) runs: Option<u64>,
    /// Input and output tokens. Default: no limit.
    pub(crate) tokens: Option<u64>,
    /// US dollars, as a number or as text with decimals. Default: no limit.
    #[schemars(schema_with = "dollars")]
    pub(crate) cost_usd: Option<Usd>,
}

/// How long ended runs are kept.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retention {
    /// The days after the last activity of the run's session, when the content of the run is deleted.
    #[schemars(range(min = 1))]
    pub(crate) days: Located<u32>,
    /// Only runs of these tenants. Default: of all tenants.
    #[serde(default)]
    pub(crate) tenants: Vec<Text>,
    /// Only runs with these statuses: `completed`, `incomplete`, `failed`, `cancelled`, `expired`. Default: all of them.
    #[serde(default)]
    pub(crate) statuses: Vec<Text>,
}

/// How many runs the gateway executes and queues.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Runs {
    /// The maximum of concurrently active runs. The others wait in a queue that is fair to tenants. Runs that wait for
    /// an answer or a result do not count. Default: 256.
    pub(crate) max_active: Option<Located<usize>>,
    /// The same maximum for each tenant. Default: `max_active`.
    pub(crate) max_active_per_tenant: Option<Located<usize>>,
    /// The maximum of queued runs; beyond it new runs are rejected as `unavailable`. Default: 10000.
    pub(crate) max_queued: Option<Located<usize>>,
}

/// A webhook endpoint for events of runs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Webhook {
    /// The URL that messages are posted to. Any address is allowed.
    pub(crate) url: Text,
    /// The signing secret: `whsec_` and the Base64 of 24 to 64 bytes.
    pub(crate) secret: Text,
    /// The events to send, such as `execution.pending` or `approval.requested`. Default: every event.
    #[serde(default)]
    pub(crate) events: Vec<Text>,
    /// The tenant whose runs are reported. Default: `default`.
    pub(crate) tenant: Option<Text>,
}

/// Where the webhooks of tenants may be sent, besides `https://` addresses of the public internet.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WebhookEgress {
    /// `http://` addresses. Default: false.
    pub(crate) http: bool,
    /// This machine. Default: false.
    pub(crate) loopback: bool,
    /// Private networks. Default: false.
    pub(crate) private: bool,
}

/// Allowed hosts of image and audio URLs in requests, besides those of the public internet.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MediaHosts {
    /// This machine. Default: false.
    pub(crate) loopback: bool,
    /// Private networks. Default: false.
    pub(crate) private: bool,
}

/// Files that callers upload for runs.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Files {
    /// The maximum size of a file, in bytes. Default, and at most: 20971520, 20 MiB, which is about what providers accept.
    #[schemars(range(min = 1, max = 20_971_520))]
    pub(crate) max_bytes: Option<Located<u64>>,
    /// The maximum of bytes of all files of a tenant. Default: 1073741824, 1 GiB.
    pub(crate) max_total_bytes: Option<Located<u64>>,
    /// The maximum of files of a tenant. Default: 1000.
    pub(crate) max_files: Option<Located<u64>>,
    /// How long a file is stored at most, and by default, in seconds. Default: 604800, 7 days.
    #[schemars(schema_with = "seconds")]
    pub(crate) expire_after_s: Option<Text>,
}

/// Access for pages in browsers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cors {
    /// The allowed CORS origins, such as `https://app.example.com`.
    pub(crate) origins: Vec<Text>,
}

/// An OpenID Connect issuer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Oidc {
    /// The issuer URL, exactly as in its tokens.
    pub(crate) issuer: Text,
    /// The required audience of a token.
    pub(crate) audience: Text,
    /// The claim that contains the scopes, as space-separated text or as a list. Default: `scope`.
    pub(crate) scope_claim: Option<Text>,
    /// The claim that contains the tenant. Default: none; every token belongs to the tenant `default`.
    pub(crate) tenant_claim: Option<Text>,
    /// The scopes of each value of the scope claim, such as `operators: [approvals:read, approvals:decide]`. Default:
    /// the values are scopes. Unknown values are ignored.
    pub(crate) scopes_of: Option<BTreeMap<String, Vec<Text>>>,
}

/// Limits per caller; all keys with the same name in a tenant count as one caller.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GatewayLimits {
    /// Requests per minute. Default: 60000.
    pub(crate) requests_per_minute: Option<Located<u32>>,
    /// Requests in a burst. Default: a tenth of `requests_per_minute`.
    pub(crate) burst: Option<Located<u32>>,
    /// Concurrent requests, including those that wait for a run. Default: 1024.
    pub(crate) concurrent_requests: Option<Located<u64>>,
    /// Concurrent event streams. Default: 4096.
    pub(crate) concurrent_streams: Option<Located<u64>>,
    /// Concurrent reads of lists and runs, including those in the queue. Default: 100.
    pub(crate) concurrent_reads: Option<Located<u64>>,
    /// Failed authentications per minute from one address. Default: 60.
    pub(crate) failures_per_minute: Option<Located<u32>>,
    /// The maximum size of a body, in bytes. Default: 4194304, 4 MiB.
    pub(crate) body_bytes: Option<Located<u64>>,
    /// How long a body may take to arrive, in seconds. Default: 30.
    #[schemars(schema_with = "seconds")]
    pub(crate) body_timeout_s: Option<Text>,
}
