//! Egress guard: which addresses requests may reach. An address from a third party must not lead into the operator's
//! own network.
//!
//! A URL of the configuration comes from the operator and is dialled as it is. A URL from elsewhere (a server added at
//! run time, an endpoint in a server's OAuth metadata) is dialled only at permitted addresses. Names are checked where
//! they are resolved, and the connection uses the checked address, so a name that changes its address in between gains
//! nothing. Behind a proxy from the environment the proxy resolves names; toolgate then checks only literal IP
//! addresses. The guard of webhooks is another one (decision 0027).

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use toolgate_core::address::{AddressClass, AllowedClasses, EgressPolicy, is_localhost, normal_host, place};

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

/// A rejected address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct AddressRejection(String);

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
    pub(crate) fn check(&self, url: &Url) -> Result<(), AddressRejection> {
        match (literal(url), url.host_str()) {
            (Some(address), Some(host)) => self.admit(&normal_host(host), &[address]).map(drop),
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// A resolver that returns only permitted addresses. `None` where all are permitted.
    pub(crate) fn resolver(&self) -> Option<Arc<Guard>> {
        match self {
            Self::Anywhere => None,
            Self::Public(_) => Some(Arc::new(Guard { reach: self.clone(), names: Arc::new(System) })),
        }
    }

    /// The permitted addresses of that host; at least one.
    fn admit(&self, host: &str, addresses: &[IpAddr]) -> Result<Vec<IpAddr>, AddressRejection> {
        let exceptions = match self {
            Self::Anywhere => return Ok(addresses.to_vec()),
            Self::Public(exceptions) if exceptions.hosts.iter().any(|own| own == host) => return Ok(addresses.to_vec()),
            Self::Public(exceptions) => exceptions,
        };
        let classes = exceptions.policy.classes_of(host);
        let admitted: Vec<_> = addresses.iter().copied().filter(|address| classes.admits(place(*address))).collect();
        match (admitted.is_empty(), addresses.first()) {
            (false, _) | (true, None) => Ok(admitted),
            (true, Some(first)) => Err(AddressRejection(format!(
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

/// A resolver that returns only permitted addresses.
pub(crate) struct Guard {
    reach: AllowedAddresses,
    names: Arc<dyn Resolve>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, host) = (self.reach.clone(), normal_host(name.as_str()));
        let resolving = self.names.resolve(name);
        Box::pin(async move {
            let found: Vec<IpAddr> = resolving.await?.map(|address| address.ip()).collect();
            let admitted = reach.admit(&host, &found)?;
            Ok(Box::new(admitted.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

/// The resolver of the operating system.
struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The rejection behind an error of the HTTP client, if there is one.
pub(crate) fn refusal<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e AddressRejection> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<AddressRejection>() {
            return Some(refused);
        }
        cause = error.source();
    }
    None
}

/// The literal IP address of a URL, if it has one.
fn literal(url: &Url) -> Option<IpAddr> {
    normal_host(url.host_str()?).parse().ok()
}

#[cfg(test)]
mod tests;
