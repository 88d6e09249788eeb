//! Resolves the HTTP gateway: its listen address and its authentication. The gateway defines which scopes exist, so the
//! names of scopes are checked when the gateway is built.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use toolgate_core::chat::{Media, Usd};
use toolgate_core::run::Status;

use crate::error::Fault;
use crate::gateway::{
    FileSettings, GatewayLimits, GatewaySettings, MediaHostSettings, OidcSettings, Quota, QuotaSettings,
    RetentionSettings, RunsSettings, WebhookEgressSettings, WebhookSettings,
};
use crate::resolver::Resolver;
use crate::spanned::{Located, Text};
use crate::suggest::remedy;
use crate::written::{self, Gateway, Oidc, Retention, Runs, Webhook};

const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8484);
const MAX_ACTIVE: usize = 256;
const MAX_QUEUED: usize = 10_000;
const REQUESTS_PER_MINUTE: u32 = 60_000;
const CONCURRENT_REQUESTS: u64 = 1024;
const CONCURRENT_STREAMS: u64 = 4096;
const CONCURRENT_READS: u64 = 100;
const FAILURES_PER_MINUTE: u32 = 60;
const BODY_BYTES: u64 = 4 * 1024 * 1024;
const BODY_SECONDS: u64 = 30;
const FILES_BYTES: u64 = 1024 * 1024 * 1024;
const FILES: u64 = 1000;
const FILE_SECONDS: u64 = 7 * 24 * 60 * 60;

const DRAIN_SECONDS: u64 = 30;
const DEFAULT_TENANT: &str = "default";

/// The entry of a quota for every tenant or caller without one of its own.
const ANY: &str = "*";
/// The caller of an anonymous gateway.
const ANONYMOUS: &str = "local";

pub(super) fn resolve(written: Option<&Located<Gateway>>, scope: &mut Resolver<'_>) -> GatewaySettings {
    let unwritten = Gateway::default();
    let written = written.map_or(&unwritten, Located::value);
    let listen = address(written.listen.as_ref(), scope).unwrap_or(LISTEN);
    GatewaySettings {
        listen,
        metrics_listen: address(written.metrics_listen.as_ref(), scope),
        drain: scope.seconds(written.drain_s.as_ref(), DRAIN_SECONDS),
        runs: limits_of_runs(written.runs.as_ref(), scope),
        public_url: written.public_url.as_ref().map(|url| scope.url(url).trim_end_matches('/').to_owned()),
        anonymous: written.anonymous.as_ref().is_some_and(|anonymous| allowed(anonymous, listen, scope)),
        hosts: written.hosts.iter().map(|host| scope.text(host)).collect(),
        origins: written.cors.iter().flat_map(|cors| &cors.origins).map(|text| origin(text, scope)).collect(),
        oidc: written.oidc.as_ref().map(|oidc| issuer(oidc, scope)),
        webhooks: written.webhooks.iter().map(|webhook| resolve_webhook(webhook.value(), scope)).collect(),
        webhook_egress: WebhookEgressSettings {
            http: written.webhook_egress.http,
            loopback: written.webhook_egress.loopback,
            private: written.webhook_egress.private,
        },
        media_hosts: MediaHostSettings { loopback: written.media_hosts.loopback, private: written.media_hosts.private },
        files: files(&written.files, scope),
        limits: limits(&written.limits, scope),
        quotas: QuotaSettings {
            tenants: quotas(&written.quotas.tenants, scope, |_| None),
            keys: quotas(&written.quotas.keys, scope, wrong_caller),
        },
        retention: retention_rules(&written.retention, scope),
        four_eyes: written.four_eyes.unwrap_or(false),
    }
}

/// The quotas of one kind. `wrong` says what is wrong with a name.
fn quotas(
    written: &BTreeMap<String, Located<written::Quota>>,
    scope: &mut Resolver<'_>,
    wrong: impl Fn(&str) -> Option<Fault>,
) -> BTreeMap<String, Quota> {
    let mut quotas = BTreeMap::new();
    for (name, entry) in written {
        let written::Quota { runs, tokens, cost_usd } = *entry.value();
        if let Some(fault) = wrong(name) {
            scope.fault(fault, entry.place());
        }
        if runs.is_none() && tokens.is_none() && cost_usd.is_none() {
            let fault = Fault::new(format!("the quota of `{name}` limits nothing"));
            scope.fault(fault.with_remedy("name `runs`, `tokens` or `cost_usd`, or remove the entry"), entry.place());
        }
        if cost_usd.is_some_and(|cost| cost < Usd::ZERO) {
            let fault = Fault::new(format!("`cost_usd` of `{name}` is negative"));
            scope.fault(fault.with_remedy("write 0 to allow no runs"), entry.place());
        }
        quotas.insert(name.clone(), Quota { runs, tokens, cost_usd });
    }
    quotas
}

