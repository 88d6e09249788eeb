//! Egress policy: the one rule for the addresses of models, MCP servers, webhooks and media URLs. The guards of the
//! adapters enforce it where names are resolved; an address that shows in the configuration is reported here.

use toolgate_core::address::{AllowedClasses, EgressPolicy, normal_host};

use crate::error::Fault;
use crate::resolver::Resolver;
use crate::settings::{ModelSettings, Settings, TransportSettings};
use crate::spanned::Located;
use crate::written::Egress;

/// Applies the policy to every setting with an address.
pub(super) fn apply(written: Option<&Located<Egress>>, settings: &mut Settings, scope: &mut Resolver<'_>) {
    let Some(placed) = written else { return };
    let Egress { private, loopback, hosts } = placed.value();
    let hosts = hosts.iter().map(|host| normal_host(&scope.text(host))).collect();
    let policy = EgressPolicy { classes: AllowedClasses { private: *private, loopback: *loopback }, hosts };
    let mut refused: Vec<String> = Vec::new();
    for (name, model) in &mut settings.models {
        if let ModelSettings::Http(http) = model {
            http.settings.egress = policy.clone();
            refused.extend(outside(&policy, &http.settings.base_url).then(|| format!("the address of model `{name}`")));
        }
    }
    for (id, server) in &mut settings.servers {
        if let TransportSettings::Http { url, .. } = &server.transport {
            refused.extend(outside(&policy, url).then(|| format!("the address of MCP server `{id}`")));
            server.egress = Some(policy.clone());
        }
    }
    for webhook in &settings.gateway.webhooks {
        refused.extend(outside(&policy, &webhook.url).then(|| "the address of a webhook".to_owned()));
    }
    let (webhooks, media) = (settings.gateway.webhook_egress, settings.gateway.media_hosts);
    for (key, is_wider) in [
        ("gateway.webhook_egress.private", webhooks.private && !private),
        ("gateway.webhook_egress.loopback", webhooks.loopback && !loopback),
        ("gateway.media_hosts.private", media.private && !private),
        ("gateway.media_hosts.loopback", media.loopback && !loopback),
    ] {
        refused.extend(is_wider.then(|| format!("`{key}: true`")));
    }
    for what in refused {
        let fault = Fault::new(format!("`egress` does not allow {what}"));
        scope.fault(fault.with_remedy("allow it with `private`, `loopback` or `hosts` of `egress`"), placed.place());
    }
}

/// Whether the text of a URL shows that its host is not allowed.
fn outside(policy: &EgressPolicy, url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let end = if host.starts_with('[') { host.find(']').map(|at| at + 1) } else { host.find(':') };
    policy.refuses_text(host.get(..end.unwrap_or(host.len())).unwrap_or(host))
}
