//! The HTTP gateway, as it is written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Runs, seconds};
use crate::config::placed::{Placed, Text};

/// The HTTP gateway.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct Gateway {
    /// Where it listens: an address and a port. Default: `127.0.0.1:8484`.
    pub(in crate::config) listen: Option<Text>,
    /// The address people know it by, such as `https://toolgate.example.com`. Default: none; links are paths.
    pub(in crate::config) public_url: Option<Text>,
    /// Where Prometheus reads `/metrics`: an address and a port of its own, which the keys of the gateway do not guard.
    /// Default: nowhere.
    pub(in crate::config) metrics_listen: Option<Text>,
    /// How long runs under way may go on to a rest when the server is stopped, in seconds. Then they are laid down between
    /// two steps, and another process drives them on. Default: 30.
    #[schemars(schema_with = "crate::config::written::seconds")]
    pub(in crate::config) drain_s: Option<Text>,
    /// How many runs it takes on.
    pub(in crate::config) runs: Option<Placed<Runs>>,
    /// Whether whoever shows nothing may do everything. Only where it listens on the loopback address. Default: false.
    pub(in crate::config) anonymous: Option<Placed<bool>>,
    /// Names that an anonymous gateway is asked by besides `localhost` and loopback addresses.
    pub(in crate::config) hosts: Vec<Text>,
    /// What pages in browsers may do. Default: nothing.
    pub(in crate::config) cors: Option<Cors>,
    /// Tokens of an OpenID Connect issuer that let people in. Default: none do.
    pub(in crate::config) oidc: Option<Placed<Oidc>>,
    /// Where it is told what happens to runs (Standard Webhooks), besides what tenants ask for over the API.
    pub(in crate::config) webhooks: Vec<Placed<Webhook>>,
    /// Where webhooks of tenants may go besides `https://` addresses of the public internet. Default: nowhere.
    pub(in crate::config) webhook_egress: WebhookEgress,
    /// Hosts of image and audio URLs in requests besides those of the public internet. Default: none.
    pub(in crate::config) media_hosts: MediaHosts,
    /// How much one caller may ask for.
    pub(in crate::config) limits: GatewayLimits,
    /// Whether whoever started a run must not be the one who approves its calls. Default: false.
    pub(in crate::config) four_eyes: Option<bool>,
}

/// An address that is told what happens to runs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Webhook {
    /// Where messages are posted. It may be anywhere.
    pub(in crate::config) url: Text,
    /// What messages are signed with: `whsec_` and the Base64 of 24 to 64 bytes.
    pub(in crate::config) secret: Text,
    /// What is told, such as `run.pending` or `approval.requested`. Default: everything.
    #[serde(default)]
    pub(in crate::config) events: Vec<Text>,
    /// Whose runs it is told of. Default: `default`.
    pub(in crate::config) tenant: Option<Text>,
}

/// Where webhooks of tenants may go besides `https://` addresses of the public internet.
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

/// Hosts of image and audio URLs in requests besides those of the public internet.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct MediaHosts {
    /// This machine. Default: false.
    pub(in crate::config) loopback: bool,
    /// Private networks. Default: false.
    pub(in crate::config) private: bool,
}

/// What pages in browsers may do.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Cors {
    /// The origins of pages that may ask, such as `https://app.example.com`.
    pub(in crate::config) origins: Vec<Text>,
}

/// An OpenID Connect issuer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Oidc {
    /// Its URL, exactly as its tokens write it.
    pub(in crate::config) issuer: Text,
    /// For whom a token has to be.
    pub(in crate::config) audience: Text,
    /// The claim that names scopes, as text between blanks or as a list. Default: `scope`.
    pub(in crate::config) scope_claim: Option<Text>,
    /// The claim that names the tenant. Default: all are of the one tenant there is.
    pub(in crate::config) tenant_claim: Option<Text>,
    /// What the values of the scope claim mean, such as `operators: [approvals:read, approvals:decide]`. Default: they are
    /// scopes, and others mean nothing.
    pub(in crate::config) scopes_of: Option<BTreeMap<String, Vec<Text>>>,
}

/// How much one caller may ask for; all keys of one name in a tenant are one caller.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct GatewayLimits {
    /// Requests in a minute. Default: 60000.
    pub(in crate::config) requests_per_minute: Option<Placed<u32>>,
    /// Requests at one moment. Default: a tenth of `requests_per_minute`.
    pub(in crate::config) burst: Option<Placed<u32>>,
    /// Requests under way at once, those that wait for a run included. Default: 1024.
    pub(in crate::config) requests_at_once: Option<Placed<u64>>,
    /// Event streams open at once. Default: 4096.
    pub(in crate::config) streams_at_once: Option<Placed<u64>>,
    /// Lists and runs being read at once, those that wait for their turn included. Default: 100.
    pub(in crate::config) reads_at_once: Option<Placed<u64>>,
    /// Credentials that do not hold, from one address in a minute. Default: 60.
    pub(in crate::config) failures_per_minute: Option<Placed<u32>>,
    /// The largest body, in bytes. Default: 4194304, 4 MiB.
    pub(in crate::config) body_bytes: Option<Placed<u64>>,
    /// How long a body may take to arrive, in seconds. Default: 30.
    #[schemars(schema_with = "seconds")]
    pub(in crate::config) body_timeout_s: Option<Text>,
}
