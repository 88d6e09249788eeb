//! Egress rule (protection against SSRF): which addresses requests may reach. An address from a third party must not lead into the operator's
//! own network.
//!
//! A URL of the configuration comes from the operator and is dialled as it is. A URL from elsewhere (a server added at
//! run time, an endpoint in a server's OAuth metadata) is dialled only at permitted addresses. Names are checked where
//! they are resolved ([`GuardedResolver`]). Behind a proxy from the environment the proxy resolves names; toolgate then checks only literal IP
//! addresses. The rule of webhooks is another one (decision 0027).

use std::net::IpAddr;

use reqwest::Url;
use toolgate_core::address::{AddressClass, AllowedClasses, EgressPolicy, is_localhost, normal_host, place};
use toolgate_egress::{GuardedResolver, RejectedAddress};

/// Who controls the address of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Egress {
    /// The operator, who configured it: any address is permitted.
    #[default]
    Operator,
    /// The operator, whose policy restricts the addresses.
    Within(EgressPolicy),
    /// A third party: the address must be on the public internet.
    Public,
}

/// The permitted addresses.
#[derive(Clone, Debug)]
pub(crate) enum AllowedAddresses {
    Anywhere,
    /// Public addresses, and the operator's exceptions.
    Public(Exceptions),
}

/// The operator's exceptions besides the public internet.
#[derive(Clone, Debug)]
pub(crate) struct Exceptions {
    /// Hosts that may be at any address.
    hosts: Vec<String>,
    policy: EgressPolicy,
}

impl AllowedAddresses {
    /// The permitted addresses of the server itself.
    pub(crate) fn of_server(egress: &Egress) -> Self {
        match egress {
            Egress::Operator => Self::Anywhere,
            Egress::Within(policy) => Self::Public(Exceptions { policy: policy.clone(), ..Exceptions::with_proxies() }),
            Egress::Public => Self::Public(Exceptions::with_proxies()),
        }
    }

    /// The permitted addresses for the server's metadata. A server that the operator placed on this machine or in a
    /// private network, by address, may have its authorization server there too.
    pub(crate) fn from_server(egress: &Egress, server: &Url, allow_private: bool) -> Self {
        let mut exceptions = Exceptions::with_proxies();
        let beside = literal(server).map(place);
        let is_localhost = server.host_str().is_some_and(|host| is_localhost(&normal_host(host)));
        let classes = AllowedClasses {
            private: allow_private || beside == Some(AddressClass::Private),
            loopback: allow_private || beside == Some(AddressClass::Loopback) || is_localhost,
        };
        match egress {
            Egress::Operator => {
                exceptions.hosts.extend(server.host_str().map(normal_host));
                exceptions.policy.classes = classes;
            }
            Egress::Within(EgressPolicy { classes: most, hosts }) => {
                let (private, loopback) = (classes.private && most.private, classes.loopback && most.loopback);
                let classes = AllowedClasses { private, loopback };
                exceptions.policy = EgressPolicy { classes, hosts: hosts.clone() };
            }
            Egress::Public => {}
        }
        Self::Public(exceptions)
    }

    /// Whether private addresses are permitted for any host, not only for named exceptions.
    pub(crate) fn admits_private(&self) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Public(exceptions) => exceptions.policy.classes.private,
        }
    }

    /// Rejects a literal IP address; a name is checked when it is resolved.
    pub(crate) fn check(&self, url: &Url) -> Result<(), RejectedAddress> {
        match (literal(url), url.host_str()) {
            (Some(address), Some(host)) => self.admit(&normal_host(host), vec![address]).map(drop),
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// A resolver that returns only permitted addresses. `None` where all are permitted.
    pub(crate) fn resolver(&self) -> Option<GuardedResolver> {
        let Self::Public(_) = self else { return None };
        let allowed = self.clone();
        Some(GuardedResolver::new(move |host, addresses| allowed.admit(host, addresses)))
    }

    /// The permitted addresses of that host; at least one.
    fn admit(&self, host: &str, mut addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, RejectedAddress> {
        let exceptions = match self {
            Self::Anywhere => return Ok(addresses),
            Self::Public(exceptions) if exceptions.hosts.iter().any(|own| own == host) => return Ok(addresses),
            Self::Public(exceptions) => exceptions,
        };
        let (classes, first) = (exceptions.policy.classes_of(host), addresses.first().copied());
        addresses.retain(|address| classes.admits(place(*address)));
        match (addresses.is_empty(), first) {
            (false, _) | (true, None) => Ok(addresses),
            (true, Some(first)) => Err(RejectedAddress(format!(
                "`{host}` is at the address {first}, which is not on the public internet; an address from there is not dialled"
            ))),
        }
    }
}

impl Exceptions {
    /// A proxy is the operator's choice, and resolving its name says nothing about the target of the request.
    fn with_proxies() -> Self {
        const VARIABLES: [&str; 6] =
            ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
        let host_of = |proxy: String| {
            let url = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
            Url::parse(&url).ok().and_then(|url| url.host_str().map(normal_host))
        };
        let proxies = VARIABLES.iter().filter_map(|name| std::env::var(name).ok()).filter_map(host_of);
        let policy = EgressPolicy { classes: AllowedClasses::default(), hosts: Vec::new() };
        Self { hosts: proxies.collect(), policy }
    }
}

/// The literal IP address of a URL, if it has one.
fn literal(url: &Url) -> Option<IpAddr> {
    normal_host(url.host_str()?).parse().ok()
}

#[cfg(test)]
mod tests;