/// A name that no caller has: an API key without the prefix of its kind.
fn wrong_caller(name: &str) -> Option<Fault> {
    let is_caller = name == ANY || name == ANONYMOUS || name.contains(':');
    let fault = || Fault::new(format!("no caller has the name `{name}`"));
    (!is_caller).then(|| fault().with_remedy(format!("write `key:{name}` for an API key; `GET /v1/me` shows the name")))
}

fn retention_rules(written: &[Retention], scope: &mut Resolver<'_>) -> Vec<RetentionSettings> {
    let rules: Vec<RetentionSettings> = written.iter().map(|rule| retention(rule, scope)).collect();
    let covers_all = |rule: &Retention| rule.tenants.is_empty() && rule.statuses.is_empty();
    if let Some(unreached) = written.iter().position(covers_all).and_then(|last| written.get(last + 1)) {
        let fault = Fault::new("this rule never counts, because the one before it concerns every run");
        scope.fault(fault.with_remedy("write the rule for all runs last"), unreached.days.place());
    }
    rules
}

fn retention(written: &Retention, scope: &mut Resolver<'_>) -> RetentionSettings {
    let days = *written.days.value();
    if days == 0 {
        let fault = Fault::new("runs would be deleted as soon as they end");
        scope.fault(fault.with_remedy("name at least 1 day"), written.days.place());
    }
    let ended = || Status::ALL.into_iter().filter(|status| status.is_ended());
    let mut statuses = Vec::new();
    for text in &written.statuses {
        let name = scope.text(text);
        match ended().find(|status| status.as_str() == name) {
            Some(status) => statuses.push(status),
            None => {
                let known = ended().map(Status::as_str).collect::<Vec<_>>();
                let fault = Fault::new(format!("`{name}` is no status of an ended run"));
                scope.fault(fault.with_remedy(remedy(&name, known, "statuses")), text.place());
            }
        }
    }
    RetentionSettings { days, tenants: written.tenants.iter().map(|tenant| scope.text(tenant)).collect(), statuses }
}

fn files(written: &written::Files, scope: &mut Resolver<'_>) -> FileSettings {
    let most = Media::MAX_CONVERSATION_BYTES;
    let max_bytes = scope.at_least_one(written.max_bytes.as_ref(), most);
    if let Some(too_large) = written.max_bytes.as_ref().filter(|_| max_bytes > most) {
        let fault = Fault::new("no model could read a file of this size");
        scope.fault(fault.with_remedy(format!("name at most {most} bytes")), too_large.place());
    }
    FileSettings {
        max_bytes,
        max_total_bytes: scope.at_least_one(written.max_total_bytes.as_ref(), FILES_BYTES),
        max_files: scope.at_least_one(written.max_files.as_ref(), FILES),
        expire_after: scope.seconds(written.expire_after_s.as_ref(), FILE_SECONDS),
    }
}

fn limits_of_runs(written: Option<&Located<Runs>>, scope: &mut Resolver<'_>) -> RunsSettings {
    let unwritten = Runs::default();
    let written = written.map_or(&unwritten, Located::value);
    let max_active = scope.at_least_one(written.max_active.as_ref(), MAX_ACTIVE);
    RunsSettings {
        max_active,
        max_active_per_tenant: scope.at_least_one(written.max_active_per_tenant.as_ref(), max_active),
        max_queued: written.max_queued.as_ref().map_or(MAX_QUEUED, |queued| *queued.value()),
    }
}

fn resolve_webhook(webhook: &Webhook, scope: &mut Resolver<'_>) -> WebhookSettings {
    WebhookSettings {
        url: scope.url(&webhook.url),
        secret: scope.secret(&webhook.secret),
        events: webhook.events.iter().map(|event| scope.text(event)).collect(),
        tenant: webhook.tenant.as_ref().map_or_else(|| DEFAULT_TENANT.to_owned(), |tenant| scope.text(tenant)),
    }
}

/// Rejects anonymous access on a non-loopback address: it would give every user of the network full access.
fn allowed(anonymous: &Located<bool>, listen: SocketAddr, scope: &mut Resolver<'_>) -> bool {
    if *anonymous.value() && !listen.ip().is_loopback() {
        let fault = Fault::new(format!("anonymous access on {listen} would give everyone on the network full access"));
        scope.fault(
            fault.with_remedy(
                "listen on the loopback address, or remove `anonymous` and authenticate callers with `toolgate keys create` or \
                 `gateway.oidc`",
            ),
            anonymous.place(),
        );
    }
    *anonymous.value()
}

/// An origin: a scheme, a host and an optional port, as browsers write it.
fn origin(text: &Text, scope: &mut Resolver<'_>) -> String {
    let origin = scope.url(text);
    let rest = origin.split_once("://").map_or("", |(_, rest)| rest);
    if rest.contains(['/', '?', '#', '@']) || origin != origin.to_lowercase() {
        let fault = Fault::new(format!("`{origin}` is not an origin"));
        scope.fault(
            fault.with_remedy("write scheme, name and port as browsers do, such as `https://app.example.com`"),
            text.place(),
        );
    }
    origin
}

fn issuer(placed: &Located<Oidc>, scope: &mut Resolver<'_>) -> OidcSettings {
    let oidc = placed.value();
    let issuer = scope.url(&oidc.issuer);
    if !issuer.starts_with("https://") && !is_on_this_machine(&issuer) {
        let fault = Fault::new("the keys of this issuer would be fetched without TLS");
        scope.fault(fault.with_remedy("name its `https://` URL"), oidc.issuer.place());
    }
    let table = oidc.scopes_of.as_ref().map(|table| {
        let scopes = |texts: &Vec<Text>, scope: &mut Resolver<'_>| texts.iter().map(|text| scope.text(text)).collect();
        table.iter().map(|(value, texts)| (value.clone(), scopes(texts, scope))).collect::<BTreeMap<_, _>>()
    });
    OidcSettings {
        issuer,
        audience: scope.text(&oidc.audience),
        scope_claim: oidc.scope_claim.as_ref().map_or_else(|| "scope".to_owned(), |claim| scope.text(claim)),
        tenant_claim: oidc.tenant_claim.as_ref().map(|claim| scope.text(claim)),
        scopes_of: table,
    }
}

fn is_on_this_machine(url: &str) -> bool {
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    // An IPv6 address between brackets contains colons. Text before an `@` is user information, not a host.
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(address, _)| address),
        None => authority.split_once(':').map_or(authority, |(name, _)| name),
    };
    let is_here = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    is_here && !authority.contains('@')
}

fn limits(written: &written::GatewayLimits, scope: &mut Resolver<'_>) -> GatewayLimits {
    let requests_per_minute = scope.at_least_one(written.requests_per_minute.as_ref(), REQUESTS_PER_MINUTE);
    GatewayLimits {
        requests_per_minute,
        burst: scope.at_least_one(written.burst.as_ref(), requests_per_minute.div_ceil(10)),
        concurrent_requests: scope.at_least_one(written.concurrent_requests.as_ref(), CONCURRENT_REQUESTS),
        concurrent_streams: scope.at_least_one(written.concurrent_streams.as_ref(), CONCURRENT_STREAMS),
        concurrent_reads: scope.at_least_one(written.concurrent_reads.as_ref(), CONCURRENT_READS),
        failures_per_minute: scope.at_least_one(written.failures_per_minute.as_ref(), FAILURES_PER_MINUTE),
        body_bytes: scope.at_least_one(written.body_bytes.as_ref(), BODY_BYTES),
        body_timeout: scope.seconds(written.body_timeout_s.as_ref(), BODY_SECONDS),
    }
}

/// Parses a listen address. An invalid address is an error.
fn address(written: Option<&Text>, scope: &mut Resolver<'_>) -> Option<SocketAddr> {
    let text = written?;
    let address = scope.text(text).parse().ok();
    if address.is_none() {
        let fault = Fault::new("this is not a listen address");
        let remedy = "write an IP address and a port, such as `127.0.0.1:8484` or `[::]:8484`";
        scope.fault(fault.with_remedy(remedy), text.place());
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_on_this_machine_by_its_host_alone() {
        for here in [
            "http://localhost",
            "http://localhost:9000/realm",
            "http://127.0.0.1/",
            "http://[::1]/realm",
            "http://[::1]:80",
        ] {
            assert!(is_on_this_machine(here), "{here}");
        }
        for elsewhere in [
            "http://login.example.com",
            "http://localhost.example.com",
            "http://localhost:x@login.example.com",
            "http://[::1]@login.example.com/",
            "http://[2001:db8::1]/",
            "http://10.0.0.1",
        ] {
            assert!(!is_on_this_machine(elsewhere), "{elsewhere}");
        }
    }
}
